// The catalog of records: shards with size and ETag, and where each record and its fields lie in
// them, in the order of shards and offsets. Made for billions, as the catalog of plain objects is.
// Byte table: docs/formats/records.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog_bytes.h"
#include "catalog/files_catalog.h"
#include "catalog/records_block.h"
#include "forebay/status.h"

namespace forebay::catalog {

// A field that records have.
struct FieldInfo {
  std::string name;
  uint64_t records = 0;    // that have it
  uint64_t bytes_max = 0;  // the longest one's
  // Where all of them are arrays of one type and shape; "": bytes.
  std::string dtype = "";
  std::vector<int64_t> shape = {};
};

// Immutable, shared by any number of threads.
class RecordsCatalog {
 public:
  // Errors: kDataLoss, kUnimplemented (another version), kInvalidArgument (a catalog of something
  // else), and those of reading.
  static Result<std::shared_ptr<const RecordsCatalog>> Open(
      std::shared_ptr<const CatalogBytes> bytes);
  virtual ~RecordsCatalog() = default;

  virtual const std::string& source_uri() const = 0;  // the root of the shards' keys
  // Which format the shards have ("tar"), and what else is needed to take a record apart
  // ("multipart=mxnet").
  virtual const std::string& format() const = 0;
  virtual const std::string& format_options() const = 0;
  virtual const std::vector<Generation>& generations() const = 0;  // at least one
  uint64_t count() const { return generations().back().samples; }
  const std::string& content_hash() const { return generations().back().content_hash; }
  virtual uint64_t shard_count() const = 0;
  // How many of them there were when this generation was made.
  virtual uint64_t ShardsOf(size_t generation) const = 0;
  virtual const std::vector<FieldInfo>& fields() const = 0;
  virtual uint64_t total_bytes() const = 0;  // of all fields
  // Of a record of the first generation: what is appended does not change it.
  virtual uint64_t mean_bytes() const = 0;
  virtual uint64_t range_max() const = 0;  // no record spans more
  // The fields of any `count` records have no more bytes together.
  virtual uint64_t LargestBytes(uint64_t count) const = 0;

  // i < count(), shard < shard_count(). Reads what is not there yet, for at most a minute. Errors:
  // kDataLoss, and those of reading.
  virtual Result<RecordEntry> At(uint64_t i) const = 0;
  // Appends [first, end), end <= count(): cheaper than one by one where they lie side by side.
  virtual Status Read(uint64_t first, uint64_t end, RecordTable& records) const;
  virtual Result<std::string> KeyOf(uint64_t i) const = 0;
  virtual Result<FileEntry> ShardAt(uint64_t shard) const = 0;

  // As in FilesCatalog.
  virtual bool reads() const = 0;
  virtual void WillRead(std::span<const uint64_t> records) const = 0;
  virtual void Rest() const = 0;
};

// Whether a file that begins like this is a catalog of records.
bool IsRecordsCatalog(ByteView head);

}  // namespace forebay::catalog
