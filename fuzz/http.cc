#include <string>

#include "base/assert.h"
#include "fuzz/targets.h"
#include "net/detail/response.h"
#include "net/lean/response_parser.h"
#include "store/s3/error.h"
#include "store/s3/read.h"
#include "store/s3/xml.h"

namespace forebay::fuzz {

void HttpHead(ByteView input) {
  std::string_view text = AsText(input);
  net::detail::ResponseHead head;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const auto whole = head.AddLine(line);
    if (!whole.ok()) {
      FB_ASSERT(whole.code() == Code::kDataLoss);
      break;
    }
    FB_ASSERT(*whole == head.complete());
    if (*whole) break;
  }
  if (head.complete()) FB_ASSERT(head.head().status >= 200 && head.head().status <= 999);
  text = AsText(input);
  const auto range = store::s3::ParseContentRange(text);
  if (range.ok()) FB_ASSERT(range->offset < range->end && range->end <= range->total);
  FB_ASSERT(store::s3::ParseHttpDate(text) >= -1);
}

namespace {

struct Answer {
  Code code = Code::kOk;
  bool complete = false;
  int status = 0;
  int64_t length = -1;
  net::lean::Framing framing = net::lean::Framing::kNone;
  std::string body;
  size_t left = 0;  // bytes after the answer
  bool operator==(const Answer&) const = default;
};

// The head, and a chunked body, of `text` fed in pieces of `step` bytes.
Answer ReadAnswer(ByteView text, size_t step, bool to_head_request) {
  net::lean::HeadParser head;
  head.Reset(to_head_request);
  net::lean::ChunkDecoder chunks;
  Answer answer;
  bool head_done = false;
  while (!text.empty() && !answer.complete) {
    const ByteView piece = text.first(std::min(step, text.size()));
    ByteView rest = piece;
    if (!head_done) {
      const auto done = head.Take(rest);
      if (!done.ok()) return {.code = done.code()};
      head_done = *done;
      FB_ASSERT(head_done || rest.empty());
    }
    while (head_done && head.framing() == net::lean::Framing::kChunked) {
      const auto bytes = chunks.Next(rest);
      if (!bytes.ok()) return {.code = bytes.code()};
      answer.body += AsText(*bytes);
      if (bytes->empty()) break;
    }
    answer.complete =
        head_done && (head.framing() != net::lean::Framing::kChunked || chunks.done());
    text = text.subspan(piece.size() - rest.size());
  }
  answer.left = text.size();
  if (!head_done) return answer;
  answer.status = head.head().status;
  answer.length = head.head().content_length;
  answer.framing = head.framing();
  return answer;
}

}  // namespace

void HttpAnswer(ByteView input) {
  if (input.size() < 2) return;
  const size_t step = 1 + std::to_integer<size_t>(input[0]);
  const bool to_head_request = (std::to_integer<int>(input[1]) & 1) != 0;
  input = input.subspan(2);
  const Answer whole = ReadAnswer(input, input.size() + 1, to_head_request);
  FB_ASSERT(whole.code == Code::kOk || whole.code == Code::kDataLoss);
  FB_ASSERT(whole.status == 0 || (whole.status >= 200 && whole.status <= 999));
  FB_ASSERT(whole.framing != net::lean::Framing::kLength || whole.length >= 0);
  FB_ASSERT(whole == ReadAnswer(input, step, to_head_request));  // however it is cut
}

void S3Xml(ByteView input) {
  using namespace store::s3;
  const std::string_view text = AsText(input);
  const auto list = ParseListPage(text);
  if (list.ok()) {
    for (const auto& object : list->objects) FB_ASSERT(!object.key.empty());
  } else {
    FB_ASSERT(list.code() == Code::kDataLoss);
  }
  const auto upload = ParseUploadId(text);
  FB_ASSERT(upload.ok() ? !upload->empty() : upload.code() == Code::kDataLoss);
  (void)ParseSession(text);
  const auto etag = ParseCompletedEtag(text);
  FB_ASSERT(etag.ok() || etag.code() == Code::kDataLoss);
  for (const int status : {200, 301, 307, 400, 403, 404, 412, 416, 429, 500, 503}) {
    net::HttpHead head{.status = status, .headers = {}};
    FB_ASSERT(!ErrorFromResponse(head, text, {.region = "us-east-1", .endpoint = ""}).ok());
  }
}

}  // namespace forebay::fuzz
