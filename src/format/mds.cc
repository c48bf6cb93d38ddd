#include "format/mds.h"

#include <fmt/core.h>

#include <algorithm>

#include "format/foreign.h"
#include "format/little_endian.h"
#include "format/mds_json.h"
#include "format/window.h"

namespace forebay::format {
namespace {

constexpr uint64_t kWord = sizeof(uint32_t);
constexpr uint64_t kMaxSamples = uint64_t{64} << 20;
constexpr uint64_t kMaxConfigBytes = uint64_t{4} << 20;

// The columns' ranges within a sample of `bytes` that begins with `sizes`.
Status Split(ByteView sizes, uint64_t bytes, const std::vector<MdsColumn>& columns,
             std::vector<ByteRange>* ranges, const Place& place) {
  ranges->clear();
  uint64_t at = sizes.size();
  size_t size_at = 0;
  for (const MdsColumn& column : columns) {
    uint64_t size = 0;
    if (column.bytes) {
      size = *column.bytes;
    } else {
      size = Load<uint32_t>(sizes, size_at);
      size_at += kWord;
    }
    const auto range = RangeWithin(at, size, bytes);
    if (!range) {
      return Truncated(place + at, fmt::format("column '{}'", column.name), size, bytes - at);
    }
    ranges->push_back(*range);
    at = range->end;
  }
  if (at == bytes) return {};
  return Damaged(place, fmt::format("a sample of {} bytes", bytes),
                 fmt::format("columns of {}", at));
}

uint64_t SizesBytes(const std::vector<MdsColumn>& columns) {
  return kWord * static_cast<uint64_t>(std::ranges::count_if(
                     columns, [](const MdsColumn& column) { return !column.bytes; }));
}

class MdsScan {
 public:
  MdsScan(const Shard& shard, const MdsOptions& options, const OnRecord& on_record,
          ScanReport* report)
      : options_(options), on_record_(on_record), report_(report), window_(shard, report) {}

  Status Run() {
    FB_RETURN_IF_ERROR(ReadTable());
    FB_RETURN_IF_ERROR(ReadConfig());
    FB_RETURN_IF_ERROR(CheckExpected());
    for (const MdsColumn& column : columns_) {
      if (column.encoding == "pkl") {
        report_->Note(0, fmt::format("column '{}' is pickled: its bytes are given as they are and "
                                     "never opened",
                                     column.name));
      }
    }
    for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
      FB_RETURN_IF_ERROR(Deliver({offsets_[i], offsets_[i + 1]}));
    }
    return {};
  }

 private:
  Status ReadTable() {
    FB_ASSIGN_OR_RETURN(const ByteView head, window_.AtLeast(0, kWord));
    FB_RETURN_IF_ERROR(RefuseForeign(head, window_.PlaceAt(0)));
    FB_ASSIGN_OR_RETURN(const ByteView first, window_.At(0, kWord, "a shard"));
    const uint64_t samples = Load<uint32_t>(first);
    if (samples > kMaxSamples) {
      return AboveLimit(window_.PlaceAt(0), "the count of samples", samples, kMaxSamples);
    }
    const uint64_t end = kWord * (samples + 2);
    if (end > window_.size()) {
      return Truncated(window_.PlaceAt(0), fmt::format("a table of {} samples", samples), end,
                       window_.size());
    }
    offsets_.reserve(samples + 1);
    for (uint64_t at = kWord; at < end;) {
      const uint64_t size = std::min<uint64_t>(end - at, Window::kBytes / kWord * kWord);
      FB_ASSIGN_OR_RETURN(const ByteView table, window_.At(at, size, "a table of offsets"));
      for (uint64_t i = 0; i < size; i += kWord) {
        FB_RETURN_IF_ERROR(AddOffset(Load<uint32_t>(table, i), at + i, end));
      }
      at += size;
    }
    if (offsets_.back() == window_.size()) return {};
    return Damaged(window_.PlaceAt(end - kWord),
                   fmt::format("the last sample's end at {}", window_.size()),
                   fmt::format("it at {}", offsets_.back()));
  }

  Status AddOffset(uint32_t offset, uint64_t at, uint64_t table_end) {
    const uint64_t before = offsets_.empty() ? table_end : offsets_.back();
    if (offset < before) {
      return Damaged(window_.PlaceAt(at), fmt::format("an offset of at least {}", before),
                     fmt::format("{} (old writers wrap at 4 GiB)", offset));
    }
    if (offset > window_.size()) {
      return Truncated(window_.PlaceAt(at), "a shard", offset, window_.size());
    }
    if (!offsets_.empty() && offset - before > options_.max_sample_bytes) {
      return AboveLimit(window_.PlaceAt(at), "a sample's size", offset - before,
                        options_.max_sample_bytes);
    }
    offsets_.push_back(offset);
    return {};
  }

  Status ReadConfig() {
    const uint64_t start = kWord * (offsets_.size() + 1);
    const uint64_t size = offsets_.front() - start;
    const Place place = window_.PlaceAt(start);
    if (size > kMaxConfigBytes) {
      return AboveLimit(place, "the description's size", size, kMaxConfigBytes);
    }
    FB_ASSIGN_OR_RETURN(const ByteView text, window_.At(start, size, "the description"));
    FB_ASSIGN_OR_RETURN(columns_, ParseMdsConfig(AsText(text), place));
    sizes_bytes_ = SizesBytes(columns_);
    return {};
  }

  Status CheckExpected() {
    const MdsShard* expected = options_.expected;
    if (expected == nullptr) return {};
    const Place place = window_.PlaceAt(0);
    if (expected->raw.bytes != window_.size()) {
      return Damaged(place, fmt::format("{} bytes, as index.json says", expected->raw.bytes),
                     fmt::format("{}", window_.size()));
    }
    if (expected->samples + 1 != offsets_.size()) {
      return Damaged(place, fmt::format("{} samples, as index.json says", expected->samples),
                     fmt::format("{}", offsets_.size() - 1));
    }
    if (expected->columns == columns_) return {};
    return Damaged(place, "the columns of index.json", "others");
  }

  Status Deliver(ByteRange sample) {
    FoundRecord record{.range = sample};
    const Place place = window_.PlaceAt(sample.offset);
    if (options_.header_only) {
      for (const MdsColumn& column : columns_) {
        record.fields.push_back({column.name, sample, column.bytes.value_or(0)});
      }
    } else {
      if (sample.size() < sizes_bytes_) {
        return Truncated(place, "a sample's sizes", sizes_bytes_, sample.size());
      }
      FB_ASSIGN_OR_RETURN(const ByteView sizes,
                          window_.At(sample.offset, sizes_bytes_, "a sample's sizes"));
      FB_RETURN_IF_ERROR(Split(sizes, sample.size(), columns_, &ranges_, place));
      for (size_t i = 0; i < columns_.size(); ++i) {
        const ByteRange range{sample.offset + ranges_[i].offset, sample.offset + ranges_[i].end};
        FB_ASSIGN_OR_RETURN(const auto crc, window_.Crc32cOf(range));
        record.fields.push_back({columns_[i].name, range, range.size(), crc});
      }
    }
    ++report_->records;
    return on_record_(std::move(record));
  }

  const MdsOptions& options_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  Window window_;
  std::vector<uint32_t> offsets_;
  std::vector<MdsColumn> columns_;
  std::vector<ByteRange> ranges_;
  uint64_t sizes_bytes_ = 0;
};

}  // namespace

Status ScanMds(const Shard& shard, const MdsOptions& options, const OnRecord& on_record,
               ScanReport* report) {
  return MdsScan(shard, options, on_record, report).Run();
}

Status OpenMdsSample(ByteView sample, const std::vector<MdsColumn>& columns,
                     std::vector<ByteView>* values, const Place& place) {
  const uint64_t sizes = SizesBytes(columns);
  if (sample.size() < sizes) return Truncated(place, "a sample's sizes", sizes, sample.size());
  std::vector<ByteRange> ranges;
  FB_RETURN_IF_ERROR(Split(sample.first(sizes), sample.size(), columns, &ranges, place));
  values->clear();
  for (const ByteRange& range : ranges) {
    values->push_back(sample.subspan(range.offset, range.size()));
  }
  return {};
}

}  // namespace forebay::format
