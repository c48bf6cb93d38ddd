// Writes a catalog of records, shard by shard.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "catalog/block_file.h"
#include "catalog/largest_sums.h"
#include "catalog/records_catalog.h"
#include "format/record.h"

namespace forebay::catalog {

class RecordsWriter {
 public:
  RecordsWriter(std::string source_uri, std::string format, std::string format_options);

  // First of all: goes on from `earlier`, whose records keep their numbers; what is added is one
  // more generation.
  Status Continue(const RecordsCatalog& earlier);
  // Records that come lie in this shard. Errors: kResourceExhausted.
  Status AddShard(FileEntry shard);
  // Errors: kResourceExhausted (more than a catalog may hold), kDataLoss (fields outside of their
  // record, or records out of order: what no scan finds), kInvalidArgument (going on: by it the
  // earlier records would come as other arrays).
  Status Add(const format::FoundRecord& record);
  const std::vector<FileEntry>& shards() const { return shards_; }
  uint64_t added() const { return records_ - earlier_; }
  // The whole file. Errors: kInvalidArgument when it would be empty.
  Result<std::vector<std::byte>> Finish();

 private:
  struct Segment {
    uint64_t records, blocks, shards, bytes;  // of it and all before
    std::string hash;
  };
  uint32_t FieldOf(const format::FoundField& found);
  Status CheckLikeEarlier(const format::FoundRecord& record) const;
  Status Append(RecordEntry entry, std::string key);
  void CloseBlock();
  void CloseGeneration();
  void CloseShards();

  std::string source_uri_, format_, format_options_;
  BlockFileWriter file_;
  std::vector<uint64_t> checks_;  // of this generation's blocks
  std::vector<Segment> segments_;
  std::vector<RecordEntry> block_;
  std::vector<std::string> keys_;
  std::vector<FileEntry> shards_;
  std::vector<FieldInfo> fields_;
  std::map<std::string, uint32_t, std::less<>> field_numbers_;
  std::vector<FieldInfo> earlier_fields_;
  uint64_t records_ = 0;
  uint64_t earlier_ = 0;  // that there were before
  uint64_t range_max_ = 0;
  uint64_t next_from_ = 0;  // the shard's next record may begin
  LargestSums largest_;
};

}  // namespace forebay::catalog
