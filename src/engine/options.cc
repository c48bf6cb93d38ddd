#include "forebay/options.h"

#include <fmt/core.h>

namespace forebay {

Status StoreOptions::Validate() const {
  const auto bad = [](std::string_view field, std::string_view why) {
    return Status(Code::kInvalidArgument, fmt::format("{}: {}", field, why),
                  ErrorDetail{.from_settings = true});
  };
  if (!endpoint_url.empty() && !endpoint_url.starts_with("http://") &&
      !endpoint_url.starts_with("https://")) {
    return bad("endpoint_url", "must begin with http:// or https://");
  }
  if (addressing_style != "auto" && addressing_style != "path" && addressing_style != "virtual") {
    return bad("addressing_style", "must be auto, path or virtual");
  }
  if (max_attempts < 0 || max_attempts > 100) return bad("max_attempts", "must be in 0 .. 100");
  if (request_timeout_ms < 1) return bad("request_timeout_ms", "must be positive");
  return {};
}

}  // namespace forebay
