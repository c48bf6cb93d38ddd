#include "store/s3/credentials/refreshing.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/random.h"

namespace forebay::store::s3 {
namespace {

using std::chrono::seconds;

bool SameKeys(const Credentials& a, const Credentials& b) {
  return a.access_key_id == b.access_key_id && a.secret_access_key == b.secret_access_key &&
         a.session_token == b.session_token;
}

Duration Scaled(Duration duration, double factor) {
  return std::chrono::duration_cast<Duration>(duration * factor);
}

}  // namespace

RefreshingProvider::RefreshingProvider(Executor& executor, Fetch fetch, RefreshOptions options)
    : executor_(executor), fetch_(std::move(fetch)), options_(std::move(options)) {}

double RefreshingProvider::Jitter() {
  return 0.8 + 0.4 * Random(DeriveKey(options_.seed, ++draws_)).NextDouble();
}

void RefreshingProvider::SetTimer(Executor::TimerId& timer, Duration after,
                                  void (RefreshingProvider::*then)()) {
  executor_.CancelTimer(timer);
  timer = executor_.PostAt(executor_.Now() + after, [this, &timer, then] {
    timer = 0;
    (this->*then)();
  });
}

// ---- what users ask for

void RefreshingProvider::Want() {
  executor_.Post([this] { WantHere(); });
}

void RefreshingProvider::WantHere() {
  if (offered_ || fetching_) return;
  if (executor_.Now() < retry_at_) {
    Fail(failure_);
    return;
  }
  BeginFetch();
}

void RefreshingProvider::Invalidate(uint64_t epoch) {
  uint64_t expected = epoch;
  if (epoch == 0 || !can_invalidate_.compare_exchange_strong(expected, 0)) return;
  // At once, so that whoever asks next does not get the same ones again.
  Withdraw(epoch);
  executor_.Post([this, epoch] { InvalidateHere(epoch); });
}

void RefreshingProvider::InvalidateHere(uint64_t epoch) {
  // Others may have come, or a renewal failed, since: then what is current has been said again.
  if (current_->epoch != epoch || executor_.Now() < retry_at_) return;
  invalidated_ = epoch;
  can_invalidate_ = 0;
  rejected_ = current_->credentials.access_key_id;
  Publish(false);
  if (!fetching_) BeginFetch();
}

// ---- fetching

void RefreshingProvider::BeginFetch() {
  fetching_ = true;
  asked_without_ = rejected_;
  fetch_(rejected_, [this](Result<Fetched> fetched) { OnFetchEnded(std::move(fetched)); });
}

void RefreshingProvider::OnFetchEnded(Result<Fetched> fetched) {
  fetching_ = false;
  if (!fetched.ok()) {
    OnFailed(std::move(fetched).status());
    return;
  }
  // It began before these were refused.
  if (!rejected_.empty() && asked_without_ != rejected_ &&
      fetched->credentials.access_key_id == rejected_) {
    BeginFetch();
    return;
  }
  OnFresh(*std::move(fetched));
}

void RefreshingProvider::OnFresh(Fetched fetched) {
  if (failures_ > 0 && current_) {
    Log(LogLevel::kInfo, fmt::format("credentials of {} are renewed again", options_.source));
  }
  failures_ = 0;
  failure_ = Status();
  retry_at_ = Time{};
  const bool same = current_ && SameKeys(current_->credentials, fetched.credentials);
  const bool news = !same || current_->expires_unix_s != fetched.expires_unix_s;
  if (!same) {
    ++epoch_;
    rejected_.clear();
  }
  if (news) {
    current_ = std::make_shared<CredentialsSnapshot>(
        CredentialsSnapshot{.credentials = std::move(fetched.credentials),
                            .epoch = epoch_,
                            .expires_unix_s = fetched.expires_unix_s,
                            .source = options_.source});
  }
  Publish(true);
  can_invalidate_ = invalidated_ == epoch_ ? 0 : epoch_;
  if (news) {
    ScheduleByExpiry();
  } else {
    // The service has no newer ones yet.
    const Duration left = seconds(current_->expires_unix_s - options_.unix_time_s());
    const Duration longest = options_.longest_backoff;
    const Duration pause = left.count() > 0
                               ? std::clamp<Duration>(left / 4, options_.shortest_backoff, longest)
                               : longest;
    Schedule(Scaled(pause, Jitter()));
  }
}

void RefreshingProvider::OnFailed(Status status) {
  ++failures_;
  const int doublings = std::min(failures_ - 1, 20);
  const Duration backoff =
      std::min<Duration>(options_.longest_backoff, options_.shortest_backoff * (1 << doublings));
  const Duration pause = Scaled(backoff, Jitter());
  retry_at_ = executor_.Now() + pause;
  can_invalidate_ = 0;  // while renewals fail, these are the best there are
  // Refused: what has to change is how this is set up.
  if (status.code() == Code::kPermissionDenied) {
    status = std::move(status).WithDetail({.from_settings = true});
  }
  failure_ = std::move(status);
  if (!current_) {
    Fail(failure_);
    return;
  }
  if (failures_ == 1) {
    Log(LogLevel::kWarn, fmt::format("credentials of {} are not renewed, the old ones are used: {}",
                                     options_.source, failure_.ToString()));
  }
  Publish(true);
  Schedule(pause);
}

// Each change wakes those who wait.
void RefreshingProvider::Publish(bool offered) {
  offered_ = offered;
  const CredentialsPtr now = Current();
  if (now != (offered ? current_ : nullptr)) Offer(offered ? current_ : nullptr);
}

// ---- in time

void RefreshingProvider::Schedule(Duration until_renewal) {
  SetTimer(renew_timer_, until_renewal, &RefreshingProvider::Renew);
}

void RefreshingProvider::ScheduleByExpiry() {
  executor_.CancelTimer(std::exchange(renew_timer_, 0));
  executor_.CancelTimer(std::exchange(grace_timer_, 0));
  if (current_->expires_unix_s == 0) return;
  // Whole seconds: the last of them may have begun to run out.
  const int64_t left = current_->expires_unix_s - options_.unix_time_s() - 1;
  if (left <= 0) {  // by our clock; the server's may say otherwise
    Schedule(Scaled(options_.longest_backoff, Jitter()));
    return;
  }
  const auto before_end = [&](Duration at_most, int64_t part, double jitter) {
    const Duration life = seconds(left);
    return life - Scaled(std::min(at_most, life / part), jitter);
  };
  Schedule(before_end(options_.advisory, 4, Jitter()));
  SetTimer(grace_timer_, before_end(options_.mandatory, 6, 1.0), &RefreshingProvider::EndOfGrace);
}

void RefreshingProvider::Renew() {
  if (!fetching_) BeginFetch();
}

void RefreshingProvider::EndOfGrace() {
  // A renewal that has failed once may take for ever: then the old ones are better than waiting.
  if (fetching_ && failures_ == 0) Publish(false);
}

}  // namespace forebay::store::s3
