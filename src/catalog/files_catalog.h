// The catalog of plain objects: every object of a listing with its size and ETag, in an order that
// is fixed. Made for billions of them: opening reads a head and a directory, and what it says of
// one object is read when it is asked for. Byte table: docs/formats/files.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "catalog/catalog_bytes.h"
#include "catalog/files_block.h"
#include "forebay/status.h"

namespace forebay::catalog {

enum class KeyOrder : uint8_t {
  kListed = 0,  // as the store listed them
  kBytes = 1,   // of the keys' bytes, inside each generation
};

// What a data set was when it was indexed, or appended to, for the first, second, ... time.
struct Generation {
  uint64_t samples = 0;      // of this one and all before
  std::string content_hash;  // the data set's id then
};

// Immutable, shared by any number of threads.
class FilesCatalog {
 public:
  // Errors: kDataLoss, kUnimplemented (another version), kInvalidArgument (a catalog of videos),
  // and those of reading.
  static Result<std::shared_ptr<const FilesCatalog>> Open(
      std::shared_ptr<const CatalogBytes> bytes);
  virtual ~FilesCatalog() = default;

  virtual const std::string& source_uri() const = 0;  // the root of the keys, with a final '/'
  virtual KeyOrder key_order() const = 0;
  virtual const std::vector<Generation>& generations() const = 0;  // at least one
  uint64_t count() const { return generations().back().samples; }
  const std::string& content_hash() const { return generations().back().content_hash; }
  virtual uint64_t total_bytes() const = 0;  // of all objects
  // Any `count` objects have no more bytes together.
  virtual uint64_t LargestBytes(uint64_t count) const = 0;

  // i < count(). Reads what is not there yet, for at most a minute. Errors: kDataLoss, and those of
  // reading.
  virtual Result<FileEntry> At(uint64_t i) const = 0;
  virtual Result<uint64_t> SizeOf(uint64_t i) const = 0;
  // Whether what it says of an object has to be read first: it is neither in memory nor mapped.
  virtual bool reads() const = 0;
  // These are asked for soon, the first ones first: what has to be read for that is begun, as much
  // of it as is kept until then.
  virtual void WillRead(std::span<const uint64_t> files) const = 0;
  // No thread of it is left, until something is read again.
  virtual void Rest() const = 0;
  // The catalog that this is a share of; itself where it is none.
  virtual const FilesCatalog& whole() const { return *this; }
};

// Whether a file that begins like this is a catalog of plain objects.
bool IsFilesCatalog(ByteView head);

}  // namespace forebay::catalog
