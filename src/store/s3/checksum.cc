#include "store/s3/checksum.h"

#include <array>

#include "base/crc32.h"
#include "base/crc32c.h"

namespace forebay::store::s3 {
namespace {

constexpr std::array kKinds{ChecksumKind::kCrc64Nvme, ChecksumKind::kCrc32c, ChecksumKind::kCrc32};

std::string Base64(uint64_t number, int bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  number <<= 64 - 8 * bytes;
  std::string text;
  for (int bits = 8 * bytes; bits > 0; bits -= 6, number <<= 6) text += kDigits[number >> 58];
  text.resize(static_cast<size_t>(bytes + 2) / 3 * 4, '=');
  return text;
}

}  // namespace

std::string_view ChecksumHeader(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::kCrc64Nvme:
      return "x-amz-checksum-crc64nvme";
    case ChecksumKind::kCrc32c:
      return "x-amz-checksum-crc32c";
    case ChecksumKind::kCrc32:
      return "x-amz-checksum-crc32";
    case ChecksumKind::kNone:
      break;
  }
  return "";
}

std::string_view ChecksumName(ChecksumKind kind) {
  switch (kind) {
    case ChecksumKind::kCrc64Nvme:
      return "CRC64NVME";
    case ChecksumKind::kCrc32c:
      return "CRC32C";
    case ChecksumKind::kCrc32:
      return "CRC32";
    case ChecksumKind::kNone:
      break;
  }
  return "";
}

ChecksumKind ChecksumNamed(std::string_view name) {
  for (const ChecksumKind kind : kKinds) {
    if (ChecksumName(kind) == name) return kind;
  }
  return ChecksumKind::kNone;
}

void Checksum::Add(ByteView bytes) {
  if (kind_ == ChecksumKind::kCrc64Nvme) crc64_.Add(bytes);
  if (kind_ == ChecksumKind::kCrc32c) crc32_ = ExtendCrc32c(crc32_, bytes);
  if (kind_ == ChecksumKind::kCrc32) crc32_ = ExtendCrc32(crc32_, bytes);
}

std::string Checksum::Text() const {
  switch (kind_) {
    case ChecksumKind::kCrc64Nvme:
      return Base64(crc64_.value(), 8);
    case ChecksumKind::kCrc32c:
    case ChecksumKind::kCrc32:
      return Base64(crc32_, 4);
    case ChecksumKind::kNone:
      break;
  }
  return "";
}

std::optional<ToldChecksum> FullObjectChecksum(const net::HttpHead& head) {
  const std::string_view type = net::FindHeader(head.headers, "x-amz-checksum-type");
  // Without a type it is the object's own unless the object is made of parts.
  const std::string_view etag = net::FindHeader(head.headers, "etag");
  if (type.empty() ? etag.find('-') != etag.npos : type != "FULL_OBJECT") return {};
  for (const ChecksumKind kind : kKinds) {
    const std::string_view text = net::FindHeader(head.headers, ChecksumHeader(kind));
    // One of the parts' checksums ends in their number.
    if (!text.empty() && text.find('-') == text.npos) return ToldChecksum{kind, std::string(text)};
  }
  return {};
}

}  // namespace forebay::store::s3
