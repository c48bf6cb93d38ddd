// Catalogs whose hashes are right whatever they hold.
#pragma once

#include <cstddef>
#include <vector>

namespace forebay::fuzz {

// The hashes keep damage out; whoever writes a catalog can make them fit, and so does this. False:
// it is no catalog of blocks at all.
bool MakeFit(std::vector<std::byte>& file);

}  // namespace forebay::fuzz
