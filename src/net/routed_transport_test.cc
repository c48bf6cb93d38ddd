#include "net/routed_transport.h"

#include <cstdlib>
#include <future>

#include "testing/scripted_server.h"
#include "testing/transport_conformance.h"

namespace forebay::testing {
namespace {

std::unique_ptr<net::HttpTransport> Make(sys::EventLoop& loop, const std::string& ca) {
  return *net::MakeTransport(
      loop, {.ca_bundle = ca,
             .proxies = net::ProxyRules([](const std::string&) { return "http://127.0.0.1:1"; })});
}

INSTANTIATE_TEST_SUITE_P(Routed, TransportConformance,
                         ::testing::Values(TransportSubject{.name = "routed", .make = Make}));

TEST(RoutedTransport, a_ca_bundle_that_cannot_be_read_is_refused_at_once) {
  auto loop = sys::EventLoop::Make("test-net");
  ASSERT_TRUE(loop.ok());
  auto transport = net::MakeTransport(**loop, {.ca_bundle = "/nowhere/ca.pem"});
  EXPECT_EQ(transport.code(), Code::kInvalidArgument) << transport.status().ToString();
}

class Answer : public net::HttpHandler {
 public:
  Result<net::BodyTarget> OnHead(const net::HttpHead&) override {
    return net::BodyTarget{.text = &text, .text_limit = 100};
  }
  void OnBody(ByteView) override {}
  void OnDone(Status result, const net::HttpTiming&) override {
    status = std::move(result);
    over.set_value();
  }
  std::string text;
  Status status;
  std::promise<void> over;
};

TEST(RoutedTransport, what_a_proxy_is_for_goes_through_it) {
  ScriptedServer proxy([](const SeenRequest&) { return ScriptedReply{HttpText(200, {}, "p")}; });
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  auto loop = *sys::EventLoop::Make("test-net");
  auto transport =
      *net::MakeTransport(*loop, {.proxies = net::ProxyRules([](const std::string& name) {
                                    const char* value = ::getenv(name.c_str());
                                    return std::string(value == nullptr ? "" : value);
                                  })});
  Answer answer;
  loop->Post([&] { transport->Start({.url = "http://bucket.test/x"}, &answer); });
  answer.over.get_future().wait();
  ::unsetenv("http_proxy");
  EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
  EXPECT_EQ(answer.text, "p");
  ASSERT_EQ(proxy.seen().size(), 1U);
  EXPECT_EQ(proxy.seen().front().target, "http://bucket.test/x");
  loop->Stop();
}

}  // namespace
}  // namespace forebay::testing
