#include "engine/pack_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "catalog/records_writer.h"
#include "engine/open_catalog.h"
#include "engine/pack_reader.h"
#include "engine/record_formats.h"
#include "sys/thread.h"

namespace forebay::engine {
namespace {

constexpr std::string_view kOwnFolder = ".forebay/";
constexpr std::string_view kMarkerFolder = ".forebay/pack/";
constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr uint64_t kLookEverySamples = 10'000;
// What a shard takes beside its bytes: those read ahead, and what is between them and it.
constexpr uint64_t kBesideShard = PackReader::kBytesAhead + (32ULL << 20);
constexpr uint64_t kPartBytesLeast = 16ULL << 20;
constexpr uint64_t kPartBytesMost = 64ULL << 20;
constexpr uint64_t kPartsUsual = 16;  // of a shard
constexpr size_t kShardsAtATimeMost = 16;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

}  // namespace

Result<PackReport> PackJob::Run(const std::string& source, const std::string& target,
                                const StoreOptions& store, const PackOptions& options) {
  PackJob job(options);
  FB_RETURN_IF_ERROR(job.Open(source, target, store));
  FB_RETURN_IF_ERROR(job.Plan());
  FB_RETURN_IF_ERROR(job.ListTarget());
  FB_RETURN_IF_ERROR(job.MakeShards());
  FB_RETURN_IF_ERROR(job.Complete());
  return std::move(job.report_);
}

Status PackJob::Open(const std::string& source, const std::string& target,
                     const StoreOptions& store) {
  FB_ASSIGN_OR_RETURN(from_, MakeIndexJob(source, store, {}));
  FB_ASSIGN_OR_RETURN(store::Uri to, store::ParseUri(target));
  FB_ASSIGN_OR_RETURN(to_store_, from_.stores->StoreFor(to));
  to.key = to_prefix_ = PrefixOf(to);
  to_uri_ = to.ToString();
  const bool same_store = from_.from->root_uri() == to_store_->root_uri();
  if (same_store &&
      (to_prefix_.starts_with(from_.prefix) || from_.prefix.starts_with(to_prefix_))) {
    return Bad(
        fmt::format("{} and {} lie in each other: what is packed would be a part of its own "
                    "source",
                    from_.source_uri, to_uri_));
  }
  read_ = std::make_unique<store::SyncStore>(from_.from);
  to_ = std::make_unique<store::SyncStore>(to_store_);
  PackSource::LeftOut left_out;
  FB_ASSIGN_OR_RETURN(source_, OpenPackSource(from_, options_, &left_out));
  FB_ASSIGN_OR_RETURN(target_, PackTarget::Make(options_, source_->format()));
  FB_ASSIGN_OR_RETURN(PackColumns columns, PackColumns::Make(options_));
  columns_ = std::make_unique<PackColumns>(std::move(columns));
  FB_ASSIGN_OR_RETURN(format_, RecordFormatOf(target_->format()));
  report_.source_uri = from_.source_uri;
  report_.target_uri = to_uri_;
  report_.format = source_->format();
  report_.files_left_out = left_out.files;
  report_.warnings = std::move(left_out.warnings);
  return {};
}

std::string PackJob::SampleText(const PackSample& sample) const {
  const auto object = source_->ObjectAt(sample.source);
  return fmt::format("sample {}{} of {}{}", sample.number,
                     sample.key.empty() ? "" : " '" + sample.key + "'", from_.source_uri,
                     object.ok() ? object->key : "?");
}

Status PackJob::Plan() {
  PackSample sample;
  PackSource::LeftOut left_out;
  if (options_.labels == "folder") {
    for (PackSource::Cursor cursor;;) {
      FB_ASSIGN_OR_RETURN(const bool more, source_->Next(&cursor, &sample, nullptr));
      if (!more) break;
      columns_->SeeFolder(sample);
    }
    columns_->CloseFolders();
  }
  for (PackSource::Cursor cursor;;) {
    const PackSource::Cursor begin = cursor;
    FB_ASSIGN_OR_RETURN(const bool more, source_->Next(&cursor, &sample, &left_out));
    if (!more) break;
    Status status = columns_->Select(&sample);
    if (status.ok()) status = PlanSample(sample, begin);
    if (!status.ok()) return std::move(status).WithContext(SampleText(sample));
    if (cursor.number % kLookEverySamples == 0 && options_.on_progress &&
        !options_.on_progress({})) {
      return Status(Code::kCancelled, "packing was stopped");
    }
    report_.samples = cursor.number;
  }
  report_.files_left_out += left_out.files;
  report_.warnings.insert(report_.warnings.end(), left_out.warnings.begin(),
                          left_out.warnings.end());
  if (shards_.empty()) {
    return Status(Code::kNotFound, fmt::format("no sample in {}", from_.source_uri));
  }
  report_.shards = shards_.size();
  for (uint64_t i = 0; i < shards_.size(); ++i) {
    if (IsMine(i)) bytes_mine_ += shards_[i].bytes;
  }
  id_ = Identity();
  return {};
}

Status PackJob::PlanSample(const PackSample& sample, const PackSource::Cursor& begin) {
  FB_ASSIGN_OR_RETURN(const uint64_t bytes, target_->Plan(sample));
  if (bytes + kBesideShard + source_->held_bytes() > options_.memory) {
    return Status(Code::kResourceExhausted,
                  fmt::format("it takes {}, a shard and what is read for it at most {}: give more "
                              "--memory",
                              FormatSize(bytes), FormatSize(options_.memory)));
  }
  if (shards_.empty() || shards_.back().bytes + bytes > options_.shard_bytes) {
    shards_.push_back({.begin = begin});
  }
  ++shards_.back().samples;
  shards_.back().bytes += bytes;
  return {};
}

// All that the shards' bytes depend on: another one is another data set.
std::string PackJob::Identity() const {
  std::string text =
      fmt::format("1\n{}\n{}\n{}\n{}\n{}\n{}\n", source_->id(), options_.to, options_.shard_bytes,
                  options_.keys, options_.labels, options_.label_column);
  text += fmt::format("{} {}\n", options_.sparse_columns, options_.zero_based);
  for (const std::string& column : options_.columns) text += column + "\n";
  return HashBytes(AsBytes(text)).ToHex().substr(0, 16);
}

std::string PackJob::SidecarName(uint64_t shard) const {
  const std::string name = ShardName(shard);
  return name.substr(0, name.rfind('.')) + target_->sidecar_ending();
}

std::string PackJob::MarkerKey(uint64_t shard) const {
  return fmt::format("{}{}{}/{}.fbp", to_prefix_, kMarkerFolder, id_, ShardName(shard));
}

Status PackJob::ListTarget() {
  there_.clear();
  markers_.clear();
  bool finished = false;
  std::string other;
  FB_RETURN_IF_ERROR(to_->ListAll(to_prefix_, [&](const store::ObjectInfo& info) {
    std::string name = info.key.substr(to_prefix_.size());
    if (name.empty()) return true;  // what stands for the folder
    if (name.starts_with(kMarkerFolder)) {
      if (!name.substr(kMarkerFolder.size()).starts_with(id_ + "/")) other = name;
      markers_[info.key] = info.size;
    } else if (name.starts_with(kOwnFolder)) {
      finished = finished || name == kPackManifest;
    } else {
      there_[name] = {name, info.size, info.etag, ""};
    }
    return true;
  }));
  {
    const MutexLock lock(mutex_);
    finished_ = finished;
  }
  std::vector<std::string> mine = {"index.json"};
  for (uint64_t i = 0; i < shards_.size(); ++i) {
    mine.push_back(ShardName(i));
    if (!target_->sidecar_ending().empty()) mine.push_back(SidecarName(i));
  }
  std::ranges::sort(mine);
  for (const auto& [name, entry] : there_) {
    if (!std::ranges::binary_search(mine, name)) other = name;
  }
  if (other.empty()) return {};
  return Status(Code::kPreconditionFailed,
                fmt::format("{} holds {}, which is not of this pack (other options, another "
                            "source, or one that has changed since): an empty place is needed",
                            to_uri_, other));
}

size_t PackJob::ShardsAtATime() const {
  uint64_t largest = 0;
  for (const Planned& shard : shards_) largest = std::max(largest, shard.bytes);
  const uint64_t fit = options_.memory / (largest + kBesideShard + source_->held_bytes());
  return std::clamp<uint64_t>(fit, 1, kShardsAtATimeMost);
}

Status PackJob::MakeShards() {
  const size_t threads = ShardsAtATime();
  FB_ASSIGN_OR_RETURN(
      const auto pool,
      sys::WorkPool::Make({.name = "fb-pack", .threads = threads, .queue_limit = shards_.size()}));
  for (uint64_t i = 0; i < shards_.size(); ++i) {
    if (!IsMine(i)) continue;
    {
      const MutexLock lock(mutex_);
      ++left_;
    }
    FB_RETURN_IF_ERROR(pool->Submit([this, i] {
      WorkOn(i);
      const MutexLock lock(mutex_);
      --left_;
      changed_.notify_all();
    }));
  }
  bool stopped = false;
  while (!WaitForAll()) {
    if (stopped || Report()) continue;
    stopped = true;
    stop_ = true;
    to_->CancelAll();
  }
  pool->Stop();
  const MutexLock lock(mutex_);
  report_.shards_written = written_;
  report_.shards_there = kept_;
  report_.bytes_written = bytes_written_;
  return stopped ? Status(Code::kCancelled, "packing was stopped") : status_;
}

bool PackJob::WaitForAll() {
  const Time until = std::chrono::steady_clock::now() + kLookEvery;
  const MutexLock lock(mutex_);
  while (left_ > 0 && std::chrono::steady_clock::now() < until) changed_.wait_until(mutex_, until);
  return left_ == 0;
}

bool PackJob::Report() {
  if (!options_.on_progress) return true;
  PackProgress progress{.bytes_done = bytes_done_, .bytes_total = bytes_mine_};
  {
    const MutexLock lock(mutex_);
    progress.shards_done = written_ + kept_;
  }
  for (uint64_t i = 0; i < shards_.size(); ++i) progress.shards_total += IsMine(i) ? 1 : 0;
  return options_.on_progress(progress);
}

void PackJob::WorkOn(uint64_t shard) {
  if (stop_) return;
  Result<bool> there = IsThere(shard);
  Status status = there.status();
  if (there.ok() && !*there) status = MakeShard(shard);
  if (there.ok() && *there) bytes_done_ += shards_[shard].bytes;
  const MutexLock lock(mutex_);
  if (status.ok()) {
    ++(*there ? kept_ : written_);
    return;
  }
  if (status_.ok()) status_ = std::move(status);
  stop_ = true;
}

// What is about to be written makes a whole of it again: until then it is none.
Status PackJob::Unfinish() {
  const MutexLock lock(mutex_);
  if (!finished_) return {};
  finished_ = false;
  return to_->Delete(to_prefix_ + std::string(kPackManifest));
}

Result<bool> PackJob::IsThere(uint64_t shard) const {
  const std::string key = MarkerKey(shard);
  const auto found = there_.find(ShardName(shard));
  if (!markers_.contains(key) || found == there_.end()) return false;
  if (!target_->sidecar_ending().empty() && !there_.contains(SidecarName(shard))) return false;
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadWhole(*to_, key, UINT64_MAX));
  const auto part = catalog::OpenRecordsPart(bytes);
  return part.ok() && part->shards.size() == 1 && part->shards[0].size == found->second.size &&
         part->shards[0].etag == found->second.etag;
}

Status PackJob::MakeShard(uint64_t shard) {
  FB_ASSIGN_OR_RETURN(const std::unique_ptr<PackShard> made, Fill(shard));
  auto bytes = made->Finish();
  if (!bytes.ok()) return std::move(bytes).status().WithContext(ShardName(shard));
  FB_RETURN_IF_ERROR(Unfinish());
  FB_RETURN_IF_ERROR(Store(shard, *made, *bytes));
  const MutexLock lock(mutex_);
  bytes_written_ += bytes->size();
  return {};
}

Result<std::unique_ptr<PackShard>> PackJob::Fill(uint64_t shard) {
  const Planned& planned = shards_[shard];
  FB_ASSIGN_OR_RETURN(std::unique_ptr<PackShard> made, target_->Begin(planned.bytes));
  PackReader reader(*source_, *read_, from_.prefix);
  PackSource::Cursor cursor = planned.begin;
  std::vector<format::OutputField> fields;
  uint64_t counted = 0;
  for (uint64_t taken = 0, asked = 0; taken < planned.samples;) {
    if (asked < planned.samples && (reader.empty() || !reader.full())) {
      PackSample next;
      FB_RETURN_IF_ERROR(source_->Next(&cursor, &next, nullptr).status());
      FB_RETURN_IF_ERROR(columns_->Select(&next));
      FB_RETURN_IF_ERROR(reader.Add(std::move(next)));
      ++asked;
      continue;
    }
    if (stop_) return Status(Code::kCancelled, "packing was stopped");
    auto sample = reader.Take(&fields);
    if (!sample.ok()) {
      return std::move(sample).status().WithContext(
          fmt::format("sample {} of {}", planned.begin.number + taken, from_.source_uri));
    }
    Status added = made->Add(*sample, fields);
    if (!added.ok()) return std::move(added).WithContext(SampleText(*sample));
    ++taken;
    const uint64_t done = planned.bytes * taken / planned.samples;
    bytes_done_ += done - std::exchange(counted, done);
  }
  return made;
}

Result<std::vector<std::byte>> PackJob::CatalogOf(uint64_t shard, uint64_t records,
                                                  const std::vector<std::byte>& bytes,
                                                  const catalog::FileEntry& entry) const {
  catalog::RecordsWriter writer(to_uri_, format_.name, format_.options);
  FB_RETURN_IF_ERROR(writer.AddShard(entry));
  const format::Shard written{.name = entry.key,
                              .size = bytes.size(),
                              .read = [&bytes](ByteRange range, MutableBytes into) {
                                std::memcpy(into.data(), bytes.data() + range.offset, range.size());
                                return Status();
                              }};
  format::ScanReport scanned;
  const Status status = format_.scan(
      written, [&writer](const format::FoundRecord& record) { return writer.Add(record); },
      &scanned);
  if (!status.ok() || scanned.records != records) {
    return Status(Code::kInternal,
                  fmt::format("{} was made of {} records and reads as {}: {}", entry.key, records,
                              scanned.records, status.ToString()));
  }
  catalog::RecordsPartHead head{.whole = id_,
                                .part = shard,
                                .parts = shards_.size(),
                                .source_uri = to_uri_,
                                .format = format_.name,
                                .format_options = format_.options,
                                .objects = 1,
                                .dataset_bytes = bytes.size()};
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> catalog, writer.Finish());
  return catalog::PackRecordsPart(head, {entry}, catalog);
}

// Shard, what lies beside it, marker: each appears whole, and the marker last.
Status PackJob::Store(uint64_t shard, const PackShard& made, const std::vector<std::byte>& bytes) {
  const std::string name = ShardName(shard);
  // Before anything is stored: what cannot be read back is never seen.
  const uint64_t records = made.records().value_or(shards_[shard].samples);
  FB_RETURN_IF_ERROR(CatalogOf(shard, records, bytes, {name, bytes.size(), "", ""}).status());
  store::PutRequest put;
  put.key = to_prefix_ + name;
  put.body = {bytes};
  const uint64_t mib = uint64_t{1} << 20;
  const uint64_t part = std::clamp((bytes.size() / kPartsUsual + mib - 1) / mib * mib,
                                   kPartBytesLeast, kPartBytesMost);
  FB_ASSIGN_OR_RETURN(const store::PutResult stored, to_->PutLarge(std::move(put), part));
  const std::string sidecar = made.Sidecar();
  if (!target_->sidecar_ending().empty()) {
    FB_RETURN_IF_ERROR(Put(to_prefix_ + SidecarName(shard), sidecar));
  }
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> marker,
                      CatalogOf(shard, records, bytes, {name, bytes.size(), stored.etag, ""}));
  return Put(MarkerKey(shard), AsText(marker));
}

Status PackJob::Put(const std::string& key, std::string_view text) const {
  store::PutRequest put;
  put.key = key;
  put.body = {AsBytes(text)};
  return to_->PutLarge(std::move(put)).status();
}

}  // namespace forebay::engine
