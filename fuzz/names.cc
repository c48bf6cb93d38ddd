#include <array>
#include <optional>
#include <string>

#include "base/assert.h"
#include "feed/path_pattern.h"
#include "fuzz/targets.h"
#include "store/s3/credentials.h"
#include "store/s3/credentials/fetched_keys.h"
#include "store/s3/endpoint.h"
#include "store/uri.h"
#include "sys/process.h"

namespace forebay::fuzz {
namespace {

// The first N lines; the last takes the rest.
template <size_t N>
std::array<std::string, N> Lines(ByteView input) {
  std::string_view text = AsText(input);
  std::array<std::string, N> lines;
  for (size_t i = 0; i + 1 < N; ++i) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines[i] = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  lines[N - 1] = text;
  return lines;
}

}  // namespace

void Uri(ByteView input) {
  const auto uri = store::ParseUri(AsText(input));
  if (!uri.ok()) return;
  const auto again = store::ParseUri(uri->ToString());
  FB_ASSERT(again.ok() && again->scheme == uri->scheme && again->bucket == uri->bucket &&
            again->key == uri->key);
}

void Endpoint(ByteView input) {
  using namespace store::s3;
  const auto [url, region, bucket, style, key] = Lines<5>(input);
  const auto decoded = FormDecode(UriEncode(key, false));
  FB_ASSERT(decoded.ok() && *decoded == key);
  (void)FormDecode(key);
  for (const std::string& how : {style, std::string("path"), std::string("virtual")}) {
    const auto endpoint =
        ResolveEndpoint({.endpoint_url = url, .region = region, .bucket = bucket, .style = how});
    if (!endpoint.ok()) continue;
    FB_ASSERT(endpoint->scheme == "http" || endpoint->scheme == "https");
    const std::string whole = endpoint->UrlOf(endpoint->PathOf(key), EncodeQuery({{key, key}}));
    // What goes to the wire has no byte that could end the line or the path.
    for (const char c : whole) FB_ASSERT(c > ' ' && c != 0x7f && c != '#');
  }
}

void Profile(ByteView input) {
  const std::string text(AsText(input));
  const store::s3::Environment environment{
      .variable = [](const std::string& name) -> std::optional<std::string> {
        if (name == "HOME") return "/home";
        return std::nullopt;
      },
      .file = [&](const std::string&) { return std::optional<std::string>(text); }};
  const auto config = store::s3::LoadAwsConfig({}, environment);
  if (config.ok()) FB_ASSERT(config->max_attempts >= 1 && !config->region.empty());
}

void KeysAnswer(ByteView input) {
  using namespace store::s3;
  const std::string text(AsText(input));
  const auto keys = KeysFrom(text, "a service");
  if (keys.ok()) {
    FB_ASSERT(!keys->credentials.access_key_id.empty() &&
              !keys->credentials.secret_access_key.empty() && keys->expires_unix_s >= 0);
  } else {
    FB_ASSERT(keys.code() == Code::kUnavailable);
  }
  if (const auto values = ParseFlatJson(text); values.ok()) {
    const auto again = ParseFlatJson(WriteFlatJson(*values));
    FB_ASSERT(again.ok() && again->size() == values->size());
  }
  const int64_t time = ParseUtcTime(text);
  FB_ASSERT(time >= 0);
  if (time > 0 && time < 253402300800) FB_ASSERT(ParseUtcTime(FormatUtcTime(time)) == time);
  if (const auto url = SplitUrl(text); url.ok()) {
    FB_ASSERT(!url->host.empty() && (url->path.empty() || url->path.front() == '/'));
  }
  (void)sys::SplitCommand(text);
}

void PathPattern(ByteView input) {
  const auto [text, key] = Lines<2>(input);
  const auto pattern = feed::PathPattern::Parse(text);
  if (!pattern.ok()) {
    FB_ASSERT(pattern.code() == Code::kInvalidArgument);
    return;
  }
  const auto values = pattern->Match(key);
  if (!values) return;
  FB_ASSERT(values->size() == pattern->names().size());
  std::string made = text;
  for (const auto& [name, value] : *values) {
    FB_ASSERT(!value.empty() && value.find('/') == std::string::npos);
    made.replace(made.find("{" + name + "}"), name.size() + 2, std::string(value.size(), '/'));
  }
  FB_ASSERT(made.size() == key.size());
}

void Size(ByteView input) {
  const auto size = ParseSize(AsText(input));
  if (!size.ok()) {
    FB_ASSERT(size.code() == Code::kInvalidArgument);
    return;
  }
  FB_ASSERT(*ParseSize(std::to_string(*size)) == *size);
  // It is rounded: the largest ones may become 2^64.
  FB_ASSERT(ParseSize(FormatSize(*size / 2)).ok());
}

}  // namespace forebay::fuzz
