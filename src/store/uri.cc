#include "store/uri.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

namespace forebay::store {
namespace {

constexpr std::string_view kS3Prefix = "s3://";
constexpr std::string_view kFilePrefix = "file://";
constexpr std::string_view kMemoryPrefix = "memory://";

Status BadUri(std::string_view text, std::string_view why) {
  return Status(Code::kInvalidArgument, fmt::format("\"{}\" {}", text, why));
}

// A letter, then letters, digits, '+', '-', '.': what may stand before "://".
bool IsScheme(std::string_view text) {
  if (text.empty()) return false;
  return std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '+' ||
           c == '-' || c == '.';
  });
}

// Today's rule is 3 to 63 lower-case characters; old buckets of us-east-1 also have upper case,
// '_' and up to 255.
Status CheckBucket(std::string_view text, std::string_view bucket) {
  if (bucket.empty()) return BadUri(text, "names no bucket");
  const bool valid = std::ranges::all_of(bucket, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
  if (!valid || bucket.size() > 255 || bucket == "." || bucket == "..") {
    return BadUri(text, "has a bucket name that no store accepts");
  }
  return {};
}

// Its fields are for store/s3 to judge; here only that it is one, printable.
Status CheckArn(std::string_view text, std::string_view arn) {
  const bool valid = arn.size() <= 255 && std::ranges::all_of(arn, [](char c) {
                       return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                              (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
                              c == ':' || c == '/';
                     });
  return valid ? Status() : BadUri(text, "has an ARN that is none");
}

// Where the bucket ends. The ARN of an access point, which stands for one, may have a slash of its
// own: s3://arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME/key.
size_t BucketEnd(std::string_view rest) {
  static constexpr std::string_view kPoint = ":accesspoint/";
  const size_t first = rest.find('/');
  if (!rest.starts_with("arn:") || first == rest.npos) return first;
  const std::string_view until = rest.substr(0, first + 1);
  return until.ends_with(kPoint) ? rest.find('/', first + 1) : first;
}

Result<Uri> ParseBucketUri(std::string_view text, Uri::Scheme scheme, std::string_view rest) {
  const size_t slash = BucketEnd(rest);
  const std::string_view bucket = rest.substr(0, slash);
  const bool arn = scheme == Uri::Scheme::kS3 && bucket.starts_with("arn:");
  FB_RETURN_IF_ERROR(arn ? CheckArn(text, bucket) : CheckBucket(text, bucket));
  const std::string_view key = slash == rest.npos ? "" : rest.substr(slash + 1);
  return Uri{.scheme = scheme, .bucket = std::string(bucket), .key = std::string(key)};
}

// As a shell user means it: relative to the working directory, "." and ".." taken lexically, and a
// final '/' kept, because "dir/" and "dir" differ as prefixes.
Result<Uri> ParsePath(std::string_view text, std::string_view path) {
  if (path.find('\0') != path.npos) return BadUri(text, "contains a NUL byte");
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(std::filesystem::path(path), error);
  if (error) return BadUri(text, "is relative, and the working directory cannot be found");
  std::string normal = absolute.lexically_normal().string();
  normal.erase(0, std::min(normal.find_first_not_of('/'), normal.size()));
  if (path.ends_with("/..") || path.ends_with("/.") || path == "." || path == "..") {
    if (!normal.empty() && !normal.ends_with('/')) normal += '/';
  }
  return Uri{.scheme = Uri::Scheme::kFile, .bucket = "", .key = std::move(normal)};
}

}  // namespace

std::string Uri::ToString() const {
  switch (scheme) {
    case Scheme::kS3:
      return fmt::format("s3://{}/{}", bucket, key);
    case Scheme::kMemory:
      return fmt::format("memory://{}/{}", bucket, key);
    case Scheme::kFile:
      break;
  }
  return "file:///" + key;
}

Result<Uri> ParseUri(std::string_view text) {
  if (text.empty()) return BadUri(text, "is empty");
  if (text.starts_with(kS3Prefix)) {
    return ParseBucketUri(text, Uri::Scheme::kS3, text.substr(kS3Prefix.size()));
  }
  if (text.starts_with(kMemoryPrefix)) {
    return ParseBucketUri(text, Uri::Scheme::kMemory, text.substr(kMemoryPrefix.size()));
  }
  if (text.starts_with(kFilePrefix)) {
    const std::string_view path = text.substr(kFilePrefix.size());
    if (!path.starts_with('/')) return BadUri(text, "names a host: write file:///path");
    return ParsePath(text, path);
  }
  const size_t mark = text.find("://");
  if (mark != text.npos && IsScheme(text.substr(0, mark))) {
    return BadUri(text, "has an unknown scheme: s3://, file:// or a plain path is understood");
  }
  return ParsePath(text, text);
}

}  // namespace forebay::store
