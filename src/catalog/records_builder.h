// Builds the catalog of shards of records: each is read once, several at a time, by its format's
// scan.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "catalog/builder.h"
#include "catalog/records_catalog.h"
#include "format/record.h"
#include "store/sync_store.h"

namespace forebay::catalog {

// How the shards of a format are read.
struct RecordFormat {
  std::string name;     // "tar"
  std::string options;  // "multipart=mxnet"; part of the data set's id
  // Whether this object is such a shard at all; others are left out, and counted. Empty: all are.
  std::function<Result<bool>(const format::Shard& shard)> is_shard;
  // ".idx": what is named so is read with the shard beside it, and is none itself.
  std::string companion;
  // The shards that such a file names, each by the names it may have, one of which has to be there.
  // Empty: it names none.
  using Names = std::vector<std::string>;
  std::function<Result<std::vector<Names>>(const std::string& companion,
                                           const format::ReadBeside& read)>
      named;
  std::function<Status(const format::Shard& shard, const format::OnRecord& on_record,
                       format::ScanReport* report)>
      scan;
};

struct RecordsOptions {
  std::string source_uri;
  uint32_t parallel = 16;  // shards at a time
  const RecordsCatalog* append_to = nullptr;
  // Of the objects in the order of their keys those numbered share, share + shares, ...
  uint64_t share = 0;
  uint64_t shares = 1;
  std::function<bool(const BuildProgress&)> on_progress;  // false: stop with kCancelled
};

struct ShardFailure {
  std::string key, why;
};

struct RecordsReport {
  uint64_t objects = 0;  // listed, those left out included
  uint64_t skipped = 0;  // no object at all, or no shard of this format
  uint64_t shards = 0;   // in the catalog
  uint64_t records = 0;
  uint64_t added = 0;  // to what was there before
  uint64_t dataset_bytes = 0;
  uint64_t bytes_read = 0;
  uint64_t requests = 0;
  uint64_t oddities = 0;
  std::vector<std::string> warnings;   // the first oddities among them
  std::vector<ShardFailure> failures;  // no catalog is made when there is one
};

// The file's bytes; empty when there is nothing to append. Errors: kNotFound (no object, or no
// record), kDataLoss (a shard is damaged: report->failures says which ones), kCancelled,
// kPreconditionFailed (appending: a shard of the catalog has changed or is gone), and the store's.
Result<std::vector<std::byte>> BuildRecords(const store::SyncStore& store,
                                            const std::string& prefix, const RecordFormat& format,
                                            const RecordsOptions& options, RecordsReport* report);
// The same of a share, as a part to be merged with the others (records_part.h); it may be of no
// record at all.
Result<std::vector<std::byte>> BuildRecordsPart(const store::SyncStore& store,
                                                const std::string& prefix,
                                                const RecordFormat& format,
                                                const RecordsOptions& options,
                                                RecordsReport* report);

}  // namespace forebay::catalog
