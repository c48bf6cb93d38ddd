#include "catalog/files_builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <future>
#include <set>
#include <utility>

#include "catalog/files_writer.h"
#include "catalog/listing.h"

namespace forebay::catalog {
namespace {

constexpr uint64_t kProgressEvery = 10'000;
constexpr Duration kHeadTime = std::chrono::seconds(60);

FileEntry EntryOf(const store::ObjectInfo& info, size_t root_bytes) {
  return {info.key.substr(root_bytes), info.size, info.etag, info.version_id};
}

using Entries = std::function<Result<FileEntry>(uint64_t i)>;

Entries EntriesOf(const FilesCatalog& catalog) {
  return [&catalog](uint64_t i) { return catalog.At(i); };
}

Result<std::vector<FileEntry>> AllSorted(const FilesCatalog& catalog) {
  std::vector<FileEntry> entries;
  for (uint64_t i = 0; i < catalog.count(); ++i) {
    FB_ASSIGN_OR_RETURN(FileEntry entry, catalog.At(i));
    entries.push_back(std::move(entry));
  }
  std::ranges::sort(entries, {}, &FileEntry::key);
  return entries;
}

// The listing as a catalog of its own: packed, because it may be of very many.
Result<std::vector<std::byte>> List(const store::SyncStore& store, const FilesPrefix& prefix,
                                    KeyOrder order, const FilesOptions& options,
                                    FilesReport* report) {
  FilesWriter writer(options.source_uri, KeyOrder::kListed);
  Listing listing;
  Status status;
  bool sorted = true;  // most stores list in the order of the keys' bytes
  std::string last;
  const auto visit = [&](const store::ObjectInfo& info) {
    sorted = sorted && (writer.added() == 0 || last < info.key);
    last = info.key;
    report->dataset_bytes += info.size;
    status = writer.Add(EntryOf(info, prefix.root_bytes));
    if (status.ok() && writer.added() % kProgressEvery == 0 && options.on_progress &&
        !options.on_progress(writer.added())) {
      status = Status(Code::kCancelled, "indexing was stopped");
    }
    return status.ok();
  };
  const Status listed = ListDataset(store, prefix.prefix, visit, &listing);
  report->objects = writer.added() + listing.skipped;
  report->skipped = listing.skipped;
  report->warnings = std::move(listing.warnings);
  FB_RETURN_IF_ERROR(status);
  FB_RETURN_IF_ERROR(listed);
  if (writer.added() == 0) return NothingThere(store, prefix.prefix);
  if (order == KeyOrder::kBytes && sorted) writer.MarkSorted();
  FB_ASSIGN_OR_RETURN(auto bytes, writer.Finish());
  if (order == KeyOrder::kListed || sorted) return bytes;
  FB_ASSIGN_OR_RETURN(const auto unsorted, FilesCatalog::Open(BytesInMemory(std::move(bytes))));
  FB_ASSIGN_OR_RETURN(std::vector<FileEntry> entries, AllSorted(*unsorted));
  FilesWriter again(options.source_uri, KeyOrder::kBytes);
  for (FileEntry& entry : entries) FB_RETURN_IF_ERROR(again.Add(std::move(entry)));
  return again.Finish();
}

// Goes through objects in the order of their keys, once.
class Cursor {
 public:
  Cursor(Entries entries, uint64_t first, uint64_t end)
      : entries_(std::move(entries)), at_(first), end_(end) {}
  Status Load() {
    if (at_ == end_) return {};
    FB_ASSIGN_OR_RETURN(entry_, entries_(at_));
    return {};
  }
  Status Next() {
    ++at_;
    return Load();
  }
  bool done() const { return at_ == end_; }
  const FileEntry& entry() const { return entry_; }

 private:
  Entries entries_;
  uint64_t at_;
  uint64_t end_;
  FileEntry entry_;
};

Status Gone(const FileEntry& entry) {
  return Status(Code::kPreconditionFailed,
                fmt::format("{} is in the catalog and no longer there: append adds objects, a new "
                            "index is another data set",
                            entry.key));
}

Status CheckUnchanged(const FileEntry& was, const FileEntry& is) {
  if (was.size == is.size && was.etag == is.etag && was.version_id == is.version_id) return {};
  return Status(Code::kPreconditionFailed,
                fmt::format("{} has changed since it was indexed ({} bytes and ETag '{}' then, {} "
                            "and '{}' now): append adds objects, a new index is another data set",
                            was.key, was.size, was.etag, is.size, is.etag));
}

// Takes the listing's objects in the order of their keys; says which of them the catalog lacks.
class Known {
 public:
  Status Open(const FilesCatalog& catalog) {
    if (catalog.key_order() == KeyOrder::kListed) {
      FB_ASSIGN_OR_RETURN(sorted_, AllSorted(catalog));
      cursors_.emplace_back([this](uint64_t i) -> Result<FileEntry> { return sorted_[i]; }, 0,
                            sorted_.size());
    } else {
      uint64_t first = 0;
      for (const Generation& generation : catalog.generations()) {
        cursors_.emplace_back(EntriesOf(catalog), first, generation.samples);
        first = generation.samples;
      }
    }
    for (Cursor& cursor : cursors_) FB_RETURN_IF_ERROR(cursor.Load());
    return {};
  }
  Result<bool> Contains(const FileEntry& now) {
    bool found = false;
    for (Cursor& cursor : cursors_) {
      if (cursor.done()) continue;
      if (cursor.entry().key < now.key) return Gone(cursor.entry());
      if (cursor.entry().key != now.key) continue;
      FB_RETURN_IF_ERROR(CheckUnchanged(cursor.entry(), now));
      FB_RETURN_IF_ERROR(cursor.Next());
      found = true;
    }
    return found;
  }
  Status Finish() const {
    for (const Cursor& cursor : cursors_) {
      if (!cursor.done()) return Gone(cursor.entry());
    }
    return {};
  }

 private:
  std::vector<FileEntry> sorted_;
  std::vector<Cursor> cursors_;
};

Result<std::vector<std::byte>> Append(const FilesCatalog& earlier, const FilesCatalog& now,
                                      const FilesOptions& options, FilesReport* report) {
  Known known;
  FB_RETURN_IF_ERROR(known.Open(earlier));
  std::vector<FileEntry> sorted;
  Entries by_key = EntriesOf(now);
  if (now.key_order() == KeyOrder::kListed) {
    FB_ASSIGN_OR_RETURN(sorted, AllSorted(now));
    by_key = [&sorted](uint64_t i) -> Result<FileEntry> { return sorted[i]; };
  }
  FilesWriter writer(options.source_uri, earlier.key_order());
  FB_RETURN_IF_ERROR(writer.Continue(earlier));
  std::set<std::string> added;  // where they are added in another order than looked at
  for (uint64_t i = 0; i < now.count(); ++i) {
    FB_ASSIGN_OR_RETURN(FileEntry entry, by_key(i));
    FB_ASSIGN_OR_RETURN(const bool old, known.Contains(entry));
    if (old) continue;
    if (sorted.empty()) {
      FB_RETURN_IF_ERROR(writer.Add(std::move(entry)));
    } else {
      added.insert(std::move(entry.key));
    }
  }
  FB_RETURN_IF_ERROR(known.Finish());
  for (uint64_t i = 0; i < now.count() && !added.empty(); ++i) {
    FB_ASSIGN_OR_RETURN(FileEntry entry, now.At(i));
    if (added.contains(entry.key)) FB_RETURN_IF_ERROR(writer.Add(std::move(entry)));
  }
  report->added = writer.added();
  if (writer.added() == 0) return std::vector<std::byte>();
  return writer.Finish();
}

constexpr size_t kHeadsAtATime = 64;

std::future<Result<store::ObjectInfo>> StartHead(const store::SyncStore& store,
                                                 const std::string& key) {
  auto promise = std::make_shared<std::promise<Result<store::ObjectInfo>>>();
  std::future<Result<store::ObjectInfo>> answer = promise->get_future();
  store.async().executor().Post([&store = store.async(), key, promise] {
    store::HeadRequest head;
    head.key = key;
    head.options.deadline = store.executor().Now() + kHeadTime;
    head.options.priority = store::Priority::kBulk;
    store.StartHead(std::move(head), [promise](Result<store::ObjectInfo> info) {
      promise->set_value(std::move(info));
    });
  });
  return answer;
}

Result<std::vector<std::byte>> Ask(const store::SyncStore& store, const std::string& root,
                                   const std::vector<std::string>& keys,
                                   const FilesOptions& options, FilesReport* report) {
  FilesWriter writer(options.source_uri, KeyOrder::kListed);
  std::deque<std::future<Result<store::ObjectInfo>>> asked;
  Status status;
  size_t next = 0;
  while (next < keys.size() || !asked.empty()) {
    while (status.ok() && next < keys.size() && asked.size() < kHeadsAtATime) {
      asked.push_back(StartHead(store, root + keys[next++]));
    }
    if (asked.empty()) break;
    const Result<store::ObjectInfo> info = asked.front().get();  // bounded by its deadline
    asked.pop_front();
    if (!status.ok()) continue;  // the others' answers are only waited for
    status = info.status();
    if (!status.ok()) continue;
    report->dataset_bytes += info->size;
    status = writer.Add({keys[writer.added()], info->size, info->etag, info->version_id});
    if (status.ok() && writer.added() % kProgressEvery == 0 && options.on_progress &&
        !options.on_progress(writer.added())) {
      status = Status(Code::kCancelled, "indexing was stopped");
    }
  }
  FB_RETURN_IF_ERROR(status);
  report->objects = writer.added();
  return writer.Finish();
}

Result<std::vector<std::byte>> Finish(std::vector<std::byte> bytes, const FilesOptions& options,
                                      FilesReport* report) {
  if (options.append_to == nullptr) {
    report->added = report->objects - report->skipped;
    return bytes;
  }
  FB_ASSIGN_OR_RETURN(const auto now, FilesCatalog::Open(BytesInMemory(std::move(bytes))));
  return Append(*options.append_to, *now, options, report);
}

}  // namespace

Result<std::vector<std::byte>> BuildFiles(const store::SyncStore& store, const std::string& prefix,
                                          const FilesOptions& options, FilesReport* report) {
  return BuildFiles(store, FilesPrefix{prefix, prefix.size()}, options, report);
}

Result<std::vector<std::byte>> BuildFiles(const store::SyncStore& store, const FilesPrefix& prefix,
                                          const FilesOptions& options, FilesReport* report) {
  const KeyOrder order = options.append_to ? options.append_to->key_order() : options.order;
  FB_ASSIGN_OR_RETURN(auto bytes, List(store, prefix, order, options, report));
  return Finish(std::move(bytes), options, report);
}

Result<std::vector<std::byte>> BuildNamedFiles(const store::SyncStore& store,
                                               const std::string& root,
                                               const std::vector<std::string>& keys,
                                               const FilesOptions& options, FilesReport* report) {
  FB_ASSIGN_OR_RETURN(auto bytes, Ask(store, root, keys, options, report));
  return Finish(std::move(bytes), options, report);
}

}  // namespace forebay::catalog
