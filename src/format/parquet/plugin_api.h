// The boundary between libforebay_parquet.so, which links Arrow, and the rest. As that of
// libforebay_archive.so: C++ types, and a fingerprint that refuses a library from another build.
#pragma once

#include <cstdint>

#include "format/parquet.h"
#include "format/parquet_writer.h"
#include "format/plugin.h"

namespace forebay::format::parquet {

struct ParquetApi {
  // First, and never moved: read before anything else is trusted.
  uint32_t magic = 0;
  uint32_t size = 0;         // sizeof(ParquetApi)
  uint64_t fingerprint = 0;  // ParquetFingerprint() of the library's build

  Status (*scan)(const Shard& shard, const OnRecord& on_record, ScanReport* report) = nullptr;
  // Pages whose heads have been checked.
  Status (*decode)(const ParquetChunk& chunk, uint64_t rows, uint64_t entries, ByteView bytes,
                   TableValues* out) = nullptr;
  // As UnpackLz4Frame of format/parquet.h.
  Status (*unpack_lz4_frame)(ByteView packed, MutableBytes into) = nullptr;
  // Columns of which no two have one name.
  Result<std::unique_ptr<ParquetWriter>> (*make_writer)(std::vector<ParquetOutputColumn> columns,
                                                        uint64_t bytes) = nullptr;
};

inline constexpr uint32_t kParquetMagic = 0x46425031;  // "FBP1"
inline constexpr char kParquetSymbol[] = "forebay_parquet_api";

constexpr uint64_t ParquetFingerprint() {
  return PluginFingerprint({sizeof(ParquetApi), sizeof(Shard), sizeof(FoundRecord),
                            sizeof(FoundField), sizeof(ScanReport), sizeof(ParquetChunk),
                            sizeof(ParquetColumn), sizeof(TableValues), sizeof(ParquetOutputColumn),
                            sizeof(Status)});
}

}  // namespace forebay::format::parquet
