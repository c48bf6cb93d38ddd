#include "testing/tls_identity.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/assert.h"

namespace forebay::testing {
namespace {

constexpr char kNames[] = "IP:127.0.0.1,IP:127.0.0.2,IP:127.0.0.3,DNS:localhost,DNS:*.bucket.test";

X509* MakeCertificate(EVP_PKEY* key) {
  X509* certificate = X509_new();
  FB_ASSERT(certificate != nullptr);
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 2L * 24 * 3600);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("forebay test"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  X509_EXTENSION* names = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, kNames);
  FB_ASSERT(names != nullptr && X509_add_ext(certificate, names, -1) == 1);
  X509_EXTENSION_free(names);
  FB_ASSERT(X509_sign(certificate, key, EVP_sha256()) > 0);
  return certificate;
}

}  // namespace

TlsIdentity& TlsIdentity::OfProcess() {
  static TlsIdentity identity;
  return identity;
}

TlsIdentity::TlsIdentity() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  FB_ASSERT(key != nullptr);
  X509* certificate = MakeCertificate(key);
  file_ = std::filesystem::temp_directory_path() /
          ("forebay-test-ca-" + std::to_string(::getpid()) + ".pem");
  FILE* file = std::fopen(file_.c_str(), "w");
  FB_ASSERT(file != nullptr && PEM_write_X509(file, certificate) == 1);
  std::fclose(file);
  context_ = SSL_CTX_new(TLS_server_method());
  FB_ASSERT(context_ != nullptr && SSL_CTX_use_certificate(context_, certificate) == 1 &&
            SSL_CTX_use_PrivateKey(context_, key) == 1);
  X509_free(certificate);
  EVP_PKEY_free(key);
}

TlsIdentity::~TlsIdentity() {
  std::error_code error;
  std::filesystem::remove(file_, error);
  SSL_CTX_free(context_);
}

TlsServerSide::TlsServerSide(int fd) : ssl_(SSL_new(TlsIdentity::OfProcess().context())) {
  FB_ASSERT(ssl_ != nullptr);
  SSL_set_fd(ssl_, fd);
  SSL_set_accept_state(ssl_);
}

TlsServerSide::~TlsServerSide() { SSL_free(ssl_); }

long TlsServerSide::Receive(char* into, size_t size) {
  size_t n = 0;
  if (SSL_read_ex(ssl_, into, size, &n) == 1) return static_cast<long>(n);
  return SSL_get_error(ssl_, 0) == SSL_ERROR_ZERO_RETURN ? 0 : -1;
}

long TlsServerSide::Send(const char* from, size_t size) {
  size_t n = 0;
  return SSL_write_ex(ssl_, from, size, &n) == 1 ? static_cast<long>(n) : -1;
}

void TlsServerSide::CloseNotify() { SSL_shutdown(ssl_); }

bool TlsServerSide::resumed() const { return SSL_session_reused(ssl_) == 1; }

}  // namespace forebay::testing
