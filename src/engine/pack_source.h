// What is packed: the samples of a data set, in order, with where their fields lie.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "catalog/files_block.h"
#include "engine/index_job.h"
#include "forebay/pack.h"
#include "format/container.h"

namespace forebay::engine {

struct PackField {
  std::string name;         // under which it is written
  std::string origin = "";  // what the source calls it; "": the same
  uint64_t object = 0;
  ByteRange range;     // in it
  uint64_t bytes = 0;  // of the field itself
  std::optional<uint32_t> crc32c = {};
  std::string dtype = "";
  std::vector<int64_t> shape = {};
  std::optional<std::string> literal = {};  // its bytes, which lie nowhere
  bool from_text = false;     // the bytes are a number as text, `dtype` what it becomes
  std::string encoding = "";  // MDS's, or "bytes", where it was asked for
};

struct PackSample {
  std::string key;      // "": it has none
  uint64_t number = 0;  // in the data set
  uint64_t source = 0;  // its first object, for messages
  std::vector<PackField> fields;
};

// Immutable, shared by any number of threads.
class PackSource {
 public:
  // Where a sample begins, to go on from. Small, and to be copied.
  struct Cursor {
    uint64_t position = 0;
    uint64_t number = 0;
  };
  struct LeftOut {
    uint64_t files = 0;
    std::vector<std::string> warnings;
  };

  virtual ~PackSource() = default;
  // The next sample; false: there is none. What is no sample's is told to `left_out`, unless null.
  virtual Result<bool> Next(Cursor* cursor, PackSample* sample, LeftOut* left_out) const = 0;
  virtual Result<catalog::FileEntry> ObjectAt(uint64_t object) const = 0;
  // A field's own bytes: a view of `fetched`, those of its range, or of `scratch`.
  virtual Result<ByteView> Open(const PackField& field, ByteView fetched,
                                std::vector<std::byte>* scratch) const = 0;
  // Whether objects have to be read and unpacked whole (pack_unpacked.h): ranges are of what is in
  // them.
  virtual bool unpacks() const { return false; }
  // What one that is looked at holds in memory, at most.
  virtual uint64_t held_bytes() const { return 0; }
  // Everything that the samples depend on.
  virtual std::string id() const = 0;
  const std::string& format() const { return format_; }

 protected:
  explicit PackSource(std::string format) : format_(std::move(format)) {}

 private:
  const std::string format_;
};

// Indexes the source, unless there is a catalog; `left_out`: what is none of its objects.
Result<std::unique_ptr<PackSource>> OpenPackSource(const IndexJob& job, const PackOptions& options,
                                                   PackSource::LeftOut* left_out);

}  // namespace forebay::engine
