// Where the bytes of a response's body come from, and how they reach the client's socket: spliced
// or sent from the file where nothing has to look at them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "testing/faults/http_head.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {

class PaddedBody;

class BodySource {
 public:
  enum class State : uint8_t { kMore, kWantSource, kWantSink, kDone, kSourceFailed, kSinkFailed };
  struct Moved {
    uint64_t payload = 0;
    State state = State::kMore;
  };

  virtual ~BodySource() = default;
  // Sends up to `max_payload` bytes of payload, with their framing, to the socket `fd`; may send
  // less. 0 only flushes what was counted already and is still held here.
  Moved MoveTo(int fd, uint64_t max_payload);
  // The next byte of payload, with one bit changed.
  Moved FlipTo(int fd);
  // Nothing counted as moved is still held here.
  virtual bool flushed() const { return pending_.empty(); }

 protected:
  // Flushes what a source inside this one holds.
  virtual State FlushInner(int) { return State::kMore; }
  virtual Moved DoMove(int fd, uint64_t max_payload) = 0;
  // Appends one byte of payload, with the framing before it, to `raw`.
  virtual Moved TakeByte(std::string& raw) = 0;
  // Sends `raw`; what does not fit is kept for the next call.
  State SendOrKeep(int fd, std::string_view raw);

 private:
  friend class PaddedBody;  // asks the source inside it
  State Flush(int fd);
  std::string pending_;
  size_t pending_sent_ = 0;
};

std::unique_ptr<BodySource> MakeMemoryBody(std::string bytes);
// `size` bytes of the file from `offset`.
std::unique_ptr<BodySource> MakeFileBody(Fd file, uint64_t offset, uint64_t size);

// `before` zeros, then all of `inner`, then `after` zeros.
std::unique_ptr<BodySource> MakePaddedBody(uint64_t before, std::unique_ptr<BodySource> inner,
                                           uint64_t after);

struct Pipe {
  Fd read_end;
  Fd write_end;
};

// Pipes for splice, kept for the next body. One thread.
class PipePool {
 public:
  static constexpr size_t kPipeBytes = 1 << 20;
  // Null when the system gives none: then bodies are copied.
  std::unique_ptr<Pipe> Take();
  // `pipe` is empty.
  void GiveBack(std::unique_ptr<Pipe> pipe);

 private:
  std::vector<std::unique_ptr<Pipe>> free_;
};

// The body of an upstream's response: `head_rest` came with the head, the rest is on the socket.
class UpstreamBody final : public BodySource {
 public:
  UpstreamBody(int upstream, std::string head_rest, BodyFramer framer, PipePool& pipes);
  ~UpstreamBody() override;
  // All of the body was taken and nothing else: the socket may carry another request.
  bool leaves_upstream_clean() const;

 protected:
  Moved DoMove(int fd, uint64_t max_payload) override;
  Moved TakeByte(std::string& raw) override;

 private:
  Moved MoveChunked(int fd, uint64_t max_payload);
  Moved MovePlain(int fd, uint64_t max_payload);
  Moved MoveHeld(int fd, uint64_t max_payload);
  Moved MoveSmall(int fd, uint64_t max_payload);
  Moved MoveSpliced(int fd, uint64_t max_payload);
  // Reads into `held_` when that is empty. kMore: it holds something.
  State FillHeld();
  State OnEnd();

  const int upstream_;
  std::string held_;  // received, not yet framed
  size_t held_start_ = 0;
  BodyFramer framer_;
  PipePool& pipes_;
  std::unique_ptr<Pipe> pipe_;
  size_t in_pipe_ = 0;
  bool no_pipe_ = false;
};

}  // namespace forebay::faults
