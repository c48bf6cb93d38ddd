#include "net/detail/response.h"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace forebay::net::detail {
namespace {

constexpr size_t kMaxHeadBytes = 256 * 1024;

std::string_view Trim(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

Status Malformed(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("malformed HTTP response: {}", what));
}

}  // namespace

void ResponseHead::Clear() { *this = ResponseHead(); }

Result<bool> ResponseHead::AddLine(std::string_view line) {
  if (complete_) return true;  // a trailer of a chunked body
  bytes_ += line.size();
  if (bytes_ > kMaxHeadBytes) return Malformed("the head is too long");
  if (line.starts_with("HTTP/")) {
    head_ = HttpHead();
    const size_t space = line.find(' ');
    const std::string_view rest = space == line.npos ? "" : Trim(line.substr(space));
    if (rest.size() < 3 ||
        std::from_chars(rest.data(), rest.data() + 3, head_.status).ptr != rest.data() + 3 ||
        head_.status < 100) {
      return Malformed("no status");
    }
    return false;
  }
  if (head_.status == 0) return Malformed("no status line");
  const std::string_view text = Trim(line);
  if (text.empty()) return Finish();
  const size_t colon = line.find(':');
  if (colon == line.npos || colon == 0 || line.front() == ' ' || line.front() == '\t') {
    return Malformed("a header without a name");
  }
  head_.headers.emplace_back(line.substr(0, colon), Trim(line.substr(colon + 1)));
  return false;
}

Result<bool> ResponseHead::Finish() {
  if (head_.status >= 100 && head_.status < 200) {
    head_ = HttpHead();
    return false;
  }
  const bool chunked = !FindHeader(head_.headers, "transfer-encoding").empty();
  for (const auto& [name, value] : head_.headers) {
    if (chunked || name.size() != 14 || ::strncasecmp(name.data(), "content-length", 14) != 0) {
      continue;
    }
    int64_t length = -1;
    const auto parsed = std::from_chars(value.data(), value.data() + value.size(), length);
    if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size() || length < 0) {
      return Malformed("content-length is no number");
    }
    if (head_.content_length >= 0 && head_.content_length != length) {
      return Malformed("two unequal content-lengths");
    }
    head_.content_length = length;
  }
  complete_ = true;
  return true;
}

BodySink::BodySink(BodyTarget target, HttpHandler* handler)
    : target_(std::move(target)), handler_(handler) {
  for (const MutableBytes piece : target_.pieces) capacity_ += piece.size();
}

uint64_t BodySink::room() const {
  if (direct()) return capacity_ - bytes_;
  if (target_.text == nullptr) return 0;
  return target_.text_limit - std::min(target_.text_limit, target_.text->size());
}

Status BodySink::TooLong() const {
  if (!direct() && target_.text == nullptr) {
    return Status(Code::kDataLoss, "a body where none was expected");
  }
  return Status(Code::kDataLoss, fmt::format("the body is longer than the {} bytes expected",
                                             direct() ? capacity_ : target_.text_limit));
}

Status BodySink::Write(ByteView bytes) {
  if (bytes.size() > room()) {
    if (direct() && room() > 0) FB_RETURN_IF_ERROR(Write(bytes.first(room())));
    return TooLong();
  }
  if (bytes.empty()) return {};
  if (!direct()) {
    target_.text->append(AsText(bytes));
    bytes_ += bytes.size();
    Tell(bytes);
    return {};
  }
  while (!bytes.empty()) {
    MutableBytes place;
    Room(bytes.size(), {&place, 1});
    std::memcpy(place.data(), bytes.data(), place.size());
    bytes = bytes.subspan(place.size());
    Landed(place.size());
  }
  return {};
}

size_t BodySink::Room(size_t limit, std::span<MutableBytes> pieces) const {
  size_t count = 0;
  size_t offset = offset_;
  for (size_t i = piece_; i < target_.pieces.size() && count < pieces.size() && limit > 0; ++i) {
    const MutableBytes free = target_.pieces[i].subspan(offset);
    offset = 0;
    if (free.empty()) continue;
    pieces[count] = free.first(std::min(free.size(), limit));
    limit -= pieces[count++].size();
  }
  return count;
}

void BodySink::Landed(size_t n) {
  while (n > 0) {
    const MutableBytes free = target_.pieces[piece_].subspan(offset_);
    const size_t here = std::min(free.size(), n);
    n -= here;
    bytes_ += here;
    offset_ += here;
    if (here == free.size()) {
      ++piece_;
      offset_ = 0;
    }
    if (here > 0) Tell(free.first(here));
  }
}

}  // namespace forebay::net::detail
