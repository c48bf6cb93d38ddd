#include "net/curl_transport.h"

#include "testing/transport_conformance.h"

namespace forebay::testing {
namespace {

std::unique_ptr<net::HttpTransport> Make(sys::EventLoop& loop, const std::string& ca) {
  return *net::MakeCurlTransport(loop, {.ca_bundle = ca});
}

INSTANTIATE_TEST_SUITE_P(Curl, TransportConformance,
                         ::testing::Values(TransportSubject{.name = "curl", .make = Make}));
INSTANTIATE_TEST_SUITE_P(CurlTls, TransportConformance,
                         ::testing::Values(TransportSubject{
                             .name = "curl", .make = Make, .tls = true}));

TEST(CurlTransport, a_ca_bundle_that_cannot_be_read_is_refused_at_once) {
  auto loop = sys::EventLoop::Make("test-net");
  ASSERT_TRUE(loop.ok());
  auto transport = net::MakeCurlTransport(**loop, {.ca_bundle = "/nowhere/ca.pem"});
  EXPECT_EQ(transport.code(), Code::kInvalidArgument) << transport.status().ToString();
}

}  // namespace
}  // namespace forebay::testing
