#include "store/s3/digest.h"

#include <algorithm>

#include "base/assert.h"

namespace forebay::store::s3 {
namespace {

constexpr size_t kBlock = 64;

// Looked up once: OpenSSL 3 would search its providers at every use.
const EVP_MD* Algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return fetched;
}

}  // namespace

void AppendHex(ByteView bytes, std::string& text) {
  static constexpr char kDigits[] = "0123456789abcdef";
  size_t at = text.size();
  text.resize(at + 2 * bytes.size());  // each request signs with two of 64 characters
  for (const std::byte b : bytes) {
    text[at++] = kDigits[std::to_integer<unsigned>(b) >> 4];
    text[at++] = kDigits[std::to_integer<unsigned>(b) & 15];
  }
}

Hash256::Hash256() : context_(EVP_MD_CTX_new()) {
  FB_ASSERT(context_ != nullptr && Algorithm() != nullptr);
}

void Hash256::Begin() {
  const int done = EVP_DigestInit_ex(context_.get(), Algorithm(), nullptr);
  FB_ASSERT(done == 1);
}

void Hash256::BeginAs(const Hash256& other) {
  const int done = EVP_MD_CTX_copy_ex(context_.get(), other.context_.get());
  FB_ASSERT(done == 1);
}

void Hash256::Add(ByteView bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

Sha256 Hash256::End() {
  Sha256 digest;
  EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  return digest;
}

void Hmac256::SetKey(ByteView key) {
  Sha256 shortened;
  if (key.size() > kBlock) {
    working_.Begin();
    working_.Add(key);
    shortened = working_.End();
    key = shortened;
  }
  std::array<std::byte, kBlock> padded{};
  std::ranges::copy(key, padded.begin());
  for (std::byte& b : padded) b ^= std::byte{0x36};
  inner_.Begin();
  inner_.Add(padded);
  for (std::byte& b : padded) b ^= std::byte{0x36 ^ 0x5c};
  outer_.Begin();
  outer_.Add(padded);
}

Sha256 Hmac256::Of(std::string_view text) {
  working_.BeginAs(inner_);
  working_.Add(AsBytes(text));
  const Sha256 digest = working_.End();
  working_.BeginAs(outer_);
  working_.Add(digest);
  return working_.End();
}

}  // namespace forebay::store::s3
