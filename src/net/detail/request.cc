#include "net/detail/request.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

namespace forebay::net::detail {
namespace {

// Eight bytes at a time: this runs over every byte that is sent.
bool HasControl(std::string_view text) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = kOnes * 0x80;
  while (text.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    const uint64_t low = (word - kOnes * 0x20) & ~word;  // a byte below 0x20
    const uint64_t del = ((word ^ (kOnes * 0x7f)) - kOnes) & ~(word ^ (kOnes * 0x7f));
    if (((low | del) & kHighs) != 0) break;  // or a borrow: look closely
    text.remove_prefix(8);
  }
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

Status NoUrl(std::string_view url) {
  return Status(Code::kInvalidArgument, fmt::format("not a URL to send: {}", url));
}

}  // namespace

Status CheckRequest(const HttpRequest& request) {
  const std::string& url = request.url;
  const bool known = url.starts_with("http://") || url.starts_with("https://");
  if (!known || HasControl(url) || url.find(' ') != url.npos || url.find('#') != url.npos) {
    return NoUrl(url);
  }
  for (const auto& [name, value] : request.headers) {
    if (name.empty() || HasControl(name) || name.find_first_of(": ") != std::string::npos ||
        HasControl(value)) {
      return Status(Code::kInvalidArgument,
                    fmt::format("the header '{}' cannot be sent as it stands", name));
    }
  }
  return {};
}

Result<UrlParts> SplitUrl(std::string_view url) {
  UrlParts parts;
  parts.tls = url.starts_with("https://");
  const size_t begin = url.find("://");
  if (begin == url.npos) return NoUrl(url);
  const size_t end = std::min(url.find_first_of("/?", begin + 3), url.size());
  parts.origin = url.substr(0, end);
  parts.authority = url.substr(begin + 3, end - begin - 3);
  parts.target = url.substr(end);
  parts.port = parts.tls ? 443 : 80;
  const size_t bracket = parts.authority.find(']');
  const size_t colon = parts.authority.find(':', bracket == url.npos ? 0 : bracket);
  parts.host = parts.authority.substr(0, colon);
  if (parts.host.empty() || parts.authority.find('@') != url.npos) return NoUrl(url);
  if (colon == url.npos) return parts;
  const std::string_view port = parts.authority.substr(colon + 1);
  const auto parsed = std::from_chars(port.data(), port.data() + port.size(), parts.port);
  if (parsed.ec != std::errc() || parsed.ptr != port.data() + port.size() || parts.port == 0) {
    return NoUrl(url);
  }
  return parts;
}

}  // namespace forebay::net::detail
