// MosaicML's MDS: shards of samples whose columns, described by a JSON text, lie one behind the
// other, and an index.json of all shards.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

struct MdsColumn {
  std::string name;
  std::string encoding;
  std::optional<uint64_t> bytes = {};  // of every sample; none: each says its own

  bool operator==(const MdsColumn&) const = default;
};

struct MdsFile {
  std::string name;  // in the folder of index.json; never a path
  uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> hashes;  // algorithm, hexadecimal
};

struct MdsShard {
  std::vector<MdsColumn> columns;
  uint64_t samples = 0;
  MdsFile raw;
  std::optional<MdsFile> zip;  // what is in the store instead, when it is compressed
  std::string compression;     // "zstd:3"; "": none
};

inline constexpr uint64_t kMaxMdsIndexBytes = uint64_t{256} << 20;

// kDataLoss: not such an index; kUnimplemented: shards of another kind than MDS.
Result<std::vector<MdsShard>> ParseMdsIndex(std::string_view json, const Place& place = {});

struct MdsOptions {
  static constexpr uint64_t kMaxSampleBytes = uint64_t{1} << 30;

  // What index.json says of the shard, which is then held to it; null: it is not known.
  const MdsShard* expected = nullptr;
  // The header alone is read: each field's range is its sample's, to be opened by OpenMdsSample,
  // and `bytes` is 0 where each sample says its own. Else the samples are read, and the ranges are
  // the columns'.
  bool header_only = false;
  uint64_t max_sample_bytes = kMaxSampleBytes;
};

// A record is a sample, its fields the columns by their names. Offsets are checked before anything
// is believed (old writers wrapped them at 4 GiB).
Status ScanMds(const Shard& shard, const MdsOptions& options, const OnRecord& on_record,
               ScanReport* report);

// The columns of one sample, each a view of it. `values` is replaced.
Status OpenMdsSample(ByteView sample, const std::vector<MdsColumn>& columns,
                     std::vector<ByteView>* values, const Place& place = {});

// What a value is, as its column's encoding says. Views point into it.
struct MdsValue {
  enum class Kind : uint8_t {
    kBytes,
    kText,
    kJson,
    kInteger,   // `integer`: it was kept as text
    kFloat,     // `number`: it was kept as text
    kArray,     // `dtype`, `shape`, `data`; a single number has no shape
    kImage,     // `data`, encoded
    kRawImage,  // `data` in the layout that PIL calls `mode`, `shape` is height and width
    kImages,    // `items`, each encoded
  };

  Kind kind = Kind::kBytes;
  std::string_view dtype;  // "int64", as NumPy says; little-endian, at any address
  std::vector<uint64_t> shape;
  ByteView data;
  int64_t integer = 0;
  double number = 0;
  std::string_view mode;
  std::vector<ByteView> items;
};
// `value` is replaced. kUnimplemented: pickled values, which are never opened, and encodings and
// layouts that are not known.
Status OpenMdsValue(ByteView bytes, std::string_view encoding, MdsValue* value,
                    const Place& place = {});

}  // namespace forebay::format
