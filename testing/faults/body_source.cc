#include "testing/faults/body_source.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/assert.h"

namespace forebay::faults {
namespace {

using State = BodySource::State;
using Moved = BodySource::Moved;

constexpr size_t kCopyBytes = 128 * 1024;
// Below this a copy costs less than the two calls and the pipe of a splice.
constexpr uint64_t kSpliceFrom = 64 * 1024;
constexpr size_t kMaxFreePipes = 64;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

class MemoryBody final : public BodySource {
 public:
  explicit MemoryBody(std::string bytes) : bytes_(std::move(bytes)) {}

 protected:
  Moved DoMove(int fd, uint64_t max_payload) override {
    const auto piece = std::string_view(bytes_).substr(sent_, max_payload);
    if (piece.empty()) return {0, State::kDone};
    const Transfer sent = Send(fd, piece, false);
    if (sent.io == Io::kWouldBlock) return {0, State::kWantSink};
    if (sent.io != Io::kOk) return {0, State::kSinkFailed};
    sent_ += sent.bytes;
    return {sent.bytes, sent_ == bytes_.size() ? State::kDone : State::kMore};
  }
  Moved TakeByte(std::string& raw) override {
    if (sent_ == bytes_.size()) return {0, State::kDone};
    raw += bytes_[sent_++];
    return {1, State::kMore};
  }

 private:
  const std::string bytes_;
  size_t sent_ = 0;
};

class FileBody final : public BodySource {
 public:
  FileBody(Fd file, uint64_t offset, uint64_t size)
      : file_(std::move(file)), offset_(static_cast<off_t>(offset)), left_(size) {}

 protected:
  Moved DoMove(int fd, uint64_t max_payload) override {
    if (left_ == 0) return {0, State::kDone};
    const size_t size = std::min<uint64_t>({left_, max_payload, PipePool::kPipeBytes});
    const ssize_t n = ::sendfile(fd, file_.get(), &offset_, size);
    if (n < 0) return {0, WouldBlock() ? State::kWantSink : State::kSinkFailed};
    if (n == 0) return {0, State::kSourceFailed};  // the file became shorter
    left_ -= static_cast<uint64_t>(n);
    return {static_cast<uint64_t>(n), left_ == 0 ? State::kDone : State::kMore};
  }
  Moved TakeByte(std::string& raw) override {
    if (left_ == 0) return {0, State::kDone};
    char byte = 0;
    if (::pread(file_.get(), &byte, 1, offset_) != 1) return {0, State::kSourceFailed};
    raw += byte;
    ++offset_;
    --left_;
    return {1, State::kMore};
  }

 private:
  const Fd file_;
  off_t offset_;
  uint64_t left_;
};

}  // namespace

class PaddedBody final : public BodySource {
 public:
  PaddedBody(uint64_t before, std::unique_ptr<BodySource> inner, uint64_t after)
      : before_(before), inner_(std::move(inner)), after_(after) {}

  bool flushed() const override { return BodySource::flushed() && inner_->flushed(); }

 protected:
  State FlushInner(int fd) override { return inner_->MoveTo(fd, 0).state; }
  Moved DoMove(int fd, uint64_t max_payload) override {
    if (before_ > 0) return MoveZeros(fd, max_payload, before_);
    if (!inner_done_) {
      const Moved moved = inner_->MoveTo(fd, max_payload);
      inner_done_ = moved.state == State::kDone;
      return inner_done_ ? Moved{moved.payload, State::kMore} : moved;
    }
    return after_ > 0 ? MoveZeros(fd, max_payload, after_) : Moved{0, State::kDone};
  }
  Moved TakeByte(std::string& raw) override {
    if (before_ == 0 && !inner_done_) {
      const Moved taken = inner_->TakeByte(raw);
      inner_done_ = taken.state == State::kDone;
      if (!inner_done_) return taken;
    }
    uint64_t& left = before_ > 0 ? before_ : after_;
    if (left == 0) return {0, State::kDone};
    raw += '\0';
    --left;
    return {1, State::kMore};
  }

 private:
  static Moved MoveZeros(int fd, uint64_t max_payload, uint64_t& left) {
    static constexpr std::array<char, 16 * 1024> kZeros{};
    const size_t size = std::min<uint64_t>({kZeros.size(), max_payload, left});
    const Transfer sent = Send(fd, std::string_view(kZeros.data(), size), false);
    if (sent.io == Io::kWouldBlock) return {0, State::kWantSink};
    if (sent.io != Io::kOk) return {0, State::kSinkFailed};
    left -= sent.bytes;
    return {sent.bytes, State::kMore};
  }

  uint64_t before_;
  const std::unique_ptr<BodySource> inner_;
  uint64_t after_;
  bool inner_done_ = false;
};

Moved BodySource::MoveTo(int fd, uint64_t max_payload) {
  if (const State state = Flush(fd); state != State::kMore) return {0, state};
  if (max_payload == 0) return {0, FlushInner(fd)};
  return DoMove(fd, max_payload);
}

Moved BodySource::FlipTo(int fd) {
  if (const State state = MoveTo(fd, 0).state; state != State::kMore) return {0, state};
  std::string raw;
  Moved taken = TakeByte(raw);
  if (taken.payload == 1) raw.back() = static_cast<char>(raw.back() ^ 1);
  if (raw.empty()) return taken;
  const State sent = SendOrKeep(fd, raw);
  if (taken.state == State::kMore) taken.state = sent;
  return taken;
}

State BodySource::SendOrKeep(int fd, std::string_view raw) {
  FB_ASSERT(pending_.empty());
  const Transfer sent = Send(fd, raw, false);
  if (sent.io == Io::kFailed) return State::kSinkFailed;
  if (sent.bytes == raw.size()) return State::kMore;
  pending_ = raw.substr(sent.bytes);
  pending_sent_ = 0;
  return State::kWantSink;
}

State BodySource::Flush(int fd) {
  while (!pending_.empty()) {
    const Transfer sent = Send(fd, std::string_view(pending_).substr(pending_sent_), false);
    if (sent.io == Io::kWouldBlock) return State::kWantSink;
    if (sent.io != Io::kOk) return State::kSinkFailed;
    pending_sent_ += sent.bytes;
    if (pending_sent_ < pending_.size()) continue;
    pending_.clear();
    pending_sent_ = 0;
  }
  return State::kMore;
}

std::unique_ptr<BodySource> MakeMemoryBody(std::string bytes) {
  return std::make_unique<MemoryBody>(std::move(bytes));
}
std::unique_ptr<BodySource> MakeFileBody(Fd file, uint64_t offset, uint64_t size) {
  return std::make_unique<FileBody>(std::move(file), offset, size);
}

std::unique_ptr<BodySource> MakePaddedBody(uint64_t before, std::unique_ptr<BodySource> inner,
                                           uint64_t after) {
  return std::make_unique<PaddedBody>(before, std::move(inner), after);
}

std::unique_ptr<Pipe> PipePool::Take() {
  if (!free_.empty()) {
    auto pipe = std::move(free_.back());
    free_.pop_back();
    return pipe;
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) != 0) return nullptr;
  // A refusal (the user's pipe pages are used up) leaves the default size, which works too.
  ::fcntl(ends[0], F_SETPIPE_SZ, static_cast<int>(kPipeBytes));
  auto pipe = std::make_unique<Pipe>();
  pipe->read_end = Fd(ends[0]);
  pipe->write_end = Fd(ends[1]);
  return pipe;
}

void PipePool::GiveBack(std::unique_ptr<Pipe> pipe) {
  if (free_.size() < kMaxFreePipes) free_.push_back(std::move(pipe));
}

UpstreamBody::UpstreamBody(int upstream, std::string head_rest, BodyFramer framer, PipePool& pipes)
    : upstream_(upstream), held_(std::move(head_rest)), framer_(framer), pipes_(pipes) {}

UpstreamBody::~UpstreamBody() {
  if (pipe_ != nullptr && in_pipe_ == 0) pipes_.GiveBack(std::move(pipe_));
}

bool UpstreamBody::leaves_upstream_clean() const {
  return framer_.done() && framer_.framing() != Framing::kUntilClose && in_pipe_ == 0 &&
         held_start_ == held_.size();
}

Moved UpstreamBody::DoMove(int fd, uint64_t max_payload) {
  if (framer_.done()) return {0, State::kDone};
  const Moved moved = framer_.framing() == Framing::kChunked ? MoveChunked(fd, max_payload)
                                                             : MovePlain(fd, max_payload);
  const bool done = moved.state == State::kMore && framer_.done();
  return {moved.payload, done ? State::kDone : moved.state};
}

State UpstreamBody::OnEnd() {
  if (framer_.framing() == Framing::kUntilClose) {
    framer_ = BodyFramer();
    no_pipe_ = true;
    return State::kDone;
  }
  return State::kSourceFailed;
}

State UpstreamBody::FillHeld() {
  if (held_start_ < held_.size()) return State::kMore;
  held_start_ = 0;
  held_.resize(kCopyBytes);
  const Transfer got = Receive(upstream_, held_.data(), held_.size());
  held_.resize(got.bytes);
  if (got.io == Io::kWouldBlock) return State::kWantSource;
  if (got.io == Io::kFailed) return State::kSourceFailed;
  return got.io == Io::kEnd ? OnEnd() : State::kMore;
}

Moved UpstreamBody::MoveChunked(int fd, uint64_t max_payload) {
  if (const State state = FillHeld(); state != State::kMore) return {0, state};
  const auto held = std::string_view(held_).substr(held_start_);
  const auto step = framer_.Consume(held, max_payload);
  if (!step.ok()) return {0, State::kSourceFailed};
  held_start_ += step->raw;
  return {step->payload, SendOrKeep(fd, held.substr(0, step->raw))};
}

Moved UpstreamBody::MovePlain(int fd, uint64_t max_payload) {
  if (held_start_ < held_.size()) return MoveHeld(fd, max_payload);
  const bool large = in_pipe_ > 0 || std::min(max_payload, framer_.plain_bytes()) >= kSpliceFrom;
  if (large && pipe_ == nullptr && !no_pipe_) {
    pipe_ = pipes_.Take();
    no_pipe_ = pipe_ == nullptr;
  }
  return large && pipe_ != nullptr ? MoveSpliced(fd, max_payload) : MoveSmall(fd, max_payload);
}

Moved UpstreamBody::MoveHeld(int fd, uint64_t max_payload) {
  const uint64_t limit = std::min(max_payload, framer_.plain_bytes());
  const auto piece = std::string_view(held_).substr(held_start_, limit);
  const Transfer sent = Send(fd, piece, false);
  if (sent.io == Io::kWouldBlock) return {0, State::kWantSink};
  if (sent.io != Io::kOk) return {0, State::kSinkFailed};
  framer_.SkipPlain(sent.bytes);
  held_start_ += sent.bytes;
  return {sent.bytes, State::kMore};
}

Moved UpstreamBody::MoveSmall(int fd, uint64_t max_payload) {
  thread_local std::array<char, kCopyBytes> buffer;
  const size_t size = std::min<uint64_t>({buffer.size(), max_payload, framer_.plain_bytes()});
  const Transfer got = Receive(upstream_, buffer.data(), size);
  if (got.io == Io::kWouldBlock) return {0, State::kWantSource};
  if (got.io == Io::kFailed) return {0, State::kSourceFailed};
  if (got.io == Io::kEnd) return {0, OnEnd()};
  framer_.SkipPlain(got.bytes);
  return {got.bytes, SendOrKeep(fd, std::string_view(buffer.data(), got.bytes))};
}

Moved UpstreamBody::MoveSpliced(int fd, uint64_t max_payload) {
  constexpr unsigned kFlags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
  if (in_pipe_ == 0) {
    const size_t size = std::min<uint64_t>(framer_.plain_bytes(), PipePool::kPipeBytes);
    const ssize_t n = ::splice(upstream_, nullptr, pipe_->write_end.get(), nullptr, size, kFlags);
    if (n < 0) return {0, WouldBlock() ? State::kWantSource : State::kSourceFailed};
    if (n == 0) return {0, OnEnd()};
    in_pipe_ = static_cast<size_t>(n);
  }
  const size_t size = std::min<uint64_t>(in_pipe_, max_payload);
  const ssize_t n = ::splice(pipe_->read_end.get(), nullptr, fd, nullptr, size, kFlags);
  if (n < 0) return {0, WouldBlock() ? State::kWantSink : State::kSinkFailed};
  in_pipe_ -= static_cast<size_t>(n);
  framer_.SkipPlain(static_cast<uint64_t>(n));
  return {static_cast<uint64_t>(n), State::kMore};
}

Moved UpstreamBody::TakeByte(std::string& raw) {
  if (framer_.done()) return {0, State::kDone};
  if (in_pipe_ > 0) {
    char byte = 0;
    if (::read(pipe_->read_end.get(), &byte, 1) != 1) return {0, State::kSourceFailed};
    --in_pipe_;
    framer_.SkipPlain(1);
    raw += byte;
    return {1, State::kMore};
  }
  if (const State state = FillHeld(); state != State::kMore) return {0, state};
  const auto held = std::string_view(held_).substr(held_start_);
  const auto step = framer_.Consume(held, 1);
  if (!step.ok()) return {0, State::kSourceFailed};
  held_start_ += step->raw;
  raw += held.substr(0, step->raw);
  return {step->payload, State::kMore};
}

}  // namespace forebay::faults
