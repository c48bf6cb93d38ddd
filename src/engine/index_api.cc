// BuildIndex of include/forebay/video.h.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/builder.h"
#include "catalog/files_builder.h"
#include "engine/open_catalog.h"
#include "engine/store_set.h"
#include "forebay/video.h"

namespace forebay {
namespace {

constexpr uint64_t kManifestBytesMax = 1ULL << 30;

Result<media::Verified> ParseVerify(const std::string& text) {
  if (text == "none") return media::Verified::kNone;
  if (text == "heads") return media::Verified::kHeads;
  if (text == "full") return media::Verified::kFull;
  return Status(Code::kInvalidArgument, fmt::format("verify '{}': none, heads or full", text));
}

struct Target {
  std::string uri;
  std::shared_ptr<store::ObjectStore> store;
  std::string key;
};

Result<Target> TargetOf(engine::StoreSet& stores, const store::Uri& source, catalog::DataType type,
                        const std::string& out) {
  Target target;
  store::Uri uri = source;
  if (out.empty()) {
    uri.key = engine::CatalogKeyOf(source, type);
  } else {
    FB_ASSIGN_OR_RETURN(uri, store::ParseUri(out));
  }
  target.uri = uri.ToString();
  target.key = uri.key;
  FB_ASSIGN_OR_RETURN(target.store, stores.StoreFor(uri));
  return target;
}

Status Store(const Target& target, const std::vector<std::byte>& bytes) {
  const store::SyncStore store(target.store);
  store::PutRequest put;
  put.key = target.key;
  put.body = {bytes};
  const auto written = store.PutLarge(std::move(put));
  if (written.ok()) return {};
  Status status = written.status();
  if (status.code() == Code::kPermissionDenied) {
    return std::move(status).WithContext(
        "the catalog cannot be written there; --out URI puts it elsewhere");
  }
  return std::move(status).WithContext("writing the catalog");
}

IndexReport Summarize(const catalog::BuildReport& built, const catalog::CatalogInput& input,
                      const std::string& prefix_uri) {
  IndexReport report;
  report.objects = built.objects;
  report.objects_failed = built.objects_failed;
  report.objects_skipped = built.objects_skipped;
  report.videos = built.videos;
  report.frames = built.frames;
  report.dataset_bytes = built.dataset_bytes;
  report.bytes_read = built.bytes_read;
  report.requests = built.requests;
  report.table_dataset_bytes = built.table_dataset_bytes;
  report.table_bytes_read = built.table_bytes_read;
  report.warnings = built.warnings;
  for (const catalog::CatalogInput::Object& object : input.objects) {
    if (!object.error.empty()) report.failures.push_back({prefix_uri + object.key, object.error});
  }
  return report;
}

// What an index is built from, and where it goes.
struct Job {
  std::shared_ptr<engine::StoreSet> stores;
  catalog::DataType type = catalog::DataType::kFolder;
  store::Uri source;
  std::string prefix;  // of all keys; of files: what they are given relative to
  std::shared_ptr<store::ObjectStore> from;
  Target target;
  std::string source_uri;          // with the prefix
  std::vector<std::string> named;  // of a manifest, relative to the prefix
};

// The folder that all of these are in, as long as can be.
std::string CommonFolder(const std::vector<std::string>& keys) {
  std::string_view common = keys[0];
  for (const std::string& key : keys) {
    const auto end = std::ranges::mismatch(common, key).in1;
    common = common.substr(0, static_cast<size_t>(end - common.begin()));
  }
  return std::string(common.substr(0, common.rfind('/') + 1));
}

// Of a manifest: `from`, `prefix` and `named` are those of the objects in it.
Status ReadNames(Job* job) {
  FB_ASSIGN_OR_RETURN(const auto store, job->stores->StoreFor(job->source));
  FB_ASSIGN_OR_RETURN(
      const std::vector<std::byte> text,
      engine::ReadWhole(store::SyncStore(store), job->source.key, kManifestBytesMax));
  FB_ASSIGN_OR_RETURN(const std::vector<std::string> uris,
                      catalog::ReadManifest(job->type, AsText(text)));
  store::Uri first;
  for (const std::string& text_of : uris) {
    FB_ASSIGN_OR_RETURN(store::Uri uri, store::ParseUri(text_of));
    if (job->named.empty()) first = uri;
    if (uri.scheme != first.scheme || uri.bucket != first.bucket) {
      return Status(Code::kInvalidArgument,
                    fmt::format("the manifest names objects of {} and of {}: they must lie in one "
                                "bucket",
                                uris[0], text_of));
    }
    job->named.push_back(std::move(uri.key));
  }
  FB_ASSIGN_OR_RETURN(job->from, job->stores->StoreFor(first));
  job->prefix = CommonFolder(job->named);
  for (std::string& key : job->named) key.erase(0, job->prefix.size());
  first.key = job->prefix;
  job->source_uri = first.ToString();
  return {};
}

Result<Job> MakeJob(const std::string& source, const StoreOptions& store,
                    const IndexOptions& options) {
  Job job;
  FB_ASSIGN_OR_RETURN(job.stores, engine::StoreSet::Make(store));
  FB_ASSIGN_OR_RETURN(job.source, store::ParseUri(source));
  FB_ASSIGN_OR_RETURN(job.type, catalog::ParseDataType(options.s3_data_type));
  FB_ASSIGN_OR_RETURN(job.target, TargetOf(*job.stores, job.source, job.type, options.out));
  job.prefix = job.type == catalog::DataType::kPrefix
                   ? job.source.key.substr(0, job.source.key.rfind('/') + 1)
                   : engine::PrefixOf(job.source);
  if (job.type == catalog::DataType::kManifest ||
      job.type == catalog::DataType::kAugmentedManifest) {
    FB_RETURN_IF_ERROR(ReadNames(&job));
    return job;
  }
  FB_ASSIGN_OR_RETURN(job.from, job.stores->StoreFor(job.source));
  store::Uri root = job.source;
  root.key = job.prefix;
  job.source_uri = root.ToString();
  return job;
}

// A better reason than that there is nothing: `source` names one object.
Status ExplainNothing(const Job& job, Status status) {
  if (status.code() != Code::kNotFound || !job.named.empty() || job.prefix == job.source.key ||
      !store::SyncStore(job.from).Head(job.source.key).ok()) {
    return status;
  }
  return Status(Code::kInvalidArgument,
                fmt::format("{} is one object: index a prefix or a folder, or look at one video "
                            "with `forebay inspect`",
                            job.source.ToString()));
}

Result<IndexReport> BuildVideos(const Job& job, const IndexOptions& options, uint64_t* objects) {
  catalog::BuildOptions build;
  FB_ASSIGN_OR_RETURN(build.verify, ParseVerify(options.verify));
  build.parallel = options.parallel;
  build.probe = options.format == "auto";
  if (options.on_progress) {
    build.on_progress = [&](const catalog::BuildProgress& p) {
      return options.on_progress({p.objects_done, p.objects_total, p.bytes_read});
    };
  }
  catalog::BuildReport built;
  auto input_or = catalog::BuildCatalog(store::SyncStore(job.from), job.prefix, build, &built);
  *objects = built.objects;
  if (!input_or.ok() && built.objects == 0) {
    return ExplainNothing(job, std::move(input_or).status());
  }
  FB_ASSIGN_OR_RETURN(catalog::CatalogInput input, std::move(input_or));
  input.source_uri = job.source_uri;
  IndexReport report = Summarize(built, input, input.source_uri);
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, catalog::WriteCatalog(std::move(input)));
  FB_RETURN_IF_ERROR(Store(job.target, bytes));
  report.format = "video";
  report.catalog_uri = job.target.uri;
  report.index_bytes = bytes.size();
  // Read back as a reader would: what was written opens.
  FB_ASSIGN_OR_RETURN(const auto opened, catalog::Catalog::Open(bytes));
  report.content_hash = opened->content_hash();
  return report;
}

Result<IndexReport> BuildFilesIndex(const Job& job, const IndexOptions& options) {
  catalog::FilesOptions build;
  build.source_uri = job.source_uri;
  build.order =
      options.key_order == "listed" ? catalog::KeyOrder::kListed : catalog::KeyOrder::kBytes;
  if (options.on_progress) {
    build.on_progress = [&](uint64_t objects) { return options.on_progress({objects, 0, 0}); };
  }
  std::shared_ptr<const catalog::FilesCatalog> earlier;
  if (options.append) {
    FB_ASSIGN_OR_RETURN(const store::Uri uri, store::ParseUri(job.target.uri));
    FB_ASSIGN_OR_RETURN(earlier, engine::ReadFilesCatalog(*job.stores, uri));
    build.append_to = earlier.get();
  }
  catalog::FilesReport built;
  const store::SyncStore from(job.from);
  const catalog::FilesPrefix listed{
      job.type == catalog::DataType::kPrefix ? job.source.key : job.prefix, job.prefix.size()};
  auto bytes_or = job.named.empty()
                      ? catalog::BuildFiles(from, listed, build, &built)
                      : catalog::BuildNamedFiles(from, job.prefix, job.named, build, &built);
  if (!bytes_or.ok()) return ExplainNothing(job, std::move(bytes_or).status());
  IndexReport report;
  report.format = "files";
  report.objects = built.objects;
  report.objects_skipped = built.skipped;
  report.dataset_bytes = built.dataset_bytes;
  report.appended = built.added;
  report.warnings = std::move(built.warnings);
  report.catalog_uri = job.target.uri;
  std::shared_ptr<const catalog::FilesCatalog> opened = earlier;
  if (!bytes_or->empty()) {  // else there was nothing to append
    FB_RETURN_IF_ERROR(Store(job.target, *bytes_or));
    report.index_bytes = bytes_or->size();
    FB_ASSIGN_OR_RETURN(opened,
                        catalog::FilesCatalog::Open(catalog::BytesInMemory(*std::move(bytes_or))));
  }
  report.content_hash = opened->content_hash();
  report.generations = opened->generations().size();
  return report;
}

Status CheckOptions(const IndexOptions& options) {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (options.parallel == 0 || options.parallel > 1024) return bad("parallel must be in [1, 1024]");
  if (options.format != "auto" && options.format != "video" && options.format != "files") {
    return bad(fmt::format("format '{}': auto, video or files", options.format));
  }
  if (options.key_order != "bytes" && options.key_order != "listed") {
    return bad(fmt::format("key_order '{}': bytes or listed", options.key_order));
  }
  if (options.append && options.format == "video") {
    return bad("append: a catalog of plain objects can grow, one of videos is made anew");
  }
  FB_ASSIGN_OR_RETURN(const auto type, catalog::ParseDataType(options.s3_data_type));
  if (type != catalog::DataType::kFolder && options.format == "video") {
    return bad("videos are indexed by folder: an S3 data type is of plain objects");
  }
  return ParseVerify(options.verify).status();
}

}  // namespace

Result<IndexReport> BuildIndex(const std::string& source, const StoreOptions& store,
                               const IndexOptions& options) {
  FB_RETURN_IF_ERROR(store.Validate());
  FB_RETURN_IF_ERROR(CheckOptions(options));
  FB_ASSIGN_OR_RETURN(const Job job, MakeJob(source, store, options));
  if (options.append || options.format == "files" || job.type != catalog::DataType::kFolder) {
    return BuildFilesIndex(job, options);
  }
  uint64_t objects = 0;
  auto videos = BuildVideos(job, options, &objects);
  const bool none = videos.code() == Code::kNotFound && objects > 0;
  return none && options.format == "auto" ? BuildFilesIndex(job, options) : std::move(videos);
}

}  // namespace forebay
