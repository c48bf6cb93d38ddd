// --shard I/N: which of N machines this is.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace forebay::cli {

struct Share {
  uint64_t share = 0;
  uint64_t shares = 1;
};

// "0/8" to "7/8"; none: anything else.
std::optional<Share> ParseShare(std::string_view text);

}  // namespace forebay::cli
