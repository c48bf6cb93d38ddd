#include "store/retry_tokens.h"

#include <algorithm>
#include <map>

#include "base/mutex.h"
#include "sys/per_process.h"

namespace forebay::store {
namespace {

constexpr int64_t kTokenNs = 20'000'000;
constexpr int64_t kAllNs = 500 * kTokenNs;

struct Services {
  Mutex mutex;
  std::map<std::string, std::shared_ptr<RetryTokens>> tokens FB_GUARDED_BY(mutex);
};

}  // namespace

std::shared_ptr<RetryTokens> RetryTokens::OfProcess(const std::string& service) {
  static sys::PerProcess<Services*> services;
  Services& all = *services.Get([] { return new Services; });
  const MutexLock lock(all.mutex);
  std::shared_ptr<RetryTokens>& tokens = all.tokens[service];
  if (!tokens) tokens = std::make_shared<RetryTokens>();
  return tokens;
}

Duration RetryTokens::Take(int tokens, Time now) {
  const int64_t at = now.time_since_epoch().count();
  int64_t full = full_at_ns_.load(std::memory_order_relaxed);
  int64_t then = 0;
  do {
    then = std::max(full, at) + tokens * kTokenNs;
  } while (!full_at_ns_.compare_exchange_weak(full, then, std::memory_order_relaxed));
  return Duration(std::max<int64_t>(0, then - at - kAllNs));
}

void RetryTokens::GiveBack(int tokens) {
  full_at_ns_.fetch_sub(tokens * kTokenNs, std::memory_order_relaxed);
}

}  // namespace forebay::store
