#include "format/parquet.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "format/parquet/plugin_api.h"
#include "format/parquet_thrift.h"
#include "format/parquet_writer.h"

namespace forebay::format {
namespace {

constexpr Plugin kPlugin = {
    .file = "libforebay_parquet.so",
    .variable = "FOREBAY_PARQUET_LIBRARY",
    .build_dir = FOREBAY_FORMAT_BUILD_DIR,
    .symbol = parquet::kParquetSymbol,
    .what_needs =
        "Parquet files, and LZ4 in Arrow files, (libforebay_parquet.so, which needs "
        "Arrow " FOREBAY_ARROW ": pip install pyarrow==" FOREBAY_ARROW
        ", or FOREBAY_ARROW_DIR with its libarrow and libparquet)",
};

bool Fits(const void* api) {
  const auto* parquet = static_cast<const parquet::ParquetApi*>(api);
  return parquet->magic == parquet::kParquetMagic && parquet->size == sizeof(parquet::ParquetApi) &&
         parquet->fingerprint == parquet::ParquetFingerprint();
}

// Loads once; a failure is kept too, so that a thousand shards do not search a thousand times.
const Result<const void*>& Api() {
  static const Result<const void*> api = [] {
    LoadBefore("FOREBAY_ARROW_DIR", {FOREBAY_ARROW_FILE, FOREBAY_PARQUET_FILE});
    return LoadPlugin(kPlugin, &Fits);
  }();
  return api;
}

}  // namespace

Status ParquetIsReadable() { return Api().ok() ? Status() : Api().status(); }

Result<std::unique_ptr<ParquetWriter>> ParquetWriter::Make(std::vector<ParquetOutputColumn> columns,
                                                           uint64_t bytes) {
  FB_RETURN_IF_ERROR(ParquetIsReadable());
  std::vector<std::string> names;
  for (const ParquetOutputColumn& column : columns) names.push_back(column.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (names.empty() || twice != names.end()) {
    return Status(Code::kInvalidArgument, names.empty() ? std::string("a table without columns")
                                                        : fmt::format("two columns '{}'", *twice));
  }
  return static_cast<const parquet::ParquetApi*>(*Api())->make_writer(std::move(columns), bytes);
}

Status UnpackLz4Frame(ByteView packed, MutableBytes into) {
  FB_RETURN_IF_ERROR(ParquetIsReadable());
  return static_cast<const parquet::ParquetApi*>(*Api())->unpack_lz4_frame(packed, into);
}

Status ScanParquet(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  FB_RETURN_IF_ERROR(ParquetIsReadable());
  return static_cast<const parquet::ParquetApi*>(*Api())->scan(shard, on_record, report);
}

Status DecodeParquet(const ParquetChunk& chunk, uint64_t rows, ByteView bytes, const Place& place,
                     TableValues* out) {
  // Some bytes may repeat a value as often as they like.
  const ParquetLimits limits;
  const uint64_t values = rows * std::max<uint64_t>(chunk.column.value_bytes, 1);
  if (values > limits.values_bytes && values / limits.ratio > bytes.size()) {
    return AboveLimit(place, "the size of a Parquet column's values", values, limits.values_bytes);
  }
  FB_RETURN_IF_ERROR(ParquetIsReadable());
  std::optional<uint64_t> entries;  // of a part of lists nobody knows them
  if (chunk.column.max_repetition == 0) {
    entries = rows;
  } else if (bytes.size() == chunk.range.size()) {
    entries = chunk.entries;
  }
  FB_ASSIGN_OR_RETURN(const auto pages, WalkParquetPages(bytes, entries, {}, place));
  if (!entries) {
    entries = 0;
    for (const ParquetPageHead& page : pages) *entries += page.is_data() ? page.entries : 0;
  }
  const uint64_t all = *entries * std::max<uint64_t>(chunk.column.value_bytes, 1);
  if (all > limits.values_bytes && all / limits.ratio > bytes.size()) {
    return AboveLimit(place, "the size of a Parquet column's values", all, limits.values_bytes);
  }
  Status status =
      static_cast<const parquet::ParquetApi*>(*Api())->decode(chunk, rows, *entries, bytes, out);
  return std::move(status).WithDetail({.offset = static_cast<int64_t>(place.offset),
                                       .end = static_cast<int64_t>(place.offset + bytes.size())});
}

}  // namespace forebay::format
