#include "store/s3/read.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/prefetch.h"
#include "store/s3/xml.h"

namespace forebay::store::s3 {
namespace {

constexpr int kOk = 200;
constexpr int kPartialContent = 206;
constexpr int kRangeNotSatisfiable = 416;

Status DataLoss(std::string message) { return Status(Code::kDataLoss, std::move(message)); }

bool TakeNumber(std::string_view& text, char after, uint64_t& number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(parsed.ptr - text.data()));
  if (after == '\0') return text.empty();
  if (text.empty() || text.front() != after) return false;
  text.remove_prefix(1);
  return true;
}

class Read final : public Operation {
 public:
  Read(Core& core, ReadRequest request, Callback<ReadResult> on_done)
      : Operation(core, "GET", request.options),
        request_(std::move(request)),
        on_done_(std::move(on_done)) {}

 private:
  Result<WireRequest> Build() override;
  bool Accepts(int status) const override { return status == kPartialContent || status == kOk; }
  Result<net::BodyTarget> OnAccepted(const net::HttpHead& head) override;
  bool KeepsHead() const override { return false; }
  bool Forgives(const net::HttpHead& head) override;
  std::optional<WireRequest> Question(const Status& failure) override;
  Verdict Settle(const net::HttpHead& answer, Status failure) override;
  void Expect() const override {
    Prefetch(this, sizeof *this);
    Prefetch(detail_.uri.data(), detail_.uri.size());
    Prefetch(request_.key.data(), request_.key.size());
  }
  void OnBody(ByteView piece) override {
    ReadProgress* progress = request_.progress;
    if (progress != nullptr && progress->first_byte != Time{}) progress->bytes += piece.size();
    if (checksum_) checksum_->Add(piece);
  }
  Status Judge() override;
  void Succeed(const net::HttpTiming& timing) override;
  void Fail(Status status) override;

  Status CheckVersion(const net::HttpHead& head);
  Status CheckEncoding(const net::HttpHead& head);
  Status CheckRange(const net::HttpHead& head);
  Status CheckWhole(const net::HttpHead& head);

  const ReadRequest request_;
  Callback<ReadResult> on_done_;
  ReadResult result_;  // bytes: what this answer must deliver, from its head
  // What an answer said against the request, and only another answer can settle.
  bool other_version_ = false;
  std::string encoding_;
  bool size_unknown_ = false;  // a 416 that does not tell it
  // Of an answer that is the whole object and tells its checksum.
  std::optional<Checksum> checksum_;
  std::string told_checksum_;
};

// How many decimal digits `number` has.
size_t Digits(uint64_t number) {
  size_t digits = 1;
  for (; number >= 10; number /= 10) ++digits;
  return digits;
}

Result<WireRequest> Read::Build() {
  detail_.uri = core_.root_uri + "/" + request_.key;
  detail_.offset = static_cast<int64_t>(request_.range.offset);
  detail_.end = static_cast<int64_t>(request_.range.end);
  if (request_.key.empty()) return Status(Code::kInvalidArgument, "the key is empty");
  if (request_.range.end <= request_.range.offset) {
    return Status(Code::kInvalidArgument, "the range is empty");
  }
  uint64_t room = 0;
  for (const MutableBytes piece : request_.target) room += piece.size();
  FB_ASSERT(room == request_.range.size());
  WireRequest wire{
      .method = "GET",
      .key = request_.key,
      .body_hint = room,
      .body_place = request_.target,
      .head_digits = Digits(request_.range.offset) + Digits(request_.range.end - 1) + Digits(room)};
  if (!request_.version_id.empty()) wire.query = {{"versionId", request_.version_id}};
  wire.headers.emplace_back(
      "range", fmt::format("bytes={}-{}", request_.range.offset, request_.range.end - 1));
  if (!request_.etag.empty()) {
    wire.headers.emplace_back("if-match", QuotedEtag(request_.etag));
  }
  // It may be the whole object.
  if (request_.range.offset == 0 && core_.AsksForChecksums()) {
    wire.headers.emplace_back("x-amz-checksum-mode", "ENABLED");
  }
  return wire;
}

Result<net::BodyTarget> Read::OnAccepted(const net::HttpHead& head) {
  FB_RETURN_IF_ERROR(CheckVersion(head));
  FB_RETURN_IF_ERROR(CheckEncoding(head));
  FB_RETURN_IF_ERROR(head.status == kPartialContent ? CheckRange(head) : CheckWhole(head));
  if (head.content_length >= 0 && static_cast<uint64_t>(head.content_length) != result_.bytes) {
    return DataLoss(fmt::format("content-length {} for a range of {} bytes", head.content_length,
                                result_.bytes));
  }
  checksum_.reset();
  if (result_.bytes == result_.object_size && core_.AsksForChecksums()) {
    if (std::optional<ToldChecksum> told = FullObjectChecksum(head)) {
      checksum_.emplace(told->kind);
      told_checksum_ = std::move(told->text);
    }
  }
  if (request_.progress != nullptr) *request_.progress = {core_.transport.executor().Now(), 0};
  net::BodyTarget target;
  uint64_t left = result_.bytes;
  for (const MutableBytes piece : request_.target) {
    const size_t n = std::min<uint64_t>(piece.size(), left);
    if (n > 0) target.pieces.push_back(piece.first(n));
    left -= n;
  }
  return target;
}

Status Read::Judge() {
  if (!checksum_) return {};
  const std::string found = checksum_->Text();
  if (found == told_checksum_) return {};
  return DataLoss(fmt::format("the object's {} is {} by the answer's head, that of its bytes is {}",
                              ChecksumName(checksum_->kind()), Printable(told_checksum_, 40),
                              found));
}

Status Read::CheckVersion(const net::HttpHead& head) {
  other_version_ = false;
  result_.etag = BareEtag(net::FindHeader(head.headers, "etag"));
  // Every object has one: an answer without it is an error page or comes from something else.
  if (result_.etag.empty()) return DataLoss("the answer has no etag");
  result_.version_id = net::FindHeader(head.headers, "x-amz-version-id");
  if (!request_.version_id.empty() && !result_.version_id.empty() &&
      result_.version_id != request_.version_id) {
    return DataLoss(fmt::format("the answer is of version {}, {} was asked for", result_.version_id,
                                request_.version_id));
  }
  if (request_.etag.empty() || result_.etag == BareEtag(request_.etag)) return {};
  // The request forbade it: this answer is wrong, or the store ignores such conditions.
  other_version_ = true;
  return DataLoss(
      fmt::format("the answer's etag is {} though if-match named {}", result_.etag, request_.etag));
}

// An object stored with an encoding is delivered as stored. One that was encoded on its way is not
// the object.
Status Read::CheckEncoding(const net::HttpHead& head) {
  encoding_ = StoredEncoding(head);
  if (encoding_.empty() || core_.encodings.Find(request_.key) == encoding_) {
    encoding_.clear();
    return {};
  }
  return DataLoss(fmt::format("the data came with content-encoding {}", encoding_));
}

std::optional<WireRequest> Read::Question(const Status& failure) {
  // One such answer is an accident, and the next attempt tells. The same from two is worth asking.
  if (other_version_ && core_.others.Find(request_.key) != result_.etag) {
    core_.others.Keep(request_.key, result_.etag);
    return {};
  }
  const bool changed = other_version_ || failure.code() == Code::kPreconditionFailed;
  if (!changed && encoding_.empty() && !size_unknown_) return {};
  return HeadOf(request_.key, request_.version_id);
}

Operation::Verdict Read::Settle(const net::HttpHead& answer, Status failure) {
  if (answer.status != kOk && answer.status != 404) return {.failure = std::move(failure)};
  if (size_unknown_) {
    const bool past_end = answer.status == kOk && answer.content_length >= 0 &&
                          static_cast<uint64_t>(answer.content_length) <= request_.range.offset;
    if (!past_end) return {.failure = std::move(failure)};
    result_ = {.object_size = static_cast<uint64_t>(answer.content_length),
               .etag = BareEtag(net::FindHeader(answer.headers, "etag"))};
    return {.next = Verdict::Next::kSucceed};
  }
  if (!encoding_.empty()) {
    if (answer.status != kOk || StoredEncoding(answer) != encoding_) {
      return {.failure = std::move(failure)};
    }
    core_.encodings.Keep(request_.key, std::exchange(encoding_, ""));
    return {.next = Verdict::Next::kSendAgain};
  }
  const std::string pinned = BareEtag(request_.etag);
  std::string now = BareEtag(net::FindHeader(answer.headers, "etag"));
  if (now == pinned) {
    return {.failure = DataLoss(fmt::format(
                "an answer contradicts the object, whose etag is {} as expected", now))};
  }
  // A third etag: wait for the store to make up its mind.
  if (other_version_ && now != result_.etag && answer.status == kOk) {
    return {.failure = std::move(failure)};
  }
  if (answer.status == 404) now = "none any more: it is gone";
  return {.failure = Status(Code::kPreconditionFailed,
                            fmt::format("the object changed: its etag is {}, {} was expected", now,
                                        request_.etag))};
}

Status Read::CheckRange(const net::HttpHead& head) {
  const std::string_view text = net::FindHeader(head.headers, "content-range");
  FB_ASSIGN_OR_RETURN(const ContentRange range, ParseContentRange(text));
  const ByteRange& wanted = request_.range;
  if (range.offset != wanted.offset || range.end != std::min(wanted.end, range.total)) {
    return DataLoss(fmt::format("asked for bytes {}-{}, the answer holds '{}'", wanted.offset,
                                wanted.end - 1, text));
  }
  if (range.end != wanted.end && !request_.clamp_to_object) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the range ends after the object's {} bytes", range.total));
  }
  result_.bytes = range.end - range.offset;
  result_.object_size = range.total;
  return {};
}

// 200: the server ignored the range. Right only when the range is the whole object.
Status Read::CheckWhole(const net::HttpHead& head) {
  const auto length = static_cast<uint64_t>(std::max<int64_t>(head.content_length, 0));
  const bool fits =
      request_.clamp_to_object ? length <= request_.range.size() : length == request_.range.size();
  if (head.content_length < 0 || request_.range.offset != 0 || !fits) {
    return DataLoss("the server ignored the range and sent 200");
  }
  result_.bytes = length;
  result_.object_size = length;
  return {};
}

// Nothing lies at or after the end of the object: for a clamped read, that is an answer. Without
// the object's size it is none yet.
bool Read::Forgives(const net::HttpHead& head) {
  if (!request_.clamp_to_object || head.status != kRangeNotSatisfiable) return false;
  std::string_view text = net::FindHeader(head.headers, "content-range");
  uint64_t total = 0;
  size_unknown_ = !text.starts_with("bytes */");
  if (size_unknown_) return false;
  text.remove_prefix(8);
  if (!TakeNumber(text, '\0', total) || total > request_.range.offset) return false;
  result_.bytes = 0;
  result_.object_size = total;
  result_.etag = BareEtag(net::FindHeader(head.headers, "etag"));
  if (result_.etag.empty()) result_.etag = request_.etag;
  return true;
}

void Read::Succeed(const net::HttpTiming& timing) {
  if (head_.status != kRangeNotSatisfiable && timing.body_bytes != result_.bytes) {
    Fail(DataLoss(fmt::format("{} of {} bytes arrived", timing.body_bytes, result_.bytes))
             .WithDetail(detail_));
    return;
  }
  result_.request_id = detail_.request_id;
  result_.first_byte = timing.connect + timing.first_byte;
  result_.total = timing.total;
  on_done_(std::move(result_));
}

void Read::Fail(Status status) {
  // Without an answer to the question, a server's own refusal names neither.
  if (status.code() == Code::kPreconditionFailed && !status.message().starts_with("the object")) {
    status = std::move(status).WithContext(
        fmt::format("the object changed: its etag is another now, {} was expected", request_.etag));
  }
  on_done_(std::move(status));
}

}  // namespace

Result<ContentRange> ParseContentRange(std::string_view text) {
  std::string_view rest = text;
  rest.remove_prefix(std::min<size_t>(6, rest.size()));
  ContentRange range;
  uint64_t last = 0;
  if (!text.starts_with("bytes ") || !TakeNumber(rest, '-', range.offset) ||
      !TakeNumber(rest, '/', last) || !TakeNumber(rest, '\0', range.total) || last < range.offset ||
      last >= range.total) {
    return DataLoss(fmt::format("the answer's content-range is '{}'", text));
  }
  range.end = last + 1;
  return range;
}

std::unique_ptr<Operation> MakeRead(Core& core, ReadRequest request, Callback<ReadResult> on_done) {
  return std::make_unique<Read>(core, std::move(request), std::move(on_done));
}

}  // namespace forebay::store::s3
