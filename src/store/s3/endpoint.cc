#include "store/s3/endpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "store/s3/arn.h"

namespace forebay::store::s3 {
namespace {

// A bucket that is one DNS label: lower case, no dots (a wildcard certificate covers one label).
bool FitsVirtualHost(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 &&
         std::all_of(bucket.begin(), bucket.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-'; });
}

Status CheckBucket(const std::string& bucket) {
  const bool valid = !bucket.empty() && bucket.size() <= 255 && bucket != "." && bucket != ".." &&
                     std::all_of(bucket.begin(), bucket.end(), [](char c) {
                       return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == '_';
                     });
  if (valid) return {};
  return Status(Code::kInvalidArgument, fmt::format("'{}' is no bucket name", bucket));
}

// "name--usw2-az1--x-s3" -> "usw2-az1"; "" when the bucket is no directory bucket.
std::string_view ZoneOf(std::string_view bucket) {
  for (const std::string_view ending : {"--x-s3", "--xa-s3"}) {
    if (!bucket.ends_with(ending)) continue;
    const std::string_view rest = bucket.substr(0, bucket.size() - ending.size());
    const size_t mark = rest.rfind("--");
    if (mark != rest.npos && mark > 0 && IsRegionName(rest.substr(mark + 2))) {
      return rest.substr(mark + 2);
    }
  }
  return {};
}

// The domain of AWS in the partition that the region belongs to.
std::string_view AwsDomain(std::string_view region) {
  if (region.starts_with("cn-")) return "amazonaws.com.cn";
  if (region.starts_with("eusc-")) return "amazonaws.eu";
  if (region.starts_with("us-iso-")) return "c2s.ic.gov";
  if (region.starts_with("us-isob-")) return "sc2s.sgov.gov";
  if (region.starts_with("us-isof-")) return "csp.hci.ic.gov";
  if (region.starts_with("eu-isoe-")) return "cloud.adc-e.uk";
  return "amazonaws.com";
}

std::string_view WithoutPort(std::string_view host) {
  const size_t colon = host.rfind(':');
  return colon == host.npos || host.ends_with(']') ? host : host.substr(0, colon);
}

bool IsAddress(std::string_view name) {
  return name.starts_with('[') ||
         std::all_of(name.begin(), name.end(), [](char c) { return IsDigit(c) || c == '.'; });
}

bool IsBelow(std::string_view name, std::string_view domain) {
  return name == domain || (name.size() > domain.size() && name.ends_with(domain) &&
                            name[name.size() - domain.size() - 1] == '.');
}

Status BadSetting(std::string text) {
  return Status(Code::kInvalidArgument, std::move(text), ErrorDetail{.from_settings = true});
}

Result<Endpoint> ParseEndpointUrl(const std::string& url) {
  const Status invalid = BadSetting(
      fmt::format("the endpoint '{}' is not http[s]://host[:port][/path]", HideUserinfo(url)));
  Endpoint endpoint;
  const size_t colon = url.find("://");
  if (colon == std::string::npos) return invalid;
  endpoint.scheme = url.substr(0, colon);
  if (endpoint.scheme != "http" && endpoint.scheme != "https") return invalid;
  const std::string rest = url.substr(colon + 3);
  const size_t slash = rest.find('/');
  endpoint.host = rest.substr(0, slash);
  const bool plain =
      !endpoint.host.empty() && std::all_of(endpoint.host.begin(), endpoint.host.end(), [](char c) {
        return IsLetter(c) || IsDigit(c) ||
               std::string_view("-._:[]").find(c) != std::string_view::npos;
      });
  // What follows goes to the wire as it is.
  const bool clean = std::all_of(rest.begin(), rest.end(), [](char c) {
    return c > ' ' && c <= '~' && c != '?' && c != '#' && c != '@';
  });
  if (!plain || !clean) return invalid;
  const std::string own_port = endpoint.scheme == "http" ? ":80" : ":443";
  if (endpoint.host.ends_with(own_port)) {
    endpoint.host.resize(endpoint.host.size() - own_port.size());
  }
  if (slash != std::string::npos) {
    endpoint.path_prefix = rest.substr(slash);
    while (endpoint.path_prefix.ends_with('/')) endpoint.path_prefix.pop_back();
  }
  return endpoint;
}

// What comes before the host of AWS's endpoints, with the bucket or access point or without.
struct Name {
  std::string label;  // of the bucket or access point; "": none
  std::string service = "s3";
};

// AWS's own endpoint: [label.]service[-fips][.dualstack].region.domain
Result<Endpoint> AwsEndpoint(const EndpointOptions& options, const Name& name,
                             const std::string& region) {
  if (!IsRegionName(region)) {
    return BadSetting(fmt::format("'{}' is no region", region));
  }
  Endpoint endpoint{.scheme = "https", .region = region, .is_aws = true};
  endpoint.domain = AwsDomain(region);
  const std::string_view dual = options.dualstack ? ".dualstack" : "";
  std::string host;
  if (region == "aws-global") {
    endpoint.region = "us-east-1";
    host = fmt::format("{}.{}", name.service, endpoint.domain);
  } else if (options.accelerate && name.service == "s3" && !name.label.empty()) {
    host = fmt::format("s3-accelerate{}.{}", dual, endpoint.domain);
  } else {
    host = fmt::format("{}{}{}.{}.{}", name.service, options.fips ? "-fips" : "", dual, region,
                       endpoint.domain);
  }
  endpoint.host = name.label.empty() ? host : name.label + "." + host;
  return endpoint;
}

// A configured endpoint.
Result<Endpoint> OwnEndpoint(const EndpointOptions& options, const Name& name,
                             const std::string& region) {
  if (options.fips || options.accelerate) {
    return BadSetting(
        "FIPS and accelerated endpoints are AWS's: none can be configured beside them");
  }
  FB_ASSIGN_OR_RETURN(Endpoint endpoint, ParseEndpointUrl(options.endpoint_url));
  endpoint.region = region;
  endpoint.domain = WithoutPort(endpoint.host);
  const std::string_view aws = AwsDomain(region);
  endpoint.is_aws = IsBelow(endpoint.domain, aws);
  if (endpoint.is_aws) endpoint.domain = aws;
  if (!name.label.empty()) {
    if (IsAddress(WithoutPort(endpoint.host))) {
      return BadSetting(
          fmt::format("'{}.' cannot be put before the address {}", name.label, endpoint.host));
    }
    endpoint.host = name.label + "." + endpoint.host;
  }
  return endpoint;
}

Result<Endpoint> EndpointOf(const EndpointOptions& options, const Name& name,
                            const std::string& region) {
  return options.endpoint_url.empty() ? AwsEndpoint(options, name, region)
                                      : OwnEndpoint(options, name, region);
}

Result<Endpoint> ResolveAccessPoint(const EndpointOptions& options) {
  FB_ASSIGN_OR_RETURN(const AccessPoint point, ParseAccessPoint(options.bucket));
  Name name{.label = fmt::format("{}-{}", point.name, point.account)};
  name.service = point.service == "s3" ? "s3-accesspoint" : point.service;
  FB_ASSIGN_OR_RETURN(Endpoint endpoint, EndpointOf(options, name, point.region));
  endpoint.service = point.service;
  endpoint.region_follows = false;
  return endpoint;
}

bool IsPathStyle(const EndpointOptions& options) {
  if (options.style != "auto") return options.style == "path";
  if (!options.endpoint_url.empty()) return true;
  return !FitsVirtualHost(options.bucket);
}

void AppendEncoded(std::string_view text, bool keep_slash, std::string& out) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  for (const char c : text) {
    const bool keep = IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == '_' || c == '~' ||
                      (c == '/' && keep_slash);
    if (keep) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
}

}  // namespace

std::string UriEncode(std::string_view text, bool keep_slash) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  AppendEncoded(text, keep_slash, out);
  return out;
}

Result<std::string> FormDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%') {
      const int high = i + 2 < text.size() ? HexValue(text[i + 1]) : -1;
      const int low = i + 2 < text.size() ? HexValue(text[i + 2]) : -1;
      if (high < 0 || low < 0) {
        return Status(Code::kDataLoss, "a listed key has a broken %-escape");
      }
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string EncodeQuery(const Query& query) {
  if (query.empty()) return "";
  Query encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(UriEncode(name, false), UriEncode(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded) {
    if (!text.empty()) text += '&';
    text.append(name).append(1, '=').append(value);
  }
  return text;
}

std::string Endpoint::PathOf(std::string_view key) const {
  if (key.empty()) return path_prefix.empty() ? "/" : path_prefix;
  std::string path;
  path.reserve(path_prefix.size() + 1 + key.size() + key.size() / 8);
  path.append(path_prefix).append(1, '/');
  AppendEncoded(key, true, path);
  return path;
}

std::string Endpoint::UrlOf(std::string_view path, std::string_view query) const {
  std::string url;
  url.reserve(scheme.size() + 4 + host.size() + path.size() + query.size());
  url.append(scheme).append("://").append(host).append(path);
  if (!query.empty()) url.append(1, '?').append(query);
  return url;
}

bool IsRegionName(std::string_view text) {
  return !text.empty() && text.size() <= 40 && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-'; });
}

bool MayRedirectTo(const Endpoint& endpoint, std::string_view host) {
  const std::string_view name = WithoutPort(host);
  const bool plain = std::all_of(host.begin(), host.end(), [](char c) {
    return IsLetter(c) || IsDigit(c) ||
           std::string_view("-._:[]").find(c) != std::string_view::npos;
  });
  return plain && !endpoint.domain.empty() && IsBelow(name, endpoint.domain);
}

Result<Endpoint> ResolveEndpoint(const EndpointOptions& options) {
  if (options.style != "auto" && options.style != "path" && options.style != "virtual") {
    return BadSetting(
        fmt::format("the addressing style '{}' is not auto, path or virtual", options.style));
  }
  if (options.bucket.starts_with("arn:")) return ResolveAccessPoint(options);
  FB_RETURN_IF_ERROR(CheckBucket(options.bucket));
  const std::string zone(ZoneOf(options.bucket));
  // A directory bucket has no path style at AWS.
  const bool own = !options.endpoint_url.empty();
  const bool path_style = zone.empty() || own ? IsPathStyle(options) : false;
  Name name;
  if (!path_style) name.label = options.bucket;
  if (!zone.empty()) name.service = "s3express-" + zone;
  if (!path_style && options.bucket.find('_') != std::string::npos) {
    return Status(Code::kInvalidArgument, fmt::format("the bucket '{}' can be no host name: use "
                                                      "path style",
                                                      options.bucket));
  }
  FB_ASSIGN_OR_RETURN(Endpoint endpoint, EndpointOf(options, name, options.region));
  endpoint.service = zone.empty() ? "s3" : "s3express";
  endpoint.directory_bucket = !zone.empty();
  endpoint.region_follows = zone.empty();
  if (path_style) endpoint.path_prefix += "/" + options.bucket;
  return endpoint;
}

}  // namespace forebay::store::s3
