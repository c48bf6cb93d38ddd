// A real S3 server (SeaweedFS) as a child process on free loopback ports, for component tests. The
// binary is $FOREBAY_WEED or `weed` in PATH.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "store/s3/s3_store.h"

namespace forebay::testing {

class S3Server {
 public:
  // Waits until the server takes a signed PUT into `bucket`, which exists then (60 s at most).
  // `tls`: also serves https with a certificate of its own, for 127.0.0.1 and *.s3.localhost.
  static Result<std::unique_ptr<S3Server>> Start(const std::string& bucket, bool tls = false);
  // Kills it and removes its files, also the sockets that it leaves in /tmp.
  ~S3Server();
  S3Server(const S3Server&) = delete;
  S3Server& operator=(const S3Server&) = delete;

  // Creates another bucket.
  Status MakeBucket(const std::string& bucket) const;
  // Options of a store for `bucket`, with this server's endpoint and credentials.
  store::s3::S3StoreOptions Options(const std::string& bucket) const;

  std::string endpoint() const;          // http://127.0.0.1:PORT
  std::string tls_endpoint() const;      // https://127.0.0.1:PORT
  std::string virtual_endpoint() const;  // http://s3.localhost:PORT, for virtual-host style
  std::string ca_bundle() const { return folder_ + "/cert.pem"; }
  pid_t pid() const { return pid_; }

 private:
  S3Server() = default;
  Status Prepare(bool tls);
  Status Spawn(bool tls);
  Status WaitReady(const std::string& bucket) const;
  void Kill();

  std::string folder_;
  std::array<uint16_t, 9> ports_{};
  pid_t pid_ = -1;
};

}  // namespace forebay::testing
