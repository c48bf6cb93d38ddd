// A configuration file, read whole.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "forebay/status.h"

namespace forebay::sys {

// None: there is no such file. /dev/null is an empty one. Errors: kPermissionDenied (it may not be
// read), kInvalidArgument (a folder, a pipe or a device: reading one may never end),
// kResourceExhausted (over `limit` bytes), kInternal (the disk's).
Result<std::optional<std::string>> ReadSmallFile(const std::string& path, size_t limit);

}  // namespace forebay::sys
