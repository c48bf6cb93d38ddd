#include "format/beton_table.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "format/beton.h"
#include "format/packed_numbers.h"

namespace forebay::format {
namespace {

constexpr uint64_t kPackedVersion = 1;
constexpr uint64_t kGroupRows = 1024;
constexpr uint64_t kGapBytes = 64 << 10;  // read through rather than asked for apart
constexpr uint64_t kBytesMost = uint64_t{1} << 50;

// Samples until there are enough of them for a group.
class Grouping {
 public:
  Grouping(const Shard& shard, const OnRecord& on_record, ScanReport* report)
      : shard_(shard), on_record_(on_record), report_(report) {}

  Status Add(FoundRecord sample) {
    if (rows_end_ == 0) FB_RETURN_IF_ERROR(FindRows());
    samples_.push_back(std::move(sample));
    return samples_.size() == kGroupRows ? Flush() : Status();
  }

  Status Flush() {
    if (samples_.empty()) return {};
    FoundRecord record{.range = samples_[0].range, .fields = samples_[0].fields};
    BetonGroup group{.rows = samples_.size()};
    for (size_t i = 0; i < record.fields.size(); ++i) AddColumn(i, record.fields[i], group);
    for (const FoundField& field : record.fields) {
      record.range.end = std::max(record.range.end, field.range.end);
    }
    record.key = PackBetonGroup(group);
    samples_.clear();
    report_->records += group.rows;
    return on_record_(std::move(record));
  }

 private:
  // What lies apart from the samples' rows lies behind them. The scan has looked at the head.
  Status FindRows() {
    std::vector<std::byte> head(kBetonHeader);
    FB_RETURN_IF_ERROR(shard_.read({0, head.size()}, head));
    head.resize(BetonHeadBytes(head));
    FB_RETURN_IF_ERROR(shard_.read({0, head.size()}, head));
    FB_ASSIGN_OR_RETURN(const BetonLayout layout, ParseBeton(head, shard_.size, {shard_.name, 0}));
    rows_end_ = layout.rows.end;
    row_bytes_ = layout.row_bytes;
    return {};
  }

  void AddColumn(size_t i, FoundField& field, BetonGroup& group) const {
    BetonChunk chunk;
    field.bytes = 0;
    for (const FoundRecord& sample : samples_) {
      const FoundField& one = sample.fields[i];
      field.bytes += one.bytes;
      field.range = {std::min(field.range.offset, one.range.offset),
                     std::max(field.range.end, one.range.end)};
      chunk.places.push_back(one.range);
    }
    if (!field.dtype.empty()) {
      chunk.value_bytes = static_cast<uint32_t>(samples_[0].fields[i].range.size());
    }
    if (field.range.offset < rows_end_) {
      chunk.places.clear();
      chunk.row_bytes = row_bytes_;
    }
    chunk.range = field.range;
    group.chunks.push_back(std::move(chunk));
  }

  const Shard& shard_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  std::vector<FoundRecord> samples_;
  uint64_t rows_end_ = 0, row_bytes_ = 0;
};

bool UnpackPlaces(NumberUnpacker& in, uint64_t rows, BetonChunk& chunk) {
  uint64_t at = chunk.range.offset;
  for (uint64_t row = 0; row < rows && in.ok(); ++row) {
    at += static_cast<uint64_t>(in.Zigzag());
    const uint64_t bytes = in.Varint(kBytesMost);
    if (at > kBytesMost) return false;
    const ByteRange place{at, at + bytes};
    if (!chunk.range.Contains(place)) return false;
    if (chunk.value_bytes > 0 && bytes != chunk.value_bytes) return false;
    chunk.places.push_back(place);
    at = place.end;
  }
  return in.ok();
}

}  // namespace

Status ScanBetonTable(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  Grouping grouping(shard, on_record, report);
  ScanReport samples;
  FB_RETURN_IF_ERROR(ScanBeton(
      shard, [&](FoundRecord sample) { return grouping.Add(std::move(sample)); }, &samples));
  report->bytes_read += samples.bytes_read;
  report->oddities += samples.oddities;
  std::ranges::move(samples.first_oddities, std::back_inserter(report->first_oddities));
  return grouping.Flush();
}

std::string PackBetonGroup(const BetonGroup& group) {
  NumberPacker out;
  out.Varint(kPackedVersion);
  out.Varint(group.rows);
  out.Varint(group.chunks.size());
  for (const BetonChunk& chunk : group.chunks) {
    out.Varint(chunk.value_bytes);
    out.Varint(chunk.places.empty() ? 1 : 0);
    if (chunk.places.empty()) {
      out.Varint(chunk.row_bytes);
      continue;
    }
    uint64_t at = chunk.range.offset;
    for (const ByteRange& place : chunk.places) {
      out.Zigzag(static_cast<int64_t>(place.offset - at));
      out.Varint(place.size());
      at = place.end;
    }
  }
  return out.Take();
}

Result<BetonGroup> UnpackBetonGroup(std::string_view packed, const std::vector<ByteRange>& fields) {
  const auto damaged = [] {
    return Status(Code::kDataLoss, "the catalog's words on a group of samples are damaged");
  };
  NumberUnpacker in(packed);
  if (in.Varint() != kPackedVersion) {
    return Status(Code::kUnimplemented,
                  "the catalog describes groups of samples as another version does");
  }
  BetonGroup group{.rows = in.Varint(kGroupRows)};
  if (in.Count() != fields.size() || !in.ok() || group.rows == 0) return damaged();
  for (const ByteRange& range : fields) {
    if (range.end > kBytesMost) return damaged();
    BetonChunk chunk{.range = range};
    chunk.value_bytes = static_cast<uint32_t>(in.Varint(UINT32_MAX));
    if (in.Varint(1) == 0) {
      if (!UnpackPlaces(in, group.rows, chunk)) return damaged();
    } else {
      chunk.row_bytes = in.Varint(kBytesMost);
      const auto last = Total(group.rows - 1, chunk.row_bytes, chunk.value_bytes);
      if (last != range.size() || chunk.value_bytes == 0) return damaged();
    }
    group.chunks.push_back(std::move(chunk));
  }
  if (!in.done()) return damaged();
  return group;
}

std::vector<ByteRange> ReadsOf(const BetonChunk& chunk, uint64_t first, uint64_t end) {
  if (chunk.places.empty()) {
    return {{chunk.PlaceOf(first).offset, chunk.PlaceOf(end - 1).end}};
  }
  std::vector<ByteRange> places;
  for (uint64_t row = first; row < end; ++row) {
    if (!chunk.places[row].empty()) places.push_back(chunk.places[row]);
  }
  std::ranges::sort(places);
  std::vector<ByteRange> reads;
  for (const ByteRange& place : places) {
    if (!reads.empty() && place.offset <= reads.back().end + kGapBytes) {
      reads.back().end = std::max(reads.back().end, place.end);
    } else {
      reads.push_back(place);
    }
  }
  if (reads.empty()) reads.push_back({chunk.range.offset, chunk.range.offset});
  return reads;
}

TableLayout LayoutOf(const BetonChunk& chunk, uint64_t rows) {
  TableLayout layout{.value_bytes = chunk.value_bytes, .entries = rows};
  layout.ranges = ReadsOf(chunk, 0, rows);
  for (const ByteRange& place : chunk.places) layout.uncompressed += place.size();
  layout.starts.resize(rows);
  std::iota(layout.starts.begin(), layout.starts.end(), uint64_t{0});
  return layout;
}

Status DecodeBeton(const BetonChunk& chunk, uint64_t first, uint64_t rows, ByteView bytes,
                   TableValues* out) {
  const std::vector<ByteRange> reads = ReadsOf(chunk, first, first + rows);
  std::vector<uint64_t> begins = {0};  // of each read in `bytes`, and the end
  for (const ByteRange& read : reads) begins.push_back(begins.back() + read.size());
  if (begins.back() != bytes.size()) {
    return Status(Code::kInternal, "a column of another number of bytes");
  }
  *out = {};
  out->rows = rows;
  uint64_t all = 0;
  for (uint64_t row = first; row < first + rows; ++row) all += chunk.PlaceOf(row).size();
  out->values.resize(all);
  if (chunk.value_bytes == 0) out->offsets = {0};
  uint64_t to = 0;
  for (uint64_t row = first; row < first + rows; ++row) {
    const ByteRange place = chunk.PlaceOf(row);
    if (!place.empty()) {
      const auto after = std::ranges::upper_bound(reads, place.offset, {}, &ByteRange::offset);
      const auto i = static_cast<size_t>(after - reads.begin()) - 1;
      std::memcpy(out->values.data() + to, &bytes[begins[i] + place.offset - reads[i].offset],
                  place.size());
      to += place.size();
    }
    if (chunk.value_bytes == 0) out->offsets.push_back(to);
  }
  return {};
}

}  // namespace forebay::format
