#include <string>

#include "base/assert.h"
#include "fuzz/targets.h"
#include "net/detail/response.h"
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
  const auto etag = ParseCompletedEtag(text);
  FB_ASSERT(etag.ok() || etag.code() == Code::kDataLoss);
  for (const int status : {200, 301, 307, 400, 403, 404, 412, 416, 429, 500, 503}) {
    net::HttpHead head{.status = status, .headers = {}};
    FB_ASSERT(!ErrorFromResponse(head, text, {.region = "us-east-1", .endpoint = ""}).ok());
  }
}

}  // namespace forebay::fuzz
