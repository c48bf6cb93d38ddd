// One HTTP exchange, and the transport that performs it. Two implementations share one conformance
// suite: our own HTTP/1.1 (net/lean/lean_transport.h) and libcurl (net/curl_transport.h); sim/ has
// a third. net/routed_transport.h chooses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/executor.h"
#include "forebay/status.h"
#include "sys/tcp.h"

namespace forebay::net {

// The header fields of an answer, in one piece of memory that Clear keeps: a transport that uses
// the same block again allocates nothing. Views into it live until it is changed or destroyed.
class HeaderList {
 public:
  using Field = std::pair<std::string_view, std::string_view>;

  HeaderList() = default;
  HeaderList(std::initializer_list<Field> fields) {
    for (const auto& [name, value] : fields) emplace_back(name, value);
  }
  void emplace_back(std::string_view name, std::string_view value);
  void Clear();
  // Will soon be read or freed.
  void Expect() const;
  size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  Field operator[](size_t i) const;
  Field front() const { return (*this)[0]; }
  Field back() const { return (*this)[size() - 1]; }

  class Iterator {
   public:
    Iterator(const HeaderList* block, size_t i) : block_(block), i_(i) {}
    Field operator*() const { return (*block_)[i_]; }
    Iterator& operator++() {
      ++i_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const HeaderList* block_;
    size_t i_;
  };
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

 private:
  struct Place {  // in text_: the name, then the value
    uint32_t offset;
    uint32_t name_size;
    uint32_t value_size;
  };
  std::string text_;
  std::vector<Place> places_;
};

// The first value of `name` (case-insensitive), or "".
std::string_view FindHeader(const HeaderList& headers, std::string_view name);

struct HttpRequest {
  std::string method = "GET";
  // scheme://host[:port]/path?query, already percent-encoded: it goes to the wire as it is.
  std::string url;
  HeaderList headers;                                  // Host, Content-Length are the transport's
  std::vector<ByteView> body;                          // must live until OnDone
  Duration connect_timeout = std::chrono::seconds(3);  // TCP and TLS
  Duration first_byte_timeout = std::chrono::seconds(10);  // from request sent to the status line
  Duration stall_timeout = std::chrono::seconds(10);       // between two bytes of a body
  Time deadline = kNever;                                  // of the whole exchange
  uint64_t body_hint = 0;  // about how long the answer's body will be, when known (buffer sizes)
  // Where the answer's body will most likely go, if it is accepted: its bytes may land there before
  // OnHead was asked. What it holds is undefined unless OnDone says OK. Must live until OnDone.
  std::span<const MutableBytes> body_place;
  // How many characters of the answer's head repeat numbers of this request (content-range,
  // content-length): what is left of a head's size is alike from one answer to the next.
  size_t head_digits = 0;
  // Not null: kept up to date, on the executor's thread, with how much of `body` has gone out. Must
  // live until OnDone.
  uint64_t* body_sent = nullptr;
  // A second request for the same bytes (equal URL and Range) while the first is out: it goes to
  // another of the host's addresses than those that are busy with them, when there is another.
  bool other_address = false;
};

struct HttpHead {
  int status = 0;
  HeaderList headers;
  int64_t content_length = -1;  // -1: not told (chunked)
};

// Where a body goes: straight into `pieces` (more bytes than they hold is data_loss), or, when
// `pieces` is empty, into `text` up to `text_limit` bytes (more is data_loss).
struct BodyTarget {
  std::vector<MutableBytes> pieces;
  std::string* text = nullptr;
  size_t text_limit = 0;
};

struct HttpTiming {
  Duration connect{};     // DNS + TCP + TLS; 0 on a reused connection
  Duration first_byte{};  // request sent -> status line
  Duration total{};
  uint64_t body_bytes = 0;
  bool reused_connection = false;
  sys::SocketAddress peer;  // of the last connection used; not valid when none was made
};

// Called on the transport's executor thread. OnHead at most once, then OnBody any number of times,
// then OnDone exactly once, also after Cancel (then with kCancelled). After OnDone the transport
// touches neither the handler nor the target.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  // OnHead may come soon: brings what it will read into the cache; nothing else.
  virtual void Expect() const {}
  // An error ends the exchange (and the connection) with that error.
  virtual Result<BodyTarget> OnHead(const HttpHead& head) = 0;
  // `piece` has just landed in the target (checksums are computed while it is in the cache).
  virtual void OnBody(ByteView piece) = 0;
  // OK: head and whole body arrived, its length equal to Content-Length when one was told. Else
  // kUnavailable (connect, reset, stall), kDeadlineExceeded, kCancelled, kDataLoss (an orderly end
  // with fewer bytes than promised, or more of them; a malformed head), kInvalidArgument (a URL or
  // header that cannot be sent, a certificate that does not verify).
  virtual void OnDone(Status status, const HttpTiming& timing) = 0;
};

class HttpTransport {
 public:
  using RequestId = uint64_t;  // 0 is never given out

  virtual ~HttpTransport() = default;
  // Executor's thread only, all three. `handler` must live until OnDone, which never runs inside
  // Start. There is no queue inside: every request goes to the wire at once; the caller limits.
  virtual RequestId Start(HttpRequest request, HttpHandler* handler) = 0;
  // OnDone(kCancelled) follows (never inside Cancel); the connection is closed first, so that no
  // byte reaches the target afterwards. No effect once done.
  virtual void Cancel(RequestId id) = 0;
  // Cancels all that is in flight; `on_closed` runs when the last OnDone has.
  virtual void Close(Task on_closed) = 0;
  virtual Executor& executor() = 0;
};

}  // namespace forebay::net
