// What a container format is to the rest of Forebay: a scan finds the records of a shard and where
// their fields lie; taking a fetched record apart is each format's own function. No I/O of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::format {

// Reads exactly this range of a shard. Blocking.
using ReadAt = std::function<Status(ByteRange range, MutableBytes into)>;
// All bytes of another file of the data set, by its name. Blocking. Errors: kNotFound,
// kResourceExhausted (it has more than `most`).
using ReadBeside =
    std::function<Result<std::vector<std::byte>>(const std::string& name, uint64_t most)>;

// A file of records, as it lies in the store.
struct Shard {
  std::string name;  // for texts, and where a format goes by it; never a path to open
  uint64_t size = 0;
  ReadAt read;
  ReadBeside beside = {};  // where the format needs it
};

// One field of a record.
struct FoundField {
  std::string name;
  ByteRange range;     // in the shard: what has to be read for it
  uint64_t bytes = 0;  // of the field itself; not range.size() where framing has to be taken out
  std::optional<uint32_t> crc32c = {};  // of the bytes of `range`, where the scan saw them
  // Of numbers in C order, little-endian: their type, as NumPy says, and the array's shape. "":
  // bytes.
  std::string dtype = "";
  std::vector<int64_t> shape = {};
};

struct FoundRecord {
  std::string key;  // unique or not, maybe ""; a label, never a path
  ByteRange range;  // spans all its fields and the framing that is checked when it is read
  std::vector<FoundField> fields;
};

// Something odd that is no reason to refuse the shard. Told to the user before training.
struct Oddity {
  uint64_t offset = 0;
  std::string what;  // "a symbolic link, left out"
};

struct ScanReport {
  static constexpr size_t kOdditiesKept = 100;  // the rest is only counted

  uint64_t records = 0;
  uint64_t bytes_read = 0;
  uint64_t unpacked_bytes = 0;  // of a shard that was unpacked to be scanned, in all
  uint64_t oddities = 0;
  std::vector<Oddity> first_oddities;

  void Note(uint64_t offset, std::string what) {
    ++oddities;
    if (first_oddities.size() < kOdditiesKept) first_oddities.push_back({offset, std::move(what)});
  }
};

// Takes the records in the order of their offsets. An error ends the scan and is its result.
using OnRecord = std::function<Status(FoundRecord record)>;

}  // namespace forebay::format
