// Ceph's S3 gateway (Debian's ceph-mon, ceph-osd, radosgw): one monitor, one object store daemon,
// one gateway. Unlike SeaweedFS in every respect: keys are bytes, listings in their order.
#pragma once

#include <memory>
#include <string>

#include "testing/test_server.h"

namespace forebay::testing {

class CephServer final : public TestServer {
 public:
  // Waits until the gateway takes a signed PUT into `bucket`, which exists then (three times 2
  // minutes at most).
  static Result<std::unique_ptr<CephServer>> Start(const std::string& bucket);
  // For virtual-host style.
  std::string virtual_endpoint() const { return "http://s3.localhost:" + gateway_port_; }

 private:
  CephServer() = default;
  static Result<std::unique_ptr<CephServer>> StartOnce(const std::string& bucket);
  Status Configure();
  Status MakeKeys();
  Status StartCluster();
  Status StartGateway();
  // "PROGRAM -c ceph.conf ..."
  Arguments Program(const std::string& name, const Arguments& arguments) const;

  std::string monitor_port_;
  std::string gateway_port_;
};

}  // namespace forebay::testing
