// The immutable index of a data set: its objects with size and ETag, and the video index of each.
// Byte table: docs/formats/catalog.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "media/video_index.h"

namespace forebay::catalog {

struct CatalogObject {
  std::string key;  // relative to the data set's root URI
  uint64_t size = 0;
  std::string etag;
  uint32_t first_video = 0;  // its video streams: videos [first_video, first_video + video_count)
  uint32_t video_count = 0;
  std::string error;  // not empty: it could not be indexed, and why
};

// Immutable, shared by any number of threads.
class Catalog {
 public:
  // Takes a whole file as fetched or mapped. Errors: kDataLoss (magic, version, lengths, checksum).
  static Result<std::shared_ptr<const Catalog>> Open(std::vector<std::byte> bytes);
  virtual ~Catalog() = default;

  virtual const std::string& source_uri() const = 0;    // the root of the keys, with a final '/'
  virtual const std::string& content_hash() const = 0;  // hex; equal data sets have equal hashes
  virtual uint32_t object_count() const = 0;
  virtual const CatalogObject& object(uint32_t i) const = 0;  // in byte order of keys
  virtual uint32_t video_count() const = 0;
  // Decoded on first use from the packed columns and kept (thread-safe).
  virtual Result<std::shared_ptr<const media::VideoIndex>> video(uint32_t i) const = 0;
  virtual uint32_t object_of_video(uint32_t i) const = 0;
  virtual uint64_t video_packed_bytes(uint32_t i) const = 0;
};

// Objects in any order; they are sorted by key. `videos` of object i in stream order.
struct CatalogInput {
  std::string source_uri;
  struct Object {
    std::string key;
    uint64_t size = 0;
    std::string etag;
    std::string error;
    std::vector<media::VideoIndex> videos;
  };
  std::vector<Object> objects;
};
Result<std::vector<std::byte>> WriteCatalog(CatalogInput input);

// SRC -> SRC/.forebay/catalog.fbc
std::string DefaultCatalogKey(std::string_view source_prefix);

}  // namespace forebay::catalog
