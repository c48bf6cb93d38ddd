// The end of a pack: when all shards are there, whoever made them, their catalog and the manifest.
#include <fmt/core.h>

#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "catalog/records_catalog.h"
#include "engine/open_catalog.h"
#include "engine/pack_job.h"
#include "sys/thread.h"

namespace forebay {
namespace engine {
namespace {

constexpr size_t kMarkersAtATime = 16;
constexpr std::string_view kCatalog = ".forebay/catalog.fbc";

}  // namespace

// The markers of all shards; none when some are not there.
Result<std::vector<catalog::RecordsPart>> PackJob::ReadMarkers() const {
  std::vector<Result<catalog::RecordsPart>> read(shards_.size(),
                                                 Status(Code::kCancelled, "packing was stopped"));
  FB_ASSIGN_OR_RETURN(const auto pool, sys::WorkPool::Make({.name = "fb-pack",
                                                            .threads = kMarkersAtATime,
                                                            .queue_limit = shards_.size()}));
  for (uint64_t i = 0; i < shards_.size(); ++i) {
    FB_RETURN_IF_ERROR(pool->Submit([this, i, &read] {
      const auto bytes = ReadWhole(*to_, MarkerKey(i), UINT64_MAX);
      read[i] = bytes.ok() ? catalog::OpenRecordsPart(*bytes)
                           : Result<catalog::RecordsPart>(bytes.status());
    }));
  }
  pool->Stop();
  std::vector<catalog::RecordsPart> parts;
  for (Result<catalog::RecordsPart>& part : read) {
    FB_RETURN_IF_ERROR(part.status());
    parts.push_back(*std::move(part));
  }
  return parts;
}

uint64_t PackJob::SamplesOf(const catalog::RecordsPart& part) const {
  if (target_->is_table()) return shards_[part.head.part].samples;
  return part.catalog ? part.catalog->count() : 0;
}

// Each is there as its marker says.
Status PackJob::CheckShards(const std::vector<catalog::RecordsPart>& parts,
                            std::vector<PackedShard>* shards) const {
  for (const catalog::RecordsPart& part : parts) {
    const catalog::FileEntry& shard = part.shards.at(0);
    const auto found = there_.find(shard.key);
    if (found == there_.end() || found->second.size != shard.size ||
        found->second.etag != shard.etag) {
      return Status(
          Code::kPreconditionFailed,
          fmt::format("{}{} is not what its marker says: another run has just written "
                      "it, or somebody else; the machine of share {} of {} makes it "
                      "again",
                      to_uri_, shard.key, part.head.part % options_.shares, options_.shares));
    }
    shards->push_back({shard.key, shard.size, SamplesOf(part)});
  }
  return {};
}

Status PackJob::Complete() {
  FB_RETURN_IF_ERROR(ListTarget());
  report_.shards_missing = 0;
  for (uint64_t i = 0; i < shards_.size(); ++i) {
    report_.shards_missing += markers_.contains(MarkerKey(i)) ? 0 : 1;
  }
  if (report_.shards_missing > 0) return {};
  FB_ASSIGN_OR_RETURN(const std::vector<catalog::RecordsPart> parts, ReadMarkers());
  std::vector<PackedShard> shards;
  FB_RETURN_IF_ERROR(CheckShards(parts, &shards));
  report_.catalog_uri = to_uri_ + std::string(kCatalog);
  report_.manifest_uri = to_uri_ + std::string(kPackManifest);
  FB_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, catalog::MergeRecords(parts));
  bool finished = false;
  {
    const MutexLock lock(mutex_);
    finished = finished_;
  }
  if (!finished) {
    if (const std::string index = target_->IndexOf(shards); !index.empty()) {
      FB_RETURN_IF_ERROR(Put(to_prefix_ + "index.json", index));
    }
    FB_RETURN_IF_ERROR(Put(to_prefix_ + std::string(kCatalog), AsText(bytes)));
  }
  FB_ASSIGN_OR_RETURN(const auto opened,
                      catalog::RecordsCatalog::Open(catalog::BytesInMemory(std::move(bytes))));
  report_.content_hash = opened->content_hash();
  if (finished) return {};
  return Put(to_prefix_ + std::string(kPackManifest), ManifestText(parts));
}

std::string PackJob::ManifestText(const std::vector<catalog::RecordsPart>& parts) const {
  using Json = nlohmann::ordered_json;
  Json shards = Json::array();
  for (const catalog::RecordsPart& part : parts) {
    const catalog::FileEntry& shard = part.shards[0];
    shards.push_back({{"name", shard.key},
                      {"bytes", shard.size},
                      {"samples", SamplesOf(part)},
                      {"etag", shard.etag}});
  }
  Json manifest = {{"schema", "forebay.pack/1"},   {"id", id_},
                   {"source", report_.source_uri}, {"source_id", source_->id()},
                   {"format", options_.to},        {"shard_bytes", options_.shard_bytes},
                   {"samples", report_.samples},   {"content_hash", report_.content_hash},
                   {"shards", std::move(shards)}};
  if (!columns_->folders().empty()) manifest["classes"] = columns_->folders();
  return manifest.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace engine

std::vector<std::string> PackFormats() { return engine::PackFormatNames(); }

Status PackOptions::Validate() const {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (shard_bytes == 0) return bad("a shard size of 0");
  if (shares == 0 || share >= shares) {
    return bad(fmt::format("share {} of {}: they are numbered from 0", share, shares));
  }
  if (keys != "auto" && keys != "source" && keys != "number") {
    return bad(fmt::format("keys '{}': auto, source or number", keys));
  }
  if (!labels.empty() && labels != "folder" && labels != "none") {
    return bad(fmt::format("labels '{}': folder or none", labels));
  }
  return {};
}

Result<PackReport> Pack(const std::string& source, const std::string& target,
                        const StoreOptions& store, const PackOptions& options) {
  FB_RETURN_IF_ERROR(store.Validate());
  FB_RETURN_IF_ERROR(options.Validate());
  return engine::PackJob::Run(source, target, store, options);
}

}  // namespace forebay
