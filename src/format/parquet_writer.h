// Writes Parquet files, as everything that reads tables reads them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::format {

struct ParquetOutputColumn {
  enum class Kind : uint8_t {
    kNumber,
    kList,  // of numbers: a row has as many as it has
    kBytes,
    kText,  // valid UTF-8
  };
  std::string name;
  Kind kind = Kind::kBytes;
  std::string dtype;           // of numbers, as in OutputField
  bool is_compressed = false;  // its bytes are, as a picture's: nothing is gained by trying again
  bool operator==(const ParquetOutputColumn&) const = default;
};

// One file, made in memory. Row groups of about 16 MiB, with page indexes and checksums.
class ParquetWriter {
 public:
  // `bytes`: of the file, about. Errors: kInvalidArgument (a name twice or none, a type that
  // Parquet has not), kUnimplemented (no Arrow on this machine).
  static Result<std::unique_ptr<ParquetWriter>> Make(std::vector<ParquetOutputColumn> columns,
                                                     uint64_t bytes);
  virtual ~ParquetWriter() = default;

  // One value of each column, in their order; numbers little-endian. Errors: kInvalidArgument (not
  // of the column's type), kResourceExhausted (a value of over 1 GiB).
  virtual Status Add(const std::vector<ByteView>& row) = 0;
  virtual Result<std::vector<std::byte>> Finish() = 0;
};

}  // namespace forebay::format
