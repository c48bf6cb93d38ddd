// The ranged GET: the one operation on the data's path. Private to s3/.
#pragma once

#include <memory>

#include "store/s3/operation.h"

namespace forebay::store::s3 {

std::unique_ptr<Operation> MakeRead(Core& core, ReadRequest request, Callback<ReadResult> on_done);

struct ContentRange {
  uint64_t offset = 0;
  uint64_t end = 0;
  uint64_t total = 0;
};
// "bytes 0-9/100" -> {0, 10, 100}; nothing else is accepted.
Result<ContentRange> ParseContentRange(std::string_view text);

}  // namespace forebay::store::s3
