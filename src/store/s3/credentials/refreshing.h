// A provider whose credentials end: it renews them ahead of time behind its users, and keeps the
// old ones in use while that fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "base/executor.h"
#include "store/s3/credentials/source.h"
#include "store/s3/credentials_provider.h"

namespace forebay::store::s3 {

struct RefreshOptions {
  std::string source;  // what gives them, for the log
  std::function<int64_t()> unix_time_s;
  uint64_t seed = 0;  // of the jitter; has to differ between processes
  // Before the end, and at most a quarter (a sixth) of the life left when they came; +-20 %.
  // From the first on they are renewed while the old ones are used; from the second on users wait
  // for a renewal that is running, unless one has failed already.
  std::chrono::seconds advisory{15 * 60};
  std::chrono::seconds mandatory{10 * 60};
  // Between attempts that fail, doubling.
  std::chrono::seconds shortest_backoff{1};
  std::chrono::seconds longest_backoff{60};
};

// Lives on `executor`; Current, Invalidate and clients on any thread. Destroy it when the executor
// has stopped.
class RefreshingProvider final : public CredentialsProvider {
 public:
  // Gives credentials other than those with the access key id `rejected` ("": any). Called on the
  // executor, one at a time.
  using Fetch = std::function<void(std::string rejected, OnFetched on_fetched)>;

  RefreshingProvider(Executor& executor, Fetch fetch, RefreshOptions options);

  // Begins with the first fetch, so that it runs while its users still prepare.
  void Start() { Want(); }
  void Invalidate(uint64_t epoch) override;

 private:
  void Want() override;
  void WantHere();
  void InvalidateHere(uint64_t epoch);
  void BeginFetch();
  void OnFetchEnded(Result<Fetched> fetched);
  void OnFresh(Fetched fetched);
  void OnFailed(Status status);
  void Publish(bool offered);
  void Schedule(Duration until_renewal);
  void ScheduleByExpiry();
  double Jitter();  // 0.8 .. 1.2
  void SetTimer(Executor::TimerId& timer, Duration after, void (RefreshingProvider::*then)());
  void Renew();
  void EndOfGrace();

  Executor& executor_;
  const Fetch fetch_;
  const RefreshOptions options_;
  CredentialsPtr current_;  // the last that came, offered or not
  bool offered_ = false;
  bool fetching_ = false;
  uint64_t epoch_ = 0;
  uint64_t invalidated_ = 0;  // the last epoch that was
  // The epoch that Invalidate may end at this moment, 0: none. Any thread.
  std::atomic<uint64_t> can_invalidate_ = 0;
  std::string rejected_;       // its access key id, until others have come
  std::string asked_without_;  // what the running fetch was told
  int failures_ = 0;           // in a row
  Time retry_at_{};
  Status failure_;
  Executor::TimerId renew_timer_ = 0;
  Executor::TimerId grace_timer_ = 0;
  uint64_t draws_ = 0;
};

}  // namespace forebay::store::s3
