#include "net/lean/connection.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/prefetch.h"
#include "net/lean/origin.h"

namespace forebay::net::lean {
namespace {

constexpr uint32_t kEvents =
    sys::kReadable | sys::kWritable | sys::kPeerClosed | sys::kEdgeTriggered;
// Large enough that system calls do not count (each tells the sender of the room it made, which
// costs more than the call), small enough that a piece is still in the L2 cache when its checksum
// is computed.
constexpr size_t kReadBytes = 1024 * 1024;
constexpr size_t kReadPieces = 16;
// After this many reads in a row the others get their turn.
constexpr int kReadsPerTurn = 4;
// A read of TLS decrypts several records of 16 KiB at most.
constexpr size_t kTlsReadBytes = 64 * 1024;
constexpr int kTlsReadsPerTurn = 32;
constexpr size_t kSendPieces = 16;
// An answer that is expected to be small is read with its head, at once.
constexpr uint64_t kSmallBody = 12 * 1024;
constexpr size_t kSmallRead = 16 * 1024;

}  // namespace

Status Connection::Open(TlsContext* tls) {
  if (tls != nullptr) {
    FB_ASSIGN_OR_RETURN(tls_, tls->Open(fd_, ready_, origin_.host, origin_.sessions));
  }
  return loop_.Watch(
      fd_.get(), kEvents, [this](uint32_t events) { OnEvents(events); },
      [this](int turns) { Expect(turns); });
}

void Connection::Close(bool unwatch) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  if (Exchange* e = std::exchange(exchange_, nullptr)) {
    e->sink.Stop();
    e->connection = nullptr;
  }
  if (unwatch) loop_.Unwatch(fd_.get());
  fd_ = sys::Fd();
}

void Connection::Begin(Exchange& exchange, Time now) {
  FB_ASSERT(state_ == State::kIdle);
  state_ = State::kBusy;
  exchange_ = &exchange;
  exchange.connection = this;
  exchange.state = Exchange::State::kRunning;
  exchange.sent_at = exchange.progress = now;
  exchange.timing.reused_connection = used;
  exchange.timing.connect = used ? Duration::zero() : exchange.sent_at - exchange.started;
  exchange.timing.peer = peer_.address;
  used = true;
}

void Connection::OnEvents(uint32_t events) {
  constexpr uint32_t kGone = sys::kPeerClosed | sys::kHangup | sys::kError;
  if ((events & kGone) != 0) ready_.hung_up = true;
  if ((events & (sys::kReadable | kGone)) != 0) ready_.readable = true;
  switch (state_) {
    case State::kConnecting:
      OnConnectDecided(events);
      return;
    case State::kHandshaking:
      ContinueHandshake();
      return;
    case State::kIdle:
      if (ready_.readable) OnIdleEvent();
      return;
    case State::kBusy:
      if (!exchange_->all_sent()) {
        const uint64_t before = exchange_->sent;
        if (!SendMore()) ready_.readable = true;
        if (exchange_->sent > before) exchange_->progress = owner_.Now();
      }
      if (ready_.readable) Receive();
      return;
    case State::kClosed:
      return;
  }
}

void Connection::Expect(int turns) const {
  if (turns == sys::kExpectTurns) Prefetch(this, sizeof *this);
  if (turns == sys::kExpectTurns || exchange_ == nullptr) return;
  if (turns == sys::kExpectTurns - 1) Prefetch(exchange_, sizeof *exchange_);
  if (turns == 1) exchange_->Expect();
}

void Connection::OnConnectDecided(uint32_t events) {
  if (const int error = sys::PendingError(fd_); error != 0) {
    owner_.OnSetupFailed(*this, BrokenBy("connecting failed", error));
    return;
  }
  if ((events & sys::kWritable) == 0) return;
  if (tls_ == nullptr) {
    BecomeReady();
  } else {
    state_ = State::kHandshaking;
    ContinueHandshake();
  }
}

void Connection::ContinueHandshake() {
  const sys::IoResult result = tls_->Handshake();
  if (result.would_block) return;
  if (result.ok()) {
    BecomeReady();
  } else {
    owner_.OnSetupFailed(*this, Status(tls_->failure()).WithContext(origin_.host));
  }
}

void Connection::BecomeReady() {
  state_ = State::kIdle;
  owner_.OnReady(*this);
  // A server that speaks first has had its event already.
  if (state_ == State::kBusy && ready_.readable) Receive();
}

// A server says nothing without being asked, unless it goes away; under TLS it may send a session.
void Connection::OnIdleEvent() {
  const MutableBytes into = owner_.scratch().first(1);
  if (tls_ != nullptr && tls_->Read({&into, 1}).would_block) return;
  owner_.OnIdleLost(*this);
}

void Connection::Resume() {
  if (state_ == State::kBusy) Receive();
}

Status Connection::BrokenBy(std::string_view what, int error) const {
  if (tls_ != nullptr && !tls_->failure().ok()) return tls_->failure();
  return Status(Code::kUnavailable, fmt::format("{}: {}", what, std::strerror(error)));
}

// ---- sending

sys::IoResult Connection::Write(std::span<const ByteView> pieces) {
  if (tls_ == nullptr) return sys::Send(fd_, pieces);
  while (pieces.front().empty()) pieces = pieces.subspan(1);  // there is something to send
  return tls_->Write(pieces.front());
}

bool Connection::SendBegun() { return state_ != State::kBusy || exchange_->sent > 0 || SendMore(); }

bool Connection::SendMore() {
  Exchange& e = *exchange_;
  if (broken_ != 0) return false;
  while (!e.all_sent()) {
    std::array<ByteView, kSendPieces> pieces;
    size_t count = 0;
    size_t offset = e.sent_offset;
    for (size_t i = e.sent_piece; i <= e.request.body.size() && count < pieces.size(); ++i) {
      const ByteView whole =
          i == 0 ? AsBytes(std::string_view(e.wire_head)) : e.request.body[i - 1];
      pieces[count++] = whole.subspan(std::exchange(offset, 0));
    }
    const sys::IoResult result = Write(std::span(pieces).first(count));
    if (result.would_block) return true;  // an event comes when there is room
    if (!result.ok()) {
      broken_ = result.error;
      return false;
    }
    e.sent += result.bytes;
    e.CountSent();
    size_t left = result.bytes;
    for (size_t i = 0; i < count && left >= pieces[i].size(); ++i) {
      left -= pieces[i].size();
      ++e.sent_piece;
      e.sent_offset = 0;
    }
    e.sent_offset += left;
  }
  return true;
}

// ---- receiving

// Edge-triggered: what comes after a read that got less than it asked for is a new event.
sys::IoResult Connection::Read(std::span<const MutableBytes> into, size_t size) {
  if (tls_ != nullptr) return tls_->Read(into);
  if (!ready_.readable) return {.would_block = true};
  const sys::IoResult result =
      into.size() == 1 ? sys::Receive(fd_, into.front()) : sys::Receive(fd_, into);
  ready_.Learn(result, size);
  return result;
}

void Connection::Receive() {
  Exchange& e = *exchange_;
  // A head that comes in drops is no progress: all of it is to come in the time of the first byte.
  if (e.head_done) e.progress = owner_.Now();
  const int turn = tls_ == nullptr ? kReadsPerTurn : kTlsReadsPerTurn;
  for (int reads = 0; reads < turn; ++reads) {
    const bool direct = e.framing == Framing::kLength && e.sink.direct();
    const bool more = !e.head_done ? ReceiveHead() : direct ? ReceiveDirect() : ReceiveCopied();
    if (!more) return;
  }
  owner_.ResumeLater(*this);
}

bool Connection::OnReadNothing(const sys::IoResult& result) {
  if (result.would_block) {
    if (broken_ != 0) FailBroken(BrokenBy("sending failed", broken_));
  } else if (!result.ok()) {
    FailBroken(BrokenBy("the connection broke", result.error));
  } else {
    OnEndOfStream();
  }
  return false;
}

void Connection::OnEndOfStream() {
  Exchange& e = *exchange_;
  if (!e.head_done) {
    if (!e.answered()) {
      FailBroken(Status(Code::kUnavailable, "the server closed the connection without an answer"));
    } else {
      Fail(Status(Code::kUnavailable, "the connection ended within the answer's head"));
    }
  } else if (e.framing == Framing::kUntilClose) {
    if (tls_ == nullptr || tls_->ended_cleanly()) {
      Complete(false);
    } else {  // whoever cuts the connection would decide where the body ends
      Fail(Status(Code::kDataLoss, "the connection was cut within a body of unknown length"));
    }
  } else if (e.framing == Framing::kLength) {
    Fail(Status(Code::kDataLoss, fmt::format("{} of {} body bytes arrived", e.sink.bytes(),
                                             e.sink.bytes() + e.body_left)));
  } else {
    Fail(Status(Code::kDataLoss, fmt::format("the connection ended within a chunked body, after {} "
                                             "bytes",
                                             e.sink.bytes())));
  }
}

// Reads little more than the head, so that the body goes where it belongs without a copy.
bool Connection::ReceiveHead() {
  Exchange& e = *exchange_;
  if (tls_ == nullptr && e.parser == nullptr && !e.request.body_place.empty()) {
    if (const size_t head = origin_.SureHeadBytes(e.request.head_digits); head > 0)
      return ReceiveAtOnce(head);
  }
  const size_t ask = e.request.body_hint > kSmallBody ? origin_.head_bytes_hint() : kSmallRead;
  const MutableBytes into = owner_.scratch().first(ask);
  const sys::IoResult result = Read({&into, 1}, ask);
  if (!result.ok() || result.bytes == 0) return OnReadNothing(result);
  return TakeHead(into.first(result.bytes));
}

// Bytes that are spread over pieces, `n` of them, behind what `begin` holds.
std::vector<std::byte> Connection::Joined(ByteView begin, size_t n) const {
  std::vector<std::byte> all(begin.begin(), begin.end());
  for (const MutableBytes piece : exchange_->request.body_place) {
    const MutableBytes mine = piece.first(std::min(n, piece.size()));
    all.insert(all.end(), mine.begin(), mine.end());
    n -= mine.size();
  }
  return all;
}

bool Connection::ReceiveAtOnce(size_t head) {
  Exchange& e = *exchange_;
  const MutableBytes scratch = owner_.scratch();
  std::array<MutableBytes, kReadPieces + 2> pieces{scratch.first(head)};
  size_t count = 1;
  size_t size = head;
  size_t room = 0;
  for (const MutableBytes piece : e.request.body_place) {
    room += piece.size();
    if (count > kReadPieces || size - head == kReadBytes) continue;
    pieces[count++] = piece.first(std::min(piece.size(), kReadBytes - (size - head)));
    size += pieces[count - 1].size();
  }
  const size_t place = size - head;
  if (place == room) {  // as in ReceiveDirect: what follows tells that nothing should
    pieces[count++] = scratch.subspan(head, 1);
    ++size;
  }
  e.handler->Expect();  // while the kernel copies
  const sys::IoResult result = Read(std::span(pieces).first(count), size);
  if (!result.ok() || result.bytes == 0) return OnReadNothing(result);
  if (result.bytes <= head) return TakeHead(scratch.first(result.bytes));
  const size_t landed = result.bytes - head;
  HeadParser& parser = owner_.parser();
  parser.Reset(e.request.method == "HEAD");
  ByteView left = scratch.first(head);
  const Result<bool> complete = parser.Take(left);
  if (!complete.ok() || !*complete || !left.empty()) {
    // Another size after all: as if everything had been read to where it is not wanted.
    std::vector<std::byte> all = Joined(scratch.first(head), std::min(landed, place));
    if (landed > place) all.push_back(scratch[head]);
    return TakeHead(all);
  }
  return AcceptHead(parser) && TakeLanded(landed, head);
}

bool Connection::TakeLanded(size_t n, size_t head) {
  Exchange& e = *exchange_;
  std::array<MutableBytes, kReadPieces> own;
  const size_t count = e.framing == Framing::kLength ? e.sink.Room(n, own) : 0;
  bool in_place = count > 0 && n <= e.body_left;
  size_t i = 0;
  size_t covered = 0;
  for (; in_place && i < count; ++i) {
    const std::span<const MutableBytes> place = e.request.body_place;
    in_place = i < place.size() && own[i].data() == place[i].data() &&
               own[i].size() == std::min(place[i].size(), n - covered);
    covered += own[i].size();
  }
  if (!in_place || covered < n) {
    // Not accepted as data, shorter than expected, or to go elsewhere.
    size_t place = 0;
    for (const MutableBytes piece : e.request.body_place) place += piece.size();
    std::vector<std::byte> all = Joined({}, std::min(n, place));
    if (n > place) all.push_back(owner_.scratch()[head]);
    return TakeBody(all);
  }
  e.body_left -= n;
  e.sink.Landed(n);
  if (!Busy(e)) return false;
  if (e.body_left > 0) return true;
  Complete(false);
  return false;
}

bool Connection::TakeHead(ByteView bytes) {
  Exchange& e = *exchange_;
  HeadParser& parser = e.parser != nullptr ? *e.parser : owner_.parser();
  if (e.parser == nullptr) parser.Reset(e.request.method == "HEAD");
  const Result<bool> complete = parser.Take(bytes);
  if (!complete.ok()) {
    Fail(complete.status());
    return false;
  }
  if (!*complete) {
    if (e.parser == nullptr) e.parser = std::make_unique<HeadParser>(std::move(parser));
    return true;
  }
  return AcceptHead(parser) && TakeBody(bytes);
}

// False: the answer is over.
bool Connection::AcceptHead(const HeadParser& parser) {
  Exchange& e = *exchange_;
  e.head_done = true;
  e.framing = parser.framing();
  e.keeps_alive = parser.keeps_alive();
  e.head_at = e.progress = owner_.Now();
  e.timing.first_byte = e.head_at - e.sent_at;
  if (e.framing == Framing::kLength) {
    e.body_left = static_cast<uint64_t>(parser.head().content_length);
  }
  origin_.LearnHeadBytes(parser.head_bytes(), e.request.head_digits);
  Result<BodyTarget> target = e.handler->OnHead(parser.head());
  if (!Busy(e)) return false;  // cancelled from inside
  if (!target.ok()) {
    Fail(std::move(target).status());
    return false;
  }
  e.sink = detail::BodySink(*std::move(target), e.handler);
  if (e.framing == Framing::kLength && e.body_left > e.sink.room()) {
    Fail(Status(Code::kDataLoss, fmt::format("the body has {} bytes, {} were expected at most",
                                             e.body_left, e.sink.room())));
    return false;
  }
  return true;
}

// Bytes that were read before their place was known, or that are chunked.
bool Connection::TakeBody(ByteView bytes) {
  Exchange& e = *exchange_;
  Status status;
  bool whole = false;
  switch (e.framing) {
    case Framing::kNone:
      whole = true;
      break;
    case Framing::kUntilClose:
      status = e.sink.Write(bytes);
      bytes = {};
      break;
    case Framing::kLength: {
      const ByteView mine = bytes.first(std::min<uint64_t>(bytes.size(), e.body_left));
      bytes = bytes.subspan(mine.size());
      e.body_left -= mine.size();
      whole = e.body_left == 0;
      status = e.sink.Write(mine);
      break;
    }
    case Framing::kChunked:
      for (;;) {
        const Result<ByteView> piece = e.chunks.Next(bytes);
        status = piece.ok() ? Status() : piece.status();
        if (!status.ok() || piece->empty()) break;
        status = e.sink.Write(*piece);
        if (!Busy(e)) return false;
        if (!status.ok()) break;
      }
      whole = e.chunks.done();
      break;
  }
  if (!Busy(e)) return false;
  if (!status.ok()) {
    Fail(std::move(status));
    return false;
  }
  if (!whole) return true;
  Complete(!bytes.empty());
  return false;
}

bool Connection::ReceiveCopied() {
  const MutableBytes into = owner_.scratch();
  const sys::IoResult result = Read({&into, 1}, into.size());
  if (!result.ok() || result.bytes == 0) return OnReadNothing(result);
  return TakeBody(into.first(result.bytes));
}

bool Connection::ReceiveDirect() {
  Exchange& e = *exchange_;
  std::array<MutableBytes, kReadPieces + 1> pieces;
  const size_t wanted =
      std::min<uint64_t>(e.body_left, tls_ == nullptr ? kReadBytes : kTlsReadBytes);
  size_t count = e.sink.Room(wanted, std::span(pieces).first(kReadPieces));
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += pieces[i].size();
  // One byte more than the body has: the read that ends it also tells that nothing follows, and
  // that the socket is empty.
  const size_t mine = size;
  if (mine == e.body_left && tls_ == nullptr) {
    pieces[count++] = owner_.scratch().first(1);
    ++size;
  }
  const sys::IoResult result = Read(std::span(pieces).first(count), size);
  if (!result.ok() || result.bytes == 0) return OnReadNothing(result);
  const size_t landed = std::min(result.bytes, mine);
  e.body_left -= landed;
  e.sink.Landed(landed);
  if (!Busy(e)) return false;
  if (e.body_left > 0) return true;
  Complete(result.bytes > mine);
  return false;
}

// ---- ending

void Connection::Complete(bool leftovers) {
  Exchange& e = *exchange_;
  bool reusable = !leftovers && !ready_.hung_up && e.keeps_alive && e.all_sent();
  if (reusable && (ready_.readable || (tls_ != nullptr && tls_->HasPending()))) {
    // The last read was exactly filled, or got more than the body: is there anything for us?
    const MutableBytes into = owner_.scratch().first(1);
    reusable = Read({&into, 1}, 1).would_block;
  }
  exchange_ = nullptr;
  e.connection = nullptr;
  if (reusable) state_ = State::kIdle;
  owner_.OnExchangeOver(*this, e, {.status = {}, .reusable = reusable});
}

void Connection::Fail(Status status) {
  Exchange& e = *exchange_;
  exchange_ = nullptr;
  e.connection = nullptr;
  e.sink.Stop();
  owner_.OnExchangeOver(*this, e, {.status = std::move(status)});
}

void Connection::FailBroken(Status status) {
  Exchange& e = *exchange_;
  const bool unanswered = !e.answered();
  if (e.head_done) {
    status = std::move(status).WithContext(fmt::format("after {} body bytes", e.sink.bytes()));
  }
  exchange_ = nullptr;
  e.connection = nullptr;
  e.sink.Stop();
  owner_.OnExchangeOver(*this, e, {.status = std::move(status), .unanswered = unanswered});
}

}  // namespace forebay::net::lean
