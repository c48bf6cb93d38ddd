// JSON objects as flat tables: what the credential services say needs no more.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "forebay/status.h"

namespace forebay::store::s3 {

// Members of nested objects as "outer.inner"; numbers and booleans as their text; arrays and nulls
// are left out.
using FlatJson = std::map<std::string, std::string, std::less<>>;

// kDataLoss when `text` is no JSON object. The message holds nothing of it.
Result<FlatJson> ParseFlatJson(std::string_view text);
// One object of strings; names with a dot are not taken apart.
std::string WriteFlatJson(const FlatJson& values);

// The value, or "".
std::string TextOf(const FlatJson& values, std::string_view name);
// The value as a whole number, or 0.
int64_t NumberOf(const FlatJson& values, std::string_view name);

// "2026-11-30T02:47:21Z", with a fraction, with "UTC" or an offset "+01:00" in place of Z: Unix
// seconds; 0 for anything else.
int64_t ParseUtcTime(std::string_view text);
std::string FormatUtcTime(int64_t unix_time_s);

}  // namespace forebay::store::s3
