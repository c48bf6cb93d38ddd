#include "catalog/records_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <future>
#include <memory>
#include <unordered_map>
#include <utility>

#include "catalog/listing.h"
#include "catalog/records_part.h"
#include "catalog/records_writer.h"
#include "format/foreign.h"
#include "store/pinned_object.h"
#include "sys/thread.h"

namespace forebay::catalog {
namespace {

constexpr auto kRangeTimeout = std::chrono::seconds(60);
constexpr auto kProgressEvery = std::chrono::milliseconds(100);
constexpr uint64_t kPieceBytes = 8ULL << 20;
constexpr uint64_t kHeadBytes = 1 << 10;  // that tell what is no shard

struct Scanned {
  std::vector<format::FoundRecord> records;
  format::ScanReport report;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  bool left_out = false;     // no shard of this format
  std::string_view instead;  // what it is, where that is worth telling
  Status status;
};

FileEntry EntryOf(const store::ObjectInfo& info, const std::string& prefix) {
  return {info.key.substr(prefix.size()), info.size, info.etag, info.version_id};
}

// Another object of the data set, in whole.
Result<std::vector<std::byte>> ReadWhole(const store::SyncStore& store, const std::string& key,
                                         uint64_t most, Scanned* scanned) {
  FB_ASSIGN_OR_RETURN(store::ObjectInfo info, store.Head(key));
  if (info.size > most) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} has {} bytes, and is read only up to {}", key, info.size, most));
  }
  store::PinnedObject reader(store, std::move(info), store::Priority::kBulk, kRangeTimeout);
  std::vector<std::byte> bytes(reader.info().size);
  for (uint64_t at = 0; at < bytes.size();) {
    const uint64_t end = std::min<uint64_t>(bytes.size(), at + kPieceBytes);
    FB_RETURN_IF_ERROR(reader.Read({at, end}, MutableBytes(bytes).subspan(at, end - at)));
    at = end;
  }
  scanned->requests += reader.requests() + 1;
  scanned->bytes += bytes.size();
  return bytes;
}

Scanned ScanShard(const store::SyncStore& store, const store::ObjectInfo& info,
                  const std::string& prefix, const RecordFormat& format) {
  Scanned scanned;
  store::PinnedObject reader(store, info, store::Priority::kBulk, kRangeTimeout);
  format::Shard shard;
  shard.name = info.key.substr(prefix.size());
  shard.size = info.size;
  shard.read = [&reader](ByteRange range, MutableBytes into) { return reader.Read(range, into); };
  shard.beside = [&](const std::string& name, uint64_t most) {
    return ReadWhole(store, prefix + name, most, &scanned);
  };
  Result<bool> is_shard = format.is_shard ? format.is_shard(shard) : Result<bool>(true);
  if (!is_shard.ok()) {
    scanned.status = std::move(is_shard).status();
  } else if (!*is_shard) {
    scanned.left_out = true;
    std::vector<std::byte> head(std::min(shard.size, kHeadBytes));
    if (!head.empty()) scanned.status = shard.read({0, head.size()}, head);
    if (scanned.status.ok()) scanned.instead = format::ForeignAdvice(format::ForeignKind(head));
  } else {
    scanned.status = format.scan(
        shard,
        [&scanned](format::FoundRecord record) {
          scanned.records.push_back(std::move(record));
          return Status();
        },
        &scanned.report);
  }
  scanned.requests += reader.requests();
  scanned.bytes += reader.bytes();
  return scanned;
}

// Shards that a file beside them names and that are not there are failures.
Status FindMissing(const store::SyncStore& store, const std::string& prefix,
                   const RecordFormat& format, const std::vector<std::string>& companions,
                   const std::vector<store::ObjectInfo>& objects, RecordsReport* report) {
  Scanned scanned;  // what it took
  const format::ReadBeside read = [&](const std::string& name, uint64_t most) {
    return ReadWhole(store, prefix + name, most, &scanned);
  };
  for (const std::string& companion : companions) {
    FB_ASSIGN_OR_RETURN(const auto named, format.named(companion, read));
    for (const RecordFormat::Names& names : named) {
      const auto is_there = [&](const std::string& name) {
        const std::string key = prefix + name;
        const auto it = std::ranges::lower_bound(objects, key, {}, &store::ObjectInfo::key);
        return it != objects.end() && it->key == key;
      };
      if (names.empty() || std::ranges::any_of(names, is_there)) continue;
      report->failures.push_back(
          {names[0], fmt::format("there is no such object, and {} names it", companion)});
    }
  }
  report->requests += scanned.requests;
  report->bytes_read += scanned.bytes;
  return {};
}

// What is to be scanned, in the order of the keys' bytes.
Result<std::vector<store::ObjectInfo>> ListShards(const store::SyncStore& store,
                                                  const std::string& prefix,
                                                  const RecordFormat& format, bool check_missing,
                                                  RecordsReport* report) {
  std::vector<store::ObjectInfo> objects;
  std::vector<std::string> companions;
  Listing listing;
  FB_RETURN_IF_ERROR(ListDataset(
      store, prefix,
      [&](const store::ObjectInfo& info) {
        const bool beside = !format.companion.empty() && info.key.ends_with(format.companion);
        if (!beside) objects.push_back(info);
        if (beside) companions.push_back(info.key.substr(prefix.size()));
        return true;
      },
      &listing));
  report->objects = objects.size() + listing.skipped;
  report->skipped = listing.skipped;
  report->warnings = std::move(listing.warnings);
  if (objects.empty()) return NothingThere(store, prefix);
  std::ranges::sort(objects, {}, &store::ObjectInfo::key);
  if (check_missing && format.named) {
    FB_RETURN_IF_ERROR(FindMissing(store, prefix, format, companions, objects, report));
  }
  return objects;
}

// Takes away what the catalog has; it must be there as it was.
Status TakeKnown(const RecordsCatalog& earlier, const std::string& prefix,
                 std::vector<store::ObjectInfo>* objects) {
  const auto changed = [](const FileEntry& was, std::string_view how) {
    return Status(Code::kPreconditionFailed,
                  fmt::format("{} {} since it was indexed: append adds shards, a new index is "
                              "another data set",
                              was.key, how));
  };
  std::unordered_map<std::string, FileEntry> known;
  for (uint64_t i = 0; i < earlier.shard_count(); ++i) {
    FB_ASSIGN_OR_RETURN(FileEntry shard, earlier.ShardAt(i));
    known.emplace(shard.key, shard);
  }
  std::vector<store::ObjectInfo> rest;
  for (store::ObjectInfo& info : *objects) {
    const auto it = known.find(info.key.substr(prefix.size()));
    if (it == known.end()) {
      rest.push_back(std::move(info));
      continue;
    }
    const FileEntry& was = it->second;
    if (was.size != info.size || was.etag != info.etag || was.version_id != info.version_id) {
      return changed(was, "has changed");
    }
    known.erase(it);
  }
  if (!known.empty()) return changed(known.begin()->second, "is gone");
  *objects = std::move(rest);
  return {};
}

// Scans shards ahead of the one that is written next, a bounded number of them.
class Scans {
 public:
  Scans(const store::SyncStore& store, const std::string& prefix, const RecordFormat& format,
        const std::vector<store::ObjectInfo>& objects, uint32_t parallel)
      : store_(store), prefix_(prefix), format_(format), objects_(objects), ahead_(2 * parallel) {}

  Status Start(uint32_t parallel) {
    FB_ASSIGN_OR_RETURN(pool_, sys::WorkPool::Make({.name = "fb-index",
                                                    .threads = std::max<size_t>(1, parallel),
                                                    .queue_limit = ahead_}));
    return {};
  }
  // The next one, or nothing yet after a while.
  Result<std::unique_ptr<Scanned>> Next() {
    while (begun_ < objects_.size() && scans_.size() < ahead_) {
      auto promise = std::make_shared<std::promise<std::unique_ptr<Scanned>>>();
      scans_.push_back(promise->get_future());
      const store::ObjectInfo& info = objects_[begun_++];
      FB_RETURN_IF_ERROR(pool_->Submit([this, promise, &info] {
        auto scanned = std::make_unique<Scanned>();
        if (!stop_) *scanned = ScanShard(store_, info, prefix_, format_);
        bytes_ += scanned->bytes;
        promise->set_value(std::move(scanned));
      }));
    }
    if (scans_.front().wait_for(kProgressEvery) != std::future_status::ready) {
      return std::unique_ptr<Scanned>();
    }
    auto scanned = scans_.front().get();
    scans_.pop_front();
    return scanned;
  }
  uint64_t bytes() const { return bytes_; }
  ~Scans() {
    stop_ = true;
    if (pool_) pool_->Stop();
  }

 private:
  const store::SyncStore& store_;
  const std::string& prefix_;
  const RecordFormat& format_;
  const std::vector<store::ObjectInfo>& objects_;
  const size_t ahead_;
  size_t begun_ = 0;
  std::atomic<bool> stop_ = false;
  std::atomic<uint64_t> bytes_ = 0;
  std::deque<std::future<std::unique_ptr<Scanned>>> scans_;
  std::unique_ptr<sys::WorkPool> pool_;
};

// Of one shard: into the catalog, and into the report.
Status Take(const store::ObjectInfo& info, const std::string& prefix, Scanned scanned,
            RecordsWriter& writer, RecordsReport* report) {
  report->bytes_read += scanned.bytes;
  report->requests += scanned.requests;
  const std::string key = info.key.substr(prefix.size());
  if (scanned.left_out && scanned.status.ok()) {
    ++report->skipped;
    const std::string_view colon = scanned.instead.empty() ? "" : ": ";
    Warn(&report->warnings, key,
         fmt::format("no shard of this format, left out{}{}", colon, scanned.instead));
    return {};
  }
  report->dataset_bytes += info.size;
  report->oddities += scanned.report.oddities;
  for (const format::Oddity& odd : scanned.report.first_oddities) {
    Warn(&report->warnings, key, fmt::format("at {}: {}", odd.offset, odd.what));
  }
  if (!scanned.status.ok()) {  // all of it or nothing: half a shard would go unnoticed
    report->failures.push_back({key, scanned.status.ToString()});
    return {};
  }
  if (scanned.records.empty()) Warn(&report->warnings, key, "no record in it");
  ++report->shards;
  FileEntry entry = EntryOf(info, prefix);
  if (scanned.report.unpacked_bytes > 0) entry.size = scanned.report.unpacked_bytes;
  FB_RETURN_IF_ERROR(writer.AddShard(std::move(entry)));
  for (const format::FoundRecord& record : scanned.records) {
    FB_RETURN_IF_ERROR(writer.Add(record));
  }
  return {};
}

Status ScanAll(const store::SyncStore& store, const std::string& prefix, const RecordFormat& format,
               const RecordsOptions& options, const std::vector<store::ObjectInfo>& objects,
               RecordsWriter& writer, RecordsReport* report) {
  Scans scans(store, prefix, format, objects, options.parallel);
  FB_RETURN_IF_ERROR(scans.Start(options.parallel));
  for (size_t done = 0; done < objects.size();) {
    FB_ASSIGN_OR_RETURN(std::unique_ptr<Scanned> scanned, scans.Next());
    if (scanned) {
      FB_RETURN_IF_ERROR(Take(objects[done], prefix, *std::move(scanned), writer, report));
      ++done;
    }
    if (options.on_progress && !options.on_progress({done, objects.size(), scans.bytes()})) {
      return Status(Code::kCancelled, "indexing was stopped");
    }
  }
  return {};
}

}  // namespace

namespace {

// Those of a share, in order.
std::vector<store::ObjectInfo> ShareOf(std::vector<store::ObjectInfo> objects,
                                       const RecordsOptions& options) {
  std::vector<store::ObjectInfo> share;
  for (uint64_t i = options.share; i < objects.size(); i += options.shares) {
    share.push_back(std::move(objects[i]));
  }
  return share;
}

}  // namespace

Result<std::vector<std::byte>> BuildRecordsPart(const store::SyncStore& store,
                                                const std::string& prefix,
                                                const RecordFormat& format,
                                                const RecordsOptions& options,
                                                RecordsReport* report) {
  FB_ASSIGN_OR_RETURN(std::vector<store::ObjectInfo> listed,
                      ListShards(store, prefix, format, options.share == 0, report));
  RecordsPartHead head{.whole = ListingHash(listed, prefix),
                       .part = options.share,
                       .parts = options.shares,
                       .source_uri = options.source_uri,
                       .format = format.name,
                       .format_options = format.options};
  const uint64_t no_objects = report->skipped;
  const std::vector<store::ObjectInfo> objects = ShareOf(std::move(listed), options);
  RecordsWriter writer(options.source_uri, format.name, format.options);
  if (!objects.empty()) {
    FB_RETURN_IF_ERROR(ScanAll(store, prefix, format, options, objects, writer, report));
  }
  report->objects = objects.size();
  report->records = report->added = writer.added();
  // What the listing itself left out is counted by the first part alone.
  if (options.share == 0) report->objects += no_objects;
  if (options.share != 0) report->skipped -= no_objects;
  head.objects = report->objects;
  head.skipped = report->skipped;
  head.failed = report->failures.size();
  head.oddities = report->oddities;
  head.dataset_bytes = report->dataset_bytes;
  head.bytes_read = report->bytes_read;
  head.requests = report->requests;
  const std::vector<FileEntry> shards = writer.shards();
  std::vector<std::byte> catalog;
  if (writer.added() > 0) {
    FB_ASSIGN_OR_RETURN(catalog, writer.Finish());
  }
  return PackRecordsPart(head, shards, catalog);
}

Result<std::vector<std::byte>> BuildRecords(const store::SyncStore& store,
                                            const std::string& prefix, const RecordFormat& format,
                                            const RecordsOptions& options, RecordsReport* report) {
  FB_ASSIGN_OR_RETURN(std::vector<store::ObjectInfo> objects,
                      ListShards(store, prefix, format, /*check_missing=*/true, report));
  RecordsWriter writer(options.source_uri, format.name, format.options);
  if (options.append_to != nullptr) {
    FB_RETURN_IF_ERROR(TakeKnown(*options.append_to, prefix, &objects));
    FB_RETURN_IF_ERROR(writer.Continue(*options.append_to));
    report->records = options.append_to->count();
    report->shards = options.append_to->shard_count();
    if (objects.empty()) return std::vector<std::byte>();
  }
  FB_RETURN_IF_ERROR(ScanAll(store, prefix, format, options, objects, writer, report));
  report->added = writer.added();
  report->records += writer.added();
  if (writer.added() == 0 && options.append_to != nullptr) return std::vector<std::byte>();
  if (writer.added() == 0) {
    std::string why;
    if (!report->failures.empty()) {
      why = "; the first that failed: " + report->failures[0].key + ": " + report->failures[0].why;
    } else if (!report->warnings.empty()) {
      why = "; " + report->warnings[0];
    }
    return Status(report->failures.empty() ? Code::kNotFound : Code::kDataLoss,
                  fmt::format("no record of format {} in the {} objects under {}/{}{}", format.name,
                              report->objects, store.async().root_uri(), prefix, why));
  }
  return writer.Finish();
}

}  // namespace forebay::catalog
