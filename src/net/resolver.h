// Names to addresses: one lookup per name and validity in the whole process, however many
// connections wait for it, and all addresses of all answers used.
//
// The HostCache is the process's and thread-safe; each transport asks it through a Resolver of its
// own, which lives on the transport's executor.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/executor.h"
#include "base/mutex.h"
#include "forebay/status.h"
#include "sys/address.h"

namespace forebay::net {

// Best first, never empty in an answer.
using Addresses = std::vector<sys::IpAddress>;

class Resolver;

class HostCache : public std::enable_shared_from_this<HostCache> {
 public:
  using OnAnswer = std::move_only_function<void(Result<Addresses>)>;
  // Looks a name up and calls back exactly once, on any thread, possibly at once.
  using Lookup = std::function<void(const std::string& host, OnAnswer on_answer)>;

  struct Options {
    Lookup lookup;              // null: getaddrinfo on helper threads
    std::function<Time()> now;  // null: the steady clock
    uint64_t seed = 0;          // of the jitter; 0: differs between processes
    // getaddrinfo tells no TTL. S3's is a few seconds, each answer another eight of its addresses;
    // but an address stays good for hours, and one that is not is found out by connecting to it.
    // So an answer counts as fresh for a minute (+-20 %, so that machines which started together
    // drift apart), is then used on while one lookup renews it,
    Duration validity = std::chrono::seconds(60);
    // and what no answer has named for this long is dropped. An answer older than this is used
    // without a new one only when that fails or takes longer than `patience`.
    Duration retention = std::chrono::minutes(5);
    Duration patience = std::chrono::seconds(3);
    // An address that failed rests, twice as long after each further failure.
    Duration shortest_rest = std::chrono::seconds(5);
    Duration longest_rest = std::chrono::minutes(2);
    // Between lookups that fail; doubles too.
    Duration shortest_backoff = std::chrono::seconds(1);
    Duration longest_backoff = std::chrono::seconds(30);
  };

  static std::shared_ptr<HostCache> Make(Options options);
  // The one that all transports of this process share (after a fork, the child's own).
  static std::shared_ptr<HostCache> OfProcess();

  // What became of connecting to one of the addresses given out for `host`. Any thread.
  void ReportFailure(const std::string& host, const sys::IpAddress& address) FB_EXCLUDES(mutex_);
  void ReportSuccess(const std::string& host, const sys::IpAddress& address) FB_EXCLUDES(mutex_);
  // Lookups begun so far.
  uint64_t lookups() const FB_EXCLUDES(mutex_);

 private:
  friend class Resolver;
  struct Address {
    sys::IpAddress ip;
    Time seen;          // in an answer
    Time rest_until{};  // of a failing one
    int failures = 0;   // in a row
  };
  struct Host {
    std::vector<Address> addresses;
    bool prefer_v6 = false;       // the system's first choice of the last answer: that family works
    Time answered = Time::min();  // when the last good answer came
    Time renew = Time::min();     // when to look up again
    bool looking = false;
    int failures = 0;  // lookups in a row
    Status error;      // of the last one
    uint64_t turn = 0;
    std::set<Resolver*> waiting;
  };
  // What is known at once, and whether to wait for more.
  struct Known {
    Addresses addresses;  // may be empty
    Status error;         // when there is nothing to wait for and no address
    bool wait = false;    // a lookup runs that may say better
  };

  explicit HostCache(Options options);
  // `waiter` (may be null) is woken when the lookup ends, if the answer is to be waited for.
  Known Ask(const std::string& host, Resolver* waiter) FB_EXCLUDES(mutex_);
  void Forget(Resolver* waiter) FB_EXCLUDES(mutex_);
  Host& HostOf(const std::string& name) FB_REQUIRES(mutex_);
  // True: the caller has to start the lookup, without the lock.
  bool BeginLookup(Host& host, Time now) FB_REQUIRES(mutex_);
  void StartLookup(const std::string& name) FB_EXCLUDES(mutex_);
  void OnLookedUp(const std::string& name, const Result<Addresses>& answer) FB_EXCLUDES(mutex_);
  void Merge(Host& host, const Addresses& answer, Time now) FB_REQUIRES(mutex_);
  Addresses InOrder(Host& host, Time now) FB_REQUIRES(mutex_);
  Address* Find(const std::string& name, const sys::IpAddress& address) FB_REQUIRES(mutex_);
  Duration Jittered(Duration duration) FB_REQUIRES(mutex_);

  const Options options_;
  mutable Mutex mutex_;
  std::map<std::string, Host> hosts_ FB_GUARDED_BY(mutex_);
  uint64_t lookups_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t draws_ FB_GUARDED_BY(mutex_) = 0;
};

// All on the executor's thread; or destroyed on any thread after the executor has stopped.
class Resolver {
 public:
  using Ticket = uint64_t;  // 0 is never given out
  using OnAddresses = std::move_only_function<void(Result<Addresses>)>;

  Resolver(Executor& executor, std::shared_ptr<HostCache> cache);
  // What still waits is dropped without a call.
  ~Resolver();
  Resolver(const Resolver&) = delete;
  Resolver& operator=(const Resolver&) = delete;

  // `host` as in a URL without its port. Numeric addresses, "localhost" and names below it are
  // answered here and never asked anywhere. `on_addresses` runs once, never inside this call, at
  // `deadline` (kDeadlineExceeded) at the latest. The addresses are all that are known, in the
  // order to try them: those that rest after a failure last, the others beginning with another one
  // at each call. Errors: kUnavailable (the name does not resolve and never did).
  Ticket Resolve(const std::string& host, Time deadline, OnAddresses on_addresses);
  // `on_addresses` will not run. No effect once it has.
  void Cancel(Ticket ticket);
  // The same at once, when the answer is known and fresh enough; else none.
  std::optional<Addresses> Cached(const std::string& host);
  HostCache& cache() { return *cache_; }

 private:
  friend class HostCache;
  struct Waiter {
    std::string host;
    OnAddresses on_addresses;
    Executor::TimerId deadline_timer = 0;
    Executor::TimerId patience_timer = 0;
  };
  void Wake(const std::string& host);  // from the cache, on any thread, under its lock
  void Answer(Ticket ticket, Result<Addresses> answer);
  void AnswerWaiting(const std::string& host);
  // An old answer, when there is one; else the waiter waits on.
  void EndPatience(Ticket ticket);

  Executor& executor_;
  const std::shared_ptr<HostCache> cache_;
  // Posted tasks hold it weakly: they may outlive this object.
  const std::shared_ptr<Resolver*> self_;
  std::unordered_map<Ticket, Waiter> waiters_;
  Ticket last_ticket_ = 0;
};

}  // namespace forebay::net
