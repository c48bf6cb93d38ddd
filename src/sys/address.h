// IP addresses, and the system's blocking lookup of names.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"

namespace forebay::sys {

struct IpAddress {
  std::array<uint8_t, 16> bytes{};  // in network order; IPv4 uses the first four
  bool is_v6 = false;
  uint32_t scope = 0;  // the interface of a link-local IPv6 address, else 0

  auto operator<=>(const IpAddress&) const = default;
  std::string ToString() const;  // "10.0.0.1", "fd00::1", without brackets or scope
};

// "10.0.0.1", "fd00::1" or "[fd00::1]"; none for anything else.
std::optional<IpAddress> ParseIpAddress(std::string_view text);

// Asks the system (files, DNS, whatever it is set up for) and waits, possibly for many seconds.
// Both families, in the order of preference that the system gives them, each once, never empty.
// Errors: kUnavailable.
Result<std::vector<IpAddress>> LookUpHost(const std::string& host);

}  // namespace forebay::sys
