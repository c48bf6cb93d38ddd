// How the format numbers its codecs, which is not how Arrow does.
#pragma once

#include <arrow/util/type_fwd.h>

#include <array>
#include <cstdint>

namespace forebay::format::parquet {

inline constexpr std::array kCodecs = {
    arrow::Compression::UNCOMPRESSED, arrow::Compression::SNAPPY, arrow::Compression::GZIP,
    arrow::Compression::LZO,          arrow::Compression::BROTLI, arrow::Compression::LZ4_HADOOP,
    arrow::Compression::ZSTD,         arrow::Compression::LZ4,
};

// One that the format does not know has a number that CodecOf takes for one that cannot be undone.
inline uint8_t NumberOf(arrow::Compression::type codec) {
  uint8_t number = 0;
  while (number < kCodecs.size() && kCodecs[number] != codec) ++number;
  return number;
}

inline arrow::Compression::type CodecOf(uint8_t number) {
  return number < kCodecs.size() ? kCodecs[number] : arrow::Compression::LZO;
}

}  // namespace forebay::format::parquet
