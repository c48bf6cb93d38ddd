#include "store/s3/sigv4.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cctype>
#include <ctime>
#include <map>
#include <utility>

#include "base/assert.h"

namespace forebay::store::s3 {
namespace {

std::string Hex(ByteView bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15];
  }
  return text;
}

Sha256 Hmac(ByteView key, std::string_view text) {
  Sha256 out;
  unsigned length = 0;
  const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          reinterpret_cast<unsigned char*>(out.data()), &length);
  FB_ASSERT(done != nullptr && length == out.size());
  return out;
}

// Trimmed, and every run of blanks one space.
std::string CanonicalValue(std::string_view value) {
  std::string out;
  for (const char c : value) {
    const bool blank = c == ' ' || c == '\t';
    if (blank && (out.empty() || out.back() == ' ')) continue;
    out += blank ? ' ' : c;
  }
  if (!out.empty() && out.back() == ' ') out.pop_back();
  return out;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

std::string FormatUtc(int64_t unix_time_s) {
  const time_t seconds = unix_time_s;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

}  // namespace

const std::string kEmptySha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

std::string HexSha256(const std::vector<ByteView>& pieces) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  FB_ASSERT(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1);
  for (const ByteView piece : pieces) EVP_DigestUpdate(context, piece.data(), piece.size());
  Sha256 digest;
  EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(digest.data()), nullptr);
  EVP_MD_CTX_free(context);
  return Hex(digest);
}

std::string HexMd5(std::string_view text) {
  std::array<std::byte, 16> digest;
  const int done =
      EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(digest.data()), nullptr,
                 EVP_md5(), nullptr);
  return done == 1 ? Hex(digest) : "";
}

std::string CanonicalRequest(const SignRequest& request, const net::HeaderList& headers,
                             std::string& signed_headers) {
  std::map<std::string, std::string> sorted;
  sorted["host"] = CanonicalValue(request.host);
  for (const auto& [name, value] : headers) {
    const auto [at, fresh] = sorted.try_emplace(Lower(name), CanonicalValue(value));
    if (!fresh) at->second += "," + CanonicalValue(value);
  }
  std::string text = fmt::format("{}\n{}\n{}\n", request.method,
                                 request.path.empty() ? "/" : request.path, request.query);
  signed_headers.clear();
  for (const auto& [name, value] : sorted) {
    text += fmt::format("{}:{}\n", name, value);
    if (!signed_headers.empty()) signed_headers += ';';
    signed_headers += name;
  }
  text += fmt::format("\n{}\n{}", signed_headers, request.payload_sha256);
  return text;
}

const Sha256& Signer::DayKey(const Credentials& credentials, std::string_view day) {
  if (cached_day_ != day || cached_secret_ != credentials.secret_access_key) {
    const Sha256 date = Hmac(AsBytes("AWS4" + credentials.secret_access_key), day);
    cached_key_ = Hmac(Hmac(Hmac(date, region_), service_), "aws4_request");
    cached_day_ = day;
    cached_secret_ = credentials.secret_access_key;
  }
  return cached_key_;
}

void Signer::Sign(const Credentials& credentials, const SignRequest& request,
                  net::HeaderList& headers) {
  if (credentials.anonymous) return;
  const std::string time = FormatUtc(request.unix_time_s);
  const std::string day = time.substr(0, 8);
  headers.emplace_back("x-amz-date", time);
  if (request.add_content_sha256) {
    headers.emplace_back("x-amz-content-sha256", request.payload_sha256);
  }
  if (!credentials.session_token.empty()) {
    headers.emplace_back(request.token_header, credentials.session_token);
  }
  std::string signed_headers;
  const std::string canonical = CanonicalRequest(request, headers, signed_headers);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, region_, service_);
  const std::string to_sign =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, HexSha256({AsBytes(canonical)}));
  headers.emplace_back(
      "authorization",
      fmt::format("AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={}",
                  credentials.access_key_id, scope, signed_headers,
                  Hex(Hmac(DayKey(credentials, day), to_sign))));
}

}  // namespace forebay::store::s3
