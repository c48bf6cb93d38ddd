#include "net/proxy.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "sys/address.h"

namespace forebay::net {
namespace {

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// Whether `ip` lies in the network "10.0.0.0/8", or is the address "10.1.2.3".
bool IsIn(const sys::IpAddress& ip, std::string_view network) {
  const size_t slash = network.find('/');
  const std::optional<sys::IpAddress> base = sys::ParseIpAddress(network.substr(0, slash));
  if (!base || base->is_v6 != ip.is_v6) return false;
  const unsigned most = ip.is_v6 ? 128 : 32;
  unsigned bits = most;
  if (slash != network.npos) {
    const std::string_view text = network.substr(slash + 1);
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), bits);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || bits > most) {
      return false;
    }
  }
  for (unsigned i = 0; i < bits; ++i) {
    const auto mask = static_cast<uint8_t>(0x80U >> (i % 8));
    if (((ip.bytes[i / 8] ^ base->bytes[i / 8]) & mask) != 0) return false;
  }
  return true;
}

}  // namespace

bool IsLoopbackHost(std::string_view host) {
  if (const auto ip = sys::ParseIpAddress(host)) {
    return ip->is_v6 ? *ip == *sys::ParseIpAddress("::1") : ip->bytes[0] == 127;
  }
  const std::string lower = Lower(host);
  return lower == "localhost" || lower.ends_with(".localhost");
}

ProxyRules::ProxyRules(const Variables& variables) {
  const auto is_set = [&](const char* name) { return !variables(name).empty(); };
  const bool all = is_set("all_proxy") || is_set("ALL_PROXY");
  // In capitals it may be a header of a request that a CGI program serves.
  http_ = is_set("http_proxy") || (is_set("HTTP_PROXY") && !is_set("REQUEST_METHOD")) || all;
  https_ = is_set("https_proxy") || is_set("HTTPS_PROXY") || all;
  std::string list = variables("no_proxy");
  if (list.empty()) list = variables("NO_PROXY");
  list = Lower(list);
  excluded_all_ = list == "*";
  std::string_view rest(list);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find_first_of(", \t"), rest.size());
    std::string_view name = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (name == "*") excluded_all_ = true;
    if (name.starts_with('*')) name.remove_prefix(1);
    if (name.starts_with('.')) name.remove_prefix(1);
    if (name.ends_with('.')) name.remove_suffix(1);
    if (!name.empty()) excluded_.emplace_back(name);
  }
}

bool ProxyRules::Applies(bool tls, std::string_view host) const {
  if (!(tls ? https_ : http_) || excluded_all_ || IsLoopbackHost(host)) return false;
  const std::optional<sys::IpAddress> ip = sys::ParseIpAddress(host);
  std::string name = Lower(host);
  if (name.ends_with('.')) name.pop_back();
  return std::ranges::none_of(excluded_, [&](const std::string& excluded) {
    if (ip) return IsIn(*ip, excluded);
    return name == excluded || name.ends_with("." + excluded);
  });
}

}  // namespace forebay::net
