// s3://bucket/key, file:///path, /path, memory://name/key. Keys are literal: no %-decoding, no
// globs.
#pragma once

#include <string>
#include <string_view>

#include "forebay/status.h"

namespace forebay::store {

struct Uri {
  enum class Scheme : uint8_t { kS3, kFile, kMemory };
  Scheme scheme = Scheme::kFile;
  std::string bucket;  // S3: bucket, or the ARN of an access point; memory: name; file: ""
  std::string key;     // S3: after the first '/', may begin with '/'; file: absolute path without
                       // its leading '/'
  std::string ToString() const;
};

Result<Uri> ParseUri(std::string_view text);

}  // namespace forebay::store
