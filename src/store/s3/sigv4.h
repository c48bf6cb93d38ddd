// AWS Signature Version 4 for header-signed requests (docs.aws.amazon.com, "Signature Version 4
// signing process"). One signer per region and service; one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "net/http.h"
#include "store/s3/credentials.h"
#include "store/s3/digest.h"

namespace forebay::store::s3 {

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
  // What requests of one second, day and key have in common.
  void Prepare(const Credentials& credentials, int64_t unix_time_s);

  const std::string region_;
  const std::string service_;
  int64_t time_s_ = 0;
  std::string time_;
  std::string day_;
  std::string secret_;
  std::string key_id_;
  std::string scope_;
  std::string opening_;  // of the authorization
  Hmac256 hmac_;         // with the day's key
  Hash256 hash_;
  // Kept for their memory.
  std::string text_;
  std::string signed_headers_;
};

// The canonical request's text, for tests and for "signature does not match" reports; it holds no
// secret. `signed_headers` becomes "a;b;c".
std::string CanonicalRequest(const SignRequest& request, const net::HeaderList& headers,
                             std::string& signed_headers);

}  // namespace forebay::store::s3
