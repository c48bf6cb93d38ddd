// What libarchive does not tell of the headers before a member: its exact type, the names' raw
// bytes, and what an extended header asks for. Looked at before libarchive reads them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "format/window.h"

namespace forebay::format::archive {

inline constexpr uint64_t kBlock = 512;
// Of the extended headers and long names before one member, all together.
inline constexpr uint64_t kMaxExtendedBytes = uint64_t{1} << 20;

struct MemberHeader {
  enum class Kind {
    kMember,
    kZeros,    // the end of the archive
    kNothing,  // the end of the shard
    kDamaged,  // not a header: libarchive says why
  };
  Kind kind = Kind::kNothing;
  uint64_t offset = 0;              // of the member's own header block, behind the extended ones
  char type = 0;                    // '0' and 0: a file
  std::optional<uint64_t> size;     // as the header says; none: not octal
  std::optional<std::string> name;  // where an extended header gives it
};

// The headers from `offset` on. Errors: kDataLoss for a cut or ambiguous extended header and names
// with NUL; kUnimplemented for a name or size given to all members at once, and sparse members.
Result<MemberHeader> ReadMemberHeader(Window* window, uint64_t offset);

}  // namespace forebay::format::archive
