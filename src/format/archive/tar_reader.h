// libarchive over a window: from one member to the next.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "format/archive/tar_header.h"

struct archive;
struct archive_entry;

namespace forebay::format::archive {

struct TarMember {
  std::string name;
  bool is_file = false;
  ByteRange data;  // of a file; it lies in the shard unless `cut`
  bool cut = false;
};

class TarReader {
 public:
  explicit TarReader(Window* window) : window_(window) {}
  ~TarReader();
  TarReader(const TarReader&) = delete;
  TarReader& operator=(const TarReader&) = delete;

  // Reads the member whose headers begin at `offset`: where the one before ended, else the archive
  // is opened anew there. `header` is what ReadMemberHeader said of it.
  Result<TarMember> Read(uint64_t offset, const MemberHeader& header);
  // Passes over the data of the member just read: where the next headers begin.
  Result<uint64_t> End();
  // What libarchive says to a header that ReadMemberHeader did not understand.
  Status WhyDamaged(uint64_t offset);

  bool has_warning() const { return !warning_.empty(); }
  const std::string& warning() const { return warning_; }

 private:
  static constexpr size_t kPiece = 16 << 10;

  Status OpenAt(uint64_t offset);
  void Close();
  // The headers of the next member; OK or why not.
  Status NextHeader(uint64_t offset, archive_entry** entry);
  Status Failure(uint64_t offset);

  static long ReadPiece(::archive*, void* self, const void** bytes);
  static int64_t SkipBytes(::archive*, void* self, int64_t bytes);

  Window* const window_;
  ::archive* archive_ = nullptr;
  uint64_t base_ = 0;                    // where archive_ was opened
  uint64_t expected_ = 0;                // where it reads the next header
  uint64_t position_ = 0;                // of what it asks for next
  Status read_error_;                    // of the shard
  std::string warning_;                  // of the last header
  std::array<std::byte, kPiece> piece_;  // libarchive holds on to it while the window moves
};

}  // namespace forebay::format::archive
