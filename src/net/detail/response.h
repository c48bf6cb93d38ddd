// Collects the head of an HTTP response line by line, and puts a body where the handler wants it.
// Knows nothing of the library that reads the socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "net/http.h"

namespace forebay::net::detail {

class ResponseHead {
 public:
  // One line, with or without its CRLF. True: the final head is complete (interim 1xx heads are
  // dropped). kDataLoss for what is no HTTP head, or too long.
  Result<bool> AddLine(std::string_view line);
  void Clear();
  bool complete() const { return complete_; }
  const HttpHead& head() const { return head_; }

 private:
  Result<bool> Finish();
  HttpHead head_;
  bool complete_ = false;
  size_t bytes_ = 0;
};

// A BodyTarget being filled, by copying (Write) or by reading straight into it (Room, Landed).
class BodySink {
 public:
  BodySink() = default;
  BodySink(BodyTarget target, HttpHandler* handler);
  // Copies `bytes` to the target and tells the handler. kDataLoss when they do not fit.
  Status Write(ByteView bytes);
  // Whether the body goes to pieces of memory, rather than to a text.
  bool direct() const { return !target_.pieces.empty(); }
  // How many bytes more the target holds.
  uint64_t room() const;
  // The next pieces of the target that are free, at most `limit` bytes and as many as `pieces`
  // holds: how many were given.
  size_t Room(size_t limit, std::span<MutableBytes> pieces) const;
  // `n` bytes have been put there: tells the handler.
  void Landed(size_t n);
  // The handler is told nothing more.
  void Stop() { handler_ = nullptr; }
  uint64_t bytes() const { return bytes_; }

 private:
  void Tell(ByteView piece) {
    if (handler_ != nullptr) handler_->OnBody(piece);
  }
  Status TooLong() const;
  BodyTarget target_;
  HttpHandler* handler_ = nullptr;
  size_t piece_ = 0;   // the piece being filled
  size_t offset_ = 0;  // and how far
  uint64_t bytes_ = 0;
  uint64_t capacity_ = 0;  // of all pieces
};

}  // namespace forebay::net::detail
