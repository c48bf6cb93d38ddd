// Memory that the processes of one user on one machine share by a name.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "forebay/status.h"
#include "sys/fd.h"

namespace forebay::sys {

// All zero when it is made. Whoever lets go last removes the name; should that one be killed, the
// next who opens it finds what was left. Closed to other users.
class SharedMemory {
 public:
  // A file of the shared folder (sys/shared_file.h). kPermissionDenied: it is a link, another
  // user's, or open to others. Memory of another size is another's: `bytes` is part of the name.
  static Result<SharedMemory> Open(const std::string& runtime_dir, const std::string& name,
                                   size_t bytes);
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept
      : folder_(std::move(other.folder_)),
        file_(std::move(other.file_)),
        name_(std::move(other.name_)),
        data_(std::exchange(other.data_, nullptr)),
        bytes_(other.bytes_) {}
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    std::swap(folder_, other.folder_);
    std::swap(file_, other.file_);
    std::swap(name_, other.name_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~SharedMemory();

  void* data() const { return data_; }

 private:
  Fd folder_;
  Fd file_;
  std::string name_;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace forebay::sys
