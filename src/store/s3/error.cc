#include "store/s3/error.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "base/ascii.h"

namespace forebay::store::s3 {
namespace {

struct CodeMeaning {
  std::string_view name;
  Code code;
};

// Error codes of the S3 API whose HTTP status alone says too little.
constexpr std::array kMeanings{
    CodeMeaning{"SlowDown", Code::kResourceExhausted},
    CodeMeaning{"TooManyRequests", Code::kResourceExhausted},
    CodeMeaning{"RequestLimitExceeded", Code::kResourceExhausted},
    CodeMeaning{"Throttling", Code::kResourceExhausted},
    CodeMeaning{"ThrottlingException", Code::kResourceExhausted},
    CodeMeaning{"BandwidthLimitExceeded", Code::kResourceExhausted},
    CodeMeaning{"RequestTimeout", Code::kUnavailable},
    CodeMeaning{"InternalError", Code::kUnavailable},
    CodeMeaning{"ServiceUnavailable", Code::kUnavailable},
    CodeMeaning{"OperationAborted", Code::kUnavailable},
    CodeMeaning{"ConditionalRequestConflict", Code::kUnavailable},
    CodeMeaning{"IncompleteBody", Code::kUnavailable},
    CodeMeaning{"BadDigest", Code::kDataLoss},
    CodeMeaning{"XAmzContentSHA256Mismatch", Code::kDataLoss},
    CodeMeaning{"ExpiredToken", Code::kPermissionDenied},
    CodeMeaning{"ExpiredTokenException", Code::kPermissionDenied},
    CodeMeaning{"InvalidToken", Code::kPermissionDenied},
    CodeMeaning{"TokenRefreshRequired", Code::kPermissionDenied},
    CodeMeaning{"InvalidAccessKeyId", Code::kPermissionDenied},
    CodeMeaning{"NoSuchKey", Code::kNotFound},
    CodeMeaning{"NoSuchBucket", Code::kNotFound},
    CodeMeaning{"NoSuchUpload", Code::kNotFound},
    CodeMeaning{"PreconditionFailed", Code::kPreconditionFailed},
    CodeMeaning{"InvalidRange", Code::kInvalidArgument},
    // Statuses say these as well, but not where the error comes as a success's body.
    CodeMeaning{"AccessDenied", Code::kPermissionDenied},
    CodeMeaning{"AllAccessDisabled", Code::kPermissionDenied},
    CodeMeaning{"AccountProblem", Code::kPermissionDenied},
    CodeMeaning{"SignatureDoesNotMatch", Code::kPermissionDenied},
    CodeMeaning{"EntityTooLarge", Code::kInvalidArgument},
    CodeMeaning{"EntityTooSmall", Code::kInvalidArgument},
    CodeMeaning{"InvalidArgument", Code::kInvalidArgument},
    CodeMeaning{"InvalidPart", Code::kInvalidArgument},
    CodeMeaning{"InvalidPartOrder", Code::kInvalidArgument},
    CodeMeaning{"InvalidRequest", Code::kInvalidArgument},
    CodeMeaning{"MalformedXML", Code::kInvalidArgument},
    CodeMeaning{"NotImplemented", Code::kUnimplemented},
};

Code CodeOfStatus(int status) {
  switch (status) {
    case 401:
    case 403:
      return Code::kPermissionDenied;
    case 404:
      return Code::kNotFound;
    case 304:
    case 412:
      return Code::kPreconditionFailed;
    case 408:
    case 409:
      return Code::kUnavailable;
    case 429:
      return Code::kResourceExhausted;
    case 501:
      return Code::kUnimplemented;
    default:
      break;
  }
  if (status >= 500) return Code::kUnavailable;
  if (status >= 300) return Code::kInvalidArgument;
  return Code::kDataLoss;  // a success that is not the one asked for
}

bool IsRedirect(int status) { return status == 301 || status == 302 || status == 307; }

// A region named by the server goes into a text only when it looks like one.
std::string SafeRegion(std::string_view text) {
  const bool plain =
      !text.empty() && text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
  return plain ? std::string(text) : "";
}

std::string Hint(const net::HttpHead& head, const ErrorBody& error, const ErrorContext& context) {
  std::string_view told = net::FindHeader(head.headers, "x-amz-bucket-region");
  if (told.empty()) told = error.region;
  const std::string region = SafeRegion(told);
  if (!region.empty() && region != context.region) {
    return fmt::format("; the bucket is in region {}, the request was made for {}", region,
                       context.region);
  }
  if (IsRedirect(head.status)) {
    return fmt::format("; the bucket belongs to another endpoint than that of region {}",
                       context.region);
  }
  const int64_t server_time = ParseHttpDate(net::FindHeader(head.headers, "date"));
  const int64_t skew = server_time > 0 ? context.unix_time_s - server_time : 0;
  if (head.status == 403 && std::llabs(skew) > 300) {
    return fmt::format("; this machine's clock is {} s {} the server's", std::llabs(skew),
                       skew > 0 ? "ahead of" : "behind");
  }
  if (error.code.empty() && head.status == 400) {
    return "; without a body this often means an expired token or a wrong region";
  }
  return "";
}

}  // namespace

Status ErrorFromResponse(const net::HttpHead& head, std::string_view body,
                         const ErrorContext& context) {
  const ErrorBody error = ParseErrorBody(body);
  Code code = CodeOfStatus(head.status);
  // A HEAD's refusal has no body; with this status it is S3's "slow down".
  if (head.status == 503 && body.empty()) code = Code::kResourceExhausted;
  for (const CodeMeaning& meaning : kMeanings) {
    if (error.code == meaning.name) code = meaning.code;
  }
  std::string message =
      fmt::format("the server answered {}", context.answered_200 ? 200 : head.status);
  if (!error.code.empty()) {
    message += fmt::format("{} {}: {}", context.answered_200 ? " with the error" : "",
                           Printable(error.code, 80), Printable(error.message, 300));
  } else if (head.status == 404) {
    message += ": no such object, or no such bucket";  // a HEAD's answer cannot say which
  }
  if (net::FindHeader(head.headers, "x-amz-delete-marker") == "true") {
    code = Code::kNotFound;
    message += "; that version is a delete marker";
  }
  message += Hint(head, error, context);
  ErrorDetail detail{.http_status = context.answered_200 ? 200 : head.status};
  const std::string_view id = net::FindHeader(head.headers, "x-amz-request-id");
  detail.request_id = Printable(id.empty() ? std::string_view(error.request_id) : id, 120);
  return Status(code, std::move(message), std::move(detail));
}

int64_t ParseHttpDate(std::string_view text) {
  std::tm utc{};
  const std::string copy(text);
  const char* end = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  if (end == nullptr || *end != '\0') return -1;
  return std::max(int64_t{-1}, int64_t{::timegm(&utc)});  // nothing is older than 1970
}

}  // namespace forebay::store::s3
