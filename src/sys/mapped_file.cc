#include "sys/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

#include "sys/fd.h"

namespace forebay::sys {

Result<std::shared_ptr<const MappedFile>> MappedFile::Open(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return ErrnoStatus(errno, "cannot open", path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return ErrnoStatus(errno, "cannot look at", path);
  if (!S_ISREG(info.st_mode)) return Status(Code::kInvalidArgument, path + " is no file");
  const auto size = static_cast<size_t>(info.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (mapped == MAP_FAILED) return ErrnoStatus(errno, "cannot map", path);
    // Reading ahead would fetch what nobody asked for.
    (void)::madvise(mapped, size, MADV_RANDOM);
    data = static_cast<const std::byte*>(mapped);
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(data, size));
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace forebay::sys
