// Against a real server: what a scripted one cannot show (signatures are checked, TLS is verified).
#include "store/s3/s3_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "net/routed_transport.h"
#include "store/sync_store.h"
#include "sys/event_loop.h"
#include "testing/s3_server.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::S3Server;

constexpr char kBucket[] = "s3-store-test";

class S3StoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto server = S3Server::Start(kBucket, /*tls=*/true);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
  }
  static void TearDownTestSuite() { server_.reset(); }

  void SetUp() override {
    ASSERT_NE(server_, nullptr);
    auto loop = sys::EventLoop::Make("s3-test");
    ASSERT_TRUE(loop.ok());
    loop_ = *std::move(loop);
  }
  void TearDown() override {
    if (loop_ != nullptr) loop_->Stop();
  }

  SyncStore Open(const S3StoreOptions& options,
                 const net::TransportOptions& transport_options = {}) {
    auto transport = net::MakeTransport(*loop_, transport_options);
    EXPECT_TRUE(transport.ok()) << transport.status().ToString();
    transports_.push_back(*std::move(transport));
    auto store = MakeS3Store(options, *transports_.back());
    EXPECT_TRUE(store.ok()) << store.status().ToString();
    return SyncStore(*std::move(store));
  }

  static std::unique_ptr<S3Server> server_;
  std::unique_ptr<sys::EventLoop> loop_;
  std::vector<std::unique_ptr<net::HttpTransport>> transports_;
};

std::unique_ptr<S3Server> S3StoreTest::server_;

Result<std::string> ReadText(const SyncStore& store, const std::string& key, ByteRange range,
                             std::string etag = "") {
  std::string text(range.size(), '#');
  auto result = store.Read({.key = key,
                            .etag = std::move(etag),
                            .range = range,
                            .target = {std::as_writable_bytes(std::span(text))}});
  if (!result.ok()) return result.status();
  return text;
}

void ExpectRoundTrip(const SyncStore& store, const std::string& key) {
  const std::string body = "body of " + key;
  auto put = store.Put({.key = key, .body = {AsBytes(body)}});
  ASSERT_TRUE(put.ok()) << key << ": " << put.status().ToString();
  auto head = store.Head(key);
  ASSERT_TRUE(head.ok()) << key << ": " << head.status().ToString();
  EXPECT_EQ(head->size, body.size());
  EXPECT_EQ(head->etag, put->etag);
  EXPECT_GT(head->modified_unix_s, 1'600'000'000);
  auto text = ReadText(store, key, {1, body.size()}, put->etag);
  ASSERT_TRUE(text.ok()) << key << ": " << text.status().ToString();
  EXPECT_EQ(*text, body.substr(1));
}

TEST_F(S3StoreTest, a_signed_and_pinned_range_comes_back) {
  const SyncStore store = Open(server_->Options(kBucket));
  ExpectRoundTrip(store, "plain.bin");
  auto stale = ReadText(store, "plain.bin", {0, 4}, "00112233445566778899aabbccddeeff");
  EXPECT_EQ(stale.code(), Code::kPreconditionFailed) << stale.status().ToString();
}

TEST_F(S3StoreTest, keys_with_odd_bytes_are_signed_as_they_are_sent) {
  const SyncStore store = Open(server_->Options(kBucket));
  for (const char* key :
       {"a b", "a+b", "a%2Bb", "a%b", "\xc3\xa9", "e\xcc\x81", "\xe6\x97\xa5", "a&b=c?d#e", "a;b",
        "~", "*'()!", "\"", "ends in space ", "dt=2024-01-01/x", "a,b:c@d$e"}) {
    ExpectRoundTrip(store, key);
  }
  auto page = store.List({.prefix = "a+"});
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].key, "a+b");
}

TEST_F(S3StoreTest, tls_is_verified_through_the_ca_bundle) {
  S3StoreOptions options = server_->Options(kBucket);
  options.config.endpoint_url = server_->tls_endpoint();
  ExpectRoundTrip(Open(options, {.ca_bundle = server_->ca_bundle()}), "tls.bin");
  ExpectRoundTrip(Open(options, {.verify_tls = false}), "tls-unverified.bin");
  auto refused = Open(options).Head("tls.bin");
  EXPECT_EQ(refused.code(), Code::kInvalidArgument) << refused.status().ToString();
}

TEST_F(S3StoreTest, virtual_host_style_reaches_the_same_bucket) {
  S3StoreOptions options = server_->Options(kBucket);
  options.config.endpoint_url = server_->virtual_endpoint();
  options.config.addressing_style = "virtual";
  ExpectRoundTrip(Open(options), "virtual host.bin");
  auto page = Open(options).List({.prefix = "virtual"});
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  EXPECT_EQ(page->objects.size(), 1U);
}

TEST_F(S3StoreTest, wrong_credentials_are_permission_denied_and_never_shown) {
  S3StoreOptions options = server_->Options(kBucket);
  options.config.credentials.secret_access_key = "not-the-secret";
  auto head = Open(options).Head("plain.bin");
  EXPECT_EQ(head.code(), Code::kPermissionDenied) << head.status().ToString();
  auto put = Open(options).Put({.key = "x", .body = {AsBytes("x")}});
  EXPECT_EQ(put.code(), Code::kPermissionDenied) << put.status().ToString();
  EXPECT_EQ(put.status().ToString().find("not-the-secret"), std::string::npos);
  options.config.credentials = {.anonymous = true};
  EXPECT_EQ(Open(options).Head("plain.bin").code(), Code::kPermissionDenied);
}

}  // namespace
}  // namespace forebay::store::s3
