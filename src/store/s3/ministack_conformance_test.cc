// ministack, and where it deviates.
#include "testing/ministack_server.h"
#include "testing/s3_conformance.h"

namespace forebay::testing {
namespace {

S3Subject Subject() {
  S3Subject subject{.name = "ministack", .start = StartServer<MinistackServer>};
  subject.checks_signatures = false;
  subject.completes_once = false;
  subject.store.least_part_bytes = 5 << 20;
  return subject;
}

INSTANTIATE_S3_CONFORMANCE(ministack, Subject());

}  // namespace
}  // namespace forebay::testing
