#include "catalog/records_writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/assert.h"
#include "catalog/coding.h"
#include "catalog/records_format.h"

namespace forebay::catalog {

RecordsWriter::RecordsWriter(std::string source_uri, std::string format, std::string format_options)
    : source_uri_(std::move(source_uri)),
      format_(std::move(format)),
      format_options_(std::move(format_options)) {}

// Packed again rather than copied: packing is a function of the entries, so the blocks come out the
// same.
Status RecordsWriter::Continue(const RecordsCatalog& earlier) {
  for (const FieldInfo& field : earlier.fields()) {
    (void)FieldOf({.name = field.name, .range = {}, .dtype = field.dtype, .shape = field.shape});
  }
  for (size_t g = 0; g < earlier.generations().size(); ++g) {
    const Generation& generation = earlier.generations()[g];
    while (shards_.size() < earlier.ShardsOf(g)) {
      FB_ASSIGN_OR_RETURN(FileEntry shard, earlier.ShardAt(shards_.size()));
      shards_.push_back(std::move(shard));
    }
    while (records_ < generation.samples) {
      FB_ASSIGN_OR_RETURN(RecordEntry entry, earlier.At(records_));
      FB_ASSIGN_OR_RETURN(std::string key, earlier.KeyOf(records_));
      FB_RETURN_IF_ERROR(Append(std::move(entry), std::move(key)));
    }
    CloseGeneration();
    if (segments_.back().hash != generation.content_hash) {
      return Status(Code::kDataLoss, "the catalog's content hash is not that of its content");
    }
  }
  earlier_ = records_;
  earlier_fields_ = fields_;
  return {};
}

Status RecordsWriter::AddShard(FileEntry shard) {
  if (shards_.size() >> 32 != 0) {
    return Status(Code::kResourceExhausted, "more than 2^32 shards in one catalog");
  }
  shards_.push_back(std::move(shard));
  next_from_ = 0;
  return {};
}

uint32_t RecordsWriter::FieldOf(const format::FoundField& found) {
  const auto [it, added] =
      field_numbers_.try_emplace(found.name, static_cast<uint32_t>(field_numbers_.size()));
  if (added) {
    fields_.push_back({.name = found.name, .dtype = found.dtype, .shape = found.shape});
    return it->second;
  }
  FieldInfo& info = fields_[it->second];
  if (info.dtype != found.dtype || info.shape != found.shape) {
    info.dtype = "";  // they are not all alike
    info.shape.clear();
  }
  return it->second;
}

// Who names no columns gets the fields that every record has, and one that is alike everywhere as
// an array of its type: a record that is unlike would change the batches of epochs that are past.
Status RecordsWriter::CheckLikeEarlier(const format::FoundRecord& record) const {
  const auto refuse = [&](std::string_view what, const FieldInfo& field) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: record '{}' at {} {} '{}', {}; append adds records like those "
                              "that are there, a new index is another data set",
                              shards_.back().key, record.key, record.range.offset, what, field.name,
                              field.records == earlier_ ? "which every earlier record has"
                                                        : "unlike the earlier records"));
  };
  for (const FieldInfo& field : earlier_fields_) {
    const auto found = std::ranges::find(record.fields, field.name, &format::FoundField::name);
    if (found == record.fields.end()) {
      if (field.records == earlier_) return refuse("lacks", field);
    } else if (!field.dtype.empty() &&
               (found->dtype != field.dtype || found->shape != field.shape)) {
      return refuse("has another type or shape of", field);
    }
  }
  return {};
}

Status RecordsWriter::Add(const format::FoundRecord& record) {
  FB_ASSERT(!shards_.empty());
  RecordEntry entry{.shard = static_cast<uint32_t>(shards_.size() - 1), .range = record.range};
  if (record.range.offset < next_from_ || record.range.end < record.range.offset ||
      record.range.end > shards_.back().size) {
    return Status(Code::kDataLoss,
                  fmt::format("{}: record '{}' at [{}, {}) lies before {}, where the next one may "
                              "begin, or outside of the shard's {} bytes",
                              shards_.back().key, record.key, record.range.offset, record.range.end,
                              next_from_, shards_.back().size));
  }
  FB_RETURN_IF_ERROR(CheckLikeEarlier(record));
  for (const format::FoundField& field : record.fields) {
    if (!record.range.Contains(field.range)) {
      return Status(Code::kDataLoss,
                    fmt::format("{}: field '{}' of record '{}' at {} lies outside",
                                shards_.back().key, field.name, record.key, record.range.offset));
    }
    if (fields_.size() == kFieldsMost && !field_numbers_.contains(field.name)) {
      return Status(Code::kResourceExhausted, fmt::format("{}: more than {} different fields",
                                                          shards_.back().key, kFieldsMost));
    }
    entry.fields.push_back({FieldOf(field), field.range, field.bytes, field.crc32c});
  }
  // Groups of samples of one FFCV file have their data among one another.
  next_from_ = format_ == "beton" ? record.range.offset : record.range.end;
  return Append(std::move(entry), record.key);
}

Status RecordsWriter::Append(RecordEntry entry, std::string key) {
  if (records_ == kRecordsMost) {
    return Status(Code::kResourceExhausted,
                  fmt::format("more than {} records in one catalog", kRecordsMost));
  }
  uint64_t bytes = 0;
  for (const RecordField& field : entry.fields) {
    FieldInfo& info = fields_[field.field];
    ++info.records;
    info.bytes_max = std::max(info.bytes_max, field.bytes);
    bytes += field.bytes;
  }
  largest_.Add(bytes);
  range_max_ = std::max(range_max_, entry.range.size());
  ++records_;
  block_.push_back(std::move(entry));
  keys_.push_back(std::move(key));
  if (block_.size() == kRecordsPerBlock) CloseBlock();
  return {};
}

void RecordsWriter::CloseBlock() {
  if (block_.empty()) return;
  checks_.push_back(file_.Add(PackRecords(block_, keys_)));
  block_.clear();
  keys_.clear();
}

// What the records are depends on the shards, so their names, sizes and ETags count too.
void RecordsWriter::CloseGeneration() {
  CloseBlock();
  Writer shards;
  const uint64_t first = segments_.empty() ? 0 : segments_.back().shards;
  for (const FileEntry& shard : std::span(shards_).subspan(first)) {
    shards.Text(shard.key);
    shards.Varint(shard.size);
    shards.Text(shard.etag);
    shards.Text(shard.version_id);
  }
  checks_.push_back(HashBytes(shards.bytes()).low);
  const std::string before =
      segments_.empty() ? format_ + " " + format_options_ : segments_.back().hash;
  segments_.push_back(
      {records_, file_.blocks(), shards_.size(), largest_.total(), ContentHash(before, checks_)});
  checks_.clear();
}

void RecordsWriter::CloseShards() {
  for (size_t at = 0; at < shards_.size(); at += kFilesPerBlock) {
    const size_t end = std::min(shards_.size(), at + kFilesPerBlock);
    file_.Add(PackFiles({shards_.begin() + static_cast<std::ptrdiff_t>(at),
                         shards_.begin() + static_cast<std::ptrdiff_t>(end)}));
  }
}

Result<std::vector<std::byte>> RecordsWriter::Finish() {
  if (records_ == 0) return Status(Code::kInvalidArgument, "a catalog without a record");
  if (segments_.empty() || records_ > segments_.back().records) {
    CloseGeneration();
  } else {
    shards_.resize(segments_.back().shards);  // new ones without a record are not kept
  }
  CloseShards();
  Writer index;
  index.Text(source_uri_);
  index.Text(format_);
  index.Text(format_options_);
  index.Varint(fields_.size());
  for (const FieldInfo& field : fields_) {
    index.Text(field.name);
    index.Varint(field.records);
    index.Varint(field.bytes_max);
    index.Text(field.dtype);
    index.Varint(field.shape.size());
    for (const int64_t size : field.shape) index.Varint(static_cast<uint64_t>(size));
  }
  index.Varint(range_max_);
  index.Varint(segments_.size());
  for (const Segment& segment : segments_) {
    index.Varint(segment.records);
    index.Varint(segment.blocks);
    index.Varint(segment.shards);
    index.Varint(segment.bytes);
    index.Text(segment.hash);
  }
  const std::vector<uint64_t> sums = largest_.Take();
  index.Varint(sums.size());
  for (const uint64_t sum : sums) index.Varint(sum);
  return file_.Finish(kRecordsKind, index.bytes());
}

}  // namespace forebay::catalog
