// Collects the head of an HTTP response line by line, and puts a body where the handler wants it.
// Knows nothing of the library that reads the socket.
#pragma once

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

// A BodyTarget being filled.
class BodySink {
 public:
  BodySink() = default;
  BodySink(BodyTarget target, HttpHandler* handler)
      : target_(std::move(target)), handler_(handler) {}
  // Copies `bytes` to the target and tells the handler. kDataLoss when they do not fit.
  Status Write(ByteView bytes);
  uint64_t bytes() const { return bytes_; }

 private:
  BodyTarget target_;
  HttpHandler* handler_ = nullptr;
  size_t piece_ = 0;   // the piece being filled
  size_t offset_ = 0;  // and how far
  uint64_t bytes_ = 0;
};

}  // namespace forebay::net::detail
