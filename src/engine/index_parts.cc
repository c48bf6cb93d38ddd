#include "engine/index_parts.h"

#include <fmt/core.h>

#include <map>
#include <utility>

#include "catalog/records_builder.h"
#include "catalog/records_part.h"
#include "engine/index_records.h"
#include "engine/open_catalog.h"
#include "engine/record_formats.h"

namespace forebay {
namespace engine {
namespace {

constexpr std::string_view kEnding = ".fbp";
constexpr uint64_t kPartBytesMost = uint64_t{64} << 30;

std::string PartKeyOf(const IndexTarget& target, uint64_t part, uint64_t parts) {
  return fmt::format("{}{:05}-of-{:05}{}", PartsPrefixOf(target.key), part, parts, kEnding);
}

// Keys of the parts, by how many there should be ("-of-00008"), in order.
Result<std::map<std::string, std::vector<std::string>>> ListParts(const IndexTarget& target) {
  std::map<std::string, std::vector<std::string>> sets;
  FB_RETURN_IF_ERROR(store::SyncStore(target.store)
                         .ListAll(PartsPrefixOf(target.key), [&](const store::ObjectInfo& info) {
                           const size_t of = info.key.rfind("-of-");
                           if (info.key.ends_with(kEnding) && of != std::string::npos) {
                             sets[info.key.substr(of)].push_back(info.key);
                           }
                           return true;
                         }));
  return sets;
}

Result<std::vector<catalog::RecordsPart>> ReadParts(const IndexTarget& target,
                                                    const std::vector<std::string>& keys) {
  std::vector<catalog::RecordsPart> parts;
  for (const std::string& key : keys) {
    const std::string uri = target.store->root_uri() + "/" + key;
    FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                        ReadWhole(store::SyncStore(target.store), key, kPartBytesMost));
    auto part = catalog::OpenRecordsPart(bytes);
    if (!part.ok()) return std::move(part).status().WithDetail({.uri = uri});
    parts.push_back(*std::move(part));
  }
  return parts;
}

Status NoParts(const IndexTarget& target) {
  return Status(Code::kNotFound,
                fmt::format("no part of a catalog under {}/{}: `forebay index SRC --shard I/N` "
                            "makes them, I from 0 to N - 1",
                            target.store->root_uri(), PartsPrefixOf(target.key)));
}

// The parts of the one way to share it out of which all are there.
Result<std::vector<catalog::RecordsPart>> WholeSet(const IndexTarget& target,
                                                   std::vector<std::string>* keys) {
  FB_ASSIGN_OR_RETURN(const auto sets, ListParts(target));
  if (sets.empty()) return NoParts(target);
  std::vector<catalog::RecordsPart> whole;
  Status incomplete;
  for (const auto& [of, set] : sets) {
    FB_ASSIGN_OR_RETURN(std::vector<catalog::RecordsPart> parts, ReadParts(target, set));
    if (parts.size() != parts[0].head.parts) {
      incomplete = Status(
          Code::kNotFound,
          fmt::format("{} parts of {} under {}/{}: the others are not made yet", parts.size(),
                      parts[0].head.parts, target.store->root_uri(), PartsPrefixOf(target.key)));
      continue;
    }
    if (!whole.empty()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("parts of {} and of {} machines under {}/{}: delete those that are "
                                "not meant",
                                whole.size(), parts.size(), target.store->root_uri(),
                                PartsPrefixOf(target.key)));
    }
    whole = std::move(parts);
    *keys = set;
  }
  if (whole.empty()) return incomplete;
  return whole;
}

void AddCounts(const catalog::RecordsPartHead& head, IndexReport* report) {
  report->objects += head.objects;
  report->objects_skipped += head.skipped;
  report->objects_failed += head.failed;
  report->oddities += head.oddities;
  report->dataset_bytes += head.dataset_bytes;
  report->bytes_read += head.bytes_read;
  report->requests += head.requests;
}

Status DescribeMerged(const std::vector<std::byte>& bytes, IndexReport* report) {
  if (report->format == catalog::kVideoParts) {
    FB_ASSIGN_OR_RETURN(const auto opened, catalog::Catalog::Open(bytes));
    report->content_hash = opened->content_hash();
    report->videos = opened->video_count();
    for (uint32_t i = 0; i < opened->video_count(); ++i) {
      FB_ASSIGN_OR_RETURN(const auto video, opened->video(i));
      report->frames += video->frames.size();
    }
    return {};
  }
  FB_ASSIGN_OR_RETURN(const auto opened, OpenBuilt(bytes));
  FB_RETURN_IF_ERROR(Describe(*opened, report));
  report->appended = report->records;
  return {};
}

}  // namespace

std::string PartsPrefixOf(const std::string& key) {
  constexpr std::string_view kCatalogEnding = ".fbc";
  const bool ends = key.ends_with(kCatalogEnding);
  return key.substr(0, key.size() - (ends ? kCatalogEnding.size() : 0)) + ".parts/";
}

Status StorePart(const IndexJob& job, const IndexOptions& options,
                 const std::vector<std::byte>& part, IndexReport* report) {
  IndexTarget target = job.target;
  target.key = PartKeyOf(job.target, options.share, options.shares);
  target.uri = target.store->root_uri() + "/" + target.key;
  FB_RETURN_IF_ERROR(StoreCatalog(target, part));
  report->catalog_uri = target.uri;
  report->index_bytes = part.size();
  return {};
}

Result<IndexReport> BuildIndexPart(const IndexJob& job, const IndexOptions& options,
                                   const std::string& name) {
  FB_ASSIGN_OR_RETURN(const catalog::RecordFormat format,
                      RecordFormatOf(name, FormatOptionsOf(options)));
  catalog::RecordsOptions build = RecordsBuild(job, options, name);
  build.share = options.share;
  build.shares = options.shares;
  catalog::RecordsReport built;
  auto bytes =
      catalog::BuildRecordsPart(store::SyncStore(job.from), job.prefix, format, build, &built);
  if (!bytes.ok()) return ExplainNothing(job, std::move(bytes).status());
  IndexReport report = Summarize(std::move(built), job, name);
  FB_RETURN_IF_ERROR(StorePart(job, options, *bytes, &report));
  return report;
}

}  // namespace engine

Result<IndexReport> MergeIndex(const std::string& source, const StoreOptions& store,
                               const std::string& out) {
  FB_RETURN_IF_ERROR(store.Validate());
  FB_ASSIGN_OR_RETURN(const engine::IndexJob job,
                      engine::MakeIndexJob(source, store, {.out = out}));
  std::vector<std::string> keys;
  FB_ASSIGN_OR_RETURN(const std::vector<catalog::RecordsPart> parts,
                      engine::WholeSet(job.target, &keys));
  FB_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, catalog::MergeRecords(parts));
  IndexReport report;
  report.format = engine::FormatName(parts[0].head.format, parts[0].head.format_options);
  FB_RETURN_IF_ERROR(engine::DescribeMerged(bytes, &report));
  FB_RETURN_IF_ERROR(engine::StoreCatalog(job.target, bytes));
  for (const catalog::RecordsPart& part : parts) engine::AddCounts(part.head, &report);
  report.catalog_uri = job.target.uri;
  report.index_bytes = bytes.size();
  // What was merged is of no use any more, and would only be taken for another set later.
  for (const std::string& key : keys) {
    const Status gone = store::SyncStore(job.target.store).Delete(key);
    if (!gone.ok()) report.warnings.push_back("a merged part stays: " + gone.ToString());
  }
  return report;
}

}  // namespace forebay
