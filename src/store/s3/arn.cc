#include "store/s3/arn.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace forebay::store::s3 {
namespace {

bool IsLabel(std::string_view text, size_t longest) {
  return !text.empty() && text.size() <= longest && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(text, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
         });
}

bool IsAccount(std::string_view text) {
  return text.size() == 12 &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view TakeField(std::string_view& text, std::string_view ends) {
  const size_t end = std::min(text.find_first_of(ends), text.size());
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return field;
}

}  // namespace

Result<AccessPoint> ParseAccessPoint(std::string_view arn) {
  std::string_view rest = arn;
  std::array<std::string_view, 5> fields;  // arn, partition, service, region, account
  for (std::string_view& field : fields) field = TakeField(rest, ":");
  const auto [mark, partition, service, region, account] = fields;
  const std::string_view kind = TakeField(rest, "/:");
  if (service == "s3-outposts") {
    return Status(Code::kUnimplemented, fmt::format("'{}': Outposts are not supported", arn));
  }
  if (region.empty() && kind == "accesspoint") {
    return Status(
        Code::kUnimplemented,
        fmt::format("'{}' is an access point of several regions, whose signature (SigV4A) "
                    "is not supported: use the access point or bucket of one region",
                    arn));
  }
  const bool valid = mark == "arn" && partition.starts_with("aws") &&
                     (service == "s3" || service == "s3-object-lambda") && IsLabel(region, 40) &&
                     IsAccount(account) && kind == "accesspoint" && IsLabel(rest, 50);
  if (!valid) {
    return Status(Code::kInvalidArgument,
                  fmt::format("'{}' is not arn:aws:s3:REGION:ACCOUNT:accesspoint/NAME", arn));
  }
  return AccessPoint{.service = std::string(service),
                     .region = std::string(region),
                     .account = std::string(account),
                     .name = std::string(rest)};
}

}  // namespace forebay::store::s3
