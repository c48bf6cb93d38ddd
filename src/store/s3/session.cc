#include "store/s3/session.h"

#include <algorithm>
#include <utility>

#include "base/random.h"
#include "store/s3/operation.h"
#include "store/s3/xml.h"

namespace forebay::store::s3 {
namespace {

constexpr Duration kWithin = std::chrono::seconds(10);  // a CreateSession must have ended
constexpr int64_t kRenewBefore_s = 60;
constexpr int64_t kUnsafe_s = 5;  // what is left is too short for a request
constexpr Duration kRetryAfter = std::chrono::seconds(5);

class CreateSession final : public Operation {
 public:
  CreateSession(Core& core, Callback<SessionKeys> on_done)
      : Operation(core, "create session", {.deadline = core.transport.executor().Now() + kWithin}),
        on_done_(std::move(on_done)) {}

 private:
  Result<WireRequest> Build() override {
    detail_.uri = core_.root_uri + "/";
    // Without a mode it is the most that the credentials allow: reading alone, if need be.
    return WireRequest{.method = "GET", .query = {{"session", ""}}};
  }
  Result<net::BodyTarget> OnAccepted(const net::HttpHead&) override {
    return net::BodyTarget{.text = &text_, .text_limit = kErrorTextLimit};
  }
  void Succeed(const net::HttpTiming&) override {
    Result<SessionKeys> keys = ParseSession(text_);
    if (keys.ok()) {
      on_done_(std::move(keys));
    } else {
      Fail(std::move(keys).status().WithDetail(detail_));
    }
  }
  void Fail(Status status) override { on_done_(std::move(status)); }

  Callback<SessionKeys> on_done_;
};

class SessionProvider final : public CredentialsProvider,
                              public std::enable_shared_from_this<SessionProvider> {
 public:
  explicit SessionProvider(std::shared_ptr<Core> iam) : iam_(std::move(iam)) {}

  void Invalidate(uint64_t epoch) override {
    const CredentialsPtr now = Current();
    if (now && now->epoch == epoch) Offer(nullptr);
  }

 private:
  void Want() override {
    executor().Post([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Fetch();
    });
  }

  // All that follows on the executor's thread.
  Executor& executor() { return iam_->transport.executor(); }

  void Fetch() {
    if (std::exchange(fetching_, true)) return;
    // The core lives until the answer is there, which may be after the store.
    iam_->Start(std::make_unique<CreateSession>(
        *iam_, [weak = weak_from_this(), core = iam_](Result<SessionKeys> keys) {
          const auto self = weak.lock();
          if (!self) return;
          self->fetching_ = false;
          if (keys.ok()) {
            self->Take(*std::move(keys));
          } else {
            self->Refused(std::move(keys).status());
          }
        }));
  }

  void Take(SessionKeys keys) {
    const int64_t now = iam_->ServerTime();
    const int64_t left = std::max<int64_t>(0, keys.expires_unix_s - now);
    expires_unix_s_ = keys.expires_unix_s;
    Offer(std::make_shared<CredentialsSnapshot>(
        CredentialsSnapshot{.credentials = std::move(keys.credentials),
                            .epoch = ++epoch_,
                            .expires_unix_s = keys.expires_unix_s,
                            .source = "a session of the directory bucket"}));
    // Up to a fifth of the minute earlier or later: many processes begin together.
    const auto spread = static_cast<int64_t>(random_.NextBelow(25)) - 12;
    const int64_t before = std::min(kRenewBefore_s + spread, left / 2);
    RenewAfter(std::chrono::seconds(std::max<int64_t>(1, left - before)));
  }

  void Refused(const Status& status) {
    Fail(status);
    const CredentialsPtr now = Current();
    if (!now) return;  // the next that wants keys tries again
    if (expires_unix_s_ - iam_->ServerTime() < kUnsafe_s) {
      Offer(nullptr);
    } else {
      RenewAfter(kRetryAfter);
    }
  }

  void RenewAfter(Duration wait) {
    executor().CancelTimer(timer_);
    timer_ = executor().PostAt(executor().Now() + wait, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->timer_ = 0;
      self->Fetch();
    });
  }

  const std::shared_ptr<Core> iam_;
  bool fetching_ = false;
  uint64_t epoch_ = 0;
  int64_t expires_unix_s_ = 0;
  Executor::TimerId timer_ = 0;
  Random random_{DeriveKey(reinterpret_cast<uintptr_t>(this), HashName("express session"))};
};

}  // namespace

std::shared_ptr<CredentialsProvider> MakeSessionProvider(std::shared_ptr<Core> iam) {
  return std::make_shared<SessionProvider>(std::move(iam));
}

}  // namespace forebay::store::s3
