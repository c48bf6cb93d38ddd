// The directory of a zip file, with every member checked against its own header.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

struct ZipMember {
  std::string name;     // a label, never a path
  uint16_t method = 0;  // 0: stored as it is
  uint32_t crc32 = 0;
  uint64_t size = 0;  // unpacked
  ByteRange data;
  uint64_t header = 0;  // where its own begins, in front of the data
};

inline constexpr uint64_t kMaxZipMembers = 100'000;
inline constexpr uint64_t kMaxZipDirectoryBytes = uint64_t{64} << 20;

// What is in one: of a deflated member that is fetched with its own header, unpacked into
// `scratch`, its CRC-32 verified where the header has it; of a stored one, fetched without,
// `fetched`. kDataLoss: it has not `bytes`.
Result<ByteView> OpenZipMember(ByteView fetched, uint64_t bytes, std::vector<std::byte>* scratch,
                               const Place& place = {});

// In the order of their data, none of which overlap. kDataLoss: no zip, damage, members that
// overlap or say other things than the directory; kUnimplemented: several disks, encryption.
Result<std::vector<ZipMember>> ReadZip(const Shard& shard, ScanReport* report);

}  // namespace forebay::format
