#include "engine/index_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/open_catalog.h"
#include "store/sync_store.h"

namespace forebay::engine {
namespace {

constexpr uint64_t kManifestBytesMax = 1ULL << 30;

Result<IndexTarget> TargetOf(StoreSet& stores, const store::Uri& source, catalog::DataType type,
                             const std::string& out) {
  IndexTarget target;
  store::Uri uri = source;
  if (out.empty()) {
    uri.key = CatalogKeyOf(source, type);
  } else {
    FB_ASSIGN_OR_RETURN(uri, store::ParseUri(out));
  }
  target.uri = uri.ToString();
  target.key = uri.key;
  FB_ASSIGN_OR_RETURN(target.store, stores.StoreFor(uri));
  return target;
}

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
Status ReadNames(IndexJob* job) {
  FB_ASSIGN_OR_RETURN(const auto store, job->stores->StoreFor(job->source));
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> text,
                      ReadWhole(store::SyncStore(store), job->source.key, kManifestBytesMax));
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

}  // namespace

Result<IndexJob> MakeIndexJob(const std::string& source, const StoreOptions& store,
                              const IndexOptions& options) {
  IndexJob job;
  FB_ASSIGN_OR_RETURN(job.stores, StoreSet::Make(store));
  FB_ASSIGN_OR_RETURN(job.source, store::ParseUri(source));
  FB_ASSIGN_OR_RETURN(job.type, catalog::ParseDataType(options.s3_data_type));
  FB_ASSIGN_OR_RETURN(job.target, TargetOf(*job.stores, job.source, job.type, options.out));
  job.prefix = job.type == catalog::DataType::kPrefix
                   ? job.source.key.substr(0, job.source.key.rfind('/') + 1)
                   : PrefixOf(job.source);
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

Status ExplainNothing(const IndexJob& job, Status status) {
  if (status.code() != Code::kNotFound || !job.named.empty() || job.prefix == job.source.key ||
      !store::SyncStore(job.from).Head(job.source.key).ok()) {
    return status;
  }
  return Status(Code::kInvalidArgument,
                fmt::format("{} is one object: index a prefix or a folder, or look at one video "
                            "with `forebay inspect`",
                            job.source.ToString()));
}

Status StoreCatalog(const IndexTarget& target, const std::vector<std::byte>& bytes) {
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

}  // namespace forebay::engine
