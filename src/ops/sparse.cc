#include "ops/sparse.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace forebay::ops {

Status OrderSparse(uint64_t size, uint64_t value_size, std::vector<std::byte>* indices,
                   std::vector<std::byte>* values) {
  const uint64_t count = indices->size() / sizeof(uint64_t);
  if (count != values->size() / value_size) {
    return Status(Code::kDataLoss, fmt::format("a sparse vector of {} values and {} indices",
                                               values->size() / value_size, count));
  }
  if (count == 0) return {};
  std::vector<uint64_t> places(count);
  std::memcpy(places.data(), indices->data(), indices->size());
  for (const uint64_t place : places) {
    if (place < size && place <= static_cast<uint64_t>(INT64_MAX)) continue;
    return Status(Code::kDataLoss, fmt::format("an index of {} in a sparse vector of {}",
                                               static_cast<int64_t>(place), size));
  }
  if (std::ranges::is_sorted(places)) return {};
  std::vector<uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order, {}, [&](uint32_t at) { return std::pair(places[at], at); });
  std::vector<std::byte> sorted(values->size());
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(sorted.data() + i * value_size, values->data() + order[i] * value_size, value_size);
    std::memcpy(indices->data() + i * sizeof(uint64_t), &places[order[i]], sizeof(uint64_t));
  }
  *values = std::move(sorted);
  return {};
}

}  // namespace forebay::ops
