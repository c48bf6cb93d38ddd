// What reader and writer of a catalog of records agree on. Byte table: docs/formats/records.md.
#pragma once

#include <cstdint>

#include "catalog/block_file.h"
#include "catalog/files_format.h"
#include "catalog/records_block.h"

namespace forebay::catalog {

inline constexpr BlockFileKind kRecordsKind{.magic = "FBRECRD\n", .version = 2, .of = "records"};
inline constexpr uint64_t kRecordsMost = uint64_t{1} << 48;
inline constexpr uint64_t kFieldsMost = 4096;

constexpr uint64_t RecordBlocksFor(uint64_t records) {
  return (records + kRecordsPerBlock - 1) / kRecordsPerBlock;
}

}  // namespace forebay::catalog
