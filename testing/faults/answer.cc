#include "testing/faults/answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace forebay::faults {
namespace {

bool ReadNumber(std::string_view& text, uint64_t& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "bytes 10-19/100"
struct ContentRange {
  uint64_t first = 0;
  uint64_t last = 0;
  std::string_view total;  // a number or "*"
};
std::optional<ContentRange> ReadContentRange(std::string_view value) {
  ContentRange range;
  if (!value.starts_with("bytes ")) return std::nullopt;
  value.remove_prefix(6);
  if (!ReadNumber(value, range.first) || !value.starts_with('-')) return std::nullopt;
  value.remove_prefix(1);
  if (!ReadNumber(value, range.last) || !value.starts_with('/')) return std::nullopt;
  range.total = value.substr(1);
  return range;
}

}  // namespace

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 206:
      return "Partial Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 412:
      return "Precondition Failed";
    case 416:
      return "Requested Range Not Satisfiable";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 502:
      return "Bad Gateway";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    default:
      return "Status";
  }
}

std::string EscapeXml(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

Answer MakeTextAnswer(int status, std::string_view content_type, std::string text,
                      const RequestHead& request) {
  Answer answer;
  answer.head.status = status;
  answer.head.reason = ReasonOf(status);
  answer.head.fields = {{"Content-Type", std::string(content_type)},
                        {"Content-Length", std::to_string(text.size())}};
  answer.head.content_length = text.size();
  const bool head_only = request.method == "HEAD" || status == 204 || status == 304;
  answer.head.framing = head_only ? Framing::kNone : Framing::kLength;
  answer.body = MakeMemoryBody(head_only ? std::string() : std::move(text));
  return answer;
}

Answer MakeErrorAnswer(int status, std::string_view code, std::string_view message,
                       const RequestHead& request, uint64_t number) {
  const std::string_view path =
      std::string_view(request.target).substr(0, request.target.find('?'));
  const std::string id = fmt::format("FAULTS{:010}", number);
  std::string xml = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{}</Code><Message>{}</Message>"
      "<Resource>{}</Resource><RequestId>{}</RequestId></Error>",
      EscapeXml(code), EscapeXml(message), EscapeXml(path), id);
  Answer answer = MakeTextAnswer(status, "application/xml", std::move(xml), request);
  answer.head.fields.push_back({"x-amz-request-id", id});
  return answer;
}

void ApplyHeadFaults(const Decision& decision, ResponseHead& head) {
  for (auto& field : head.fields) {
    if (decision.changed_etag && SameName(field.name, "etag")) {
      field.value = fmt::format("\"{:032x}\"", 0xfa017000ULL + decision.number);
    }
    if (decision.content_range_shift != 0 && SameName(field.name, "content-range")) {
      // Unsigned arithmetic wraps as it should.
      const auto delta = static_cast<uint64_t>(decision.content_range_shift);
      if (const auto range = ReadContentRange(field.value)) {
        field.value =
            fmt::format("bytes {}-{}/{}", range->first + delta, range->last + delta, range->total);
      }
    }
  }
  for (const auto& field : decision.extra_fields) SetField(head.fields, field.name, field.value);
  for (const auto& name : decision.duplicate_fields) {
    const Field* field = FindField(head.fields, name);
    if (field != nullptr) head.fields.push_back(Field(*field));
  }
}

void WidenPartialAnswer(Answer& answer) {
  const Field* field = FindField(answer.head.fields, "content-range");
  if (answer.head.status != 206 || field == nullptr) return;
  const auto range = ReadContentRange(field->value);
  std::string_view total_text = range ? range->total : std::string_view();
  uint64_t total = 0;
  if (!range || !ReadNumber(total_text, total) || range->last < range->first ||
      range->last >= total || answer.head.framing != Framing::kLength ||
      answer.head.content_length != range->last - range->first + 1) {
    return;
  }
  answer.body = MakePaddedBody(range->first, std::move(answer.body), total - range->last - 1);
  answer.head.status = 200;
  answer.head.reason = ReasonOf(200);
  answer.head.content_length = total;
  RemoveFields(answer.head.fields, "content-range");
  SetField(answer.head.fields, "Content-Length", std::to_string(total));
}

bool IsSignedHeader(const RequestHead& request, std::string_view name) {
  std::string_view list;
  const Field* authorization = FindField(request.fields, "authorization");
  constexpr std::string_view kKey = "SignedHeaders=";
  if (authorization != nullptr) {
    const size_t at = authorization->value.find(kKey);
    if (at == std::string::npos) return false;
    list = std::string_view(authorization->value).substr(at + kKey.size());
    list = list.substr(0, list.find_first_of(", "));
  }
  while (!list.empty()) {
    const size_t end = std::min(list.find(';'), list.size());
    if (SameName(list.substr(0, end), name)) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

}  // namespace forebay::faults
