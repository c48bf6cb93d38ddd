// Writes MosaicML's shards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "format/mds.h"

namespace forebay::format {

class MdsWriter {
 public:
  // Columns are put into the order of their names. Errors: kInvalidArgument (a name twice, or one
  // that is no UTF-8; none at all).
  static Result<MdsWriter> Make(std::vector<MdsColumn> columns);

  // In the order that the values have to come in.
  const std::vector<MdsColumn>& columns() const { return columns_; }
  // Errors: kInvalidArgument (a value that its column cannot hold), kResourceExhausted (offsets of
  // 32 bits end at 4 GiB).
  Status Add(const std::vector<ByteView>& values);
  uint64_t samples() const { return ends_.size(); }
  // The whole shard.
  Result<std::vector<std::byte>> Finish();
  void Reserve(uint64_t bytes) { samples_.reserve(bytes); }

 private:
  explicit MdsWriter(std::vector<MdsColumn> columns) : columns_(std::move(columns)) {}

  std::vector<MdsColumn> columns_;
  std::vector<std::byte> samples_;
  std::vector<uint32_t> ends_;
};

// Bytes of a value of this encoding; none: each has its own.
std::optional<uint64_t> MdsBytesOf(std::string_view encoding);

// The index.json of shards that are not compressed.
std::string MdsIndexText(const std::vector<MdsColumn>& columns,
                         const std::vector<MdsShard>& shards);

}  // namespace forebay::format
