#include "testing/faults/directory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>

namespace forebay::faults {
namespace {

bool ReadNumber(std::string_view text, uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

// No segment that a file system would take for something else than a name.
bool IsPlainPath(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = path.find('/');
    const auto segment = path.substr(0, slash);
    if (segment.empty() || segment == "." || segment == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

std::string HttpDate(time_t t) {
  std::tm tm{};
  ::gmtime_r(&t, &tm);
  std::array<char, 64> text{};
  const size_t n = std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &tm);
  return {text.data(), n};
}

std::string_view Unquote(std::string_view etag) {
  if (etag.starts_with("W/")) etag.remove_prefix(2);
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') {
    etag = etag.substr(1, etag.size() - 2);
  }
  return etag;
}

bool MatchesEtag(std::string_view header, std::string_view etag) {
  while (!header.empty()) {
    const size_t comma = std::min(header.find(','), header.size());
    auto one = header.substr(0, comma);
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one == "*" || Unquote(one) == Unquote(etag)) return true;
    header.remove_prefix(std::min(comma + 1, header.size()));
  }
  return false;
}

using Query = std::vector<std::pair<std::string, std::string>>;

Query ParseQuery(std::string_view target) {
  Query query;
  const size_t mark = target.find('?');
  if (mark == std::string_view::npos) return query;
  target.remove_prefix(mark + 1);
  while (!target.empty()) {
    const size_t end = std::min(target.find('&'), target.size());
    const auto pair = target.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    query.emplace_back(PercentDecode(pair.substr(0, equals), true),
                       PercentDecode(pair.substr(std::min(equals + 1, pair.size())), true));
    target.remove_prefix(std::min(end + 1, target.size()));
  }
  return query;
}

const std::string* Find(const Query& query, std::string_view name) {
  for (const auto& [key, value] : query) {
    if (key == name) return &value;
  }
  return nullptr;
}

std::string ValueOf(const Query& query, std::string_view name) {
  const std::string* value = Find(query, name);
  return value == nullptr ? std::string() : *value;
}

Answer NoSuchBucket(const RequestHead& request, uint64_t number) {
  return MakeErrorAnswer(404, "NoSuchBucket", "The specified bucket does not exist", request,
                         number);
}

std::string IsoDate(int64_t seconds) {
  const time_t t = seconds;
  std::tm tm{};
  ::gmtime_r(&t, &tm);
  std::array<char, 64> text{};
  const size_t n = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S.000Z", &tm);
  return {text.data(), n};
}

// Tokens are opaque to clients: hex of the last key or prefix, so that any byte survives.
std::string TokenOf(std::string_view key) {
  std::string token = "k";
  for (const char c : key) token += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return token;
}
bool ReadToken(std::string_view token, std::string& key) {
  if (!token.starts_with('k') || token.size() % 2 == 0) return false;
  for (size_t i = 1; i < token.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(&token[i], &token[i] + 2, value, 16);
    if (error != std::errc() || end != &token[i] + 2) return false;
    key += static_cast<char>(value);
  }
  return true;
}

std::string ListXml(const std::string& bucket, const Query& query,
                    const Directory::ListQuery& asked, const Directory::ListResult& found) {
  const bool url = ValueOf(query, "encoding-type") == "url";
  const auto text = [url](std::string_view key) {
    return url ? PercentEncode(key, "/") : EscapeXml(key);
  };
  std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">";
  xml += fmt::format("<Name>{}</Name><Prefix>{}</Prefix>", EscapeXml(bucket), text(asked.prefix));
  if (!asked.delimiter.empty()) {
    xml += fmt::format("<Delimiter>{}</Delimiter>", text(asked.delimiter));
  }
  if (const auto* start = Find(query, "start-after")) {
    xml += fmt::format("<StartAfter>{}</StartAfter>", text(*start));
  }
  if (const auto* token = Find(query, "continuation-token")) {
    xml += fmt::format("<ContinuationToken>{}</ContinuationToken>", EscapeXml(*token));
  }
  if (url) xml += "<EncodingType>url</EncodingType>";
  xml += fmt::format("<MaxKeys>{}</MaxKeys><KeyCount>{}</KeyCount><IsTruncated>{}</IsTruncated>",
                     asked.limit, found.entries.size(), found.truncated);
  if (found.truncated && !found.entries.empty()) {
    xml += fmt::format("<NextContinuationToken>{}</NextContinuationToken>",
                       TokenOf(found.entries.back().key));
  }
  for (const auto& entry : found.entries) {
    if (entry.is_prefix) {
      xml += fmt::format("<CommonPrefixes><Prefix>{}</Prefix></CommonPrefixes>", text(entry.key));
    } else {
      xml += fmt::format(
          "<Contents><Key>{}</Key><LastModified>{}</LastModified><ETag>{}</ETag><Size>{}</Size>"
          "<StorageClass>STANDARD</StorageClass></Contents>",
          text(entry.key), IsoDate(entry.modified_s), EscapeXml(entry.etag), entry.size);
    }
  }
  return xml + "</ListBucketResult>";
}

}  // namespace

std::string Directory::EtagOf(const struct stat& info) {
  const auto ns = static_cast<uint64_t>(info.st_mtim.tv_sec) * 1'000'000'000 +
                  static_cast<uint64_t>(info.st_mtim.tv_nsec);
  return fmt::format("\"{:x}-{:x}\"", ns, static_cast<uint64_t>(info.st_size));
}

RangeAnswer ReadRange(std::string_view header, uint64_t size) {
  constexpr std::string_view kUnit = "bytes=";
  if (!header.starts_with(kUnit)) return {};
  header.remove_prefix(kUnit.size());
  const size_t dash = header.find('-');
  if (dash == std::string_view::npos) return {};
  const auto first_text = header.substr(0, dash);
  const auto last_text = header.substr(dash + 1);
  uint64_t first = 0;
  uint64_t last = 0;
  if (first_text.empty()) {
    if (!ReadNumber(last_text, last)) return {};
    if (last == 0 || size == 0) return {RangeAnswer::Kind::kUnsatisfiable};
    return {RangeAnswer::Kind::kPart, size - std::min(last, size), size};
  }
  if (!ReadNumber(first_text, first)) return {};
  if (last_text.empty()) {
    last = UINT64_MAX - 1;
  } else if (!ReadNumber(last_text, last) || last < first) {
    return {};
  }
  if (first >= size) return {RangeAnswer::Kind::kUnsatisfiable};
  return {RangeAnswer::Kind::kPart, first, last >= size ? size : last + 1};
}

Result<std::unique_ptr<Directory>> Directory::Open(const std::string& root) {
  Fd fd(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) {
    return Status(Code::kInvalidArgument, fmt::format("{}: {}", root, std::strerror(errno)));
  }
  return std::unique_ptr<Directory>(new Directory(std::move(fd)));
}

Result<Fd> Directory::OpenBelow(const std::string& path, int flags) const {
  open_how how{};
  how.flags = static_cast<uint64_t>(flags) | O_CLOEXEC | O_NONBLOCK;  // a FIFO must not block
  how.resolve = RESOLVE_BENEATH;
  const long fd = ::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  if (errno == EACCES || errno == EXDEV || errno == ELOOP) {
    return Status(Code::kPermissionDenied, "not readable below the root");
  }
  if (errno == EMFILE || errno == ENFILE) {
    return Status(Code::kResourceExhausted, "no more file descriptors");
  }
  return Status(Code::kNotFound, "no such file");
}

Answer Directory::Serve(const RequestHead& request, uint64_t number, bool ignore_range) const {
  const ObjectName name = NameOf(request.target);
  if (request.method != "GET" && request.method != "HEAD") {
    return MakeErrorAnswer(405, "MethodNotAllowed",
                           "The specified method is not allowed against this resource.", request,
                           number);
  }
  if (name.bucket.empty() || !IsPlainPath(name.bucket) ||
      name.bucket.find('/') != std::string::npos) {
    return MakeErrorAnswer(400, "InvalidBucketName", "The specified bucket is not valid.", request,
                           number);
  }
  if (name.key.empty()) return ServeList(request, name.bucket, number);
  return ServeObject(request, name.bucket + "/" + name.key, number, ignore_range);
}

Answer Directory::ServeObject(const RequestHead& request, const std::string& path, uint64_t number,
                              bool ignore_range) const {
  const auto error = [&](int status, std::string_view code, std::string_view message) {
    return MakeErrorAnswer(status, code, message, request, number);
  };
  auto file = IsPlainPath(path) ? OpenBelow(path, O_RDONLY) : Status(Code::kNotFound, "no name");
  struct stat info{};
  if (!file.ok() && file.code() == Code::kPermissionDenied) {
    return error(403, "AccessDenied", "Access Denied");
  }
  if (!file.ok() && file.code() == Code::kResourceExhausted) {
    return error(503, "SlowDown", "No more file descriptors.");
  }
  if (!file.ok() || ::fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return error(404, "NoSuchKey", "The specified key does not exist.");
  }
  const auto size = static_cast<uint64_t>(info.st_size);
  const std::string etag = EtagOf(info);
  const Field* if_match = FindField(request.fields, "if-match");
  if (if_match != nullptr && !MatchesEtag(if_match->value, etag)) {
    return error(412, "PreconditionFailed",
                 "At least one of the pre-conditions you specified did not hold");
  }
  const std::vector<Field> common = {{"ETag", etag},
                                     {"Last-Modified", HttpDate(info.st_mtim.tv_sec)},
                                     {"Accept-Ranges", "bytes"},
                                     {"x-amz-request-id", fmt::format("FAULTS{:010}", number)}};
  const Field* if_none_match = FindField(request.fields, "if-none-match");
  if (if_none_match != nullptr && MatchesEtag(if_none_match->value, etag)) {
    Answer answer;
    answer.head.status = 304;
    answer.head.reason = ReasonOf(304);
    answer.head.fields = common;
    answer.body = MakeMemoryBody("");
    return answer;
  }
  const Field* range_field = FindField(request.fields, "range");
  RangeAnswer range{RangeAnswer::Kind::kWhole, 0, size};
  if (range_field != nullptr && !ignore_range) range = ReadRange(range_field->value, size);
  if (range.kind == RangeAnswer::Kind::kUnsatisfiable) {
    Answer answer = error(416, "InvalidRange", "The requested range is not satisfiable");
    SetField(answer.head.fields, "Content-Range", fmt::format("bytes */{}", size));
    return answer;
  }
  if (range.kind == RangeAnswer::Kind::kWhole) range.end = size;
  Answer answer;
  answer.head.status = range.kind == RangeAnswer::Kind::kPart ? 206 : 200;
  answer.head.reason = ReasonOf(answer.head.status);
  answer.head.fields = common;
  answer.head.fields.push_back({"Content-Type", "binary/octet-stream"});
  answer.head.fields.push_back({"Content-Length", std::to_string(range.end - range.offset)});
  if (range.kind == RangeAnswer::Kind::kPart) {
    answer.head.fields.push_back(
        {"Content-Range", fmt::format("bytes {}-{}/{}", range.offset, range.end - 1, size)});
  }
  const uint64_t body_bytes = request.method == "HEAD" ? 0 : range.end - range.offset;
  answer.head.content_length = body_bytes;
  answer.head.framing = body_bytes > 0 ? Framing::kLength : Framing::kNone;
  answer.body = MakeFileBody(*std::move(file), range.offset, body_bytes);
  return answer;
}

Answer Directory::ServeList(const RequestHead& request, const std::string& bucket,
                            uint64_t number) const {
  const Query query = ParseQuery(request.target);
  if (request.method == "HEAD" || Find(query, "location") != nullptr) {
    if (!OpenBelow(bucket, O_RDONLY | O_DIRECTORY).ok()) return NoSuchBucket(request, number);
    return MakeTextAnswer(200, "application/xml",
                          "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<LocationConstraint "
                          "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"/>",
                          request);
  }
  if (ValueOf(query, "list-type") != "2") {
    return MakeErrorAnswer(501, "NotImplemented", "Only ListObjectsV2 lists a bucket here.",
                           request, number);
  }
  ListQuery asked;
  asked.prefix = ValueOf(query, "prefix");
  asked.delimiter = ValueOf(query, "delimiter");
  asked.after = ValueOf(query, "start-after");
  uint64_t limit = 1000;
  const std::string* max_keys = Find(query, "max-keys");
  const std::string* token = Find(query, "continuation-token");
  if (token != nullptr) asked.after.clear();
  if ((max_keys != nullptr && !ReadNumber(*max_keys, limit)) ||
      (token != nullptr && !ReadToken(*token, asked.after))) {
    return MakeErrorAnswer(400, "InvalidArgument", "max-keys or continuation-token is not valid.",
                           request, number);
  }
  asked.limit = std::min<uint64_t>(limit, 1000);
  const auto found = List(bucket, asked);
  if (!found.ok()) return NoSuchBucket(request, number);
  return MakeTextAnswer(200, "application/xml", ListXml(bucket, query, asked, *found), request);
}

}  // namespace forebay::faults
