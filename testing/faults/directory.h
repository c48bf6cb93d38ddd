// A directory as a read-only S3 endpoint, path style: /bucket/key is the file bucket/key below the
// root. Knows GET with Range and conditions, HEAD and ListObjectsV2; checks no signature.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"
#include "testing/faults/answer.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {

class Directory {
 public:
  static Result<std::unique_ptr<Directory>> Open(const std::string& root);

  // Thread-safe. `number` becomes part of the request id.
  Answer Serve(const RequestHead& request, uint64_t number, bool ignore_range) const;

  // A tag per version, as far as the file system tells versions apart. It has a dash, so that
  // nobody takes it for an MD5.
  static std::string EtagOf(const struct stat& info);

  struct Entry {
    std::string key;  // or a common prefix
    bool is_prefix = false;
    uint64_t size = 0;
    int64_t modified_s = 0;
    std::string etag;
  };
  struct ListQuery {
    std::string prefix;
    std::string delimiter;
    std::string after;  // keys and prefixes greater than this
    size_t limit = 1000;
  };
  struct ListResult {
    std::vector<Entry> entries;  // in the order of bytes
    bool truncated = false;
  };
  // kNotFound: no such bucket. Reads as many folders as the page needs, in the loop's thread.
  Result<ListResult> List(const std::string& bucket, const ListQuery& query) const;

 private:
  explicit Directory(Fd root) : root_(std::move(root)) {}
  Answer ServeObject(const RequestHead& request, const std::string& path, uint64_t number,
                     bool ignore_range) const;
  Answer ServeList(const RequestHead& request, const std::string& bucket, uint64_t number) const;
  // Never leaves the root, not through links either.
  Result<Fd> OpenBelow(const std::string& path, int flags) const;

  const Fd root_;
};

// What a Range header asks of `size` bytes.
struct RangeAnswer {
  enum class Kind : uint8_t { kWhole, kPart, kUnsatisfiable };
  Kind kind = Kind::kWhole;
  uint64_t offset = 0;
  uint64_t end = 0;
};
// Several ranges and broken ones give the whole, as S3 does.
RangeAnswer ReadRange(std::string_view header, uint64_t size);

}  // namespace forebay::faults
