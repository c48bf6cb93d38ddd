#include "share.h"

#include <charconv>

namespace forebay::cli {

std::optional<Share> ParseShare(std::string_view text) {
  Share share;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, share.share);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '/') return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, share.shares);
  if (second.ec != std::errc() || second.ptr != end || share.share >= share.shares) {
    return std::nullopt;
  }
  return share;
}

}  // namespace forebay::cli
