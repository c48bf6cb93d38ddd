#include "format/compressed.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "format/lines.h"
#include "format/mds.h"
#include "format/packed_numbers.h"
#include "format/unpack.h"

namespace forebay::format {
namespace {

constexpr uint64_t kPackedVersion = 1;

struct Named {
  std::string_view name;
  CompressedRows rows;
};
constexpr Named kNames[] = {{"compressed-mds", CompressedRows::kMds},
                            {"compressed-jsonl", CompressedRows::kJsonLines},
                            {"compressed-csv", CompressedRows::kCsv},
                            {"compressed-csv-no-header", CompressedRows::kCsvNoHeader},
                            {"compressed-libsvm", CompressedRows::kLibsvm}};

Status ScanInside(CompressedRows rows, const Shard& shard, const OnRecord& on_record,
                  ScanReport* report) {
  CsvOptions csv;
  switch (rows) {
    case CompressedRows::kMds:
      return ScanMds(shard, {}, on_record, report);
    case CompressedRows::kJsonLines:
      return ScanJsonLines(shard, {}, on_record, report);
    case CompressedRows::kLibsvm:
      csv.quote = '\0';
      [[fallthrough]];
    case CompressedRows::kCsvNoHeader:
      csv.header = false;
      [[fallthrough]];
    case CompressedRows::kCsv:
      return ScanCsv(shard, csv, on_record, report);
  }
  return Status(Code::kInternal, "rows of no kind");
}

// What all rows of a shard have in common, and how much each column has.
class Columns {
 public:
  explicit Columns(std::string_view shard) : shard_(shard) {}

  Status Add(const FoundRecord& row) {
    if (rows_++ == 0) {
      fields_ = row.fields;
      for (const FoundField& field : row.fields) first_bytes_.push_back(field.bytes);
      return {};
    }
    bool same = row.fields.size() == fields_.size();
    for (size_t i = 0; same && i < fields_.size(); ++i) {
      const FoundField& field = row.fields[i];
      same = field.name == fields_[i].name && field.dtype == fields_[i].dtype &&
             field.shape == fields_[i].shape &&
             (field.dtype.empty() || field.bytes == first_bytes_[i]);
      fields_[i].bytes += field.bytes;
    }
    return same ? Status()
                : Damaged({shard_, row.range.offset}, "the columns and types of the first row",
                          fmt::format("others in row {}", rows_ - 1));
  }

  uint64_t rows() const { return rows_; }
  // As they go into the catalog.
  FoundRecord Record(CompressedRows rows, uint64_t unpacked, ByteView stored) && {
    CompressedShard shard{.rows = rows_};
    FoundRecord record{.range = {0, stored.size()}};
    for (size_t i = 0; i < fields_.size(); ++i) {
      FoundField& field = fields_[i];
      shard.chunks.push_back(
          {.rows = rows,
           .unpacked = unpacked,
           .crc32c = Crc32c(stored),
           .column = static_cast<uint32_t>(i),
           .value_bytes = field.dtype.empty() ? 0 : static_cast<uint32_t>(first_bytes_[i]),
           .bytes = field.bytes});
      field.range = record.range;
      field.crc32c.reset();
    }
    record.key = PackCompressedShard(shard);
    record.fields = std::move(fields_);
    return record;
  }

 private:
  std::string_view shard_;
  uint64_t rows_ = 0;
  std::vector<FoundField> fields_;  // of the first row; `bytes` of all of them
  std::vector<uint64_t> first_bytes_;
};

// Puts values one after the other.
class Appender {
 public:
  Appender(const CompressedChunk& chunk, uint64_t rows, TableValues* out)
      : chunk_(chunk), rows_(rows), out_(out) {
    out->rows = 0;
    out->values.resize(chunk.bytes);
    out->offsets.clear();
    out->valid.clear();
    if (chunk.value_bytes == 0) {
      out->offsets.reserve(rows + 1);
      out->offsets.push_back(0);
    }
  }
  bool Add(ByteView value) {
    if (out_->rows == rows_ || value.size() > chunk_.bytes - at_) return false;
    if (chunk_.value_bytes != 0 && value.size() != chunk_.value_bytes) return false;
    if (!value.empty()) std::memcpy(out_->values.data() + at_, value.data(), value.size());
    at_ += value.size();
    ++out_->rows;
    if (chunk_.value_bytes == 0) out_->offsets.push_back(at_);
    return true;
  }
  bool whole() const { return out_->rows == rows_ && at_ == chunk_.bytes; }

 private:
  const CompressedChunk& chunk_;
  const uint64_t rows_;
  TableValues* const out_;
  uint64_t at_ = 0;
};

}  // namespace

std::vector<std::string_view> CompressedFormatNames() {
  std::vector<std::string_view> names;
  for (const Named& one : kNames) names.push_back(one.name);
  return names;
}

std::optional<CompressedRows> CompressedRowsOf(std::string_view name) {
  const auto* const it = std::ranges::find(kNames, name, &Named::name);
  return it == std::end(kNames) ? std::nullopt : std::optional(it->rows);
}

std::string PackCompressedShard(const CompressedShard& shard) {
  NumberPacker out;
  out.Varint(kPackedVersion);
  out.Varint(shard.rows);
  out.Varint(shard.chunks.empty() ? 0 : shard.chunks[0].unpacked);
  out.Varint(shard.chunks.empty() ? 0 : shard.chunks[0].crc32c);
  out.Varint(shard.chunks.size());
  for (const CompressedChunk& chunk : shard.chunks) {
    out.Varint(chunk.value_bytes);
    out.Varint(chunk.bytes);
  }
  return out.Take();
}

Result<CompressedShard> UnpackCompressedShard(CompressedRows rows, std::string_view packed,
                                              const std::vector<ByteRange>& fields) {
  NumberUnpacker in(packed);
  if (in.Varint() != kPackedVersion) {
    return Status(Code::kUnimplemented,
                  "the catalog describes compressed shards as another version does");
  }
  CompressedShard shard;
  CompressedChunk common{.rows = rows};
  shard.rows = in.Varint(kUnpackedMost);
  common.unpacked = in.Varint(kUnpackedMost);
  common.crc32c = static_cast<uint32_t>(in.Varint(UINT32_MAX));
  shard.chunks.resize(in.Count(), common);
  bool right = shard.chunks.size() == fields.size();
  for (size_t i = 0; i < shard.chunks.size(); ++i) {
    CompressedChunk& chunk = shard.chunks[i];
    chunk.column = static_cast<uint32_t>(i);
    chunk.value_bytes = static_cast<uint32_t>(in.Varint(UINT32_MAX));
    chunk.bytes = in.Varint(common.unpacked);
    if (right) chunk.range = fields[i];
    const auto all = Total(shard.rows, chunk.value_bytes);
    right = right && chunk.range == fields[0] && chunk.range.size() <= kUnpackedMost &&
            (chunk.value_bytes == 0 || all == chunk.bytes);
  }
  if (right && in.done()) return shard;
  return Status(Code::kDataLoss, "the catalog's words on a compressed shard are damaged");
}

TableLayout LayoutOf(const CompressedChunk& chunk, uint64_t rows) {
  return {.value_bytes = chunk.value_bytes,
          .entries = rows,
          .uncompressed = chunk.bytes,
          .ranges = {chunk.range}};
}

Status ScanCompressed(CompressedRows rows, const Shard& shard, const ScanRows& scan,
                      const OnRecord& on_record, ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> stored, ReadStored(shard));
  report->bytes_read += stored.size();
  if (!IsPacked(stored)) {
    return Refused({shard.name, 0},
                   "a shard that is not compressed, among others that are: index the two apart");
  }
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                      Unpack(stored, kUnpackedMost, {shard.name, 0}));
  Columns columns(shard.name);
  ScanReport inside;
  FB_RETURN_IF_ERROR(scan(
      InMemory(shard.name, bytes), [&](const FoundRecord& row) { return columns.Add(row); },
      &inside));
  report->oddities += inside.oddities;
  std::ranges::move(inside.first_oddities, std::back_inserter(report->first_oddities));
  if (columns.rows() == 0) return {};
  report->records += columns.rows();
  return on_record(std::move(columns).Record(rows, bytes.size(), stored));
}

Status DecodeCompressed(std::span<const CompressedChunk* const> columns, uint64_t rows,
                        ByteView bytes, const Place& place, std::span<TableValues* const> out) {
  if (columns.empty()) return {};
  const CompressedChunk& any = *columns[0];
  if (const uint32_t crc = Crc32c(bytes); crc != any.crc32c) {
    return Damaged(place, fmt::format("bytes of CRC-32C {:08x}, as indexed", any.crc32c),
                   fmt::format("{:08x}", crc));
  }
  // One byte more, so that what is behind the last one (an empty member or frame) is looked at.
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> unpacked,
                      Unpack(bytes, any.unpacked + 1, place));
  if (unpacked.size() != any.unpacked) {
    return Damaged(place, fmt::format("{} unpacked bytes, as indexed", any.unpacked),
                   fmt::format("{}", unpacked.size()));
  }
  std::vector<Appender> appenders;
  for (size_t i = 0; i < columns.size(); ++i) appenders.emplace_back(*columns[i], rows, out[i]);
  const auto differs = [&] {
    return Damaged(place, "the rows that were indexed",
                   "others: this Forebay reads them otherwise");
  };
  const auto take = [&](const FoundRecord& row) {
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i]->column >= row.fields.size()) return differs();
      const ByteRange range = row.fields[columns[i]->column].range;
      if (!appenders[i].Add(ByteView(unpacked).subspan(range.offset, range.size()))) {
        return differs();
      }
    }
    return Status();
  };
  ScanReport report;
  FB_RETURN_IF_ERROR(
      ScanInside(any.rows, InMemory(std::string(place.shard), unpacked), take, &report));
  for (const Appender& appender : appenders) {
    if (!appender.whole()) return differs();
  }
  return {};
}

}  // namespace forebay::format
