// SHA-256, and HMAC with it, as signing wants them: many short texts under one key. One thread.
// Private to s3/.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace forebay::store::s3 {

using Sha256 = std::array<std::byte, 32>;

// Lower case, appended.
void AppendHex(ByteView bytes, std::string& text);

// A context that is used again and again: making one costs more than hashing a request.
class Hash256 {
 public:
  Hash256();
  void Begin();
  void BeginAs(const Hash256& other);  // with what `other` has taken up so far
  void Add(ByteView bytes);
  Sha256 End();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

class Hmac256 {
 public:
  void SetKey(ByteView key);
  Sha256 Of(std::string_view text);

 private:
  Hash256 inner_;  // the padded key is taken up in both
  Hash256 outer_;
  Hash256 working_;
};

}  // namespace forebay::store::s3
