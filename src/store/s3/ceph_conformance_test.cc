// Ceph's gateway, and where it deviates.
#include "testing/ceph_server.h"
#include "testing/s3_conformance.h"

namespace forebay::testing {
namespace {

S3Subject Subject() {
  S3Subject subject{.name = "Ceph", .start = StartServer<CephServer>};
  subject.store.least_part_bytes = 5 << 20;
  // It compares the quoted etag of if-match with its own, which has no quotes: always 412.
  subject.store.if_match = false;
  // CompleteMultipartUpload ignores conditions.
  subject.store.complete_if_none_match = false;
  subject.checks_checksums = false;
  subject.virtual_endpoint = [](const TestServer& server) {
    return static_cast<const CephServer&>(server).virtual_endpoint();
  };
  return subject;
}

INSTANTIATE_S3_CONFORMANCE(Ceph, Subject());

}  // namespace
}  // namespace forebay::testing
