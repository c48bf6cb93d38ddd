// A download that is not whole yet: <name>.forebay-part beside its future place. It holds the bytes
// that are there and, behind them, which parts those are and of which object version, so that a
// copy that was killed goes on where it was. Byte table: docs/formats/part.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "sys/fd.h"

namespace forebay::engine {

struct PartSource {
  std::string uri;
  std::string etag;
  uint64_t size = 0;
};

// WriteRange from any thread, for different parts at the same time; the rest from one.
class PartFile {
 public:
  // Opens or makes the file for `name` in `folder`. What an earlier copy of the same object version
  // left is kept, unless the machine has been restarted since (what reached the disk is unknown
  // then). Null: another copy has just made the same of it. Errors: kUnavailable while another
  // process writes it; one that ends is waited for, 3 s at most.
  static Result<std::unique_ptr<PartFile>> Open(sys::Fd folder, const std::string& name,
                                                const PartSource& source, uint64_t part_bytes);
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  uint64_t part_count() const { return done_.size(); }
  ByteRange part(uint64_t index) const;
  bool done(uint64_t index) const { return done_[index] != 0; }
  // The whole of part `index`, then the mark that it is there.
  Status Write(uint64_t index, ByteView bytes);
  // All parts are there: gives the file its name, replacing what is there. Where that cannot be,
  // nothing is left.
  Status Commit();

  // Whether `name` in `folder` is what an earlier Commit made of the same object version, and has
  // not been touched since. False when the file system cannot tell.
  static bool IsCopyOf(const sys::Fd& folder, const std::string& name, const PartSource& source);

 private:
  PartFile(sys::Fd folder, std::string name, PartSource source, uint64_t part_bytes);
  // False: the file had been given its name before it was locked.
  Result<bool> OpenLocked();
  std::string Header() const;
  Status Prepare();

  sys::Fd folder_;
  std::string name_;
  std::string part_name_;
  PartSource source_;
  uint64_t part_bytes_;
  uint64_t marks_offset_ = 0;
  std::vector<uint8_t> done_;  // one element per part, each written by the thread that has the part
  sys::Fd file_;
};

}  // namespace forebay::engine
