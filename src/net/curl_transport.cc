#include "net/curl_transport.h"

#include <curl/curl.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/assert.h"
#include "net/detail/request.h"
#include "net/detail/response.h"
#include "net/proxy.h"

namespace forebay::net {
namespace {

// libcurl allocates one receive buffer per handle. In the clear, 512 KiB take the fewest reads for
// a large body; under TLS a read never returns more than one record of 16 KiB.
constexpr long kLargeBuffer = 512 * 1024;
constexpr long kSmallBuffer = 64 * 1024;
constexpr uint64_t kLargeBody = 1024 * 1024;
// S3 closes idle connections after 5 s or more; a request on one that it has just closed fails.
constexpr long kMaxIdleSeconds = 4;
// Spare handles keep their buffers: 16 MiB of each kind at most.
constexpr std::array<size_t, 2> kMaxSpareHandles{256, 32};  // small, large buffer

// This machine, and the services that a cloud gives it under link-local addresses: no proxy is
// between.
bool IsNear(std::string_view url) {
  const size_t begin = url.find("://") + 3;
  std::string_view host = url.substr(begin, url.find_first_of("/?", begin) - begin);
  if (host.starts_with("[::1]") || host.starts_with("[fd00:ec2:")) return true;
  host = host.substr(0, host.find(':'));
  return IsLoopbackHost(host) || host.starts_with("169.254.");
}

// libcurl reads http_proxy in small letters alone; see ProxyRules. Null: there is none.
const char* HttpProxyInCapitals() {
  const char* small = std::getenv("http_proxy");
  const char* capitals = std::getenv("HTTP_PROXY");
  if ((small != nullptr && *small != '\0') || std::getenv("REQUEST_METHOD") != nullptr)
    return nullptr;
  return capitals != nullptr && *capitals != '\0' ? capitals : nullptr;
}

Code CodeOf(CURLcode result) {
  switch (result) {
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
      return Code::kInvalidArgument;
    case CURLE_OUT_OF_MEMORY:
      return Code::kResourceExhausted;
    case CURLE_PARTIAL_FILE:
      return Code::kDataLoss;
    default:
      return Code::kUnavailable;
  }
}

struct EasyDelete {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using EasyHandle = std::unique_ptr<CURL, EasyDelete>;

struct ListDelete {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using HeaderSlist = std::unique_ptr<curl_slist, ListDelete>;

Status InitCurl() {
  static const CURLcode result = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (result == CURLE_OK) return {};
  return Status(Code::kInternal,
                fmt::format("libcurl does not start: {}", curl_easy_strerror(result)));
}

class CurlTransport;

struct Transfer {
  CurlTransport* transport = nullptr;
  HttpTransport::RequestId id = 0;
  HttpRequest request;
  HttpHandler* handler = nullptr;

  EasyHandle easy;  // null once the exchange is over and only OnDone is owed
  bool large_buffer = false;
  HeaderSlist headers;
  std::array<char, CURL_ERROR_SIZE> error_text{};

  detail::ResponseHead head;
  detail::BodySink sink;
  Status failure;  // why a callback of ours ended the exchange
  bool over = false;

  size_t sent_piece = 0;  // of request.body
  size_t sent_offset = 0;
  uint64_t sent_bytes = 0;
  uint64_t send_total = 0;

  Time started;
  Time progress;  // the last byte of a body, in either direction
  Time head_at = kNever;
  Executor::TimerId timer = 0;
};

class CurlTransport final : public HttpTransport {
 public:
  CurlTransport(sys::EventLoop& loop, CurlTransportOptions options, CURLM* multi, CURLSH* share)
      : loop_(loop), options_(std::move(options)), multi_(multi), share_(share) {}
  ~CurlTransport() override;

  void Configure();
  RequestId Start(HttpRequest request, HttpHandler* handler) override;
  void Cancel(RequestId id) override;
  void Close(Task on_closed) override;
  Executor& executor() override { return loop_; }

 private:
  static int OnSocket(CURL*, curl_socket_t fd, int what, void* self, void* watched);
  static int OnTimer(CURLM*, long timeout_ms, void* self);
  static size_t OnHeaderLine(char* data, size_t size, size_t count, void* arg);
  static size_t OnBodyBytes(char* data, size_t size, size_t count, void* arg);
  static size_t OnSend(char* data, size_t size, size_t count, void* arg);
  static int OnSeek(void* arg, curl_off_t offset, int origin);

  void SetOptions(Transfer& transfer);
  void SetMethod(Transfer& transfer);
  void SetHeaders(Transfer& transfer);
  EasyHandle TakeHandle(bool large);
  void Act(curl_socket_t fd, int events);
  void FinishCompleted();
  void RunDeferred();
  // Ends the exchange (its connection is closed when it was still running); OnDone follows.
  void End(Transfer& transfer);
  void EndLater(Transfer& transfer, Status failure);
  void Deliver(RequestId id, Status status);
  void CheckTimes(Transfer& transfer);
  Status Describe(const Transfer& transfer, CURLcode result) const;
  HttpTiming TimingOf(const Transfer& transfer) const;
  void CloseWhenEmpty();

  sys::EventLoop& loop_;
  const CurlTransportOptions options_;
  CURLM* multi_;
  CURLSH* share_;
  std::unordered_map<RequestId, std::unique_ptr<Transfer>> transfers_;
  std::array<std::vector<EasyHandle>, 2> spare_;  // by large_buffer
  std::vector<RequestId> deferred_starts_;        // made inside one of libcurl's callbacks
  std::vector<RequestId> deferred_ends_;
  RequestId last_id_ = 0;
  Executor::TimerId curl_timer_ = 0;
  bool inside_curl_ = false;
  bool closing_ = false;
  bool destroying_ = false;
  Task on_closed_;
};

CurlTransport::~CurlTransport() {
  destroying_ = !loop_.InThread();  // then the loop has stopped and watches nothing
  FB_ASSERT(destroying_ || transfers_.empty());
  if (!destroying_ && curl_timer_ != 0) loop_.CancelTimer(curl_timer_);
  for (auto& [id, transfer] : transfers_) {
    if (transfer->easy != nullptr) curl_multi_remove_handle(multi_, transfer->easy.get());
  }
  transfers_.clear();
  for (auto& handles : spare_) handles.clear();
  curl_multi_cleanup(multi_);
  curl_share_cleanup(share_);
}

void CurlTransport::Configure() {
  curl_multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &OnSocket);
  curl_multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &OnTimer);
  curl_multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl_multi_setopt(multi_, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
  curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, static_cast<long>(options_.max_connections));
}

// ---- what libcurl calls

int CurlTransport::OnSocket(CURL*, curl_socket_t fd, int what, void* arg, void* watched) {
  auto& self = *static_cast<CurlTransport*>(arg);
  if (self.destroying_) return 0;
  if (what == CURL_POLL_REMOVE) {
    if (watched != nullptr) self.loop_.Unwatch(fd);
    curl_multi_assign(self.multi_, fd, nullptr);
    return 0;
  }
  const uint32_t events = ((what & CURL_POLL_IN) != 0 ? sys::kReadable : 0U) |
                          ((what & CURL_POLL_OUT) != 0 ? sys::kWritable : 0U);
  Status status;
  if (watched != nullptr) {
    status = self.loop_.ChangeWatch(fd, events);
  } else {
    status = self.loop_.Watch(fd, events, [&self, fd](uint32_t ready) {
      const int flags = ((ready & sys::kReadable) != 0 ? CURL_CSELECT_IN : 0) |
                        ((ready & sys::kWritable) != 0 ? CURL_CSELECT_OUT : 0) |
                        ((ready & (sys::kError | sys::kHangup)) != 0 ? CURL_CSELECT_ERR : 0);
      self.Act(fd, flags);
    });
    if (status.ok()) curl_multi_assign(self.multi_, fd, &self);
  }
  return status.ok() ? 0 : -1;
}

int CurlTransport::OnTimer(CURLM*, long timeout_ms, void* arg) {
  auto& self = *static_cast<CurlTransport*>(arg);
  if (self.destroying_) return 0;
  if (self.curl_timer_ != 0) self.loop_.CancelTimer(std::exchange(self.curl_timer_, 0));
  if (timeout_ms < 0) return 0;
  const Time at = self.loop_.Now() + std::chrono::milliseconds(timeout_ms);
  self.curl_timer_ = self.loop_.PostAt(at, [&self] {
    self.curl_timer_ = 0;
    self.Act(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

size_t CurlTransport::OnHeaderLine(char* data, size_t size, size_t count, void* arg) {
  auto& transfer = *static_cast<Transfer*>(arg);
  const size_t bytes = size * count;
  if (transfer.over) return 0;
  if (transfer.head.complete()) return bytes;  // a trailer
  Result<bool> complete = transfer.head.AddLine({data, bytes});
  if (!complete.ok()) {
    transfer.failure = std::move(complete).status();
    return 0;
  }
  if (!*complete) return bytes;
  transfer.head_at = transfer.transport->loop_.Now();
  transfer.progress = transfer.head_at;
  Result<BodyTarget> target = transfer.handler->OnHead(transfer.head.head());
  if (transfer.over) return 0;  // cancelled from inside OnHead
  if (!target.ok()) {
    transfer.failure = std::move(target).status();
    return 0;
  }
  transfer.sink = detail::BodySink(*std::move(target), transfer.handler);
  return bytes;
}

size_t CurlTransport::OnBodyBytes(char* data, size_t size, size_t count, void* arg) {
  auto& transfer = *static_cast<Transfer*>(arg);
  const size_t bytes = size * count;
  if (transfer.over) return 0;
  transfer.progress = transfer.transport->loop_.Now();
  Status status = transfer.sink.Write({reinterpret_cast<const std::byte*>(data), bytes});
  if (transfer.over) return 0;
  if (status.ok()) return bytes;
  transfer.failure = std::move(status);
  return 0;
}

size_t CurlTransport::OnSend(char* data, size_t size, size_t count, void* arg) {
  auto& transfer = *static_cast<Transfer*>(arg);
  if (transfer.over) return CURL_READFUNC_ABORT;
  transfer.progress = transfer.transport->loop_.Now();
  const size_t room = size * count;
  size_t done = 0;
  const auto& pieces = transfer.request.body;
  while (done < room && transfer.sent_piece < pieces.size()) {
    const ByteView left = pieces[transfer.sent_piece].subspan(transfer.sent_offset);
    const size_t n = std::min(left.size(), room - done);
    if (n > 0) std::memcpy(data + done, left.data(), n);
    done += n;
    transfer.sent_offset += n;
    if (n == left.size()) {
      ++transfer.sent_piece;
      transfer.sent_offset = 0;
    }
  }
  transfer.sent_bytes += done;
  if (transfer.request.body_sent != nullptr) *transfer.request.body_sent = transfer.sent_bytes;
  return done;
}

int CurlTransport::OnSeek(void* arg, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<Transfer*>(arg);
  if (origin != SEEK_SET || offset != 0) return CURL_SEEKFUNC_CANTSEEK;
  transfer.sent_piece = 0;
  transfer.sent_offset = 0;
  transfer.sent_bytes = 0;
  return CURL_SEEKFUNC_OK;
}

// ---- starting

EasyHandle CurlTransport::TakeHandle(bool large) {
  auto& spare = spare_[large ? 1 : 0];
  if (spare.empty()) return EasyHandle(curl_easy_init());
  EasyHandle handle = std::move(spare.back());
  spare.pop_back();
  curl_easy_reset(handle.get());
  return handle;
}

void CurlTransport::SetOptions(Transfer& transfer) {
  CURL* easy = transfer.easy.get();
  const HttpRequest& request = transfer.request;
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer.error_text.data());
  curl_easy_setopt(easy, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
#if CURL_AT_LEAST_VERSION(7, 85, 0)
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy, CURLOPT_HTTP_CONTENT_DECODING, 0L);
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
  curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, kMaxIdleSeconds);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, transfer.large_buffer ? kLargeBuffer : kSmallBuffer);
  const auto connect_ms =
      std::chrono::ceil<std::chrono::milliseconds>(request.connect_timeout).count();
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, std::max<long>(1, connect_ms));
  curl_easy_setopt(easy, CURLOPT_SHARE, share_);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, options_.verify_tls ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, options_.verify_tls ? 2L : 0L);
  if (!options_.ca_bundle.empty()) {
    curl_easy_setopt(easy, CURLOPT_CAINFO, options_.ca_bundle.c_str());
    curl_easy_setopt(easy, CURLOPT_CAPATH, nullptr);
  }
  if (IsNear(request.url)) {
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
  } else if (const char* proxy = HttpProxyInCapitals();
             proxy != nullptr && request.url.starts_with("http://")) {
    curl_easy_setopt(easy, CURLOPT_PROXY, proxy);
  }
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &OnHeaderLine);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &OnBodyBytes);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  SetMethod(transfer);
  SetHeaders(transfer);
}

void CurlTransport::SetMethod(Transfer& transfer) {
  CURL* easy = transfer.easy.get();
  const HttpRequest& request = transfer.request;
  for (const ByteView piece : request.body) transfer.send_total += piece.size();
  const auto length = static_cast<curl_off_t>(transfer.send_total);
  if (request.method == "HEAD") {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    return;
  }
  if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, &OnSend);
    curl_easy_setopt(easy, CURLOPT_READDATA, &transfer);
    curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &OnSeek);
    curl_easy_setopt(easy, CURLOPT_SEEKDATA, &transfer);
    if (transfer.send_total >= kLargeBody) {
      curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kLargeBuffer);
    }
  }
  if (request.method == "PUT") {
    curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, length);
  } else if (request.method == "POST") {
    curl_easy_setopt(easy, CURLOPT_POST, 1L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, length);
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (request.method != "GET") {
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
  }
}

void CurlTransport::SetHeaders(Transfer& transfer) {
  curl_slist* list = nullptr;
  const auto add = [&list](const std::string& line) {
    curl_slist* longer = curl_slist_append(list, line.c_str());
    FB_ASSERT(longer != nullptr);
    list = longer;
  };
  for (const auto& [name, value] : transfer.request.headers) {
    add(value.empty() ? fmt::format("{};", name) : fmt::format("{}: {}", name, value));
  }
  const auto suppress = [&](const char* name) {
    if (FindHeader(transfer.request.headers, name).empty()) add(fmt::format("{}:", name));
  };
  suppress("Expect");
  suppress("Accept");
  if (transfer.request.method == "POST") suppress("Content-Type");
  transfer.headers.reset(list);
  curl_easy_setopt(transfer.easy.get(), CURLOPT_HTTPHEADER, list);
}

HttpTransport::RequestId CurlTransport::Start(HttpRequest request, HttpHandler* handler) {
  FB_ASSERT(loop_.InThread());
  const RequestId id = ++last_id_;
  Transfer& transfer = *(transfers_[id] = std::make_unique<Transfer>());
  transfer.transport = this;
  transfer.id = id;
  transfer.handler = handler;
  transfer.request = std::move(request);
  transfer.started = loop_.Now();
  transfer.progress = transfer.started;
  Status status = detail::CheckRequest(transfer.request);
  if (status.ok() && closing_) status = Status(Code::kCancelled, "the transport is closed");
  if (!status.ok()) {
    EndLater(transfer, std::move(status));
    return id;
  }
  transfer.large_buffer =
      transfer.request.body_hint >= kLargeBody && transfer.request.url.starts_with("http://");
  transfer.easy = TakeHandle(transfer.large_buffer);
  if (transfer.easy == nullptr) {
    EndLater(transfer, Status(Code::kResourceExhausted, "libcurl gives no handle"));
    return id;
  }
  SetOptions(transfer);
  CheckTimes(transfer);
  if (transfer.over) return id;  // its deadline had passed already
  if (inside_curl_) {
    deferred_starts_.push_back(id);
  } else {
    const CURLMcode result = curl_multi_add_handle(multi_, transfer.easy.get());
    FB_ASSERT(result == CURLM_OK || result == CURLM_OUT_OF_MEMORY);
  }
  return id;
}

// ---- driving libcurl

void CurlTransport::Act(curl_socket_t fd, int events) {
  FB_ASSERT(!inside_curl_);
  inside_curl_ = true;
  int running = 0;
  curl_multi_socket_action(multi_, fd, events, &running);
  inside_curl_ = false;
  RunDeferred();
  FinishCompleted();
}

void CurlTransport::RunDeferred() {
  for (const RequestId id : std::exchange(deferred_ends_, {})) {
    const auto found = transfers_.find(id);
    if (found != transfers_.end()) End(*found->second);
  }
  for (const RequestId id : std::exchange(deferred_starts_, {})) {
    const auto found = transfers_.find(id);
    if (found == transfers_.end() || found->second->easy == nullptr) continue;
    curl_multi_add_handle(multi_, found->second->easy.get());
  }
}

void CurlTransport::FinishCompleted() {
  // One message at a time: OnDone may cancel others, whose messages libcurl then drops.
  int left = 0;
  while (CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode result = message->data.result;
    char* arg = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &arg);
    auto& transfer = *reinterpret_cast<Transfer*>(arg);
    Deliver(transfer.id, Describe(transfer, result));
  }
}

Status CurlTransport::Describe(const Transfer& transfer, CURLcode result) const {
  if (!transfer.failure.ok()) return transfer.failure;
  const HttpHead& head = transfer.head.head();
  if (result == CURLE_OK) {
    if (!transfer.head.complete()) return Status(Code::kUnavailable, "no whole response arrived");
    const bool bodiless =
        transfer.request.method == "HEAD" || head.status == 204 || head.status == 304;
    if (!bodiless && head.content_length >= 0 &&
        transfer.sink.bytes() != static_cast<uint64_t>(head.content_length)) {
      return Status(Code::kDataLoss, fmt::format("{} of {} body bytes arrived",
                                                 transfer.sink.bytes(), head.content_length));
    }
    return {};
  }
  const char* text =
      transfer.error_text[0] != '\0' ? transfer.error_text.data() : curl_easy_strerror(result);
  // It may name the proxy with its password.
  std::string message = fmt::format("{} (curl {})", HideUserinfo(text), static_cast<int>(result));
  if (transfer.head.complete()) {
    message += fmt::format(", after {} body bytes", transfer.sink.bytes());
  }
  return Status(CodeOf(result), std::move(message));
}

HttpTiming CurlTransport::TimingOf(const Transfer& transfer) const {
  HttpTiming timing;
  timing.total = loop_.Now() - transfer.started;
  timing.body_bytes = transfer.sink.bytes();
  if (transfer.easy == nullptr) return timing;
  long connects = 0;
  curl_off_t pretransfer_us = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_NUM_CONNECTS, &connects);
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
  timing.reused_connection = connects == 0 && pretransfer_us > 0;
  char* ip = nullptr;
  long port = 0;
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_PRIMARY_IP, &ip);
  curl_easy_getinfo(transfer.easy.get(), CURLINFO_PRIMARY_PORT, &port);
  if (ip != nullptr && *ip != '\0') {
    if (const auto address = sys::ParseIpAddress(ip)) {
      timing.peer = {.ip = *address, .port = static_cast<uint16_t>(port)};
    }
  }
  const std::chrono::microseconds connected(pretransfer_us);
  if (connects > 0) timing.connect = connected;
  if (transfer.head_at != kNever) {
    timing.first_byte =
        std::max(Duration::zero(), transfer.head_at - transfer.started - Duration(connected));
  }
  return timing;
}

// ---- ending

void CurlTransport::Deliver(RequestId id, Status status) {
  const auto found = transfers_.find(id);
  FB_ASSERT(found != transfers_.end());
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  const HttpTiming timing = TimingOf(*transfer);
  transfer->over = true;
  transfers_.erase(found);
  End(*transfer);
  transfer->handler->OnDone(std::move(status), timing);
  CloseWhenEmpty();
}

void CurlTransport::End(Transfer& transfer) {
  if (transfer.timer != 0) loop_.CancelTimer(std::exchange(transfer.timer, 0));
  if (transfer.easy == nullptr) return;
  curl_multi_remove_handle(multi_, transfer.easy.get());
  auto& spare = spare_[transfer.large_buffer ? 1 : 0];
  if (spare.size() < kMaxSpareHandles[transfer.large_buffer ? 1 : 0]) {
    curl_easy_reset(transfer.easy.get());  // it must not point at this transfer any more
    spare.push_back(std::move(transfer.easy));
  }
  transfer.easy.reset();
}

void CurlTransport::EndLater(Transfer& transfer, Status failure) {
  if (transfer.over) return;
  transfer.over = true;
  transfer.failure = std::move(failure);
  if (inside_curl_) {
    deferred_ends_.push_back(transfer.id);
  } else {
    End(transfer);
  }
  loop_.Post([this, id = transfer.id] { Deliver(id, transfers_.at(id)->failure); });
}

void CurlTransport::Cancel(RequestId id) {
  FB_ASSERT(loop_.InThread());
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  EndLater(*found->second, Status(Code::kCancelled, "the request was cancelled"));
}

void CurlTransport::Close(Task on_closed) {
  FB_ASSERT(loop_.InThread());
  FB_ASSERT(!closing_);
  closing_ = true;
  on_closed_ = std::move(on_closed);
  std::vector<RequestId> all;
  all.reserve(transfers_.size());
  for (const auto& [id, transfer] : transfers_) all.push_back(id);
  for (const RequestId id : all) Cancel(id);
  CloseWhenEmpty();
}

void CurlTransport::CloseWhenEmpty() {
  if (!closing_ || !transfers_.empty() || !on_closed_) return;
  loop_.Post(std::exchange(on_closed_, nullptr));
}

// One timer for all bounds of an exchange: it looks at what has happened and sets itself again for
// the earliest moment at which a bound could be passed.
void CurlTransport::CheckTimes(Transfer& transfer) {
  transfer.timer = 0;
  const Time now = loop_.Now();
  const HttpRequest& request = transfer.request;
  if (now >= request.deadline) {
    const char* phase = transfer.head.complete() ? "receiving the body" : "waiting for the answer";
    EndLater(transfer, Status(Code::kDeadlineExceeded,
                              fmt::format("the deadline passed while {}, {} body bytes had arrived",
                                          phase, transfer.sink.bytes())));
    return;
  }
  Time next = request.deadline;
  if (transfer.head.complete()) {
    next = std::min(next, transfer.progress + request.stall_timeout);
    if (now >= next) {
      EndLater(transfer, Status(Code::kUnavailable, fmt::format("the body stalled after {} bytes",
                                                                transfer.sink.bytes())));
      return;
    }
  } else {
    curl_off_t connected_us = 0;
    curl_easy_getinfo(transfer.easy.get(), CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    const bool connected = connected_us > 0;
    const bool sent = transfer.sent_bytes == transfer.send_total;
    const Time from = !connected
                          ? now
                          : std::max(transfer.progress,
                                     transfer.started + std::chrono::microseconds(connected_us));
    const Time bound = from + (sent ? request.first_byte_timeout : request.stall_timeout);
    if (now >= bound) {
      EndLater(transfer, Status(Code::kUnavailable,
                                sent ? std::string("no answer came in time")
                                     : fmt::format("sending stalled after {} of {} bytes",
                                                   transfer.sent_bytes, transfer.send_total)));
      return;
    }
    // The next phase may have a shorter bound than this one, and nobody wakes us when it begins.
    next =
        std::min({next, bound, now + std::min(request.first_byte_timeout, request.stall_timeout)});
  }
  transfer.timer = loop_.PostAt(next, [this, &transfer] { CheckTimes(transfer); });
}

}  // namespace

Result<std::unique_ptr<HttpTransport>> MakeCurlTransport(sys::EventLoop& loop,
                                                         const CurlTransportOptions& options) {
  FB_RETURN_IF_ERROR(InitCurl());
  if (!options.ca_bundle.empty() && !std::ifstream(options.ca_bundle)) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the CA bundle {} cannot be read", options.ca_bundle));
  }
  CURLM* multi = curl_multi_init();
  CURLSH* share = curl_share_init();
  if (multi == nullptr || share == nullptr) {
    if (multi != nullptr) curl_multi_cleanup(multi);
    if (share != nullptr) curl_share_cleanup(share);
    return Status(Code::kResourceExhausted, "libcurl gives no handle");
  }
  // TLS sessions belong to one handle in libcurl before 8.12; shared, any handle resumes them.
  curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
  auto transport = std::make_unique<CurlTransport>(loop, options, multi, share);
  transport->Configure();
  return std::unique_ptr<HttpTransport>(std::move(transport));
}

}  // namespace forebay::net
