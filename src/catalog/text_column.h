// A column of texts in a catalog's block, each to be had without decoding more than sixteen. Byte
// table: docs/formats/files.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::catalog {

// Each builds on the one before it, but for every sixteenth.
std::vector<std::byte> PackTexts(const std::vector<std::string_view>& texts);

// Text i of `count`. Errors: kDataLoss.
Result<std::string> TextAt(ByteView column, uint32_t count, uint32_t i);

}  // namespace forebay::catalog
