// The container formats of records by name.
#pragma once

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
// `token_type`: of "tokens", for files that do not say it; "": none. Errors: kInvalidArgument
// naming those there are.
Result<catalog::RecordFormat> RecordFormatOf(const std::string& name,
                                             const std::string& token_type = "");
// The format that a shard has by its content; "": none of these.
Result<std::string> FormatOfShard(const format::Shard& shard);
// That of a compressed one, by what is in it; all of it is read. "": it is not compressed, or what
// is in it is not trained from so.
Result<std::string> CompressedFormatOfShard(const format::Shard& shard);

// The name of what a catalog says it is of.
std::string FormatName(const std::string& format, const std::string& options);

}  // namespace forebay::engine
