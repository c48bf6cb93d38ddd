// The checksums that S3 keeps of whole objects: CRC-64/NVME, which is its own; CRC-32C, which was
// there before it and which some stores know alone; CRC-32, which other clients write.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/crc64.h"
#include "net/http.h"

namespace forebay::store::s3 {

enum class ChecksumKind : uint8_t { kNone, kCrc64Nvme, kCrc32c, kCrc32 };

// "x-amz-checksum-crc64nvme", and as x-amz-checksum-algorithm names it; "" of kNone.
std::string_view ChecksumHeader(ChecksumKind kind);
std::string_view ChecksumName(ChecksumKind kind);
// By its name; kNone of any other.
ChecksumKind ChecksumNamed(std::string_view name);

class Checksum {
 public:
  explicit Checksum(ChecksumKind kind) : kind_(kind) {}
  void Add(ByteView bytes);
  // As the header has it: base64 of the number, its highest byte first.
  std::string Text() const;
  ChecksumKind kind() const { return kind_; }

 private:
  const ChecksumKind kind_;
  Crc64 crc64_;
  uint32_t crc32_ = 0;  // of either of the two
};

// What an answer says of the object's bytes as a whole, where it does so by one of these.
struct ToldChecksum {
  ChecksumKind kind;
  std::string text;
};
std::optional<ToldChecksum> FullObjectChecksum(const net::HttpHead& head);

}  // namespace forebay::store::s3
