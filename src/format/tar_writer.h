// Writes tar files: ustar, everything that could differ from run to run left out (times, owners).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::format {

class TarWriter {
 public:
  static constexpr uint64_t kMaxMemberBytes = (uint64_t{1} << 33) - 1;  // of a size in octal
  // Of the mark of the end, and of the padding that makes the whole a multiple of it.
  static constexpr uint64_t kRecordBytes = 10'240;

  // Errors: kInvalidArgument (a name that is empty, holds NUL, or ends in a slash; data too large).
  Status Add(std::string_view name, ByteView data);
  // The whole archive.
  std::vector<std::byte> Finish();

  void Reserve(uint64_t bytes) { bytes_.reserve(bytes); }
  // Of a member with everything before and behind it.
  static uint64_t BytesOf(std::string_view name, uint64_t data_bytes);

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace forebay::format
