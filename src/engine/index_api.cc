// BuildIndex of include/forebay/video.h.
#include <fmt/core.h>

#include <utility>

#include "catalog/builder.h"
#include "engine/open_catalog.h"
#include "engine/store_set.h"
#include "forebay/video.h"

namespace forebay {
namespace {

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

Result<Target> TargetOf(engine::StoreSet& stores, const store::Uri& source,
                        const std::string& out) {
  Target target;
  store::Uri uri = source;
  if (out.empty()) {
    uri.key = catalog::DefaultCatalogKey(engine::PrefixOf(source));
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

}  // namespace

Result<IndexReport> BuildIndex(const std::string& source, const StoreOptions& store,
                               const IndexOptions& options) {
  FB_RETURN_IF_ERROR(store.Validate());
  if (options.parallel == 0 || options.parallel > 1024) {
    return Status(Code::kInvalidArgument, "parallel must be in [1, 1024]");
  }
  catalog::BuildOptions build;
  FB_ASSIGN_OR_RETURN(build.verify, ParseVerify(options.verify));
  build.parallel = options.parallel;
  if (options.on_progress) {
    build.on_progress = [&](const catalog::BuildProgress& p) {
      return options.on_progress({p.objects_done, p.objects_total, p.bytes_read});
    };
  }
  FB_ASSIGN_OR_RETURN(const auto stores, engine::StoreSet::Make(store));
  FB_ASSIGN_OR_RETURN(store::Uri uri, store::ParseUri(source));
  FB_ASSIGN_OR_RETURN(const Target target, TargetOf(*stores, uri, options.out));
  const std::string prefix = engine::PrefixOf(uri);
  FB_ASSIGN_OR_RETURN(auto from, stores->StoreFor(uri));
  catalog::BuildReport built;
  const store::SyncStore source_store(std::move(from));
  auto input_or = catalog::BuildCatalog(source_store, prefix, build, &built);
  if (input_or.code() == Code::kNotFound && built.objects == 0 && prefix != uri.key &&
      source_store.Head(uri.key).ok()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is one object: index a prefix or a folder, or look at one video "
                              "with `forebay inspect`",
                              uri.ToString()));
  }
  FB_ASSIGN_OR_RETURN(catalog::CatalogInput input, std::move(input_or));
  uri.key = prefix;
  input.source_uri = uri.ToString();
  IndexReport report = Summarize(built, input, input.source_uri);
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, catalog::WriteCatalog(std::move(input)));
  FB_RETURN_IF_ERROR(Store(target, bytes));
  report.catalog_uri = target.uri;
  report.index_bytes = bytes.size();
  // Read back as a reader would: what was written opens.
  FB_ASSIGN_OR_RETURN(const auto opened, catalog::Catalog::Open(bytes));
  report.content_hash = opened->content_hash();
  return report;
}

}  // namespace forebay
