// Where the credentials of the moment come from. One provider serves all stores of a process that
// sign as the same identity; each store asks it through a client on its own executor. A request is
// signed when it is sent, with what the client says then, so that queued requests take up new keys.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "forebay/status.h"
#include "store/s3/credentials.h"

namespace forebay::store::s3 {

// Immutable.
struct CredentialsSnapshot {
  Credentials credentials;
  uint64_t epoch = 0;          // differs between any two snapshots of a provider with other keys
  int64_t expires_unix_s = 0;  // 0: not that anyone knows
  std::string source;          // "the environment", "profile 'x', role arn:..": no secret
};
using CredentialsPtr = std::shared_ptr<const CredentialsSnapshot>;

class CredentialsClient;

// Thread-safe.
class CredentialsProvider {
 public:
  CredentialsProvider() = default;
  virtual ~CredentialsProvider() = default;
  CredentialsProvider(const CredentialsProvider&) = delete;
  CredentialsProvider& operator=(const CredentialsProvider&) = delete;

  // Another number after each change of Current. One load.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }
  // What to sign with now; null while there is nothing yet, or nothing that should still be used.
  CredentialsPtr Current() const FB_EXCLUDES(mutex_);
  // A server has refused the keys of that epoch as expired or unknown: they are fetched anew, once
  // for each epoch however often this is called, and from here on Current is null until that has
  // ended. Keys that cannot be renewed, or not now, stay what they are.
  virtual void Invalidate(uint64_t epoch) = 0;

 protected:
  // Replaces what Current says and wakes who waits, unless it is null.
  void Offer(CredentialsPtr snapshot) FB_EXCLUDES(mutex_);
  // Current becomes null if it is of that epoch.
  void Withdraw(uint64_t epoch) FB_EXCLUDES(mutex_);
  // Ends the waiting of all who wait now.
  void Fail(const Status& status) FB_EXCLUDES(mutex_);
  // Somebody waits while Current is null: an Offer or a Fail must follow. Any thread.
  virtual void Want() = 0;

 private:
  friend class CredentialsClient;
  void Wait(CredentialsClient* client) FB_EXCLUDES(mutex_);
  void Forget(CredentialsClient* client) FB_EXCLUDES(mutex_);

  std::atomic<uint64_t> version_ = 1;
  mutable Mutex mutex_;
  CredentialsPtr current_ FB_GUARDED_BY(mutex_);
  std::set<CredentialsClient*> waiting_ FB_GUARDED_BY(mutex_);
};

// The same keys for ever; nothing is fetched.
std::shared_ptr<CredentialsProvider> StaticCredentials(Credentials credentials,
                                                       std::string source = "");

// All on the executor's thread; or destroyed on any thread after the executor has stopped.
class CredentialsClient {
 public:
  using Ticket = uint64_t;  // 0 is never given out
  using OnCredentials = std::move_only_function<void(Result<CredentialsPtr>)>;

  CredentialsClient(Executor& executor, std::shared_ptr<CredentialsProvider> provider);
  // What still waits is dropped without a call.
  ~CredentialsClient();
  CredentialsClient(const CredentialsClient&) = delete;
  CredentialsClient& operator=(const CredentialsClient&) = delete;

  // What to sign with now, or null: then ask Get. One load unless something changed; no
  // allocation, no count. The snapshot lives at least until the next call of any method here.
  const CredentialsSnapshot* Current();
  // `on_credentials` runs once, never inside this call, at `deadline` (kDeadlineExceeded) at the
  // latest. Errors: kPermissionDenied (there are none, or they are refused: what was tried and what
  // to do), kUnavailable (the service that gives them does not answer).
  Ticket Get(Time deadline, OnCredentials on_credentials);
  // `on_credentials` will not run. No effect once it has.
  void Cancel(Ticket ticket);
  void Invalidate(uint64_t epoch) { provider_->Invalidate(epoch); }
  CredentialsProvider& provider() { return *provider_; }

 private:
  friend class CredentialsProvider;
  struct Waiter {
    OnCredentials on_credentials;
    Executor::TimerId timer = 0;
  };
  // From the provider, on any thread, under its lock. OK: ask again what is current.
  void Wake(const Status& status);
  void AnswerAll(const Status& status);
  void Answer(Ticket ticket, Result<CredentialsPtr> answer);

  Executor& executor_;
  const std::shared_ptr<CredentialsProvider> provider_;
  // Posted tasks hold it weakly: they may outlive this object.
  const std::shared_ptr<CredentialsClient*> self_;
  CredentialsPtr kept_;
  uint64_t kept_version_ = 0;
  std::unordered_map<Ticket, Waiter> waiters_;
  Ticket last_ticket_ = 0;
};

}  // namespace forebay::store::s3
