#include "net/lean/response_parser.h"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/ascii.h"

namespace forebay::net::lean {
namespace {

constexpr size_t kMaxSizeLine = 4096;  // of a chunk, extensions included

Status Malformed(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("malformed HTTP answer: {}", what));
}

// RFC 9110's token characters: what a field's name may consist of.
constexpr std::array<bool, 256> MakeTokenTable() {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789"
                                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}
constexpr std::array<bool, 256> kToken = MakeTokenTable();

bool IsToken(std::string_view text) {
  bool good = !text.empty();
  for (const char c : text) good &= kToken[static_cast<unsigned char>(c)];
  return good;
}

std::string_view TrimBlanks(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

bool IsSame(std::string_view text, std::string_view lower) {
  return text.size() == lower.size() && ::strncasecmp(text.data(), lower.data(), text.size()) == 0;
}

// Whether the comma-separated `list` has `item`.
bool ListHas(std::string_view list, std::string_view item) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    if (IsSame(TrimBlanks(list.substr(0, comma)), item)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

}  // namespace

void HeadParser::Reset(bool to_head_request) {
  StartHead();
  partial_.clear();
  bytes_ = 0;
  to_head_request_ = to_head_request;
}

void HeadParser::StartHead() {
  head_.status = 0;
  head_.headers.Clear();
  head_.content_length = -1;
  http_1_0_ = has_length_ = chunked_ = false;
  keeps_alive_ = true;
  framing_ = Framing::kNone;
}

Result<bool> HeadParser::Take(ByteView& bytes) {
  while (!bytes.empty()) {
    const std::string_view text = AsText(bytes);
    const size_t newline = text.find('\n');
    const size_t taken = newline == text.npos ? text.size() : newline + 1;
    bytes_ += taken;
    if (bytes_ > kMaxHeadBytes) return Malformed("the head is longer than 64 KiB");
    bytes = bytes.subspan(taken);
    if (newline == text.npos) {
      partial_.append(text);
      return false;
    }
    std::string_view line = text.substr(0, newline);
    if (!partial_.empty()) {
      partial_.append(line);
      line = partial_;
    }
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const Result<bool> last = TakeLine(line);
    partial_.clear();
    if (!last.ok() || *last) return last;
  }
  return false;
}

Result<bool> HeadParser::TakeLine(std::string_view line) {
  if (head_.status == 0) {
    FB_RETURN_IF_ERROR(TakeStatusLine(line));
    return false;
  }
  if (line.empty()) return Finish();
  FB_RETURN_IF_ERROR(TakeField(line));
  return false;
}

// "HTTP/1.1 206 Partial Content", the reason being free text, or missing.
Status HeadParser::TakeStatusLine(std::string_view line) {
  constexpr std::string_view kVersion = "HTTP/1.";
  constexpr size_t kCode = kVersion.size() + 2;
  if (!line.starts_with(kVersion) || line.size() < kCode + 3 || line[kCode - 1] != ' ') {
    return Malformed("no status line");
  }
  const char minor = line[kVersion.size()];
  const std::string_view code = line.substr(kCode, 3);
  if (!IsDigit(minor) || !std::ranges::all_of(code, IsDigit) || code.front() == '0' ||
      (line.size() > kCode + 3 && line[kCode + 3] != ' ') || HasControl(line, Tab::kAllowed)) {
    return Malformed("no status line");
  }
  http_1_0_ = minor == '0';
  keeps_alive_ = !http_1_0_;
  head_.status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0');
  return {};
}

Status HeadParser::TakeField(std::string_view line) {
  const size_t colon = line.find(':');
  // Also refuses blanks before the colon, and lines folded the old way.
  if (colon == line.npos || !IsToken(line.substr(0, colon))) {
    return Malformed("a line that is no header field");
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = TrimBlanks(line.substr(colon + 1));
  if (HasControl(value, Tab::kAllowed)) return Malformed("a control character in a header field");
  head_.headers.emplace_back(name, value);
  switch (name.size()) {
    case 10:
    case 14:
    case 17:
      return TakeFramingField(name, value);
    default:
      return {};
  }
}

Status HeadParser::TakeFramingField(std::string_view name, std::string_view value) {
  if (IsSame(name, "connection")) {
    if (ListHas(value, "close")) keeps_alive_ = false;
  } else if (IsSame(name, "content-length")) {
    int64_t length = -1;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), length);
    if (value.empty() || !IsDigit(value.front()) || parsed.ec != std::errc() ||
        parsed.ptr != value.data() + value.size()) {
      return Malformed("content-length is no number");
    }
    if (has_length_ && head_.content_length != length) {
      return Malformed("two unequal content-lengths");
    }
    has_length_ = true;
    head_.content_length = length;
  } else if (IsSame(name, "transfer-encoding")) {
    if (chunked_ || !IsSame(value, "chunked")) {
      return Malformed(fmt::format("transfer-encoding '{}'", value));
    }
    chunked_ = true;
  }
  return {};
}

Result<bool> HeadParser::Finish() {
  const int status = head_.status;
  if (status == 101) return Malformed("the server changes to another protocol");
  if (status < 200) {
    StartHead();
    return false;
  }
  const bool bodiless = to_head_request_ || status == 204 || status == 304;
  if (chunked_) {
    // The length says nothing then; who sent both is not to be trusted with a second answer.
    if (has_length_ || http_1_0_) keeps_alive_ = false;
    head_.content_length = -1;
    framing_ = Framing::kChunked;
  } else if (has_length_) {
    framing_ = Framing::kLength;
  } else {
    framing_ = Framing::kUntilClose;
    if (!bodiless) keeps_alive_ = false;
  }
  if (bodiless) framing_ = Framing::kNone;
  return true;
}

Result<ByteView> ChunkDecoder::Next(ByteView& input) {
  while (!input.empty() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const size_t n = std::min<uint64_t>(left_, input.size());
      const ByteView piece = input.first(n);
      input = input.subspan(n);
      left_ -= n;
      if (left_ == 0) state_ = State::kDataEnd;
      return piece;
    }
    const char c = static_cast<char>(input.front());
    input = input.subspan(1);
    FB_RETURN_IF_ERROR(TakeByte(c));
  }
  return ByteView();
}

Status ChunkDecoder::TakeByte(char c) {
  if (carriage_ && c != '\n') return Malformed("a bare carriage return in a chunked body");
  carriage_ = c == '\r';
  switch (state_) {
    case State::kSize: {
      if (carriage_) return {};
      if (c == '\n') return EndSizeLine();
      const int value = HexValue(c);
      if (value < 0) {
        if (digits_ == 0 || (c != ';' && c != ' ' && c != '\t')) {
          return Malformed("a chunk's size is no number");
        }
        state_ = State::kExtension;
        return {};
      }
      if (++digits_ > 15) return Malformed("a chunk's size is no number");
      left_ = left_ * 16 + static_cast<uint64_t>(value);
      return {};
    }
    case State::kExtension:
      if (++overhead_ > kMaxSizeLine) return Malformed("a chunk's extensions are too long");
      return c == '\n' ? EndSizeLine() : Status();
    case State::kDataEnd:
      if (carriage_) return {};
      if (c != '\n') return Malformed("a chunk is longer than its size");
      state_ = State::kSize;
      digits_ = 0;
      return {};
    case State::kTrailer:
      if (++overhead_ > kMaxHeadBytes) return Malformed("the trailers are longer than 64 KiB");
      if (carriage_) return {};
      if (c != '\n') {
        ++line_bytes_;
      } else if (std::exchange(line_bytes_, 0) == 0) {
        state_ = State::kDone;
      }
      return {};
    case State::kData:
    case State::kDone:
      break;
  }
  return {};
}

Status ChunkDecoder::EndSizeLine() {
  if (digits_ == 0) return Malformed("a chunk's size is no number");
  overhead_ = 0;
  line_bytes_ = 0;
  state_ = left_ == 0 ? State::kTrailer : State::kData;
  return {};
}

}  // namespace forebay::net::lean
