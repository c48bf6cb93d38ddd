#include "testing/faults/http_head.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/assert.h"

namespace forebay::faults {
namespace {

constexpr uint32_t kMaxChunkLineBytes = 4096;
constexpr uint32_t kMaxTrailerBytes = 16 * 1024;

Status Bad(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

bool IsTokenChar(char c) {
  if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return true;
  return c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}
bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}
bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
  });
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Elements of a comma-separated field value.
template <class F>
void ForEachElement(std::string_view value, F&& visit) {
  while (!value.empty()) {
    const size_t comma = std::min(value.find(','), value.size());
    if (const auto element = Trim(value.substr(0, comma)); !element.empty()) visit(element);
    value.remove_prefix(std::min(comma + 1, value.size()));
  }
}

// The line up to CRLF, which is removed too. `text` ends with CRLF.
std::string_view TakeLine(std::string_view& text) {
  const size_t end = text.find("\r\n");
  FB_ASSERT(end != std::string_view::npos);
  const auto line = text.substr(0, end);
  text.remove_prefix(end + 2);
  return line;
}

Result<std::vector<Field>> ParseFields(std::string_view text) {
  std::vector<Field> fields;
  for (;;) {
    const auto line = TakeLine(text);
    if (line.empty()) break;
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) return Bad("a header line without a colon");
    const auto name = line.substr(0, colon);
    const auto value = Trim(line.substr(colon + 1));
    // A space before the colon or a folded line makes two readers see two different messages.
    if (!IsToken(name)) return Bad("a header name with forbidden characters");
    if (HasControl(value)) return Bad("a header value with control characters");
    if (fields.size() == kMaxFields) return Bad("too many headers");
    fields.push_back({std::string(name), std::string(value)});
  }
  if (!text.empty()) return Bad("bytes after the head");
  return fields;
}

Result<int> ParseVersion(std::string_view text) {
  if (text == "HTTP/1.1") return 1;
  if (text == "HTTP/1.0") return 0;
  return Bad("a version other than HTTP/1.0 and HTTP/1.1");
}

struct BodyHeaders {
  std::optional<uint64_t> length;
  bool chunked = false;
  bool close = false;
  bool keep_alive = false;
};

Status ReadLength(std::string_view value, BodyHeaders& into) {
  uint64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  if (value.empty() || error != std::errc() || end != value.data() + value.size() ||
      length > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Bad("a Content-Length that is no number");
  }
  if (into.length && *into.length != length) return Bad("two different Content-Lengths");
  into.length = length;
  return {};
}

Result<BodyHeaders> ReadBodyHeaders(const std::vector<Field>& fields) {
  BodyHeaders found;
  for (const auto& field : fields) {
    if (SameName(field.name, "content-length")) {
      FB_RETURN_IF_ERROR(ReadLength(field.value, found));
    } else if (SameName(field.name, "transfer-encoding")) {
      if (found.chunked || !SameName(field.value, "chunked")) {
        return Bad("a Transfer-Encoding other than chunked");
      }
      found.chunked = true;
    } else if (SameName(field.name, "connection")) {
      ForEachElement(field.value, [&](std::string_view element) {
        found.close = found.close || SameName(element, "close");
        found.keep_alive = found.keep_alive || SameName(element, "keep-alive");
      });
    }
  }
  if (found.chunked && found.length) return Bad("both Content-Length and Transfer-Encoding");
  return found;
}

bool KeepsAlive(const BodyHeaders& headers, int minor_version) {
  return !headers.close && (minor_version >= 1 || headers.keep_alive);
}

void AppendFields(std::string& out, const std::vector<Field>& fields) {
  for (const auto& field : fields) {
    out += field.name;
    out += ": ";
    out += field.value;
    out += "\r\n";
  }
  out += "\r\n";
}

}  // namespace

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

const Field* FindField(const std::vector<Field>& fields, std::string_view name) {
  for (const auto& field : fields) {
    if (SameName(field.name, name)) return &field;
  }
  return nullptr;
}

void RemoveFields(std::vector<Field>& fields, std::string_view name) {
  std::erase_if(fields, [&](const Field& field) { return SameName(field.name, name); });
}

void SetField(std::vector<Field>& fields, std::string_view name, std::string value) {
  RemoveFields(fields, name);
  fields.push_back({std::string(name), std::move(value)});
}

void RemoveHopFields(std::vector<Field>& fields) {
  std::vector<std::string> named;
  for (const auto& field : fields) {
    if (!SameName(field.name, "connection")) continue;
    ForEachElement(field.value, [&](std::string_view e) { named.emplace_back(e); });
  }
  // What frames or addresses the message stays, whatever Connection claims.
  std::erase_if(named, [](const std::string& name) {
    return SameName(name, "transfer-encoding") || SameName(name, "content-length") ||
           SameName(name, "host") || SameName(name, "authorization");
  });
  for (const auto* name : {"connection", "keep-alive", "proxy-connection"}) {
    RemoveFields(fields, name);
  }
  for (const auto& name : named) RemoveFields(fields, name);
}

Result<std::optional<size_t>> FindHeadEnd(std::string_view bytes) {
  const size_t end = bytes.substr(0, kMaxHeadBytes).find("\r\n\r\n");
  if (end != std::string_view::npos) return std::optional<size_t>(end + 4);
  if (bytes.size() >= kMaxHeadBytes) return Bad("a head of more than 64 KiB");
  return std::optional<size_t>();
}

Result<RequestHead> ParseRequestHead(std::string_view head) {
  RequestHead request;
  const auto line = TakeLine(head);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return Bad("a broken request line");
  const auto target = line.substr(first + 1, last - first - 1);
  request.method = line.substr(0, first);
  request.target = target;
  if (!IsToken(request.method) || target.empty() || HasControl(target) ||
      target.find_first_of(" \t") != std::string_view::npos) {
    return Bad("a broken request line");
  }
  FB_ASSIGN_OR_RETURN(request.minor_version, ParseVersion(line.substr(last + 1)));
  FB_ASSIGN_OR_RETURN(request.fields, ParseFields(head));
  FB_ASSIGN_OR_RETURN(const BodyHeaders body, ReadBodyHeaders(request.fields));
  request.keep_alive = KeepsAlive(body, request.minor_version);
  if (body.chunked) {
    request.framing = Framing::kChunked;
  } else if (body.length.value_or(0) > 0) {
    request.framing = Framing::kLength;
    request.content_length = *body.length;
  }
  const Field* expect = FindField(request.fields, "expect");
  request.expects_continue = expect != nullptr && SameName(expect->value, "100-continue");
  return request;
}

Result<ResponseHead> ParseResponseHead(std::string_view head, std::string_view request_method) {
  ResponseHead response;
  const auto line = TakeLine(head);
  if (line.size() < 12 || line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return Bad("a broken status line");
  }
  FB_ASSIGN_OR_RETURN(response.minor_version, ParseVersion(line.substr(0, 8)));
  const auto digits = line.substr(9, 3);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 3, response.status);
  if (error != std::errc() || end != digits.data() + 3 || response.status < 100) {
    return Bad("a broken status line");
  }
  if (line.size() > 13) response.reason = line.substr(13);
  if (HasControl(response.reason)) return Bad("a broken status line");
  FB_ASSIGN_OR_RETURN(response.fields, ParseFields(head));
  FB_ASSIGN_OR_RETURN(const BodyHeaders body, ReadBodyHeaders(response.fields));
  response.keep_alive = KeepsAlive(body, response.minor_version);
  const bool bodiless = request_method == "HEAD" || response.status < 200 ||
                        response.status == 204 || response.status == 304;
  if (bodiless) return response;
  response.content_length = body.length.value_or(0);
  if (body.chunked) {
    response.framing = Framing::kChunked;
  } else if (!body.length) {
    response.framing = Framing::kUntilClose;
  } else if (*body.length > 0) {
    response.framing = Framing::kLength;
  }
  return response;
}

std::string FormatRequestHead(const RequestHead& head) {
  std::string out =
      fmt::format("{} {} HTTP/1.{}\r\n", head.method, head.target, head.minor_version);
  AppendFields(out, head.fields);
  return out;
}

std::string FormatResponseHead(const ResponseHead& head) {
  std::string out = fmt::format("HTTP/1.1 {} {}\r\n", head.status, head.reason);
  AppendFields(out, head.fields);
  return out;
}

BodyFramer::BodyFramer(Framing framing, uint64_t length) : framing_(framing), left_(length) {
  if (framing == Framing::kUntilClose) left_ = std::numeric_limits<uint64_t>::max();
  if (framing == Framing::kChunked) left_ = 0;
  done_ = framing == Framing::kNone || (framing == Framing::kLength && length == 0);
}

uint64_t BodyFramer::plain_bytes() const {
  if (done_) return 0;
  return framing_ != Framing::kChunked || chunk_ == Chunk::kData ? left_ : 0;
}

void BodyFramer::SkipPlain(uint64_t bytes) {
  FB_ASSERT(framing_ != Framing::kChunked && bytes <= left_);
  if (framing_ == Framing::kUntilClose) return;
  left_ -= bytes;
  done_ = left_ == 0;
}

Result<BodyFramer::Step> BodyFramer::Consume(std::string_view data, uint64_t max_payload) {
  Step step;
  if (framing_ != Framing::kChunked) {
    step.payload = done_ ? 0 : std::min<uint64_t>({data.size(), max_payload, left_});
    step.raw = step.payload;
    SkipPlain(step.payload);
    return step;
  }
  while (!done_ && step.raw < data.size()) {
    if (chunk_ == Chunk::kData) {
      const uint64_t take =
          std::min<uint64_t>({data.size() - step.raw, max_payload - step.payload, left_});
      if (take == 0) break;  // the limit is reached
      step.raw += take;
      step.payload += take;
      left_ -= take;
      if (left_ == 0) chunk_ = Chunk::kDataCr;
      if (step.payload == max_payload) break;
    } else {
      FB_RETURN_IF_ERROR(TakeFramingByte(data[step.raw++]));
    }
  }
  return step;
}

Status BodyFramer::TakeFramingByte(char c) {
  switch (chunk_) {
    case Chunk::kSize: {
      const char low = Lower(c);
      const bool digit = c >= '0' && c <= '9';
      if (digit || (low >= 'a' && low <= 'f')) {
        if (++size_digits_ > 15) return Bad("a chunk size that is too large");
        left_ = left_ * 16 + static_cast<uint64_t>(digit ? c - '0' : low - 'a' + 10);
        return {};
      }
      if (size_digits_ == 0) return Bad("a chunk without a size");
      chunk_ = c == '\r' ? Chunk::kSizeLf : Chunk::kExtension;
      return c == '\r' || c == ';' || c == ' ' || c == '\t' ? Status() : Bad("a broken chunk size");
    }
    case Chunk::kExtension:
      if (++line_bytes_ > kMaxChunkLineBytes) return Bad("a chunk line that is too long");
      if (c == '\n') return Bad("a bare line feed in a chunk line");
      if (c == '\r') chunk_ = Chunk::kSizeLf;
      return {};
    case Chunk::kSizeLf:
      if (c != '\n') return Bad("a broken chunk line");
      chunk_ = left_ == 0 ? Chunk::kTrailer : Chunk::kData;
      size_digits_ = 0;
      line_bytes_ = 0;
      return {};
    case Chunk::kDataCr:
      chunk_ = Chunk::kDataLf;
      return c == '\r' ? Status() : Bad("a chunk longer than its size");
    case Chunk::kDataLf:
      chunk_ = Chunk::kSize;
      return c == '\n' ? Status() : Bad("a chunk longer than its size");
    case Chunk::kTrailer:
      return TakeTrailerByte(c);
    case Chunk::kData:
      break;
  }
  FB_ASSERT(false);
}

Status BodyFramer::TakeTrailerByte(char c) {
  if (++line_bytes_ > kMaxTrailerBytes) return Bad("trailers that are too long");
  if (trailer_cr_) {
    if (c != '\n') return Bad("a broken trailer");
    trailer_cr_ = false;
    done_ = trailer_column_ == 0;
    trailer_column_ = 0;
    return {};
  }
  if (c == '\n') return Bad("a broken trailer");
  if (c == '\r') {
    trailer_cr_ = true;
  } else {
    ++trailer_column_;
  }
  return {};
}

std::string PercentDecode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* first = text.data() + i + 1;
      const auto [end, error] = std::from_chars(first, first + 2, value, 16);
      if (error == std::errc() && end == first + 2) {
        out += static_cast<char>(value);
        i += 2;
        continue;
      }
    }
    out += plus_is_space && text[i] == '+' ? ' ' : text[i];
  }
  return out;
}

std::string PercentEncode(std::string_view text, std::string_view keep) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       std::string_view("-_.~").find(c) != std::string_view::npos ||
                       keep.find(c) != std::string_view::npos;
    if (plain) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

}  // namespace forebay::faults
