// The floor of http_bench: the same signed requests in a loop that does nothing else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace forebay::bench {

struct Shape {
  std::string name;
  std::string object;  // "8M": objects 8M-0 to 8M-63 of `bytes` each
  uint64_t bytes = 0;
  size_t in_flight = 1;
  size_t requests = 1;
};

struct Server {
  std::string endpoint;  // http://127.0.0.1:PORT or https://
  std::string ca_bundle;
  std::string bucket;
  bool tls() const { return endpoint.starts_with("https"); }
};

struct Measured {
  double cpu_s = 0;   // of the thread that does the work
  double user_s = 0;  // of that, in user mode
  double wall_s = 0;
};

inline constexpr size_t kObjects = 64;
inline constexpr char kAccessKey[] = "AKIDEXAMPLE";
inline constexpr char kSecretKey[] = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

// CRC-32C of bytes that follow those of `crc`.
uint32_t Crc32c(uint32_t crc, ByteView bytes);
// What the calling thread has used so far.
Measured ThreadUsage();
[[noreturn]] void Die(const std::string& why);

// Each of `shape.requests` requests into one of the `shape.in_flight` buffers; the CRC of each body
// must be the one that `crcs` has for its object, or is put there when it is 0.
Measured RunFloor(const Server& server, const Shape& shape, std::span<std::byte> buffers,
                  std::vector<uint32_t>& crcs);

}  // namespace forebay::bench
