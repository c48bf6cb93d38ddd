// From (endpoint, region, bucket, key, query) to the exact bytes of a URL.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "forebay/status.h"

namespace forebay::store::s3 {

// Keeps A-Z a-z 0-9 - . _ ~ (and '/' when told), everything else becomes %XX, byte by byte.
std::string UriEncode(std::string_view text, bool keep_slash);
// '+' is a space and %XX a byte, as in forms; kDataLoss for a broken escape.
Result<std::string> FormDecode(std::string_view text);

using Query = std::vector<std::pair<std::string, std::string>>;
// Encoded and sorted: what is sent and, at the same time, what is signed.
std::string EncodeQuery(const Query& query);

struct EndpointOptions {
  std::string endpoint_url;  // "": AWS's own for `region`
  std::string region;
  std::string bucket;          // or the ARN of an access point, or the name of a directory bucket
  std::string style = "auto";  // "path", "virtual": as in forebay/options.h
  bool dualstack = false;      // these three only of AWS's own endpoints
  bool fips = false;
  bool accelerate = false;
};

struct Endpoint {
  std::string scheme;       // "http" or "https"
  std::string host;         // with ":port" unless it is the scheme's own
  std::string path_prefix;  // encoded; "" or "/prefix" or "/prefix/bucket" or "/bucket"
  std::string region;       // to sign for
  std::string service;      // to sign for: "s3", "s3express" or "s3-object-lambda"
  // The host without bucket and port: a redirect may lead to it and to what lies below its domain.
  std::string domain;
  bool is_aws = false;         // one of Amazon's
  bool region_follows = true;  // another region means another endpoint; not for ARNs
  bool directory_bucket = false;

  // The encoded path of `key` ("" is the bucket itself). Nothing is normalised: "//", "." and ".."
  // are part of a key.
  std::string PathOf(std::string_view key) const;
  std::string UrlOf(std::string_view path, std::string_view query) const;
};

// kInvalidArgument for a bucket, region or URL that can make no host; kUnimplemented for ARNs that
// need what is not supported.
Result<Endpoint> ResolveEndpoint(const EndpointOptions& options);

// Whether a redirect of a request to `endpoint` may be followed to `host` (with or without port):
// what signs a request must not be sent just anywhere.
bool MayRedirectTo(const Endpoint& endpoint, std::string_view host);

// A region's name as it may become part of a host: a server's word for it is checked.
bool IsRegionName(std::string_view text);

}  // namespace forebay::store::s3
