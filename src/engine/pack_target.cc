#include "engine/pack_target.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace forebay::engine {

const std::vector<std::string>& PackFormatNames() {
  static const std::vector<std::string> names = {
      "tar", "tfrecord", "recordio", "recordio-image", "recordio-protobuf", "mds", "parquet"};
  return names;
}

Result<std::unique_ptr<PackTarget>> PackTarget::Make(const PackOptions& options,
                                                     const std::string& source_format) {
  // What those records hold is only a record's bytes, which go from one framing into another.
  const bool raw =
      options.columns.empty() && (source_format == "tfrecord" || source_format == "recordio" ||
                                  source_format == "recordio-protobuf");
  if (options.to == "tar") return MakeTarTarget();
  if (options.to == "mds") return MakeMdsTarget();
  if (options.to == "parquet") return MakeParquetTarget();
  if (options.to == "tfrecord") return MakeTfRecordTarget(raw);
  if (options.to == "recordio") return MakeRecordIoTarget();
  if (options.to == "recordio-image") return MakeImageTarget(options.labels == "none");
  if (options.to == "recordio-protobuf")
    return MakeProtobufTarget(raw, source_format == "npz", options);
  return Status(Code::kInvalidArgument,
                fmt::format("pack to '{}': {}", options.to, fmt::join(PackFormatNames(), ", ")));
}

std::string PackTarget::ShardName(uint64_t number, uint64_t count) const {
  const size_t digits = std::max<size_t>(6, std::to_string(count - 1).size());
  return fmt::format("shard-{:0{}}{}", number, digits, ending_);
}

std::string PackTarget::IndexOf(const std::vector<PackedShard>&) const { return ""; }

}  // namespace forebay::engine
