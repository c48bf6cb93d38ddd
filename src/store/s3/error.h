// What an answer other than success means: one function decides, for every verb.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/http.h"
#include "store/s3/xml.h"

namespace forebay::store::s3 {

struct ErrorContext {
  std::string_view region;    // the one that the request was signed for
  std::string_view endpoint;  // "" for AWS's own
  int64_t unix_time_s = 0;    // this machine's clock when it was signed
  bool answered_200 = false;  // the error came as a success's body
};

// `body` may be empty, cut short or no XML: then the status alone decides.
Status ErrorFromResponse(const net::HttpHead& head, std::string_view body,
                         const ErrorContext& context);

// "Tue, 01 Dec 2026 08:00:00 GMT" -> Unix seconds, -1 when it is something else.
int64_t ParseHttpDate(std::string_view text);

}  // namespace forebay::store::s3
