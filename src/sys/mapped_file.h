// A whole file as memory, read-only: pages come from the disk when they are looked at.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::sys {

// Immutable; lives as long as somebody holds it. Who replaces the file by renaming leaves the
// mapping as it was; who cuts it short takes pages away, and looking at them ends the process.
class MappedFile {
 public:
  // Errors: those of opening, and kInvalidArgument for what is no regular file.
  static Result<std::shared_ptr<const MappedFile>> Open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  ByteView bytes() const { return {data_, size_}; }

 private:
  MappedFile(const std::byte* data, size_t size) : data_(data), size_(size) {}

  const std::byte* data_;
  size_t size_;
};

}  // namespace forebay::sys
