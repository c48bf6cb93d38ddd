// Sparse vectors: values, and the places they stand at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "forebay/status.h"

namespace forebay::ops {

// Puts both in the order of the places, as tf.io.SparseFeature does; equal ones stay in theirs.
// `indices`: int64; `values`: `value_size` bytes each. Errors: kDataLoss: not as many of one as of
// the other, a place that is not of 0 to size - 1.
Status OrderSparse(uint64_t size, uint64_t value_size, std::vector<std::byte>* indices,
                   std::vector<std::byte>* values);

}  // namespace forebay::ops
