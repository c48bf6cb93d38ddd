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

struct Endpoint {
  std::string scheme;       // "http" or "https"
  std::string host;         // with ":port" unless it is the scheme's own
  std::string path_prefix;  // encoded; "" or "/prefix" or "/prefix/bucket" or "/bucket"

  // The encoded path of `key` ("" is the bucket itself). Nothing is normalised: "//", "." and ".."
  // are part of a key.
  std::string PathOf(std::string_view key) const;
  std::string UrlOf(std::string_view path, std::string_view query) const;
};

// `style`: "auto", "path" or "virtual" as in forebay/options.h. kInvalidArgument for a bucket,
// region or URL that can make no host; kUnimplemented for ARNs.
Result<Endpoint> ResolveEndpoint(const std::string& endpoint_url, const std::string& region,
                                 const std::string& bucket, const std::string& style);

}  // namespace forebay::store::s3
