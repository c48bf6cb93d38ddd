// What the plan has in store for one request.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "testing/faults/http_head.h"

namespace forebay::faults {

// Something that happens to a body once `offset` bytes of its payload have been sent.
struct BodyEvent {
  enum class Kind : uint8_t { kStall, kFlip, kReset, kFinish };
  Kind kind = Kind::kStall;
  uint64_t offset = 0;
  double seconds = 0;  // of a stall
};

struct Decision {
  uint64_t number = 0;       // of the request, from 1, since the start or the last reset
  double first_byte_s = 0;   // after the request's head; 0: at once
  bool has_latency = false;  // a latency was drawn for this request
  int status = 0;            // answered here instead of asking the origin; 0: not
  std::string error_code;    // of the XML body that goes with `status`
  std::vector<Field> extra_fields;
  std::vector<BodyEvent> events;  // by offset; a flip comes before what ends the body there
  double drip_bytes_per_s = 0;    // 0: as fast as it goes
  int64_t content_range_shift = 0;
  bool changed_etag = false;
  bool ignore_range = false;
  bool error_in_200 = false;
  bool close = false;           // after the response
  bool announce_close = false;  // with "Connection: close"
  std::vector<std::string> duplicate_fields;
  std::vector<std::string> names;  // of the actions that apply, for the log
};

// What rules can match on.
struct RequestFacts {
  std::string_view method;
  std::string_view target;
  bool has_range = false;
};

// "/bucket/a%20b?x" -> "bucket", "a b".
struct ObjectName {
  std::string bucket;
  std::string key;
};
ObjectName NameOf(std::string_view target);

}  // namespace forebay::faults
