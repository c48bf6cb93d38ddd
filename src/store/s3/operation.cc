#include "store/s3/operation.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/log.h"
#include "store/s3/error.h"
#include "store/s3/trace.h"

namespace forebay::store::s3 {
namespace {

constexpr int kChecksumsMax = 2;         // that a store may refuse before none is sent
constexpr int64_t kSkewRefused_s = 900;  // beyond which S3 refuses a signature

// Codes that new credentials mend. An unknown key may be one that has just been made, or that a
// rotation has just removed.
constexpr std::array<std::string_view, 6> kStaleCredentials{
    "ExpiredToken",         "ExpiredTokenException", "InvalidToken",
    "TokenRefreshRequired", "InvalidAccessKeyId",    "SignatureDoesNotMatch"};

bool IsRedirect(int status) { return status == 301 || status == 302 || status == 307; }

bool GaveUp(const Status& status) {
  return status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
}

struct Place {
  std::string_view scheme;
  std::string_view host;
  std::string_view path;
};

// "https://host/path?query"; an empty host when it is something else.
Place ParseLocation(std::string_view url) {
  Place place;
  const size_t mark = url.find("://");
  if (mark == url.npos) return place;
  place.scheme = url.substr(0, mark);
  url.remove_prefix(mark + 3);
  url = url.substr(0, url.find_first_of("?#"));
  const size_t slash = std::min(url.find('/'), url.size());
  place.host = url.substr(0, slash);
  place.path = url.substr(slash);
  return place;
}

// A view into either of the two.
std::string_view RegionTold(const net::HttpHead& head, const ErrorBody& error) {
  const std::string_view told = net::FindHeader(head.headers, "x-amz-bucket-region");
  return told.empty() ? std::string_view(error.region) : told;
}

}  // namespace

std::string StoredEncoding(const net::HttpHead& head) {
  std::string_view left = net::FindHeader(head.headers, "content-encoding");
  std::string encoding;
  while (!left.empty()) {
    const size_t end = std::min(left.find(','), left.size());
    std::string_view one = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    while (one.starts_with(' ')) one.remove_prefix(1);
    while (one.ends_with(' ')) one.remove_suffix(1);
    if (one.empty() || one == "identity" || one == "aws-chunked") continue;
    if (!encoding.empty()) encoding += ',';
    encoding += one;
  }
  return encoding;
}

WireRequest Operation::HeadOf(const std::string& key, const std::string& version_id) {
  WireRequest wire{.method = "HEAD", .key = key};
  if (!version_id.empty()) wire.query = {{"versionId", version_id}};
  return wire;
}

// ---- sending

void Operation::Launch(ObjectStore::OpId id) {
  id_ = id;
  Result<WireRequest> built = Build();
  if (!built.ok()) {
    FinishLater(built.status());
    return;
  }
  Begin(*std::move(built));
}

void Operation::SendOwn() {
  asking_ = Asking::kNothing;
  head_ = {};
  text_.clear();
  detail_.http_status = 0;
  detail_.request_id.clear();
  Result<WireRequest> built = Build();
  FB_ASSERT(built.ok());  // as it was at first
  Begin(*std::move(built));
}

void Operation::Ask(Asking asking, WireRequest wire) {
  asking_ = asking;
  answer_ = {};
  answer_text_.clear();
  Begin(std::move(wire));
}

void Operation::Begin(WireRequest wire) {
  if (const CredentialsSnapshot* current = core_.credentials.Current()) {
    Send(std::move(wire), *current);
  } else {
    WaitForCredentials(std::move(wire));
  }
}

void Operation::WaitForCredentials(WireRequest wire) {
  ticket_ = core_.credentials.Get(
      request_options_.deadline,
      [this, wire = std::move(wire)](Result<CredentialsPtr> credentials) mutable {
        ticket_ = 0;
        if (credentials.ok()) {
          Send(std::move(wire), **credentials);
        } else {
          End(std::move(credentials).status(), {});
        }
      });
}

std::string Operation::PayloadHash(const WireRequest& wire) const {
  if (wire.body.empty()) return kEmptySha256;
  // TLS guards the body on its way, and hashing it costs more than sending it.
  if (core_.endpoint().scheme == "https") return "UNSIGNED-PAYLOAD";
  return HexSha256(wire.body);
}

void Operation::Send(WireRequest wire, const CredentialsSnapshot& snapshot) {
  const S3StoreOptions& options = core_.options;
  const Endpoint& endpoint = redirected_ ? *redirected_ : core_.endpoint();
  const std::string path = endpoint.PathOf(wire.key);
  const std::string query = EncodeQuery(wire.query);
  const std::string payload = PayloadHash(wire);
  net::HttpRequest http{.method = std::move(wire.method),
                        .url = endpoint.UrlOf(path, query),
                        .headers = std::move(wire.headers),
                        .body = std::move(wire.body),
                        .connect_timeout = options.connect_timeout,
                        .first_byte_timeout = options.first_byte_timeout,
                        .stall_timeout = options.stall_timeout,
                        .deadline = request_options_.deadline,
                        .body_hint = wire.body_hint,
                        .body_place = wire.body_place,
                        .head_digits = wire.head_digits,
                        .body_sent = wire.body_sent,
                        .other_address = request_options_.other_address};
  if (options.request_payer) http.headers.emplace_back("x-amz-request-payer", "requester");
  sent_checksum_ = wire.checksum;
  if (http.method == "PUT" && wire.checksum != ChecksumKind::kNone) {
    Checksum sum(wire.checksum);
    for (const ByteView piece : http.body) sum.Add(piece);
    http.headers.emplace_back(ChecksumHeader(wire.checksum), sum.Text());
  }
  signed_at_ = core_.ServerTime();
  signed_epoch_ = snapshot.epoch;
  signed_moves_ = core_.moves();
  core_.Sign(snapshot.credentials,
             {.method = http.method,
              .host = endpoint.host,
              .path = path,
              .query = query,
              .payload_sha256 = payload,
              .unix_time_s = signed_at_,
              .token_header = core_.token_header()},
             http.headers);
  // Not signed: what lies between may change them.
  http.headers.emplace_back("User-Agent", "forebay/" FOREBAY_VERSION);
  http.headers.emplace_back("Accept-Encoding", "identity");
  request_id_ = core_.transport.Start(std::move(http), this);
}

// ---- answers

Result<net::BodyTarget> Operation::OnHead(const net::HttpHead& head) {
  if (asking_ != Asking::kNothing) {
    answer_ = head;
    return net::BodyTarget{.text = &answer_text_, .text_limit = kErrorTextLimit};
  }
  is_error_ = !Accepts(head.status);
  if (is_error_ || KeepsHead() || GetLogLevel() >= LogLevel::kTrace) {
    head_ = head;
  } else {
    head_.status = head.status;
    head_.content_length = head.content_length;
  }
  detail_.http_status = head.status;
  detail_.request_id = Printable(net::FindHeader(head.headers, "x-amz-request-id"), 120);
  if (is_error_) return net::BodyTarget{.text = &text_, .text_limit = kErrorTextLimit};
  return OnAccepted(head);
}

void Operation::OnDone(Status status, const net::HttpTiming& timing) {
  request_id_ = 0;
  const bool own = asking_ == Asking::kNothing;
  if (GetLogLevel() >= LogLevel::kTrace) {
    TraceExchange({.verb = verb_,
                   .own = own,
                   .detail = detail_,
                   .head = own ? head_ : answer_,
                   .text = own ? text_ : answer_text_,
                   .status = status,
                   .timing = timing});
  }
  if (!own) {
    OnAnswer(std::move(status), timing);
  } else {
    OnOwnDone(std::move(status), timing);
  }
}

void Operation::OnOwnDone(Status status, const net::HttpTiming& timing) {
  // An error's status line has said it all: what happened to the rest of its body is no matter,
  // unless the caller gave up.
  if (GaveUp(status)) {
    End(std::move(status), timing);
    return;
  }
  if (is_error_ && Forgives(head_)) {
    End(Status(), timing);
    return;
  }
  if (is_error_) {
    status = ErrorOf(head_, text_);
    if (Correct(head_, text_)) {
      SendOwn();
      return;
    }
    if (AskAboutRefusal(status)) return;
  }
  if (status.ok()) status = Judge();
  if (!status.ok() && !tried_.question) {
    if (std::optional<WireRequest> question = Question(status)) {
      tried_.question = true;
      failure_ = std::move(status);
      Ask(Asking::kVerdict, *std::move(question));
      return;
    }
  }
  End(std::move(status), timing);
}

bool Operation::AskAboutRefusal(Status& status) {
  if (head_.status == 301 && !std::exchange(tried_.region_question, true)) {
    failure_ = std::move(status);
    Ask(Asking::kRegion, {.method = "HEAD"});
    return true;
  }
  if (head_.status != 400 && head_.status != 403) return false;
  const Result<WireRequest> own = Build();
  if (!own.ok() || own->method != "HEAD" || std::exchange(tried_.diagnosis, true)) return false;
  failure_ = std::move(status);
  Ask(Asking::kDiagnosis,
      {.method = "GET", .key = own->key, .query = own->query, .headers = {{"range", "bytes=0-0"}}});
  return true;
}

void Operation::OnAnswer(Status status, const net::HttpTiming& timing) {
  const Asking asked = std::exchange(asking_, Asking::kNothing);
  if (GaveUp(status)) {
    End(std::move(status), timing);
    return;
  }
  if (asked == Asking::kDiagnosis) {
    OnDiagnosis(std::move(status), timing);
    return;
  }
  // Without an answer all is as it was.
  if (answer_.status == 0 || (!status.ok() && answer_.status < 300)) {
    End(std::move(failure_), timing);
    return;
  }
  if (asked == Asking::kRegion) {
    if (CorrectRegion(RegionTold(answer_, {}))) {
      SendOwn();
    } else {
      End(std::move(failure_), timing);
    }
    return;
  }
  Verdict verdict = Settle(answer_, std::move(failure_));
  if (verdict.next == Verdict::Next::kSendAgain) {
    SendOwn();
  } else {
    End(verdict.next == Verdict::Next::kFail ? std::move(verdict.failure) : Status(), timing);
  }
}

// A GET was sent where a HEAD had been refused: its body says why.
void Operation::OnDiagnosis(Status status, const net::HttpTiming& timing) {
  if (answer_.status == 0 || (!status.ok() && answer_.status < 300)) {
    End(std::move(failure_), timing);
    return;
  }
  const bool refused = answer_.status >= 400 && answer_.status != 416;
  if (!refused || Correct(answer_, answer_text_)) {
    SendOwn();
    return;
  }
  // No word here either, as S3 has it for a token that has expired.
  const bool mute = ParseErrorBody(answer_text_).code.empty();
  if (mute && RenewCredentials()) {
    SendOwn();
    return;
  }
  End(mute ? std::move(failure_) : ErrorOf(answer_, answer_text_), timing);
}

// ---- corrections

bool Operation::Correct(const net::HttpHead& head, const std::string& text) {
  const bool redirect = IsRedirect(head.status);
  if (!redirect && head.status != 400 && head.status != 401 && head.status != 403 &&
      head.status != 501) {
    return false;
  }
  const ErrorBody error = ParseErrorBody(text);
  if (CorrectChecksum(error)) return true;
  if (head.status == 501) return false;
  if (CorrectRegion(RegionTold(head, error))) return true;
  const Result<WireRequest> own = Build();
  if (redirect) return own.ok() && FollowRedirect(head, *own);
  if (CorrectClock(head, error)) return true;
  const bool stale = std::ranges::find(kStaleCredentials, error.code) != kStaleCredentials.end();
  // Nothing was said, though an answer to this method could have said something.
  const bool mute = text.empty() && own.ok() && own->method != "HEAD";
  return (stale || mute) && RenewCredentials();
}

bool Operation::CorrectRegion(std::string_view told) {
  if (tried_.region || told.empty()) return false;
  // Another operation may have learned the same meanwhile.
  const bool moved = signed_moves_ != core_.moves() && told == core_.endpoint().region;
  if (!moved && !core_.MoveTo(std::string(told))) return false;
  tried_.region = true;
  return true;
}

// A new bucket's name takes its time to reach all of DNS; until then the request is sent on.
bool Operation::FollowRedirect(const net::HttpHead& head, const WireRequest& own) {
  if (tried_.redirect) return false;
  const Endpoint& from = core_.endpoint();
  const Place to = ParseLocation(net::FindHeader(head.headers, "location"));
  if (to.host.empty() || to.scheme != from.scheme || !MayRedirectTo(from, to.host)) return false;
  Endpoint target = from;
  target.host = to.host;
  // Either style may be meant; any other path is not this request's.
  target.path_prefix.clear();
  if (to.path != target.PathOf(own.key)) target.path_prefix = "/" + core_.options.bucket;
  if (to.path != target.PathOf(own.key)) return false;
  if (target.host == from.host && target.path_prefix == from.path_prefix) return false;
  tried_.redirect = true;
  redirected_ = std::make_unique<Endpoint>(std::move(target));
  return true;
}

// Of all that the store might refuse, its words must name the checksum; and not as one that differs
// from the body's.
bool Operation::CorrectChecksum(const ErrorBody& error) {
  if (sent_checksum_ == ChecksumKind::kNone || tried_.checksums >= kChecksumsMax) return false;
  const auto has = [](std::string_view text, std::string_view word) {
    const auto same = [](char a, char b) { return (a | 0x20) == b; };
    return !std::ranges::search(text, word, same).empty();
  };
  if (has(error.code, "digest") || has(error.code, "mismatch")) return false;
  if (!has(error.code, "checksum") && !has(error.message, "checksum")) return false;
  ++tried_.checksums;
  OnChecksumRefused(sent_checksum_);
  return true;
}

bool Operation::CorrectClock(const net::HttpHead& head, const ErrorBody& error) {
  if (tried_.clock || head.status != 403) return false;
  const int64_t told = ParseHttpDate(net::FindHeader(head.headers, "date"));
  if (told < 0) return false;
  const bool far = std::llabs(told - signed_at_) > kSkewRefused_s;
  const bool named = error.code == "RequestTimeTooSkewed";
  if (!named && !(far && error.code.empty())) return false;
  tried_.clock = true;
  core_.SetServerTime(told);
  return true;
}

bool Operation::RenewCredentials() {
  if (tried_.credentials) return false;
  tried_.credentials = true;
  core_.credentials.Invalidate(signed_epoch_);
  const CredentialsSnapshot* now = core_.credentials.Current();
  return now == nullptr || now->epoch != signed_epoch_;  // else they cannot be renewed
}

// ---- the end

Status Operation::ErrorOf(const net::HttpHead& head, const std::string& text,
                          bool answered_200) const {
  return ErrorFromResponse(head, text,
                           {.region = core_.endpoint().region,
                            .endpoint = core_.options.config.endpoint_url,
                            .unix_time_s = signed_at_,
                            .answered_200 = answered_200});
}

void Operation::FinishLater(Status status) {
  core_.transport.executor().Post([&core = core_, id = id_, status = std::move(status)]() mutable {
    const std::unique_ptr<Operation> self = core.Take(id);
    self->Finish(std::move(status), {});
  });
}

void Operation::End(Status status, const net::HttpTiming& timing) {
  const std::unique_ptr<Operation> self = core_.Take(id_);  // keeps this alive to the end
  Finish(std::move(status), timing);
}

void Operation::Finish(Status status, const net::HttpTiming& timing) {
  if (status.ok()) {
    Succeed(timing);
    return;
  }
  Fail(std::move(status).WithContext(verb_).WithDetail(detail_));
}

Status Operation::ErrorInText() const {
  if (ParseErrorBody(text_).code.empty()) return {};
  // Without its own status the code decides; one that is unknown is worth another try.
  net::HttpHead as_error = head_;
  as_error.status = 500;
  return ErrorOf(as_error, text_, true);
}

}  // namespace forebay::store::s3
