#include "net/detail/request.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "base/ascii.h"

namespace forebay::net::detail {
namespace {

Status NoUrl(std::string_view url) {
  return Status(Code::kInvalidArgument, fmt::format("not a URL to send: {}", HideUserinfo(url)));
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
