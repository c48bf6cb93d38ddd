#include "net/curl_transport.h"

#include "testing/transport_conformance.h"

namespace forebay::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Curl, TransportConformance,
                         ::testing::Values(TransportSubject{
                             .name = "curl", .make = [](sys::EventLoop& loop) {
                               return *net::MakeCurlTransport(loop, {});
                             }}));

TEST(CurlTransport, a_ca_bundle_that_cannot_be_read_is_refused_at_once) {
  auto loop = sys::EventLoop::Make("test-net");
  ASSERT_TRUE(loop.ok());
  auto transport = net::MakeCurlTransport(**loop, {.ca_bundle = "/nowhere/ca.pem"});
  EXPECT_EQ(transport.code(), Code::kInvalidArgument) << transport.status().ToString();
}

}  // namespace
}  // namespace forebay::testing
