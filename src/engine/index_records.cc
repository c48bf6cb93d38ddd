#include "engine/index_records.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "catalog/listing.h"
#include "catalog/records_builder.h"
#include "engine/open_catalog.h"
#include "engine/pack_unpacked.h"
#include "engine/record_formats.h"
#include "feed/table_samples.h"
#include "format/compressed.h"
#include "store/pinned_object.h"

namespace forebay::engine {
namespace {

constexpr size_t kProbed = 16;
constexpr uint32_t kCompressedAtOnce = 4;
constexpr size_t kListed = 100'000;  // of which those are taken
constexpr auto kRangeTimeout = std::chrono::seconds(60);

}  // namespace

IndexReport Summarize(catalog::RecordsReport built, const IndexJob& job,
                      const std::string& format) {
  IndexReport report;
  report.format = format;
  report.objects = built.objects;
  report.objects_skipped = built.skipped;
  report.objects_failed = built.failures.size();
  report.records = built.records;
  report.shards = built.shards;
  report.oddities = built.oddities;
  report.appended = built.added;
  report.dataset_bytes = built.dataset_bytes;
  report.bytes_read = built.bytes_read;
  report.requests = built.requests;
  report.warnings = std::move(built.warnings);
  report.catalog_uri = job.target.uri;
  for (catalog::ShardFailure& failure : built.failures) {
    report.failures.push_back({job.source_uri + failure.key, std::move(failure.why)});
  }
  return report;
}

catalog::RecordsOptions RecordsBuild(const IndexJob& job, const IndexOptions& options,
                                     const std::string& format) {
  catalog::RecordsOptions build;
  build.source_uri = job.source_uri;
  build.parallel = options.parallel;
  // Each holds a shard, stored and unpacked.
  if (format::CompressedRowsOf(format)) {
    build.parallel = std::min(build.parallel, kCompressedAtOnce);
  }
  if (options.on_progress) {
    build.on_progress = [&options](const catalog::BuildProgress& p) {
      return options.on_progress({p.objects_done, p.objects_total, p.bytes_read});
    };
  }
  return build;
}

Result<std::shared_ptr<const catalog::RecordsCatalog>> OpenBuilt(std::vector<std::byte> bytes) {
  FB_ASSIGN_OR_RETURN(auto opened,
                      catalog::RecordsCatalog::Open(catalog::BytesInMemory(std::move(bytes))));
  if (opened->format() == "tokens" && opened->fields().at(0).dtype.empty()) {
    return Status(Code::kInvalidArgument,
                  "the files have tokens of different types: index each type by itself");
  }
  return opened;
}

Status Describe(const catalog::RecordsCatalog& catalog, IndexReport* report) {
  report->content_hash = catalog.content_hash();
  report->generations = catalog.generations().size();
  report->shards = catalog.shard_count();
  report->records = catalog.count();
  for (const catalog::FieldInfo& field : catalog.fields()) {
    report->fields.push_back({field.name, field.records, field.bytes_max});
  }
  if (!feed::IsOfTables(catalog)) return {};
  // There records are groups of rows.
  const uint64_t groups = catalog.count();
  FB_ASSIGN_OR_RETURN(report->records, feed::RowsOf(catalog, groups));
  const uint64_t before = groups - std::min(groups, report->appended);
  FB_ASSIGN_OR_RETURN(const uint64_t rows_before, feed::RowsOf(catalog, before));
  report->appended = report->records - rows_before;
  return {};
}

RecordFormatOptions FormatOptionsOf(const IndexOptions& options) {
  return {.token_type = options.dtype,
          .drop_tail = options.drop_tail,
          .concatenated = options.concatenated,
          .max_damaged = options.max_damaged};
}

Result<IndexReport> BuildRecordsIndex(const IndexJob& job, const IndexOptions& options,
                                      const std::string& name) {
  FB_ASSIGN_OR_RETURN(const catalog::RecordFormat format,
                      RecordFormatOf(name, FormatOptionsOf(options)));
  catalog::RecordsOptions build = RecordsBuild(job, options, name);
  std::shared_ptr<const catalog::RecordsCatalog> earlier;
  if (options.append) {
    FB_ASSIGN_OR_RETURN(const store::Uri uri, store::ParseUri(job.target.uri));
    FB_ASSIGN_OR_RETURN(earlier, ReadRecordsCatalog(*job.stores, uri));
    if (earlier->format() != format.name || earlier->format_options() != format.options) {
      return Status(Code::kInvalidArgument,
                    fmt::format("append: the catalog is of format '{}', not of '{}'",
                                FormatName(earlier->format(), earlier->format_options()), name));
    }
    build.append_to = earlier.get();
  }
  catalog::RecordsReport built;
  auto bytes = catalog::BuildRecords(store::SyncStore(job.from), job.prefix, format, build, &built);
  if (!bytes.ok()) return ExplainNothing(job, std::move(bytes).status());
  IndexReport report = Summarize(std::move(built), job, name);
  std::shared_ptr<const catalog::RecordsCatalog> opened = earlier;
  if (!bytes->empty()) {  // else there was nothing to append
    FB_ASSIGN_OR_RETURN(opened, OpenBuilt(*bytes));
    FB_RETURN_IF_ERROR(StoreCatalog(job.target, *bytes));
    report.index_bytes = bytes->size();
  }
  FB_RETURN_IF_ERROR(Describe(*opened, &report));
  return report;
}

Result<std::string> FormatOfCatalog(const IndexJob& job) {
  FB_ASSIGN_OR_RETURN(const store::Uri uri, store::ParseUri(job.target.uri));
  const auto records = ReadRecordsCatalog(*job.stores, uri);
  if (records.ok()) return FormatName((*records)->format(), (*records)->format_options());
  if (records.code() == Code::kInvalidArgument) return std::string();
  return records.status();
}

namespace {

// What Hugging Face's datasets keeps beside the tables of a data set that it saves.
bool IsBesideTables(std::string_view key) {
  const std::string_view name = key.substr(key.rfind('/') + 1);  // npos + 1: all of it
  return name == "dataset_info.json" || name == "state.json" || name == "dataset_dict.json";
}

}  // namespace

Result<std::string> FormatOfObjects(const IndexJob& job) {
  const store::SyncStore store(job.from);
  std::vector<store::ObjectInfo> objects;
  bool video = false;
  catalog::Listing listing;
  FB_RETURN_IF_ERROR(catalog::ListDataset(
      store, job.prefix,
      [&](const store::ObjectInfo& info) {
        if (!IsBesideTables(info.key)) objects.push_back(info);
        video = video || catalog::IsNamedLikeVideo(info.key);
        return objects.size() < kListed && !video;
      },
      &listing));
  if (video) return std::string();
  std::map<std::string, std::vector<std::string>> of_format;
  std::optional<std::string> compressed;
  Status damaged;  // of those that could not be looked into
  const size_t probed = std::min(kProbed, objects.size());
  for (size_t k = 0; k < probed; ++k) {
    const store::ObjectInfo& info = objects[k * objects.size() / probed];
    store::PinnedObject reader(store, info, store::Priority::kBulk, kRangeTimeout);
    format::Shard shard{.name = info.key.substr(job.prefix.size()), .size = info.size, .read = {}};
    shard.read = [&](ByteRange range, MutableBytes into) { return reader.Read(range, into); };
    FB_ASSIGN_OR_RETURN(std::string format, FormatOfShard(shard));
    bool packed = false;
    if (format.empty()) {
      FB_ASSIGN_OR_RETURN(packed, IsPackedShard(shard));
    }
    if (packed) {
      if (!compressed) {  // to look inside takes all of it: the others are like the first
        auto inside = FormatWithin(shard);
        if (!inside.ok()) {
          damaged = std::move(inside).status().WithDetail({.uri = job.source_uri + shard.name});
          continue;
        }
        compressed = *std::move(inside);
      }
      if (!compressed->empty()) format = std::string(format::kCompressedPrefix) + *compressed;
    }
    if (!format.empty()) of_format[std::move(format)].push_back(shard.name);
  }
  // A table of labels beside a million pictures is not what the data set is.
  std::string found;
  for (const auto& [format, names] : of_format) {
    if (2 * names.size() < probed) continue;
    if (!found.empty()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("{} is {}, {} is {}: --format says which of them are meant",
                                of_format[found][0], found, names[0], format));
    }
    found = format;
  }
  if (found.empty() && !damaged.ok()) return damaged;
  const bool trained_from =
      std::ranges::find(RecordFormatNames(), found) != RecordFormatNames().end();
  if (!found.empty() && !trained_from) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is {} that is compressed as a whole: there is no reading it at "
                              "random. `forebay pack --unpack` makes shards of such; --format "
                              "files takes each as one sample, as it is",
                              of_format[found][0], *compressed));
  }
  return found;
}

}  // namespace forebay::engine
