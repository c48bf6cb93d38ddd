// AWS Signature Version 4 for header-signed requests (docs.aws.amazon.com, "Signature Version 4
// signing process"). One signer per region and service; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "net/http.h"
#include "store/s3/credentials.h"

namespace forebay::store::s3 {

using Sha256 = std::array<std::byte, 32>;

std::string HexSha256(const std::vector<ByteView>& pieces);
// Not for secrets: what many stores make etags of.
std::string HexMd5(std::string_view text);
// SHA-256 of nothing, in hex: the payload hash of every request without a body.
extern const std::string kEmptySha256;

struct SignRequest {
  std::string_view method;
  std::string_view host;            // with ":port" unless it is the scheme's own
  std::string_view path;            // as on the wire, percent-encoded; "" counts as "/"
  std::string_view query;           // as on the wire: encoded, sorted by name, "name=value&..."
  std::string_view payload_sha256;  // hex, or "UNSIGNED-PAYLOAD"
  int64_t unix_time_s = 0;
  std::string_view token_header = "x-amz-security-token";
  bool add_content_sha256 = true;  // S3 wants the header; AWS's generic vectors lack it
};

class Signer {
 public:
  Signer(std::string region, std::string service)
      : region_(std::move(region)), service_(std::move(service)) {}

  // Appends x-amz-date, x-amz-content-sha256, x-amz-security-token and authorization to `headers`;
  // everything already in `headers`, and host, is signed. No effect for anonymous credentials.
  void Sign(const Credentials& credentials, const SignRequest& request, net::HeaderList& headers);

 private:
  const Sha256& DayKey(const Credentials& credentials, std::string_view day);

  const std::string region_;
  const std::string service_;
  // The key of one day, region and service takes four HMACs: kept, with what it was made from.
  std::string cached_day_;
  std::string cached_secret_;
  Sha256 cached_key_{};
};

// The canonical request's text, for tests and for "signature does not match" reports; it holds no
// secret. `signed_headers` becomes "a;b;c".
std::string CanonicalRequest(const SignRequest& request, const net::HeaderList& headers,
                             std::string& signed_headers);

}  // namespace forebay::store::s3
