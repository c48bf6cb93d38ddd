// Which requests go through a proxy: the environment's variables as libcurl reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace forebay::net {

class ProxyRules {
 public:
  // The value of a variable, "" when it is not set. Empty variables count as not set.
  using Variables = std::function<std::string(const std::string& name)>;

  ProxyRules() = default;  // none
  // http_proxy (lower case alone: HTTP_PROXY is what a CGI program's client may set), https_proxy
  // or HTTPS_PROXY, all_proxy or ALL_PROXY; and no_proxy or NO_PROXY: "*", or names with all below
  // them, numeric addresses and networks as 10.0.0.0/8, separated by commas or blanks. Loopback
  // hosts never use one.
  explicit ProxyRules(const Variables& variables);

  bool any() const { return http_ || https_; }
  // `host` as in a URL, without its port.
  bool Applies(bool tls, std::string_view host) const;

 private:
  bool http_ = false;
  bool https_ = false;
  bool excluded_all_ = false;
  std::vector<std::string> excluded_;  // lower case, without dots at their ends
};

// localhost and names below it, 127.0.0.0/8, ::1.
bool IsLoopbackHost(std::string_view host);

}  // namespace forebay::net
