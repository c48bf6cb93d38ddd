#include "store/s3/named_digest.h"

#include <openssl/evp.h>

#include <array>
#include <span>
#include <utility>

#include "store/s3/digest.h"

namespace forebay::store::s3 {
namespace {

struct Free {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
};

class OpenSslDigest : public NamedDigest {
 public:
  explicit OpenSslDigest(std::unique_ptr<EVP_MD_CTX, Free> context)
      : context_(std::move(context)) {}
  void Add(ByteView bytes) override {
    EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
  }
  std::string Hex() override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), digest.data(), &size);
    std::string text;
    AppendHex(std::as_bytes(std::span(digest)).first(size), text);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

// hashlib's name -> OpenSSL's.
const char* OpenSslName(std::string_view name) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"md5", "MD5"},           {"sha1", "SHA1"},           {"sha224", "SHA2-224"},
      {"sha256", "SHA2-256"},   {"sha384", "SHA2-384"},     {"sha512", "SHA2-512"},
      {"sha3_224", "SHA3-224"}, {"sha3_256", "SHA3-256"},   {"sha3_384", "SHA3-384"},
      {"sha3_512", "SHA3-512"}, {"blake2b", "BLAKE2B-512"}, {"blake2s", "BLAKE2S-256"}};
  for (const auto& [known, openssl] : kNames) {
    if (known == name) return openssl;
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<NamedDigest> NamedDigest::Make(std::string_view name) {
  const char* const openssl = OpenSslName(name);
  if (openssl == nullptr) return nullptr;
  const std::unique_ptr<EVP_MD, Free> algorithm(EVP_MD_fetch(nullptr, openssl, nullptr));
  std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
  if (!algorithm || !context || EVP_DigestInit_ex(context.get(), algorithm.get(), nullptr) != 1) {
    return nullptr;
  }
  return std::make_unique<OpenSslDigest>(std::move(context));
}

}  // namespace forebay::store::s3
