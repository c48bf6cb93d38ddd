#include "catalog/builder.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <utility>

#include "catalog/listing.h"
#include "store/pinned_object.h"
#include "sys/thread.h"

namespace forebay::catalog {
namespace {

constexpr auto kRangeTimeout = std::chrono::seconds(60);
constexpr auto kProgressEvery = std::chrono::milliseconds(100);
constexpr size_t kProbed = 16;

struct Scanned {
  CatalogInput::Object object;
  media::ScanReport report;
  uint64_t requests = 0;
  uint64_t bytes = 0;
  bool skipped = false;
};

Scanned ScanObject(const store::SyncStore& store, const store::ObjectInfo& info,
                   const std::string& prefix, const BuildOptions& options) {
  Scanned scanned;
  scanned.object.key = info.key.substr(prefix.size());
  scanned.object.size = info.size;
  scanned.object.etag = info.etag;
  store::PinnedObject reader(store, info, store::Priority::kBulk, kRangeTimeout);
  media::ScanOptions scan;
  scan.verify = options.verify;
  scan.read_many = [&](const std::vector<ByteRange>& ranges,
                       const std::vector<MutableBytes>& into) {
    return reader.ReadMany(ranges, into);
  };
  auto videos =
      media::ScanVideo([&](ByteRange range, MutableBytes into) { return reader.Read(range, into); },
                       info.size, scan, &scanned.report);
  scanned.requests = reader.requests();
  scanned.bytes = reader.bytes();
  if (videos.ok()) {
    scanned.object.videos = *std::move(videos);
    scanned.skipped = scanned.object.videos.empty();
  } else if (videos.code() == Code::kInvalidArgument) {
    scanned.skipped = true;  // no video by its content: labels, read-me files
  } else {
    scanned.object.error = videos.status().ToString();
  }
  return scanned;
}

Result<std::vector<store::ObjectInfo>> ListObjects(const store::SyncStore& store,
                                                   const std::string& prefix, BuildReport* report) {
  std::vector<store::ObjectInfo> objects;
  Listing listing;
  FB_RETURN_IF_ERROR(ListDataset(
      store, prefix,
      [&](const store::ObjectInfo& info) {
        objects.push_back(info);
        return true;
      },
      &listing));
  report->objects += listing.skipped;
  report->objects_skipped += listing.skipped;
  report->warnings = std::move(listing.warnings);
  if (objects.empty()) return NothingThere(store, prefix);
  return objects;
}

void AddUp(const Scanned& one, BuildReport* report) {
  ++report->objects;
  report->dataset_bytes += one.object.size;
  report->bytes_read += one.bytes;
  report->requests += one.requests;
  if (one.skipped) ++report->objects_skipped;
  if (!one.object.error.empty()) ++report->objects_failed;
  report->videos += one.object.videos.size();
  for (const media::VideoIndex& video : one.object.videos) report->frames += video.frames.size();
  if (one.report.had_sample_table && !one.skipped) {
    report->table_dataset_bytes += one.object.size;
    report->table_bytes_read += one.bytes;
  }
  if (one.skipped) Warn(&report->warnings, one.object.key, "not a video, left out");
  for (const std::string& warning : one.report.warnings)
    Warn(&report->warnings, one.object.key, warning);
}

}  // namespace

bool IsNamedLikeVideo(std::string_view key) {
  constexpr std::string_view kEndings[] = {".mp4", ".mkv", ".mov", ".avi",  ".webm",
                                           ".ts",  ".m4v", ".mpg", ".m2ts", ".mpeg",
                                           ".mxf", ".flv", ".wmv", ".ogv"};
  const std::string_view end = key.substr(std::min(key.rfind('.'), key.size()));
  return std::ranges::any_of(kEndings, [&](std::string_view one) {
    return std::ranges::equal(one, end, [](char a, char b) { return a == (b | 0x20) || a == b; });
  });
}

namespace {

// Whether one of a few objects is a video, or might be.
bool SomeAreVideos(const store::SyncStore& store, const std::vector<store::ObjectInfo>& objects,
                   const std::string& prefix, const BuildOptions& options) {
  std::vector<size_t> chosen;
  for (size_t i = 0; i < objects.size() && chosen.size() < kProbed; ++i) {
    if (IsNamedLikeVideo(objects[i].key)) chosen.push_back(i);
  }
  const size_t others = std::min(kProbed, objects.size());
  for (size_t k = 0; k < others; ++k) chosen.push_back(k * objects.size() / others);
  return std::ranges::any_of(
      chosen, [&](size_t i) { return !ScanObject(store, objects[i], prefix, options).skipped; });
}

Status NoVideo(const store::SyncStore& store, const std::string& prefix, size_t objects) {
  return Status(Code::kNotFound, fmt::format("none of the {} objects under {}/{} is a video",
                                             objects, store.async().root_uri(), prefix));
}

// What the listing itself left out is counted by the first share alone.
std::vector<store::ObjectInfo> ShareOf(std::vector<store::ObjectInfo> objects,
                                       const std::string& prefix, const BuildOptions& options,
                                       BuildReport* report) {
  std::ranges::sort(objects, {}, &store::ObjectInfo::key);
  report->listing = ListingHash(objects, prefix);
  if (options.share > 0) {
    report->objects -= report->objects_skipped;
    report->objects_skipped = 0;
  }
  std::vector<store::ObjectInfo> share;
  for (uint64_t i = options.share; i < objects.size(); i += options.shares) {
    share.push_back(std::move(objects[i]));
  }
  return share;
}

}  // namespace

Result<CatalogInput> BuildCatalog(const store::SyncStore& store, const std::string& prefix,
                                  const BuildOptions& options, BuildReport* report) {
  FB_ASSIGN_OR_RETURN(std::vector<store::ObjectInfo> objects, ListObjects(store, prefix, report));
  if (options.probe && !SomeAreVideos(store, objects, prefix, options)) {
    report->objects += objects.size();
    return NoVideo(store, prefix, objects.size());
  }
  if (options.shares > 1) objects = ShareOf(std::move(objects), prefix, options, report);
  if (objects.empty()) return CatalogInput{};
  FB_ASSIGN_OR_RETURN(const auto pool,
                      sys::WorkPool::Make({.name = "fb-index",
                                           .threads = std::max<size_t>(1, options.parallel),
                                           .queue_limit = objects.size()}));
  std::vector<Scanned> scanned(objects.size());
  std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> bytes = 0;
  std::atomic<bool> stop = false;
  std::promise<void> all_done;
  auto finished = all_done.get_future();
  for (size_t i = 0; i < objects.size(); ++i) {
    FB_RETURN_IF_ERROR(pool->Submit([&, i] {
      if (!stop) scanned[i] = ScanObject(store, objects[i], prefix, options);
      bytes += scanned[i].bytes;
      if (++done == objects.size()) all_done.set_value();
    }));
  }
  while (finished.wait_for(kProgressEvery) != std::future_status::ready) {
    if (stop || !options.on_progress) continue;
    if (!options.on_progress({done, objects.size(), bytes})) stop = true;
  }
  pool->Stop();
  if (stop) return Status(Code::kCancelled, "indexing was stopped");
  CatalogInput input;
  for (Scanned& one : scanned) {
    AddUp(one, report);
    if (!one.skipped) input.objects.push_back(std::move(one.object));
  }
  if (options.on_progress) (void)options.on_progress({done, objects.size(), bytes});
  if (input.objects.empty() && options.shares == 1) return NoVideo(store, prefix, objects.size());
  return input;
}

}  // namespace forebay::catalog
