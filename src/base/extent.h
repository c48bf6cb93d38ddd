// A range of one object version.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"

namespace forebay {

// What an extent's `object` index points into. Immutable while a run lasts.
struct ObjectVersion {
  std::string key;  // in its store
  uint64_t size = 0;
  std::string etag;
  std::string version_id;  // "": not pinned to one
};

struct Extent {
  uint32_t object = 0;
  ByteRange range;
  auto operator<=>(const Extent&) const = default;
};

}  // namespace forebay
