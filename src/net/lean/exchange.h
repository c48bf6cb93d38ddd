// One request and its answer, wherever it stands. The transport keeps these and uses them again, so
// that a request allocates nothing that the last one did not leave behind.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/prefetch.h"
#include "net/detail/response.h"
#include "net/http.h"
#include "net/lean/response_parser.h"

namespace forebay::net::lean {

class Connection;
class Origin;

struct Exchange {
  enum class State : uint8_t {
    kFree,
    kWaiting,  // for a connection
    kRunning,  // on its connection
    kEnding,   // only OnDone is owed
  };

  HttpTransport::RequestId id = 0;
  State state = State::kFree;
  HttpRequest request;
  HttpHandler* handler = nullptr;
  Origin* origin = nullptr;
  Connection* connection = nullptr;  // while running

  std::string wire_head;  // what goes out before the body
  uint64_t send_total = 0;
  uint64_t sent = 0;
  size_t sent_piece = 0;   // 0: the head, i: piece i - 1 of the body
  size_t sent_offset = 0;  // in that piece

  std::unique_ptr<HeadParser> parser;  // of a head that comes in pieces, else null
  ChunkDecoder chunks;
  detail::BodySink sink;
  bool head_done = false;
  // Once it is:
  Framing framing = Framing::kNone;
  bool keeps_alive = false;
  uint64_t body_left = 0;  // of a body whose length is known

  bool resent = false;        // after a connection that had died while idle
  bool sponsors = false;      // a connection is being made for it
  size_t setup_failures = 0;  // connections that were to be made for it
  Status end;                 // why it is ending

  Time started{};
  Time progress{};  // the last byte that was sent, the head, or the last byte of the body
  Time sent_at{};   // the request began to go out
  Time head_at{};
  HttpTiming timing;

  // Bytes of an answer have come.
  bool answered() const { return head_done || parser != nullptr; }
  bool all_sent() const { return sent == send_total; }
  // Its answer is about to be read: what it points to.
  void Expect() const {
    Prefetch(handler, kCacheLine);
    Prefetch(request.url.data(), request.url.size());
    request.headers.Expect();
    Prefetch(request.body_place.data(), kCacheLine);
  }
  void CountSent() const {
    if (request.body_sent == nullptr) return;
    uint64_t head = send_total;
    for (const ByteView piece : request.body) head -= piece.size();
    *request.body_sent = sent > head ? sent - head : 0;
  }
};

}  // namespace forebay::net::lean
