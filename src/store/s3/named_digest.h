// Hashes by the names that Python's hashlib gives them. One thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace forebay::store::s3 {

class NamedDigest {
 public:
  // "sha1", "sha256", "md5", "blake2b", "sha3_256", ...; null: OpenSSL has none of this name.
  static std::unique_ptr<NamedDigest> Make(std::string_view name);
  virtual ~NamedDigest() = default;
  virtual void Add(ByteView bytes) = 0;
  // Once. Lower case.
  virtual std::string Hex() = 0;
};

}  // namespace forebay::store::s3
