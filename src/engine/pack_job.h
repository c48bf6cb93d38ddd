// One Pack: what is to be written is planned first, so that every shard can be made by itself; then
// shards are made in memory, several at a time, and each gets a done-marker once it is stored.
#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "catalog/records_builder.h"
#include "catalog/records_part.h"
#include "engine/index_job.h"
#include "engine/pack_columns.h"
#include "engine/pack_source.h"
#include "engine/pack_target.h"
#include "forebay/pack.h"

namespace forebay::engine {

// Below the target: there once all of it is.
inline constexpr std::string_view kPackManifest = ".forebay/pack.json";

class PackJob {
 public:
  static Result<PackReport> Run(const std::string& source, const std::string& target,
                                const StoreOptions& store, const PackOptions& options);

 private:
  struct Planned {
    PackSource::Cursor begin;
    uint64_t samples = 0;
    uint64_t bytes = 0;
  };
  explicit PackJob(const PackOptions& options) : options_(options) {}

  Status Open(const std::string& source, const std::string& target, const StoreOptions& store);
  Status Plan();
  Status PlanSample(const PackSample& sample, const PackSource::Cursor& begin);
  std::string Identity() const;

  // What is below the target now. Errors: kPreconditionFailed when it is not this job's.
  Status ListTarget() FB_EXCLUDES(mutex_);
  Status MakeShards() FB_EXCLUDES(mutex_);
  size_t ShardsAtATime() const;
  void WorkOn(uint64_t shard) FB_EXCLUDES(mutex_);
  // Whether an earlier run has made it.
  Result<bool> IsThere(uint64_t shard) const;
  Status MakeShard(uint64_t shard) FB_EXCLUDES(mutex_);
  Status Unfinish() FB_EXCLUDES(mutex_);
  Result<std::unique_ptr<PackShard>> Fill(uint64_t shard);
  Status Store(uint64_t shard, const PackShard& made, const std::vector<std::byte>& bytes);
  // Reads it as an index does, and so proves that it can be read.
  Result<std::vector<std::byte>> CatalogOf(uint64_t shard, uint64_t records,
                                           const std::vector<std::byte>& bytes,
                                           const catalog::FileEntry& entry) const;
  Status Put(const std::string& key, std::string_view text) const;
  // For a moment; whether nothing is left to do.
  bool WaitForAll() FB_EXCLUDES(mutex_);
  // False: the caller wants it stopped.
  bool Report() FB_EXCLUDES(mutex_);

  // Catalog and manifest, when all shards are there.
  Status Complete() FB_EXCLUDES(mutex_);
  Status CheckShards(const std::vector<catalog::RecordsPart>& parts,
                     std::vector<PackedShard>* shards) const;
  Result<std::vector<catalog::RecordsPart>> ReadMarkers() const;
  std::string ManifestText(const std::vector<catalog::RecordsPart>& parts) const;

  std::string ShardName(uint64_t shard) const { return target_->ShardName(shard, shards_.size()); }
  std::string SidecarName(uint64_t shard) const;
  std::string MarkerKey(uint64_t shard) const;
  uint64_t SamplesOf(const catalog::RecordsPart& part) const;
  std::string SampleText(const PackSample& sample) const;
  bool IsMine(uint64_t shard) const { return shard % options_.shares == options_.share; }

  const PackOptions& options_;
  IndexJob from_;
  std::string to_prefix_;
  std::string to_uri_;
  std::shared_ptr<store::ObjectStore> to_store_;
  std::unique_ptr<store::SyncStore> to_;
  std::unique_ptr<store::SyncStore> read_;
  std::unique_ptr<PackSource> source_;
  std::unique_ptr<PackTarget> target_;
  std::unique_ptr<PackColumns> columns_;
  catalog::RecordFormat format_;
  std::vector<Planned> shards_;
  std::string id_;
  std::map<std::string, catalog::FileEntry, std::less<>> there_;  // by name below the target
  std::map<std::string, uint64_t, std::less<>> markers_;

  PackReport report_;
  uint64_t bytes_mine_ = 0;
  std::atomic<uint64_t> bytes_done_{0};
  std::atomic<bool> stop_{false};
  Mutex mutex_;
  std::condition_variable_any changed_;
  uint64_t left_ FB_GUARDED_BY(mutex_) = 0;      // shards, of this share
  Status status_ FB_GUARDED_BY(mutex_);          // the first failure
  bool finished_ FB_GUARDED_BY(mutex_) = false;  // the manifest is there
  uint64_t written_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t bytes_written_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t kept_ FB_GUARDED_BY(mutex_) = 0;
};

}  // namespace forebay::engine
