// From a fetched record to its fields: what each container format puts around and between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "catalog/records_catalog.h"
#include "forebay/status.h"
#include "ops/chain.h"

namespace forebay::feed {

// Bytes of a shard that were fetched.
class FetchedBytes {
 public:
  virtual ~FetchedBytes() = default;
  // `range` as one span: where it lies, or copied to `scratch`, valid until the next call with the
  // same one. Errors: kDataLoss (it was not fetched).
  virtual Result<ByteView> Contiguous(ByteRange range, std::vector<std::byte>& scratch) const = 0;
  // `range` copied to where it ends up, which has its size; sets `crc32c`, unless null, to its
  // checksum: a place that is large is not read again for that. Errors: kDataLoss, as above.
  virtual Status CopyTo(ByteRange range, MutableBytes into, uint32_t* crc32c) const = 0;
};

// Takes records apart. One per decode worker: keeps scratch.
class RecordOpener {
 public:
  virtual ~RecordOpener() = default;
  // Sets `fields`, one for each of RecordFields::fields() that is needed; they are valid until the
  // next call. `places`, one for each or none at all: where a field ends up if it is taken as it
  // is, so that one which is copied anyhow is copied there. Checks what the format checks. Errors:
  // kDataLoss.
  virtual Status Open(const catalog::RecordView& record, const FetchedBytes& bytes,
                      std::span<const MutableBytes> places, std::span<ByteView> fields) = 0;
};

// What the records of a catalog hold. Immutable, shared by threads.
class RecordFields {
 public:
  // Errors: kUnimplemented (a format that this Forebay does not know), kInvalidArgument.
  static Result<std::shared_ptr<const RecordFields>> Make(const catalog::RecordsCatalog& catalog);
  virtual ~RecordFields() = default;

  // All that records have, in the catalog's order.
  virtual const std::vector<ops::InputField>& fields() const = 0;
  // Whether every record has it.
  virtual bool everywhere(size_t field) const = 0;
  // Of a field that is bytes, where the catalog says it; nullopt: only its record's bytes do.
  virtual std::optional<uint64_t> BytesOf(const catalog::RecordView& record,
                                          size_t field) const = 0;
  // What has to be fetched of a record for the needed fields: replaces `ranges`.
  virtual void RangesOf(const catalog::RecordView& record, const std::vector<bool>& needed,
                        std::vector<ByteRange>& ranges) const = 0;
  // RangesOf never has more.
  virtual uint64_t ranges_most() const { return fields().size(); }
  virtual std::unique_ptr<RecordOpener> MakeOpener(const std::vector<bool>& needed) const = 0;
};

}  // namespace forebay::feed
