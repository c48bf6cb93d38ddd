// Which format a shard is: by its content, and by its name only where the content could be several.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace forebay::format {

enum class Kind : uint8_t {
  kUnknown,
  kTar,
  kTfRecord,
  kRecordIo,
  kMds,
  kJsonl,
  kCsv,
  kParquet,
  kNpy,
  kNpz,
  kArrow,
  kBeton,
  kLitData,
  kLlmcTokens,     // llm.c's token files
  kMegatronIndex,  // the .idx beside Megatron's and fairseq's tokens
  kGzip,
  kZlib,
  kZstd,
  kBzip2,
  kXz,
  kZip,
  kErrorPage,
  kGitLfs,
};

// "tar", "tfrecord" and so on, as format= takes them.
std::string_view KindName(Kind kind);

inline constexpr size_t kSniffBytes = 4096;

// `head`: the first bytes of the shard, kSniffBytes of them or all there are. `name` may be "".
Kind Sniff(ByteView head, uint64_t shard_size, std::string_view name);

}  // namespace forebay::format
