#include "store/s3/endpoint.h"

#include <fmt/core.h>

#include <algorithm>

namespace forebay::store::s3 {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsHostLabelText(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
}

// A bucket that is one DNS label: lower case, no dots (a wildcard certificate covers one label).
bool FitsVirtualHost(std::string_view bucket) {
  return bucket.size() >= 3 && bucket.size() <= 63 &&
         std::all_of(bucket.begin(), bucket.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || IsDigit(c) || c == '-'; });
}

Status CheckBucket(const std::string& bucket) {
  if (bucket.starts_with("arn:")) {
    return Status(Code::kUnimplemented,
                  "access point ARNs are not supported; use the access point's bucket alias");
  }
  const bool valid = !bucket.empty() && bucket.size() <= 255 && bucket != "." && bucket != ".." &&
                     std::all_of(bucket.begin(), bucket.end(), [](char c) {
                       return IsLetter(c) || IsDigit(c) || c == '-' || c == '.' || c == '_';
                     });
  if (valid) return {};
  return Status(Code::kInvalidArgument, fmt::format("'{}' is no bucket name", bucket));
}

Result<Endpoint> ParseEndpointUrl(const std::string& url) {
  const Status invalid(Code::kInvalidArgument,
                       fmt::format("the endpoint '{}' is not http[s]://host[:port][/path]", url));
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

}  // namespace

std::string UriEncode(std::string_view text, bool keep_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + text.size() / 8);
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
  Query encoded;
  for (const auto& [name, value] : query) {
    encoded.emplace_back(UriEncode(name, false), UriEncode(value, false));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string text;
  for (const auto& [name, value] : encoded) {
    if (!text.empty()) text += '&';
    text += name + '=' + value;
  }
  return text;
}

std::string Endpoint::PathOf(std::string_view key) const {
  if (key.empty()) return path_prefix.empty() ? "/" : path_prefix;
  return path_prefix + "/" + UriEncode(key, true);
}

std::string Endpoint::UrlOf(std::string_view path, std::string_view query) const {
  return fmt::format("{}://{}{}{}{}", scheme, host, path, query.empty() ? "" : "?", query);
}

Result<Endpoint> ResolveEndpoint(const std::string& endpoint_url, const std::string& region,
                                 const std::string& bucket, const std::string& style) {
  FB_RETURN_IF_ERROR(CheckBucket(bucket));
  if (style != "auto" && style != "path" && style != "virtual") {
    return Status(Code::kInvalidArgument,
                  fmt::format("the addressing style '{}' is not auto, path or virtual", style));
  }
  Endpoint endpoint;
  bool path_style = style == "path";
  if (!endpoint_url.empty()) {
    FB_ASSIGN_OR_RETURN(endpoint, ParseEndpointUrl(endpoint_url));
    path_style = path_style || style == "auto";
  } else {
    if (!IsHostLabelText(region)) {
      return Status(Code::kInvalidArgument, fmt::format("'{}' is no region", region));
    }
    endpoint.scheme = "https";
    endpoint.host =
        fmt::format("s3.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
    path_style = path_style || (style == "auto" && !FitsVirtualHost(bucket));
  }
  if (path_style) {
    endpoint.path_prefix += "/" + bucket;
  } else {
    if (!std::all_of(bucket.begin(), bucket.end(), [](char c) { return c != '_'; })) {
      return Status(Code::kInvalidArgument,
                    fmt::format("the bucket '{}' can be no host name: use path style", bucket));
    }
    endpoint.host = bucket + "." + endpoint.host;
  }
  return endpoint;
}

}  // namespace forebay::store::s3
