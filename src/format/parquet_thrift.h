// Thrift's compact encoding, as far as it has to be looked at before Arrow does: the heads of
// pages, and the shape of a footer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "format/damage.h"

namespace forebay::format {

struct ParquetLimits {
  uint64_t page_bytes = 1ULL << 30;      // uncompressed
  uint64_t free_ratio_bytes = 64 << 20;  // up to which any ratio is believed
  uint64_t ratio = 1000;                 // uncompressed to compressed, above that
  uint64_t values_bytes = 1ULL << 30;    // of a column's values; more only within that ratio
  uint64_t footer_bytes = 256ULL << 20;
  uint64_t header_bytes = 16ULL << 20;
  uint64_t string_bytes = 100'000'000;
  uint64_t list_elements = 1'000'000;
  int depth = 64;
};

struct ParquetPageHead {
  enum class Type : uint8_t { kData = 0, kIndex = 1, kDictionary = 2, kDataV2 = 3 };
  Type type = Type::kData;
  uint64_t offset = 0;      // of its header, in what was walked
  uint64_t head_bytes = 0;  // of the header
  uint64_t bytes = 0;       // behind it, as they are stored
  uint64_t uncompressed = 0;
  uint64_t entries = 0;  // of a dictionary: its values
  std::optional<uint32_t> crc;
  bool is_data() const { return type == Type::kData || type == Type::kDataV2; }
};

// The pages that lie in `bytes` one after the other, until `entries` are found, or all; checks
// sizes and checksums. Errors: kDataLoss.
Result<std::vector<ParquetPageHead>> WalkParquetPages(ByteView bytes,
                                                      std::optional<uint64_t> entries,
                                                      const ParquetLimits& limits,
                                                      const Place& place);

// Whether a footer may be parsed by what recurses and allocates as it is told. Errors: kDataLoss.
Status CheckParquetFooter(ByteView footer, const ParquetLimits& limits, const Place& place);

}  // namespace forebay::format
