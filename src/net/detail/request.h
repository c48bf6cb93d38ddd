// What every transport checks of a request before it goes to a wire.
#pragma once

#include <string_view>

#include "forebay/status.h"
#include "net/http.h"

namespace forebay::net::detail {

// kInvalidArgument for a URL or a header that cannot be sent as it stands. Neither may smuggle in a
// line of its own.
Status CheckRequest(const HttpRequest& request);

// Of a URL that CheckRequest accepts. Views into it.
struct UrlParts {
  std::string_view origin;     // "https://host:port", as it stands
  std::string_view authority;  // "host:port": the Host header
  std::string_view host;       // "[::1]" for a numeric IPv6 address
  uint16_t port = 0;           // the scheme's own where none stands
  bool tls = false;
  std::string_view target;  // "/path?query", may be "" or begin with '?'
};
// kInvalidArgument for an authority that has no host, a user name, or a port that is none.
Result<UrlParts> SplitUrl(std::string_view url);

}  // namespace forebay::net::detail
