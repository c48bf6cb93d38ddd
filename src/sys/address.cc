#include "sys/address.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <memory>

namespace forebay::sys {
namespace {

std::optional<IpAddress> FromSocketAddress(const sockaddr* address) {
  IpAddress ip;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof v4);
    std::memcpy(ip.bytes.data(), &v4.sin_addr, 4);
    return ip;
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6{};
  std::memcpy(&v6, address, sizeof v6);
  std::memcpy(ip.bytes.data(), &v6.sin6_addr, 16);
  ip.is_v6 = true;
  ip.scope = v6.sin6_scope_id;
  return ip;
}

}  // namespace

std::string IpAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes.data(), text.data(), text.size());
  return text.data();
}

std::optional<IpAddress> ParseIpAddress(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    text = text.substr(1, text.size() - 2);
  }
  const std::string terminated(text);
  IpAddress ip;
  if (::inet_pton(AF_INET, terminated.c_str(), ip.bytes.data()) == 1) return ip;
  ip.is_v6 = true;
  if (::inet_pton(AF_INET6, terminated.c_str(), ip.bytes.data()) == 1) return ip;
  return std::nullopt;
}

Result<std::vector<IpAddress>> LookUpHost(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;  // else each address comes once per socket type
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* list = nullptr;
  const int error = ::getaddrinfo(host.c_str(), nullptr, &hints, &list);
  if (error != 0) {
    return Status(Code::kUnavailable,
                  fmt::format("the name {} does not resolve: {}", host, ::gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(list, ::freeaddrinfo);
  std::vector<IpAddress> addresses;
  for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
    const std::optional<IpAddress> ip = FromSocketAddress(entry->ai_addr);
    if (ip && std::ranges::find(addresses, *ip) == addresses.end()) addresses.push_back(*ip);
  }
  if (addresses.empty()) {
    return Status(Code::kUnavailable, fmt::format("the name {} has no address", host));
  }
  return addresses;
}

}  // namespace forebay::sys
