#include "engine/opened_source.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "base/log.h"
#include "catalog/files_share.h"
#include "engine/open_catalog.h"
#include "engine/record_formats.h"
#include "feed/file_fields.h"
#include "feed/file_records.h"
#include "feed/token_catalog.h"

namespace forebay::engine {
namespace {

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Status Check(const ClipsOptions& clips) {
  const auto positive = [&](const char* name, int64_t value) {
    return value > 0 ? Status() : Bad(fmt::format("{} is {}: it must be at least 1", name, value));
  };
  FB_RETURN_IF_ERROR(positive("frames", clips.frames));
  FB_RETURN_IF_ERROR(positive("step", clips.step));
  FB_RETURN_IF_ERROR(positive("hop", clips.hop));
  if (clips.uri.empty()) return Bad("uri is empty");
  if ((clips.width > 0) != (clips.height > 0) || clips.width < 0 || clips.height < 0) {
    return Bad(fmt::format("size {}x{}: give both, or neither", clips.width, clips.height));
  }
  if (clips.width > 16384 || clips.height > 16384) return Bad("a size over 16384 is refused");
  return {};
}

Result<OpenedSource> OpenClips(StoreSet& stores, const ClipsOptions& clips) {
  FB_RETURN_IF_ERROR(Check(clips));
  OpenedSource source;
  FB_ASSIGN_OR_RETURN(source.root, store::ParseUri(clips.uri));
  const std::string prefix = PrefixOf(source.root);
  FB_ASSIGN_OR_RETURN(const auto catalog, OpenCatalog(stores, clips.uri, clips.catalog));
  source.catalog_hash = catalog->content_hash();
  std::vector<ObjectVersion> objects;
  for (uint32_t i = 0; i < catalog->object_count(); ++i) {
    const catalog::CatalogObject& object = catalog->object(i);
    objects.push_back({prefix + object.key, object.size, object.etag, ""});
  }
  source.objects = std::make_shared<const ObjectList>(std::move(objects));
  feed::VideoClipsOptions wanted;
  wanted.pattern = clips.pattern;
  wanted.cameras = clips.cameras;
  wanted.frames = static_cast<uint32_t>(clips.frames);
  wanted.step = static_cast<uint32_t>(clips.step);
  wanted.hop = static_cast<uint32_t>(clips.hop);
  wanted.width = clips.width;
  wanted.height = clips.height;
  wanted.chw = clips.chw;
  FB_ASSIGN_OR_RETURN(auto dataset, feed::VideoClips::Make(catalog, wanted));
  for (const std::string& line : dataset->left_out()) {
    Log(LogLevel::kWarn, fmt::format("left out: {}", line));
  }
  source.spec = fmt::format("clips/1 pattern={} cameras={} frames={} step={} hop={}", clips.pattern,
                            fmt::join(clips.cameras, ","), clips.frames, clips.step, clips.hop);
  source.generations = {{dataset->sample_count(), source.catalog_hash}};
  source.clips = dataset.get();
  source.dataset = std::move(dataset);
  return source;
}

class FilesTable : public ObjectTable {
 public:
  FilesTable(std::shared_ptr<const catalog::FilesCatalog> catalog, std::string prefix)
      : catalog_(std::move(catalog)), prefix_(std::move(prefix)) {}
  uint64_t size() const override { return catalog_->count(); }
  Result<ObjectVersion> At(uint32_t object) const override {
    FB_ASSIGN_OR_RETURN(catalog::FileEntry entry, catalog_->At(object));
    return ObjectVersion{prefix_ + entry.key, entry.size, std::move(entry.etag),
                         std::move(entry.version_id)};
  }

 private:
  std::shared_ptr<const catalog::FilesCatalog> catalog_;
  std::string prefix_;
};

class ShardsTable : public ObjectTable {
 public:
  ShardsTable(std::shared_ptr<const catalog::RecordsCatalog> catalog, std::string prefix)
      : catalog_(std::move(catalog)), prefix_(std::move(prefix)) {}
  uint64_t size() const override { return catalog_->shard_count(); }
  Result<ObjectVersion> At(uint32_t object) const override {
    FB_ASSIGN_OR_RETURN(catalog::FileEntry entry, catalog_->ShardAt(object));
    return ObjectVersion{prefix_ + entry.key, entry.size, std::move(entry.etag),
                         std::move(entry.version_id)};
  }

 private:
  std::shared_ptr<const catalog::RecordsCatalog> catalog_;
  std::string prefix_;
};

// Records of the catalog are groups of rows, samples are rows.
Result<OpenedSource> OpenTables(std::shared_ptr<const catalog::RecordsCatalog> catalog,
                                const RecordsOptions& records, bool neighbours,
                                OpenedSource source) {
  FB_ASSIGN_OR_RETURN(auto dataset,
                      feed::TableSamples::Make(std::move(catalog), {.columns = records.columns,
                                                                    .ops = records.ops,
                                                                    .neighbours = neighbours}));
  for (catalog::Generation& generation : source.generations) {
    generation.samples = dataset->RowsOfGroups(generation.samples);
  }
  source.tables = dataset.get();
  source.dataset = std::move(dataset);
  return source;
}

Result<OpenedSource> OpenShards(StoreSet& stores, const RecordsOptions& records, bool neighbours) {
  if (!records.s3_data_type.empty() || records.hosts != 1) {
    return Bad("an S3 data type and a distribution are of format 'files'");
  }
  OpenedSource source;
  FB_ASSIGN_OR_RETURN(source.root, store::ParseUri(records.uri));
  FB_ASSIGN_OR_RETURN(auto catalog, OpenRecordsCatalog(stores, records.uri, records.catalog));
  const std::string format = FormatName(catalog->format(), catalog->format_options());
  if (!records.format.empty() && format != records.format) {
    return Bad(fmt::format("the catalog is of format '{}', not of '{}'", format, records.format));
  }
  source.catalog_hash = catalog->content_hash();
  FB_ASSIGN_OR_RETURN(catalog, feed::BySamples(std::move(catalog), records.ops));
  source.generations = catalog->generations();
  source.objects = std::make_shared<const ShardsTable>(catalog, PrefixOf(source.root));
  source.spec =
      fmt::format("records/1 format={} columns={}", format, fmt::join(records.columns, ","));
  if (feed::IsOfTables(*catalog)) {
    return OpenTables(catalog, records, neighbours, std::move(source));
  }
  FB_ASSIGN_OR_RETURN(auto dataset, feed::RecordSamples::Make(catalog, {.columns = records.columns,
                                                                        .ops = records.ops,
                                                                        .neighbours = neighbours}));
  if (!dataset->left_out().empty()) {
    Log(LogLevel::kInfo,
        fmt::format("not in every record, and left out unless columns name them: {}",
                    fmt::join(dataset->left_out(), ", ")));
  }
  if (const Op* op = feed::TokenOpOf(records.ops)) {  // it says how many samples there are
    source.spec += fmt::format(" samples={}", DescribeOp(*op));
  }
  source.records = dataset.get();
  source.dataset = std::move(dataset);
  return source;
}

Result<OpenedSource> OpenFiles(StoreSet& stores, const RecordsOptions& records) {
  OpenedSource source;
  FB_ASSIGN_OR_RETURN(source.root, store::ParseUri(records.uri));
  FB_ASSIGN_OR_RETURN(const auto type, catalog::ParseDataType(records.s3_data_type));
  FB_ASSIGN_OR_RETURN(auto catalog, OpenFilesCatalog(stores, records.uri, records.catalog, type));
  if (type != catalog::DataType::kFolder) {  // the objects lie elsewhere
    FB_ASSIGN_OR_RETURN(source.root, store::ParseUri(catalog->source_uri()));
  }
  if (records.hosts != 1) {
    FB_ASSIGN_OR_RETURN(catalog,
                        catalog::ShareOf(std::move(catalog), static_cast<uint64_t>(records.host),
                                         static_cast<uint64_t>(records.hosts)));
  }
  source.catalog_hash = catalog->content_hash();
  source.generations = catalog->generations();
  source.files = catalog;
  source.objects = std::make_shared<const FilesTable>(catalog, PrefixOf(source.root));
  if (records.ops.empty() && records.columns.empty()) {
    source.dataset = std::make_unique<feed::FileRecords>(catalog);
    source.spec = "files/1";
    return source;
  }
  FB_ASSIGN_OR_RETURN(auto dataset,
                      feed::RecordSamples::Make(feed::RecordsOfFiles(std::move(catalog)),
                                                {.columns = records.columns, .ops = records.ops}));
  source.spec = fmt::format("files/1 columns={}", fmt::join(records.columns, ","));
  source.records = dataset.get();
  source.dataset = std::move(dataset);
  return source;
}

// Where no format is named, the catalog says which.
Result<OpenedSource> OpenRecords(StoreSet& stores, const RecordsOptions& records, bool neighbours) {
  if (records.uri.empty()) return Bad("uri is empty");
  const bool channel = !records.s3_data_type.empty() || records.hosts != 1;
  if (records.format == "files" || (records.format.empty() && channel)) {
    return OpenFiles(stores, records);
  }
  if (!records.format.empty()) {
    FB_RETURN_IF_ERROR(RecordFormatOf(records.format).status());
    return OpenShards(stores, records, neighbours);
  }
  auto shards = OpenShards(stores, records, neighbours);
  if (shards.code() != Code::kInvalidArgument) return shards;
  auto files = OpenFiles(stores, records);
  return files.ok() ? std::move(files) : std::move(shards);
}

Result<OpenedSource> OpenSource(StoreSet& stores, const SourceOptions& source, bool neighbours) {
  const auto* clips = std::get_if<ClipsOptions>(&source.data);
  return clips ? OpenClips(stores, *clips)
               : OpenRecords(stores, std::get<RecordsOptions>(source.data), neighbours);
}

const std::string& UriOf(const SourceOptions& source) {
  return std::visit([](const auto& data) -> const std::string& { return data.uri; }, source.data);
}

}  // namespace

Result<std::vector<OpenedSource>> OpenSources(const std::vector<SourceOptions>& sources,
                                              const StoreOptions& store, bool neighbours) {
  FB_RETURN_IF_ERROR(store.Validate());
  if (sources.empty()) return Bad("no data set is given");
  FB_ASSIGN_OR_RETURN(const auto stores, StoreSet::Make(store));
  std::vector<OpenedSource> opened;
  for (const SourceOptions& source : sources) {
    Result<OpenedSource> one = OpenSource(*stores, source, neighbours);
    if (!one.ok()) return std::move(one).status().WithContext(UriOf(source));
    Status names = feed::CheckNames(one->dataset->arrays());
    if (!names.ok()) return std::move(names).WithContext(UriOf(source));
    opened.push_back(*std::move(one));
    opened.back().name = source.name;
  }
  return opened;
}

std::shared_ptr<const order::BlockTable> BlocksOf(const OpenedSource& source, uint64_t samples) {
  return std::make_shared<const order::BlockTable>(source.dataset->BlocksOf(samples));
}

}  // namespace forebay::engine
