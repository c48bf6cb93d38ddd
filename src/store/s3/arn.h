// arn:PARTITION:SERVICE:REGION:ACCOUNT:accesspoint/NAME, which stands where a bucket would.
#pragma once

#include <string>
#include <string_view>

#include "forebay/status.h"

namespace forebay::store::s3 {

struct AccessPoint {
  std::string service;  // "s3" or "s3-object-lambda"
  std::string region;
  std::string account;
  std::string name;
};

// Errors: kInvalidArgument for what is no ARN of an access point; kUnimplemented for those of
// several regions (they need another signature) and of Outposts.
Result<AccessPoint> ParseAccessPoint(std::string_view arn);

}  // namespace forebay::store::s3
