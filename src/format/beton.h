// FFCV's .beton, version 2: read, never written.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

enum class BetonType : uint8_t {
  kFloat = 0,
  kInt = 1,
  kImage = 2,
  kBytes = 3,
  kArray = 4,
  kJson = 5,
  kTensor = 6,
};

struct BetonField {
  std::string name;
  BetonType type = BetonType::kInt;
  uint64_t offset = 0;         // in a sample's row
  uint64_t array_bytes = 0;    // of kArray and kTensor
  std::string dtype;           // of kArray, as NumPy says; "": of no type that is known
  std::vector<int64_t> shape;  // of kArray
};

struct BetonLayout {
  std::vector<BetonField> fields;
  uint64_t samples = 0;
  uint64_t page_bytes = 0;
  uint64_t row_bytes = 0;
  ByteRange rows;      // one a sample
  uint64_t data = 0;   // where the first page begins
  uint64_t table = 0;  // where the list of what was allocated begins; it reaches the end
};

inline constexpr uint64_t kMaxBetonFields = 1000;
inline constexpr uint64_t kMaxBetonSamples = uint64_t{64} << 20;
inline constexpr uint64_t kMaxBetonEntries = uint64_t{64} << 20;

// Of a file's first bytes: kBetonHeader, then as many as BetonHeadBytes says of them.
inline constexpr uint64_t kBetonHeader = 24;
uint64_t BetonHeadBytes(ByteView header);
Result<BetonLayout> ParseBeton(ByteView head, uint64_t file_size, const Place& place = {});

// A record is a sample: of numbers the field's range is that in the sample's row (float64, int64),
// of the rest that of its data, which may lie far behind. Records come in the order of their rows.
// An encoded image's field is its bytes, a raw one's its pixels (height, width, 3); which it is,
// and of what size, its row says (OpenBetonImage), whose range is the field NAME.row.
Status ScanBeton(const Shard& shard, const OnRecord& on_record, ScanReport* report);

// What a row says of an image: 13 bytes.
struct BetonImage {
  bool raw = false;  // else JPEG
  uint16_t width = 0;
  uint16_t height = 0;
  uint64_t offset = 0;
};
Result<BetonImage> OpenBetonImage(ByteView row, const Place& place = {});

}  // namespace forebay::format
