// BuildIndex of include/forebay/video.h.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "catalog/builder.h"
#include "catalog/files_builder.h"
#include "catalog/records_part.h"
#include "engine/index_job.h"
#include "engine/index_parts.h"
#include "engine/index_records.h"
#include "engine/open_catalog.h"
#include "engine/record_formats.h"
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

// Of videos and plain objects, which are not taken apart.
Status CheckNothingTolerated(const IndexOptions& options) {
  if (!options.drop_tail && !options.concatenated && options.max_damaged == 0) return {};
  return Status(Code::kInvalidArgument,
                "drop_tail, concatenated and max_damaged are of shards of records");
}

Result<catalog::BuildOptions> VideoBuild(const IndexOptions& options) {
  FB_RETURN_IF_ERROR(CheckNothingTolerated(options));
  catalog::BuildOptions build;
  FB_ASSIGN_OR_RETURN(build.verify, ParseVerify(options.verify));
  build.parallel = options.parallel;
  build.probe = options.format == "auto";
  if (options.on_progress) {
    build.on_progress = [&options](const catalog::BuildProgress& p) {
      return options.on_progress({p.objects_done, p.objects_total, p.bytes_read});
    };
  }
  return build;
}

Result<IndexReport> BuildVideos(const engine::IndexJob& job, const IndexOptions& options,
                                uint64_t* objects) {
  FB_ASSIGN_OR_RETURN(const catalog::BuildOptions build, VideoBuild(options));
  catalog::BuildReport built;
  auto input_or = catalog::BuildCatalog(store::SyncStore(job.from), job.prefix, build, &built);
  *objects = built.objects;
  if (!input_or.ok() && built.objects == 0) {
    return engine::ExplainNothing(job, std::move(input_or).status());
  }
  FB_ASSIGN_OR_RETURN(catalog::CatalogInput input, std::move(input_or));
  input.source_uri = job.source_uri;
  IndexReport report = Summarize(built, input, input.source_uri);
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, catalog::WriteCatalog(std::move(input)));
  FB_RETURN_IF_ERROR(engine::StoreCatalog(job.target, bytes));
  report.format = "video";
  report.catalog_uri = job.target.uri;
  report.index_bytes = bytes.size();
  // Read back as a reader would: what was written opens.
  FB_ASSIGN_OR_RETURN(const auto opened, catalog::Catalog::Open(bytes));
  report.content_hash = opened->content_hash();
  return report;
}

Result<IndexReport> BuildFilesIndex(const engine::IndexJob& job, const IndexOptions& options) {
  FB_RETURN_IF_ERROR(CheckNothingTolerated(options));
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
  if (!bytes_or.ok()) return engine::ExplainNothing(job, std::move(bytes_or).status());
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
    FB_RETURN_IF_ERROR(engine::StoreCatalog(job.target, *bytes_or));
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
    FB_RETURN_IF_ERROR(
        engine::RecordFormatOf(options.format, engine::FormatOptionsOf(options)).status());
  }
  if (options.key_order != "bytes" && options.key_order != "listed") {
    return bad(fmt::format("key_order '{}': bytes or listed", options.key_order));
  }
  if (options.append && options.format == "video") {
    return bad("append: a catalog of objects or records can grow, one of videos is made anew");
  }
  if (options.shares > 0 && options.share >= options.shares) {
    return bad(
        fmt::format("share {} of {}: they are numbered from 0", options.share, options.shares));
  }
  if (options.shares > 0 && options.append) return bad("append: by one machine alone");
  FB_ASSIGN_OR_RETURN(const auto type, catalog::ParseDataType(options.s3_data_type));
  const bool records = options.format != "auto" && options.format != "files";
  if (type != catalog::DataType::kFolder && records && options.format != "video") {
    return bad("shards are indexed by folder: an S3 data type is of plain objects");
  }
  if (type != catalog::DataType::kFolder && options.format == "video") {
    return bad("videos are indexed by folder: an S3 data type is of plain objects");
  }
  return ParseVerify(options.verify).status();
}

// Videos of this machine's share.
Result<IndexReport> BuildVideosPart(const engine::IndexJob& job, const IndexOptions& options) {
  FB_ASSIGN_OR_RETURN(catalog::BuildOptions build, VideoBuild(options));
  build.share = options.share;
  build.shares = options.shares;
  catalog::BuildReport built;
  auto input = catalog::BuildCatalog(store::SyncStore(job.from), job.prefix, build, &built);
  if (!input.ok()) return engine::ExplainNothing(job, std::move(input).status());
  input->source_uri = job.source_uri;
  IndexReport report = Summarize(built, *input, job.source_uri);
  report.format = catalog::kVideoParts;
  const catalog::RecordsPartHead head{.whole = built.listing,
                                      .part = options.share,
                                      .parts = options.shares,
                                      .source_uri = job.source_uri,
                                      .format = report.format,
                                      .format_options = "verify=" + options.verify,
                                      .objects = built.objects,
                                      .skipped = built.objects_skipped,
                                      .failed = built.objects_failed,
                                      .dataset_bytes = built.dataset_bytes,
                                      .bytes_read = built.bytes_read,
                                      .requests = built.requests};
  std::vector<std::byte> catalog;
  if (!input->objects.empty()) {
    FB_ASSIGN_OR_RETURN(catalog, catalog::WriteCatalog(*std::move(input)));
  }
  FB_RETURN_IF_ERROR(
      engine::StorePart(job, options, catalog::PackRecordsPart(head, {}, catalog), &report));
  return report;
}

Result<IndexReport> BuildPart(const engine::IndexJob& job, const IndexOptions& options) {
  if (options.format == "files") {
    return Status(Code::kInvalidArgument,
                  "plain objects are indexed by one machine: it is one listing");
  }
  std::string format = options.format;
  if (format == "auto") {
    FB_ASSIGN_OR_RETURN(format, engine::FormatOfObjects(job));
  }
  if (!format.empty() && format != "video") return engine::BuildIndexPart(job, options, format);
  return BuildVideosPart(job, options);
}

}  // namespace

std::vector<std::string> RecordFormats() { return engine::RecordFormatNames(); }

Result<IndexReport> BuildIndex(const std::string& source, const StoreOptions& store,
                               const IndexOptions& options) {
  FB_RETURN_IF_ERROR(store.Validate());
  FB_RETURN_IF_ERROR(CheckOptions(options));
  FB_ASSIGN_OR_RETURN(const engine::IndexJob job, engine::MakeIndexJob(source, store, options));
  if (options.shares > 0) return BuildPart(job, options);
  if (options.format != "auto" && options.format != "video" && options.format != "files") {
    return engine::BuildRecordsIndex(job, options, options.format);
  }
  if (options.append && options.format == "auto") {
    FB_ASSIGN_OR_RETURN(const std::string format, engine::FormatOfCatalog(job));
    if (!format.empty()) return engine::BuildRecordsIndex(job, options, format);
  }
  if (options.append || options.format == "files" || job.type != catalog::DataType::kFolder) {
    return BuildFilesIndex(job, options);
  }
  // Containers of records tell what they are more surely than video does.
  if (options.format == "auto") {
    FB_ASSIGN_OR_RETURN(const std::string format, engine::FormatOfObjects(job));
    if (!format.empty()) return engine::BuildRecordsIndex(job, options, format);
  }
  uint64_t objects = 0;
  auto videos = BuildVideos(job, options, &objects);
  const bool none = videos.code() == Code::kNotFound && objects > 0;
  return none && options.format == "auto" ? BuildFilesIndex(job, options) : std::move(videos);
}

}  // namespace forebay
