// One lookup of a name for all processes of a user on a machine that want it within a few seconds:
// hundreds of ranks start together, and a resolver drops what comes too fast.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "forebay/status.h"
#include "sys/address.h"

namespace forebay::net {

using BlockingLookup = std::function<Result<std::vector<sys::IpAddress>>(const std::string& host)>;

// What another process found out less than 10 s ago (or its failure of the last second), else what
// `look_up` says, called by one process at a time and left for the others. Waits for another's
// lookup for a few seconds at most, then looks up by itself. `runtime_dir`: see
// sys::SharedFile::Open; without a place for the file every call looks up.
Result<std::vector<sys::IpAddress>> LookUpShared(const std::string& host,
                                                 const std::string& runtime_dir,
                                                 const BlockingLookup& look_up);

}  // namespace forebay::net
