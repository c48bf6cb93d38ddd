// The counter-based generator beneath forebay/random.h.
#pragma once

#include <array>
#include <cstdint>

#include "forebay/random.h"

namespace forebay {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;
PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key);

}  // namespace forebay
