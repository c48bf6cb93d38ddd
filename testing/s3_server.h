// SeaweedFS, the S3 server of most component tests. The binary is $FOREBAY_WEED or `weed` in PATH.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "testing/test_server.h"

namespace forebay::testing {

class S3Server final : public TestServer {
 public:
  // Waits until the server takes a signed PUT into `bucket`, which exists then (60 s at most).
  // `tls`: also serves https with a certificate of its own, for 127.0.0.1 and *.s3.localhost.
  static Result<std::unique_ptr<S3Server>> Start(const std::string& bucket, bool tls = false);
  ~S3Server() override;

  std::string tls_endpoint() const;      // https://127.0.0.1:PORT
  std::string virtual_endpoint() const;  // http://s3.localhost:PORT, for virtual-host style
  std::string ca_bundle() const { return folder_ + "/cert.pem"; }
  pid_t pid() const { return pid_; }

 private:
  S3Server() = default;
  Status Prepare(bool tls);
  Status Spawn(bool tls);

  std::vector<uint16_t> ports_;
  pid_t pid_ = -1;
};

}  // namespace forebay::testing
