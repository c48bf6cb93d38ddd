// The second half of an exchange: the answer, held, changed and sent.
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "testing/faults/connection.h"

namespace forebay::faults {
namespace {

constexpr int kMovesPerPump = 4;
// A dripping body goes out in pieces no more often than this.
constexpr double kDripStep_s = 0.01;
constexpr std::chrono::milliseconds kResetPoll{1};
constexpr std::chrono::seconds kResetPatience{2};

Duration Seconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

}  // namespace

void Connection::SetAnswer(Answer answer, bool keep_alive) {
  FB_ASSERT(!has_answer_ && answer.body != nullptr);
  has_answer_ = true;
  keep_alive_ = keep_alive && request_.keep_alive;
  answer_head_ = std::move(answer.head);
  body_ = std::move(answer.body);
  ApplyHeadFaults(decision_, answer_head_);
}

bool Connection::PumpAnswer() {
  if (!has_answer_) return false;
  if (!head_queued_) {
    if (shard_.loop().Now() < release_at_) {
      WakeAt(release_at_);
      return false;
    }
    QueueHead();
    PumpOut();
    return true;
  }
  if (!out_.empty()) return false;
  bool progress = false;
  for (int i = 0; i < kMovesPerPump && state_ == State::kExchange; ++i) {
    if (!MoveBody()) break;
    progress = true;
  }
  return progress || state_ != State::kExchange;
}

void Connection::QueueHead() {
  head_queued_ = true;
  // A body that the client will not finish sending leaves nothing to go on with.
  if (request_.expects_continue && !request_framer_.done() && !request_body_taken_) {
    keep_alive_ = false;
  }
  if (!keep_alive_ || decision_.announce_close) {
    SetField(answer_head_.fields, "Connection", "close");
  } else if (request_.minor_version == 0) {
    SetField(answer_head_.fields, "Connection", "keep-alive");
  }
  out_ += FormatResponseHead(answer_head_);
  body_at_ = shard_.loop().Now();
  record_.status = answer_head_.status;
  record_.first_byte_ms = std::chrono::duration<double, std::milli>(body_at_ - head_at_).count();
}

bool Connection::MoveBody() {
  const auto& events = decision_.events;
  uint64_t limit = UINT64_MAX;
  if (next_event_ < events.size()) {
    if (events[next_event_].offset <= body_sent_) return RunEvent();
    limit = events[next_event_].offset - body_sent_;
  }
  if (decision_.drip_bytes_per_s > 0) {
    const uint64_t allowed = DripAllowance();
    if (allowed == 0) return false;
    limit = std::min(limit, allowed);
  }
  return HandleMove(body_->MoveTo(client_.get(), limit));
}

bool Connection::HandleMove(const BodySource::Moved& moved) {
  using Moved = BodySource::State;
  body_sent_ += moved.payload;
  switch (moved.state) {
    case Moved::kMore:
      return true;
    case Moved::kWantSource:
      want_.upstream_in = true;
      return moved.payload > 0;
    case Moved::kWantSink:
      want_.client_out = true;
      return moved.payload > 0;
    case Moved::kDone:
      // Something may be due right at the end.
      if (next_event_ < decision_.events.size() &&
          decision_.events[next_event_].offset <= body_sent_ &&
          decision_.events[next_event_].kind != BodyEvent::Kind::kFlip) {
        return true;
      }
      FinishExchange("complete");
      return true;
    case Moved::kSourceFailed:
      AbortAnswer("origin_failed");
      return true;
    case Moved::kSinkFailed:
      Close("client_gone");
      return true;
  }
  FB_ASSERT(false);
}

bool Connection::RunEvent() {
  const BodyEvent& event = decision_.events[next_event_];
  if (!body_->flushed()) return HandleMove(body_->MoveTo(client_.get(), 0));
  const Time now = shard_.loop().Now();
  switch (event.kind) {
    case BodyEvent::Kind::kStall:
      if (event_until_ == kNever) event_until_ = now + Seconds(event.seconds);
      if (now < event_until_) {
        WakeAt(event_until_);
        return false;
      }
      break;
    case BodyEvent::Kind::kFlip: {
      const auto moved = body_->FlipTo(client_.get());
      if (moved.payload > 0 || moved.state == BodySource::State::kDone) ++next_event_;
      return HandleMove(moved);
    }
    case BodyEvent::Kind::kReset:
      return RunReset();
    case BodyEvent::Kind::kFinish:
      AbortAnswer("fault");
      return true;
  }
  event_until_ = kNever;
  ++next_event_;
  return true;
}

bool Connection::RunReset() {
  // A reset drops what the kernel has not delivered, so that has to arrive first.
  const Time now = shard_.loop().Now();
  if (event_until_ == kNever) event_until_ = now + kResetPatience;
  if (UnacknowledgedBytes(client_.get()) > 0 && now < event_until_) {
    WakeAt(now + kResetPoll);
    return false;
  }
  SetResetOnClose(client_.get());
  Close("fault");
  return true;
}

uint64_t Connection::DripAllowance() {
  const Time now = shard_.loop().Now();
  const double rate = decision_.drip_bytes_per_s;
  const double elapsed = std::chrono::duration<double>(now - body_at_).count();
  const double due = elapsed * rate - static_cast<double>(body_sent_);
  if (due >= 1) return static_cast<uint64_t>(due);
  WakeAt(now + Seconds(std::max(kDripStep_s, (1 - due) / rate)));
  return 0;
}

void Connection::AbortAnswer(const char* outcome) {
  Record(outcome);
  DropUpstream();
  body_.reset();
  CancelWake();
  StartLinger();
}

void Connection::FinishExchange(const char* outcome) {
  Record(outcome);
  const bool clean_upstream = upstream_body_ != nullptr &&
                              upstream_body_->leaves_upstream_clean() && upstream_keep_alive_ &&
                              request_framer_.done() && upstream_out_.empty() &&
                              !upstream_write_broken_;
  body_.reset();
  upstream_body_ = nullptr;
  if (upstream_.valid() && clean_upstream) {
    if (upstream_watched_ != 0) shard_.loop().Unwatch(upstream_.get());
    upstream_watched_ = 0;
    shard_.GiveBackUpstream(std::exchange(upstream_, Fd()));
  }
  DropUpstream();
  CancelWake();
  const bool keep = keep_alive_ && !decision_.close && request_framer_.done();
  if (!keep) {
    StartLinger();
    return;
  }
  state_ = State::kHead;
  has_answer_ = false;
  head_queued_ = false;
  request_body_taken_ = false;
  body_sent_ = 0;
  next_event_ = 0;
  event_until_ = kNever;
}

void Connection::Record(const char* outcome) {
  const Time now = shard_.loop().Now();
  record_.total_ms = std::chrono::duration<double, std::milli>(now - head_at_).count();
  record_.body_bytes = body_sent_;
  record_.outcome = outcome;
  shard_.shared().stats->Add(std::move(record_));
}

}  // namespace forebay::faults
