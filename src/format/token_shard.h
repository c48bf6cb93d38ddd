// Token files as shards: a record is a document, where the file or the index beside it says where
// documents end, else all of the file. One field, "tokens".
#pragma once

#include <optional>

#include "format/record.h"
#include "format/tokens.h"

namespace forebay::format {

struct TokenShardOptions {
  std::optional<TokenType> type;  // of files that do not say it
};

// What indexes are called: "x.bin" has "x.idx" beside it.
inline constexpr std::string_view kTokenIndexName = ".idx";

// llm.c's files by their content; others are named .bin: with an index beside them, or of nothing
// but tokens of `type`.
Result<bool> IsTokenShard(const Shard& shard, const TokenShardOptions& options);

// Errors: kDataLoss, kInvalidArgument (the type is not known), those of reading.
Status ScanTokens(const Shard& shard, const TokenShardOptions& options, const OnRecord& on_record,
                  ScanReport* report);

}  // namespace forebay::format
