// Sizes as they are written on a command line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace forebay::cli {

// "8MiB", "500 KB", "1048576"; none when it is no size.
std::optional<uint64_t> ParseSize(const std::string& text);
// "8MiB" where that is exact, else "1.2 MiB".
std::string ShortSize(uint64_t bytes);

}  // namespace forebay::cli
