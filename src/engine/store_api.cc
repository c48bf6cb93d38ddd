// include/forebay/store.h over StoreSet.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include "base/log.h"
#include "engine/copy_job.h"
#include "engine/copy_sink.h"
#include "engine/store_set.h"
#include "forebay/store.h"
#include "store/sync_store.h"
#include "store/uri.h"
#include "sys/process.h"
#include "sys/stream_file.h"
#include "sys/thread.h"

namespace forebay {

Status ConfigureLog(const std::string& level) {
  constexpr std::string_view kNames[] = {"error", "warn", "info", "debug", "trace"};
  const auto* found = std::ranges::find(kNames, level);
  if (found == std::end(kNames)) {
    return Status(Code::kInvalidArgument, fmt::format("\"{}\" is no log level", level));
  }
  SetLogLevel(static_cast<LogLevel>(found - kNames));
  return {};
}

void EndPrograms() { sys::EndRunningProcesses(); }

namespace engine {
namespace {

using store::ObjectInfo;
using store::SyncStore;
using store::Uri;

// What is ours beside the data (the catalog), hidden unless asked for by name.
constexpr std::string_view kOwnFolder = ".forebay/";
constexpr auto kProgressInterval = std::chrono::milliseconds(50);

bool IsOwn(std::string_view key, std::string_view prefix) {
  for (size_t at = key.find(kOwnFolder, 0); at != key.npos; at = key.find(kOwnFolder, at + 1)) {
    if ((at == 0 || key[at - 1] == '/') && at + kOwnFolder.size() > prefix.size()) return true;
  }
  return false;
}

std::string LastName(const std::string& key) { return key.substr(key.rfind('/') + 1); }

Status NoObject(const Uri& uri) {
  return Status(Code::kInvalidArgument, fmt::format("\"{}\" names no object", uri.ToString()));
}

class StoreImpl : public Store {
 public:
  StoreImpl(std::shared_ptr<StoreSet> set, Duration timeout)
      : set_(std::move(set)), timeout_(timeout) {}

  Result<ObjectStat> Stat(const std::string& uri) override {
    FB_ASSIGN_OR_RETURN(const Place place, Find(uri, true));
    FB_ASSIGN_OR_RETURN(const ObjectInfo info, place.store.Head(place.uri.key));
    return StatOf(place, info);
  }

  Status List(const std::string& uri, bool recursive,
              const std::function<bool(const ObjectStat&)>& visit,
              const std::function<void(const ObjectSkip&)>& on_skip) override {
    FB_ASSIGN_OR_RETURN(Place place, Find(uri, false));
    std::string& key = place.uri.key;
    if (place.uri.scheme == Uri::Scheme::kFile) {
      // A path names one file or one folder, never whatever begins so.
      if (!IsLocalFolder(key)) {
        FB_ASSIGN_OR_RETURN(const ObjectInfo file, place.store.Head(key));
        visit(StatOf(place, file));
        return {};
      }
      if (!key.empty() && !key.ends_with('/')) key += '/';
    }
    return Walk(place, recursive ? "" : "/", visit, on_skip);
  }

  Status ReadRange(const std::string& uri, const std::string& etag, uint64_t offset,
                   std::span<std::byte> into) override {
    FB_ASSIGN_OR_RETURN(const Place place, Find(uri, true));
    if (into.empty()) return {};
    return place.store.ReadLarge({.key = place.uri.key,
                                  .etag = etag,
                                  .range = {offset, offset + into.size()},
                                  .target = {into},
                                  .options = place.store.TransferOptions(into.size())});
  }

  Result<std::string> Put(const std::string& uri, std::span<const std::byte> body) override {
    FB_ASSIGN_OR_RETURN(const Place place, Find(uri, true));
    const store::RequestOptions options = place.store.TransferOptions(body.size());
    FB_ASSIGN_OR_RETURN(
        store::PutResult put,
        place.store.PutLarge({.key = place.uri.key, .body = {body}, .options = options}));
    return std::move(put.etag);
  }

  Status Delete(const std::string& uri) override {
    FB_ASSIGN_OR_RETURN(const Place place, Find(uri, true));
    return place.store.Delete(place.uri.key);
  }

  Result<CopyReport> Copy(const std::string& from, const std::string& to,
                          const CopyOptions& options) override {
    FB_ASSIGN_OR_RETURN(Place source, Find(from, !options.recursive));
    FB_ASSIGN_OR_RETURN(Place target, Find(to, false));
    CopyJob job(&source.store, &target.store);
    const auto copy = [&] {
      return options.recursive ? CopyTree(source, target, job) : CopyObject(source, target, job);
    };
    return options.on_progress ? Watch(job, options, copy) : copy();
  }

 private:
  struct Place {
    Uri uri;
    SyncStore store;
  };

  // Runs `copy` on a thread of its own, so that whatever it waits for, the caller's thread shows
  // progress and can stop it.
  static Result<CopyReport> Watch(CopyJob& job, const CopyOptions& options,
                                  const std::function<Result<CopyReport>()>& copy) {
    FB_ASSIGN_OR_RETURN(const auto thread,
                        sys::WorkPool::Make({.name = "fb-copy-main", .threads = 1}));
    std::optional<Result<CopyReport>> report;
    std::promise<void> done;
    const std::future<void> finished = done.get_future();
    FB_RETURN_IF_ERROR(thread->Submit([&] {
      report.emplace(copy());
      done.set_value();
    }));
    bool stopped = false;
    while (finished.wait_for(kProgressInterval) != std::future_status::ready) {
      if (stopped || options.on_progress(job.Progress())) continue;
      stopped = true;
      job.Cancel();
    }
    if (!stopped) (void)options.on_progress(job.Progress());
    return *std::move(report);
  }

  Result<Place> Find(const std::string& text, bool object) {
    FB_ASSIGN_OR_RETURN(Uri uri, store::ParseUri(text));
    if (object && uri.key.empty()) return NoObject(uri);
    FB_ASSIGN_OR_RETURN(std::shared_ptr<store::ObjectStore> store, set_->StoreFor(uri));
    return Place{.uri = std::move(uri), .store = SyncStore(std::move(store), timeout_)};
  }

  static ObjectStat StatOf(const Place& place, const ObjectInfo& info) {
    return {.uri = place.store.async().root_uri() + "/" + info.key,
            .size = info.size,
            .etag = info.etag,
            .modified_unix_s = info.modified_unix_s};
  }

  // Everything below, many requests at a time.
  static Status WalkAll(const Place& place, const std::function<bool(const ObjectStat&)>& visit,
                        const std::function<void(const ObjectSkip&)>& on_skip) {
    const auto object = [&](const ObjectInfo& info) {
      return IsOwn(info.key, place.uri.key) || visit(StatOf(place, info));
    };
    return place.store.ListAll(place.uri.key, object, {}, [&](const store::ListSkip& skip) {
      if (!on_skip || IsOwn(skip.key, place.uri.key)) return;
      on_skip({.uri = place.store.async().root_uri() + "/" + skip.key, .why = skip.why});
    });
  }

  static Status Walk(const Place& place, const std::string& delimiter,
                     const std::function<bool(const ObjectStat&)>& visit,
                     const std::function<void(const ObjectSkip&)>& on_skip) {
    if (delimiter.empty()) return WalkAll(place, visit, on_skip);
    store::ListRequest request{.prefix = place.uri.key, .delimiter = delimiter};
    store::ListTokens tokens;
    for (;;) {
      FB_ASSIGN_OR_RETURN(const store::ListPage page, place.store.List(request));
      for (const std::string& prefix : page.common_prefixes) {
        if (IsOwn(prefix, place.uri.key)) continue;
        const std::string uri = place.store.async().root_uri() + "/" + prefix;
        if (!visit({.uri = uri, .etag = "", .is_prefix = true})) return {};
      }
      for (const ObjectInfo& object : page.objects) {
        if (IsOwn(object.key, place.uri.key)) continue;
        if (!visit(StatOf(place, object))) return {};
      }
      for (const store::ListSkip& skip : page.skipped) {
        if (!on_skip || IsOwn(skip.key, place.uri.key)) continue;
        on_skip({.uri = place.store.async().root_uri() + "/" + skip.key, .why = skip.why});
      }
      if (page.next_token.empty()) return {};
      const bool empty =
          page.objects.empty() && page.common_prefixes.empty() && page.skipped.empty();
      if (const std::string wrong = tokens.Check(page.next_token, empty); !wrong.empty()) {
        return Status(Code::kDataLoss, wrong, ErrorDetail{.uri = place.uri.ToString()});
      }
      request.continuation_token = page.next_token;
    }
  }

  static Result<std::unique_ptr<CopyDestination>> DestinationFor(Place& target,
                                                                 const std::string& prefix,
                                                                 bool beneath) {
    if (target.uri.scheme != Uri::Scheme::kFile) return MakeStoreDestination(&target.store, prefix);
    FB_ASSIGN_OR_RETURN(const sys::Fd root, sys::OpenDirectory("/"));
    const std::string path = prefix.substr(0, prefix.find_last_not_of('/') + 1);
    FB_ASSIGN_OR_RETURN(sys::Fd folder, sys::MakeDirectories(root, path, false));
    return MakeFileDestination(std::move(folder), beneath);
  }

  static bool IsLocalFolder(const std::string& key) {
    const Result<sys::Fd> root = sys::OpenDirectory("/");
    return root.ok() && sys::OpenAt(*root, key, sys::Open::kFolder, false).ok();
  }

  static bool IsFolder(const Uri& uri) {
    if (uri.key.empty() || uri.key.ends_with('/')) return true;
    return uri.scheme == Uri::Scheme::kFile && IsLocalFolder(uri.key);
  }

  static Result<CopyReport> CopyObject(Place& source, Place& target, CopyJob& job) {
    Result<ObjectInfo> info = source.store.Head(source.uri.key);
    if (info.code() == Code::kNotFound && IsFolder(source.uri)) {
      return std::move(info).status().WithContext("a prefix is copied with --recursive");
    }
    FB_RETURN_IF_ERROR(info.status());
    std::string prefix = target.uri.key;
    if (target.uri.scheme == Uri::Scheme::kFile && sys::StreamFile::IsOne("/" + prefix)) {
      return job.Stream(*info, "/" + prefix);
    }
    if (target.uri.scheme == Uri::Scheme::kFile && !IsFolder(target.uri)) {
      // A link stays one, and what it leads to is replaced.
      FB_ASSIGN_OR_RETURN(const std::string end, sys::FollowLink("/" + prefix));
      prefix = end.substr(1);
    }
    std::string name = LastName(prefix);
    if (IsFolder(target.uri)) {
      if (!prefix.empty() && !prefix.ends_with('/')) prefix += '/';
      name = LastName(source.uri.key);
      if (name.empty()) return NoObject(target.uri);
    } else {
      prefix.resize(prefix.size() - name.size());
    }
    if (source.store.async().root_uri() == target.store.async().root_uri() &&
        prefix + name == source.uri.key) {
      return Status(Code::kInvalidArgument, "source and destination are the same object");
    }
    FB_ASSIGN_OR_RETURN(auto destination, DestinationFor(target, prefix, false));
    job.SetDestination(std::move(destination));
    FB_RETURN_IF_ERROR(job.Add(*info, name));
    FB_ASSIGN_OR_RETURN(CopyReport report, job.Finish());
    if (!report.failures.empty()) return std::move(report.failures.front());
    return report;
  }

  static Result<CopyReport> CopyTree(Place& source, Place& target, CopyJob& job) {
    const auto as_prefix = [](std::string key) {
      if (!key.empty() && !key.ends_with('/')) key += '/';
      return key;
    };
    const std::string from = as_prefix(source.uri.key);
    const std::string to = as_prefix(target.uri.key);
    if (source.store.async().root_uri() == target.store.async().root_uri() &&
        to.starts_with(from)) {
      return Status(Code::kInvalidArgument, "the destination lies inside the source");
    }
    Status added;
    const auto add = [&](const ObjectInfo& object) {
      if (IsOwn(object.key, from)) return true;  // a catalog is of this copy's ETags alone
      if (!job.has_destination()) {  // nothing is made before there is something to copy
        Result<std::unique_ptr<CopyDestination>> made = DestinationFor(target, to, true);
        added = made.status();
        if (!added.ok()) return false;
        job.SetDestination(*std::move(made));
      }
      added = job.Add(object, object.key.substr(from.size()));
      return added.ok();
    };
    const Status listed = source.store.ListAll(from, add, {}, [&](const store::ListSkip& skip) {
      if (!IsOwn(skip.key, from)) job.LeaveOut(skip);
    });
    FB_RETURN_IF_ERROR(std::move(added));
    FB_RETURN_IF_ERROR(Status(listed).WithContext("listing the source"));
    if (!job.has_destination()) {
      return Status(Code::kNotFound, "no object is below the source",
                    ErrorDetail{.uri = Uri{source.uri.scheme, source.uri.bucket, from}.ToString()});
    }
    return job.Finish();
  }

  std::shared_ptr<StoreSet> set_;
  Duration timeout_;
};

}  // namespace
}  // namespace engine

Result<std::unique_ptr<Store>> Store::Open(const StoreOptions& options) {
  FB_ASSIGN_OR_RETURN(std::shared_ptr<engine::StoreSet> set, engine::StoreSet::Make(options));
  return std::make_unique<engine::StoreImpl>(std::move(set),
                                             std::chrono::milliseconds(options.request_timeout_ms));
}

}  // namespace forebay
