// What stands between this machine and a store, looked at piece by piece. `forebay doctor` is made
// of this.
#pragma once

#include <functional>
#include <string>

#include "forebay/options.h"
#include "forebay/status.h"

namespace forebay {

struct Finding {
  enum class Level : uint8_t {
    kOk,
    kNote,     // worth knowing
    kWarning,  // works, and will hurt
    kFailure,  // does not work
  };
  std::string check;  // "dns", "credentials", ...: stable
  Level level = Level::kOk;
  std::string text;  // never a secret
  std::string fix;   // what to do; "" when there is nothing to do
  Status status;     // of a failure that a request met with
};

// Looks at settings, credentials, names, the path, the clock, region, access, first bytes and this
// process's limits, in that order, as far as each lets the next be looked at; for files at access,
// first bytes and limits. Reads at most 2 MiB. Blocking, a minute at most where nothing answers.
// Errors: kInvalidArgument (`uri`).
FOREBAY_API Status Diagnose(const std::string& uri, const StoreOptions& store,
                            const std::function<void(const Finding&)>& on_finding);

}  // namespace forebay
