// What may be spent on retries, together, by all who ask one service in this process: so that an
// outage is met with a trickle of requests, not with several times as many as before.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "base/executor.h"

namespace forebay::store {

// 500 tokens, 50 more each second. Any thread.
class RetryTokens {
 public:
  // The same for the same service (endpoint and bucket) throughout the process.
  static std::shared_ptr<RetryTokens> OfProcess(const std::string& service);

  // Takes them; the retry has to wait so long until they are there.
  Duration Take(int tokens, Time now);
  void GiveBack(int tokens);

 private:
  std::atomic<int64_t> full_at_ns_{0};  // when all tokens will be back
};

}  // namespace forebay::store
