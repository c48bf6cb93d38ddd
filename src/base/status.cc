#include "forebay/status.h"

#include <fmt/core.h>

namespace forebay {

struct Status::Rep {
  Code code;
  std::string message;
  std::string context;  // "outer: inner: "
  ErrorDetail detail;
};

namespace {
const std::string kEmpty;
const ErrorDetail kNoDetail;
}  // namespace

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kCancelled:
      return "cancelled";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kNotFound:
      return "not_found";
    case Code::kPermissionDenied:
      return "permission_denied";
    case Code::kPreconditionFailed:
      return "precondition_failed";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kResourceExhausted:
      return "resource_exhausted";
    case Code::kDataLoss:
      return "data_loss";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
  }
  return "unknown";
}

Status::Status(Code code, std::string message) : Status(code, std::move(message), {}) {}

Status::Status(Code code, std::string message, ErrorDetail detail) {
  if (code != Code::kOk) {
    rep_ = new Rep{code, std::move(message), {}, std::move(detail)};
  }
}

Status::Status(const Status& other)
    : rep_(other.rep_ != nullptr ? new Rep(*other.rep_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) *this = Status(other);
  return *this;
}

void Status::Destroy() { delete rep_; }

Code Status::code() const { return rep_ ? rep_->code : Code::kOk; }

const std::string& Status::message() const { return rep_ ? rep_->message : kEmpty; }

const ErrorDetail& Status::detail() const { return rep_ ? rep_->detail : kNoDetail; }

Status Status::WithContext(std::string_view context) && {
  if (rep_) rep_->context = fmt::format("{}: {}", context, rep_->context);
  return std::move(*this);
}

Status Status::WithDetail(const ErrorDetail& detail) && {
  if (!rep_) return std::move(*this);
  ErrorDetail& mine = rep_->detail;
  if (mine.uri.empty()) mine.uri = detail.uri;
  if (mine.offset < 0) {
    mine.offset = detail.offset;
    mine.end = detail.end;
  }
  if (mine.attempt == 0) mine.attempt = detail.attempt;
  if (mine.http_status == 0) mine.http_status = detail.http_status;
  if (mine.request_id.empty()) mine.request_id = detail.request_id;
  mine.from_settings = mine.from_settings || detail.from_settings;
  return std::move(*this);
}

std::string Status::ToString() const {
  if (!rep_) return "ok";
  std::string text = fmt::format("{}: {}{}", CodeName(rep_->code), rep_->context, rep_->message);
  const ErrorDetail& d = rep_->detail;
  std::string tail;
  if (!d.uri.empty()) tail += fmt::format(" uri={}", d.uri);
  if (d.offset >= 0) tail += fmt::format(" range=[{},{})", d.offset, d.end);
  if (d.attempt > 0) tail += fmt::format(" attempt={}", d.attempt);
  if (d.http_status > 0) tail += fmt::format(" http={}", d.http_status);
  if (!d.request_id.empty()) tail += fmt::format(" request_id={}", d.request_id);
  if (!tail.empty()) text += fmt::format(" [{}]", tail.substr(1));
  return text;
}

}  // namespace forebay
