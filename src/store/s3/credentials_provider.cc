#include "store/s3/credentials_provider.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace forebay::store::s3 {
namespace {

class StaticProvider final : public CredentialsProvider {
 public:
  StaticProvider(Credentials credentials, std::string source) {
    Offer(std::make_shared<CredentialsSnapshot>(CredentialsSnapshot{
        .credentials = std::move(credentials), .epoch = 1, .source = std::move(source)}));
  }
  void Invalidate(uint64_t) override {}

 private:
  void Want() override {}
};

}  // namespace

std::shared_ptr<CredentialsProvider> StaticCredentials(Credentials credentials,
                                                       std::string source) {
  return std::make_shared<StaticProvider>(std::move(credentials), std::move(source));
}

// ---- what a provider says

CredentialsPtr CredentialsProvider::Current() const {
  const MutexLock lock(mutex_);
  return current_;
}

void CredentialsProvider::Offer(CredentialsPtr snapshot) {
  const MutexLock lock(mutex_);
  current_ = std::move(snapshot);
  version_.fetch_add(1, std::memory_order_release);
  if (!current_) return;
  // Posting runs nothing; and under the lock no client can go away.
  for (CredentialsClient* client : std::exchange(waiting_, {})) client->Wake(Status());
}

void CredentialsProvider::Withdraw(uint64_t epoch) {
  const MutexLock lock(mutex_);
  if (!current_ || current_->epoch != epoch) return;
  current_ = nullptr;
  version_.fetch_add(1, std::memory_order_release);
}

void CredentialsProvider::Fail(const Status& status) {
  const MutexLock lock(mutex_);
  for (CredentialsClient* client : std::exchange(waiting_, {})) client->Wake(status);
}

void CredentialsProvider::Wait(CredentialsClient* client) {
  {
    const MutexLock lock(mutex_);
    if (current_) {
      client->Wake(Status());
      return;
    }
    waiting_.insert(client);
  }
  Want();
}

void CredentialsProvider::Forget(CredentialsClient* client) {
  const MutexLock lock(mutex_);
  waiting_.erase(client);
}

// ---- one executor's

CredentialsClient::CredentialsClient(Executor& executor,
                                     std::shared_ptr<CredentialsProvider> provider)
    : executor_(executor),
      provider_(std::move(provider)),
      self_(std::make_shared<CredentialsClient*>(this)) {}

CredentialsClient::~CredentialsClient() {
  provider_->Forget(this);
  if (!executor_.InThread()) return;  // then it has stopped, and its timers are gone
  for (auto& [ticket, waiter] : waiters_) executor_.CancelTimer(waiter.timer);
}

const CredentialsSnapshot* CredentialsClient::Current() {
  // The version first: a change in between is seen at the next call.
  const uint64_t version = provider_->version();
  if (version != kept_version_) [[unlikely]] {
    kept_ = provider_->Current();
    kept_version_ = version;
  }
  return kept_.get();
}

CredentialsClient::Ticket CredentialsClient::Get(Time deadline, OnCredentials on_credentials) {
  FB_ASSERT(executor_.InThread());
  const Ticket ticket = ++last_ticket_;
  Waiter& waiter = waiters_[ticket];
  waiter.on_credentials = std::move(on_credentials);
  if (deadline != kNever) {
    waiter.timer = executor_.PostAt(deadline, [this, ticket] {
      waiters_.at(ticket).timer = 0;
      Answer(ticket,
             Status(Code::kDeadlineExceeded, "the deadline passed while waiting for credentials"));
    });
  }
  provider_->Wait(this);
  return ticket;
}

void CredentialsClient::Cancel(Ticket ticket) {
  FB_ASSERT(executor_.InThread());
  auto node = waiters_.extract(ticket);
  if (!node.empty()) executor_.CancelTimer(node.mapped().timer);
}

void CredentialsClient::Wake(const Status& status) {
  executor_.Post([weak = std::weak_ptr(self_), status] {
    if (const auto self = weak.lock()) (*self)->AnswerAll(status);
  });
}

void CredentialsClient::AnswerAll(const Status& status) {
  if (waiters_.empty()) return;
  if (status.ok() && Current() == nullptr) {
    provider_->Wait(this);  // withdrawn again meanwhile
    return;
  }
  std::vector<Ticket> tickets;
  tickets.reserve(waiters_.size());
  for (const auto& [ticket, waiter] : waiters_) tickets.push_back(ticket);
  std::ranges::sort(tickets);
  const CredentialsPtr snapshot = status.ok() ? kept_ : nullptr;
  const std::weak_ptr<CredentialsClient*> alive = self_;
  for (const Ticket ticket : tickets) {
    if (status.ok()) {
      Answer(ticket, snapshot);
    } else {
      Answer(ticket, status);
    }
    if (alive.expired()) return;
  }
}

void CredentialsClient::Answer(Ticket ticket, Result<CredentialsPtr> answer) {
  auto node = waiters_.extract(ticket);
  if (node.empty()) return;
  executor_.CancelTimer(node.mapped().timer);
  node.mapped().on_credentials(std::move(answer));
}

}  // namespace forebay::store::s3
