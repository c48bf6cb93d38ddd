#include "net/resolver.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <utility>

#include "base/assert.h"
#include "base/random.h"
#include "net/shared_lookup.h"
#include "sys/per_process.h"
#include "sys/thread.h"

namespace forebay::net {
namespace {

constexpr size_t kMaxHosts = 1024;
constexpr size_t kMaxAddresses = 128;  // of one host
// One lookup that hangs, as all do while DNS is down, must not hold up the next name's.
constexpr size_t kLookupThreads = 2;

// Never destroyed: a thread may sit in getaddrinfo for half a minute, and no exit waits for that.
sys::WorkPool* LookupThreads() {
  static sys::PerProcess<sys::WorkPool*> threads;
  return threads.Get([]() -> sys::WorkPool* {
    auto pool =
        sys::WorkPool::Make({.name = "fb-dns", .threads = kLookupThreads, .queue_limit = 256});
    return pool.ok() ? (*std::move(pool)).release() : nullptr;
  });
}

void LookUpOnHelper(const std::string& host, HostCache::OnAnswer on_answer) {
  sys::WorkPool* threads = LookupThreads();
  auto shared = std::make_shared<HostCache::OnAnswer>(std::move(on_answer));
  Task task = [host, shared] {
    const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
    (*shared)(LookUpShared(host, runtime_dir == nullptr ? "" : runtime_dir, sys::LookUpHost));
  };
  if (threads != nullptr && threads->TrySubmit(task)) return;
  (*shared)(Status(Code::kUnavailable, fmt::format("no thread is free to look up {}", host)));
}

// What is answered without asking anyone: numbers, and by RFC 6761 the names of this machine.
std::optional<Addresses> Literal(const std::string& host) {
  if (const auto ip = sys::ParseIpAddress(host)) return Addresses{*ip};
  if (host != "localhost" && !host.ends_with(".localhost")) return std::nullopt;
  return Addresses{*sys::ParseIpAddress("127.0.0.1"), *sys::ParseIpAddress("::1")};
}

Duration Doubled(Duration shortest, Duration longest, int failures) {
  const int doublings = std::min(failures - 1, 20);
  return std::min(longest, shortest * (int64_t{1} << doublings));
}

}  // namespace

// ---- the cache

HostCache::HostCache(Options options)
    : options_([&options] {
        Options filled = std::move(options);
        if (!filled.lookup) filled.lookup = LookUpOnHelper;
        if (!filled.now) filled.now = [] { return Time(std::chrono::steady_clock::now()); };
        if (filled.seed == 0) filled.seed = std::random_device{}();
        return filled;
      }()) {}

std::shared_ptr<HostCache> HostCache::Make(Options options) {
  return std::shared_ptr<HostCache>(new HostCache(std::move(options)));
}

std::shared_ptr<HostCache> HostCache::OfProcess() {
  static sys::PerProcess<std::shared_ptr<HostCache>> cache;
  return cache.Get([] { return Make({}); });
}

Duration HostCache::Jittered(Duration duration) {
  const double factor = 0.8 + 0.4 * Random(DeriveKey(options_.seed, ++draws_)).NextDouble();
  return std::chrono::duration_cast<Duration>(duration * factor);
}

HostCache::Host& HostCache::HostOf(const std::string& name) {
  const auto found = hosts_.find(name);
  if (found != hosts_.end()) return found->second;
  if (hosts_.size() >= kMaxHosts) {
    auto oldest = hosts_.end();
    for (auto it = hosts_.begin(); it != hosts_.end(); ++it) {
      const Host& host = it->second;
      if (host.looking || !host.waiting.empty()) continue;
      if (oldest == hosts_.end() || host.answered < oldest->second.answered) oldest = it;
    }
    if (oldest != hosts_.end()) hosts_.erase(oldest);
  }
  return hosts_[name];
}

bool HostCache::BeginLookup(Host& host, Time now) {
  if (host.looking || now < host.renew) return false;
  host.looking = true;
  ++lookups_;
  return true;
}

void HostCache::StartLookup(const std::string& name) {
  options_.lookup(name, [weak = weak_from_this(), name](Result<Addresses> answer) {
    if (const auto self = weak.lock()) self->OnLookedUp(name, answer);
  });
}

HostCache::Known HostCache::Ask(const std::string& name, Resolver* waiter) {
  Known known;
  bool start = false;
  {
    const MutexLock lock(mutex_);
    Host& host = HostOf(name);
    const Time now = options_.now();
    start = BeginLookup(host, now);
    const bool answered = !host.addresses.empty();
    if (answered) known.addresses = InOrder(host, now);
    const bool usable = answered && now - host.answered <= options_.retention;
    if (!usable && host.looking) {
      known.wait = true;
      if (waiter != nullptr) host.waiting.insert(waiter);
    } else if (!answered) {
      known.error = host.error;
    }
  }
  if (start) StartLookup(name);
  return known;
}

void HostCache::OnLookedUp(const std::string& name, const Result<Addresses>& answer) {
  const MutexLock lock(mutex_);
  const Time now = options_.now();
  Host& host = HostOf(name);
  host.looking = false;
  if (answer.ok()) {
    Merge(host, *answer, now);
    host.failures = 0;
    host.error = Status();
    host.answered = now;
    host.renew = now + Jittered(options_.validity);
  } else {
    ++host.failures;
    host.error = answer.status();
    host.renew =
        now + Jittered(Doubled(options_.shortest_backoff, options_.longest_backoff, host.failures));
  }
  // Posting runs nothing; and under the lock no resolver can go away.
  for (Resolver* waiter : std::exchange(host.waiting, {})) waiter->Wake(name);
}

void HostCache::Merge(Host& host, const Addresses& answer, Time now) {
  for (const sys::IpAddress& ip : answer) {
    const auto found = std::ranges::find(host.addresses, ip, &Address::ip);
    if (found != host.addresses.end()) {
      found->seen = now;
    } else {
      host.addresses.push_back({.ip = ip, .seen = now});
    }
  }
  std::erase_if(host.addresses,
                [&](const Address& address) { return now - address.seen > options_.retention; });
  host.prefer_v6 = answer.front().is_v6;
  if (host.addresses.size() <= kMaxAddresses) return;
  std::ranges::sort(host.addresses, std::greater<>(), &Address::seen);
  host.addresses.resize(kMaxAddresses);
}

Addresses HostCache::InOrder(Host& host, Time now) {
  Addresses first;   // of the preferred family
  Addresses second;  // of the other
  std::vector<const Address*> resting;
  for (const Address& address : host.addresses) {
    if (now < address.rest_until) {
      resting.push_back(&address);
    } else if (address.ip.is_v6 == host.prefer_v6) {
      first.push_back(address.ip);
    } else {
      second.push_back(address.ip);
    }
  }
  if (!first.empty()) {
    const auto turn = static_cast<std::ptrdiff_t>(host.turn++ % first.size());
    std::ranges::rotate(first, first.begin() + turn);
  }
  first.insert(first.end(), second.begin(), second.end());
  std::ranges::sort(resting, {}, [](const Address* address) { return address->rest_until; });
  for (const Address* address : resting) first.push_back(address->ip);
  return first;
}

HostCache::Address* HostCache::Find(const std::string& name, const sys::IpAddress& address) {
  const auto host = hosts_.find(name);
  if (host == hosts_.end()) return nullptr;
  const auto found = std::ranges::find(host->second.addresses, address, &Address::ip);
  return found == host->second.addresses.end() ? nullptr : &*found;
}

void HostCache::ReportFailure(const std::string& name, const sys::IpAddress& ip) {
  bool start = false;
  {
    const MutexLock lock(mutex_);
    Address* address = Find(name, ip);
    if (address == nullptr) return;
    const Time now = options_.now();
    // The many connections that one outage breaks count once.
    if (now < address->rest_until) return;
    ++address->failures;
    address->rest_until =
        now + Doubled(options_.shortest_rest, options_.longest_rest, address->failures);
    // Where addresses fail, newer ones are wanted before the minute is over.
    Host& host = hosts_.at(name);
    if (host.failures == 0 && now - host.answered >= options_.shortest_rest) host.renew = now;
    start = BeginLookup(host, now);
  }
  if (start) StartLookup(name);
}

void HostCache::ReportSuccess(const std::string& name, const sys::IpAddress& ip) {
  const MutexLock lock(mutex_);
  Address* address = Find(name, ip);
  if (address == nullptr) return;
  address->failures = 0;
  address->rest_until = Time{};
}

uint64_t HostCache::lookups() const {
  const MutexLock lock(mutex_);
  return lookups_;
}

void HostCache::Forget(Resolver* waiter) {
  const MutexLock lock(mutex_);
  for (auto& [name, host] : hosts_) host.waiting.erase(waiter);
}

// ---- one executor's

Resolver::Resolver(Executor& executor, std::shared_ptr<HostCache> cache)
    : executor_(executor), cache_(std::move(cache)), self_(std::make_shared<Resolver*>(this)) {}

Resolver::~Resolver() {
  cache_->Forget(this);
  if (!executor_.InThread()) return;  // then it has stopped, and its timers are gone
  for (auto& [ticket, waiter] : waiters_) {
    executor_.CancelTimer(waiter.deadline_timer);
    executor_.CancelTimer(waiter.patience_timer);
  }
}

Resolver::Ticket Resolver::Resolve(const std::string& host, Time deadline,
                                   OnAddresses on_addresses) {
  FB_ASSERT(executor_.InThread());
  const Ticket ticket = ++last_ticket_;
  waiters_[ticket] = {.host = host, .on_addresses = std::move(on_addresses)};
  const auto later = [&](Result<Addresses> answer) {
    executor_.Post([weak = std::weak_ptr(self_), ticket, answer = std::move(answer)]() mutable {
      if (const auto self = weak.lock()) (*self)->Answer(ticket, std::move(answer));
    });
  };
  if (auto literal = Literal(host)) {
    later(*std::move(literal));
    return ticket;
  }
  HostCache::Known known = cache_->Ask(host, this);
  if (!known.wait) {
    if (known.addresses.empty()) {
      later(std::move(known.error));
    } else {
      later(std::move(known.addresses));
    }
    return ticket;
  }
  Waiter& waiter = waiters_.at(ticket);
  if (deadline != kNever) {
    waiter.deadline_timer = executor_.PostAt(deadline, [this, ticket] {
      const std::string& name = waiters_.at(ticket).host;
      Status late(Code::kDeadlineExceeded,
                  fmt::format("the deadline passed while looking up {}", name));
      waiters_.at(ticket).deadline_timer = 0;
      Answer(ticket, std::move(late));
    });
  }
  if (!known.addresses.empty()) {
    waiter.patience_timer = executor_.PostAt(executor_.Now() + cache_->options_.patience,
                                             [this, ticket] { EndPatience(ticket); });
  }
  return ticket;
}

std::optional<Addresses> Resolver::Cached(const std::string& host) {
  FB_ASSERT(executor_.InThread());
  if (auto literal = Literal(host)) return literal;
  HostCache::Known known = cache_->Ask(host, nullptr);
  if (known.wait || known.addresses.empty()) return std::nullopt;
  return std::move(known.addresses);
}

void Resolver::Cancel(Ticket ticket) {
  FB_ASSERT(executor_.InThread());
  auto node = waiters_.extract(ticket);
  if (node.empty()) return;
  executor_.CancelTimer(node.mapped().deadline_timer);
  executor_.CancelTimer(node.mapped().patience_timer);
}

void Resolver::Wake(const std::string& host) {
  executor_.Post([weak = std::weak_ptr(self_), host] {
    if (const auto self = weak.lock()) (*self)->AnswerWaiting(host);
  });
}

void Resolver::AnswerWaiting(const std::string& host) {
  std::vector<Ticket> tickets;
  for (const auto& [ticket, waiter] : waiters_) {
    if (waiter.host == host) tickets.push_back(ticket);
  }
  std::ranges::sort(tickets);
  const std::weak_ptr<Resolver*> alive = self_;
  for (const Ticket ticket : tickets) {
    if (!waiters_.contains(ticket)) continue;  // cancelled by one that was answered before
    HostCache::Known known = cache_->Ask(host, this);
    if (known.wait) return;  // the next lookup has begun already
    if (known.addresses.empty()) {
      Answer(ticket, std::move(known.error));
    } else {
      Answer(ticket, std::move(known.addresses));
    }
    if (alive.expired()) return;
  }
}

void Resolver::EndPatience(Ticket ticket) {
  Waiter& waiter = waiters_.at(ticket);
  waiter.patience_timer = 0;
  HostCache::Known known = cache_->Ask(waiter.host, this);
  if (!known.addresses.empty()) Answer(ticket, std::move(known.addresses));
}

void Resolver::Answer(Ticket ticket, Result<Addresses> answer) {
  auto node = waiters_.extract(ticket);
  if (node.empty()) return;
  executor_.CancelTimer(node.mapped().deadline_timer);
  executor_.CancelTimer(node.mapped().patience_timer);
  node.mapped().on_addresses(std::move(answer));
}

}  // namespace forebay::net
