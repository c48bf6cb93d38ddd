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

Status BodySink::Write(ByteView bytes) {
  if (target_.pieces.empty()) {
    if (target_.text == nullptr) {
      if (bytes.empty()) return {};
      return Status(Code::kDataLoss, "a body where none was expected");
    }
    if (bytes.size() > target_.text_limit - std::min(target_.text_limit, target_.text->size())) {
      return Status(Code::kDataLoss,
                    fmt::format("the body is longer than {} bytes", target_.text_limit));
    }
    target_.text->append(AsText(bytes));
    bytes_ += bytes.size();
    handler_->OnBody(bytes);
    return {};
  }
  while (!bytes.empty()) {
    if (piece_ == target_.pieces.size()) {
      return Status(Code::kDataLoss,
                    fmt::format("the body is longer than the {} bytes expected", bytes_));
    }
    const MutableBytes room = target_.pieces[piece_].subspan(offset_);
    const size_t n = std::min(room.size(), bytes.size());
    if (n > 0) {
      std::memcpy(room.data(), bytes.data(), n);
      bytes_ += n;
      offset_ += n;
      handler_->OnBody(room.first(n));
      bytes = bytes.subspan(n);
    }
    if (offset_ == target_.pieces[piece_].size()) {
      ++piece_;
      offset_ = 0;
    }
  }
  return {};
}

}  // namespace forebay::net::detail
