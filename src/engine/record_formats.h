// The container formats of records by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "catalog/records_builder.h"
#include "forebay/status.h"
#include "format/sniff.h"

namespace forebay::engine {

// What a shard is by its first bytes.
Result<format::Kind> KindOf(const format::Shard& shard);
// As in IndexOptions::format.
const std::vector<std::string>& RecordFormatNames();
// As in IndexOptions.
struct RecordFormatOptions {
  std::string token_type;
  bool drop_tail = false;
  bool concatenated = false;
  uint64_t max_damaged = 0;
};
// Errors: kInvalidArgument naming those there are, or an option that the format does not have.
Result<catalog::RecordFormat> RecordFormatOf(const std::string& name,
                                             const RecordFormatOptions& options = {});
// The format that a shard has by its content; "": none of these.
Result<std::string> FormatOfShard(const format::Shard& shard);

// The name of what a catalog says it is of.
std::string FormatName(const std::string& format, const std::string& options);

}  // namespace forebay::engine
