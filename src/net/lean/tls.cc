#include "net/lean/tls.h"

#include <fmt/core.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"
#include "sys/fd.h"
#include "sys/per_process.h"

namespace forebay::net::lean {
namespace {

constexpr size_t kMaxSessions = 64;
// Of the ciphertext that is read at once: two whole records of TLS 1.3 (RFC 8446, section 5.2: 5
// bytes of header, 2^14 of data, the type, the tag of AES-GCM). What is left of a record when the
// next ones are read is moved to the front first, and more than this does not stay in the L1 cache.
constexpr size_t kReadAhead = 2 * (5 + 16 * 1024 + 1 + 16);

Status OutOfMemory() { return Status(Code::kResourceExhausted, "OpenSSL gives no object"); }

}  // namespace

// What OpenSSL calls.
struct TlsCallbacks {
  static TlsChannel& ChannelOf(BIO* bio) { return *static_cast<TlsChannel*>(BIO_get_data(bio)); }

  static int Read(BIO* bio, char* into, int size) {
    TlsChannel& channel = ChannelOf(bio);
    BIO_clear_retry_flags(bio);
    sys::IoResult result{.would_block = true};
    if (channel.readiness_.readable) {
      const auto asked = static_cast<size_t>(size);
      result = sys::Receive(channel.socket_, {reinterpret_cast<std::byte*>(into), asked});
      channel.readiness_.Learn(result, asked);
    }
    if (result.ok() && result.bytes == 0) channel.socket_ended_ = true;
    return Return(bio, channel, result, /*reading=*/true);
  }

  static int Write(BIO* bio, const char* from, int size) {
    TlsChannel& channel = ChannelOf(bio);
    BIO_clear_retry_flags(bio);
    const ByteView bytes(reinterpret_cast<const std::byte*>(from), static_cast<size_t>(size));
    return Return(bio, channel, sys::Send(channel.socket_, {&bytes, 1}), /*reading=*/false);
  }

  static int Return(BIO* bio, TlsChannel& channel, const sys::IoResult& result, bool reading) {
    if (result.ok()) return static_cast<int>(result.bytes);
    if (result.would_block) {
      reading ? BIO_set_retry_read(bio) : BIO_set_retry_write(bio);
    } else {
      channel.socket_error_ = result.error;
    }
    return -1;
  }

  static long Control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static int OnSession(SSL* ssl, SSL_SESSION* session) {
    static_cast<TlsChannel*>(SSL_get_app_data(ssl))->sessions_.Add(session);
    return 1;  // it is ours now
  }
};

TlsSessions::~TlsSessions() {
  for (SSL_SESSION* session : sessions_) SSL_SESSION_free(session);
}

void TlsSessions::Add(SSL_SESSION* owned) {
  if (sessions_.size() >= kMaxSessions) {
    SSL_SESSION_free(sessions_.front());
    sessions_.erase(sessions_.begin());
  }
  sessions_.push_back(owned);
}

SSL_SESSION* TlsSessions::Take() {
  if (sessions_.empty()) return nullptr;
  SSL_SESSION* session = sessions_.back();
  if (sessions_.size() > 1) {
    sessions_.pop_back();
  } else {
    SSL_SESSION_up_ref(session);
  }
  return session;
}

namespace {

using Certificates = std::shared_ptr<X509_STORE>;

Result<Certificates> ParseCertificates(const std::string& ca_bundle) {
  Certificates store(X509_STORE_new(), X509_STORE_free);
  if (!store) return OutOfMemory();
  if (ca_bundle.empty()) {
    X509_STORE_set_default_paths(store.get());
  } else if (X509_STORE_load_file(store.get(), ca_bundle.c_str()) != 1) {
    ERR_clear_error();
    return Status(Code::kInvalidArgument,
                  fmt::format("the CA bundle {} cannot be read", ca_bundle));
  }
  return store;
}

// Parsing a system's takes 20 ms: the process does it once, and then looks whether the file is
// still that one.
class CertificateCache {
 public:
  Result<Certificates> Get(const std::string& ca_bundle) {
    const Result<sys::FileInfo> found = sys::InfoOfPath(ca_bundle);
    const sys::FileInfo info = found.ok() ? *found : sys::FileInfo();
    const MutexLock lock(mutex_);
    const auto known = known_.find(ca_bundle);
    if (known != known_.end() && known->second.first == info) return known->second.second;
    FB_ASSIGN_OR_RETURN(Certificates parsed, ParseCertificates(ca_bundle));
    if (known_.size() >= kKnownMost) known_.clear();
    known_.insert_or_assign(ca_bundle, std::pair(info, parsed));
    return parsed;
  }

 private:
  static constexpr size_t kKnownMost = 16;

  Mutex mutex_;
  std::map<std::string, std::pair<sys::FileInfo, Certificates>> known_ FB_GUARDED_BY(mutex_);
};

CertificateCache& CertificatesOfProcess() {
  static sys::PerProcess<std::shared_ptr<CertificateCache>> cache;
  return *cache.Get([] { return std::make_shared<CertificateCache>(); });
}

}  // namespace

Result<std::unique_ptr<TlsContext>> TlsContext::Make(const std::string& ca_bundle, bool verify) {
  std::unique_ptr<TlsContext> context(new TlsContext());
  FB_RETURN_IF_ERROR(context->Configure(ca_bundle, verify));
  return context;
}

Status TlsContext::Configure(const std::string& ca_bundle, bool verify) {
  context_ = SSL_CTX_new(TLS_client_method());
  method_ = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "forebay socket");
  if (context_ == nullptr || method_ == nullptr) return OutOfMemory();
  BIO_meth_set_read(method_, &TlsCallbacks::Read);
  BIO_meth_set_write(method_, &TlsCallbacks::Write);
  BIO_meth_set_ctrl(method_, &TlsCallbacks::Control);

  SSL_CTX_set_min_proto_version(context_, TLS1_2_VERSION);
  // The cheapest first: the cipher is the largest part of what a byte costs.
  SSL_CTX_set_ciphersuites(
      context_, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256");
  SSL_CTX_set_mode(context_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                 SSL_MODE_RELEASE_BUFFERS | SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_read_ahead(context_, 1);
  SSL_CTX_set_default_read_buffer_len(context_, kReadAhead);
  SSL_CTX_set_session_cache_mode(context_,
                                 SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(context_, &TlsCallbacks::OnSession);
  static constexpr std::array<unsigned char, 9> kHttp11 = {8,   'h', 't', 't', 'p',
                                                           '/', '1', '.', '1'};
  SSL_CTX_set_alpn_protos(context_, kHttp11.data(), kHttp11.size());

  SSL_CTX_set_verify(context_, verify ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  FB_ASSIGN_OR_RETURN(const Certificates certificates, CertificatesOfProcess().Get(ca_bundle));
  SSL_CTX_set1_cert_store(context_, certificates.get());
  return {};
}

TlsContext::~TlsContext() {
  SSL_CTX_free(context_);
  BIO_meth_free(method_);
}

Result<std::unique_ptr<TlsChannel>> TlsContext::Open(const sys::Fd& socket, Readiness& readiness,
                                                     const std::string& host,
                                                     TlsSessions& sessions) {
  std::unique_ptr<TlsChannel> channel(new TlsChannel(socket, readiness, sessions));
  SSL* ssl = channel->ssl_ = SSL_new(context_);
  BIO* bio = ssl == nullptr ? nullptr : BIO_new(method_);
  if (bio == nullptr) return OutOfMemory();
  BIO_set_data(bio, channel.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_app_data(ssl, channel.get());
  SSL_set_connect_state(ssl);
  bool named = false;
  if (const auto ip = sys::ParseIpAddress(host)) {
    named = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), ip->ToString().c_str()) == 1;
  } else {
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    named =
        SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
  }
  if (!named) {
    ERR_clear_error();
    return Status(Code::kInvalidArgument, fmt::format("'{}' is no host that TLS can name", host));
  }
  if (SSL_SESSION* session = sessions.Take()) {
    SSL_set_session(ssl, session);
    SSL_SESSION_free(session);
  }
  return channel;
}

TlsChannel::~TlsChannel() {
  if (ssl_ == nullptr) return;
  // Else OpenSSL holds the end of the connection against its session.
  SSL_set_shutdown(ssl_, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
  SSL_free(ssl_);
}

bool TlsChannel::resumed() const { return SSL_session_reused(ssl_) == 1; }
bool TlsChannel::HasPending() const { return SSL_has_pending(ssl_) == 1; }

// Of a call that returned `returned` (<= 0) and moved nothing.
sys::IoResult TlsChannel::ResultOf(int returned) {
  const int error = SSL_get_error(ssl_, returned);
  switch (error) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      return {.would_block = true};
    case SSL_ERROR_ZERO_RETURN:
      ended_cleanly_ = true;
      return {};
    default:
      break;
  }
  if (failure_.ok()) failure_ = Describe(error);
  const bool ended = socket_ended_ && SSL_is_init_finished(ssl_) == 1;
  ERR_clear_error();
  if (ended) return {};
  return {.error = socket_error_ != 0 ? socket_error_ : EPROTO};
}

Status TlsChannel::Describe(int error) const {
  if (socket_error_ != 0) {
    return Status(Code::kUnavailable, fmt::format("TLS: {}", std::strerror(socket_error_)));
  }
  const long verified = SSL_get_verify_result(ssl_);
  if (verified != X509_V_OK && (SSL_get_verify_mode(ssl_) & SSL_VERIFY_PEER) != 0) {
    return Status(Code::kInvalidArgument,
                  fmt::format("the server's certificate does not verify: {}",
                              X509_verify_cert_error_string(verified)));
  }
  if (socket_ended_) return Status(Code::kUnavailable, "TLS: the server closed the connection");
  std::array<char, 256> text{};
  ERR_error_string_n(ERR_peek_error(), text.data(), text.size());
  return Status(Code::kUnavailable, fmt::format("TLS: {} ({})", text.data(), error));
}

sys::IoResult TlsChannel::Handshake() {
  ERR_clear_error();
  const int returned = SSL_do_handshake(ssl_);
  if (returned == 1) return {};
  const sys::IoResult result = ResultOf(returned);
  FB_ASSERT(!result.ok());
  return result;
}

sys::IoResult TlsChannel::Read(std::span<const MutableBytes> into) {
  sys::IoResult total;
  if (!failure_.ok()) return {.error = EPROTO};
  ERR_clear_error();
  for (MutableBytes piece : into) {
    while (!piece.empty()) {
      size_t n = 0;
      const int returned = SSL_read_ex(ssl_, piece.data(), piece.size(), &n);
      if (returned != 1) {
        if (total.bytes > 0) {
          // Said again when nothing came before it.
          ERR_clear_error();
          return total;
        }
        return ResultOf(returned);
      }
      total.bytes += n;
      piece = piece.subspan(n);
    }
  }
  return total;
}

sys::IoResult TlsChannel::Write(ByteView bytes) {
  if (!failure_.ok()) return {.error = EPROTO};
  ERR_clear_error();
  sys::IoResult result;
  const int returned = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &result.bytes);
  if (returned == 1) return result;
  result = ResultOf(returned);
  if (result.ok()) return {.error = EPIPE};
  return result;
}

}  // namespace forebay::net::lean
