#include "engine/store_set.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "store/sync_store.h"

namespace forebay::engine {
namespace {

store::Uri Parse(const std::string& text) { return *store::ParseUri(text); }

TEST(StoreSet, gives_the_same_store_for_the_same_bucket_and_shares_memory_by_name) {
  const auto set = *StoreSet::Make({});
  const auto one = *set->StoreFor(Parse("memory://a/x"));
  const auto same = *set->StoreFor(Parse("memory://a/y"));
  const auto other = *set->StoreFor(Parse("memory://b/x"));
  EXPECT_EQ(one.get(), same.get());
  EXPECT_NE(one.get(), other.get());
  EXPECT_EQ((*set->StoreFor(Parse("/tmp/x")))->root_uri(), "file://");
}

TEST(StoreSet, a_store_keeps_the_set_alive) {
  std::shared_ptr<store::ObjectStore> held;
  {
    const auto set = *StoreSet::Make({});
    held = *set->StoreFor(Parse("memory://a/x"));
  }
  const store::SyncStore store(held);
  const std::string body = "body";
  EXPECT_TRUE(store.Put({.key = "x", .body = {AsBytes(body)}}).ok());
  EXPECT_EQ(store.Head("x")->size, 4U);
}

TEST(StoreSet, counts_what_a_bucket_was_asked_and_fails_within_the_request_timeout) {
  const auto set = *StoreSet::Make({.endpoint_url = "http://127.0.0.1:9",  // nobody listens there
                                    .no_sign_request = true,
                                    .max_attempts = 2});
  EXPECT_TRUE(set->Counters().empty());
  const store::SyncStore store(*set->StoreFor(Parse("s3://bucket/x")));
  const Result<store::ObjectInfo> info = store.Head("x");
  EXPECT_EQ(info.code(), Code::kUnavailable) << info.status().ToString();
  const auto counters = set->Counters();
  ASSERT_TRUE(counters.contains("s3://bucket"));
  const store::VerbCounters& head = counters.at("s3://bucket").of(store::Verb::kHead);
  EXPECT_EQ(head.finished(), 1U);
  EXPECT_EQ(head.retried(), 1U);
}

TEST(StoreSet, a_bandwidth_that_cannot_be_meant_is_refused_by_name) {
  for (const char* text : {"fast", "10X", "0", "-1", "2GG", "1Mi", "MiB", "1MiB/h", "1 mib"}) {
    ::setenv("FOREBAY_NODE_BANDWIDTH", text, 1);
    const auto set =
        *StoreSet::Make({.endpoint_url = "http://127.0.0.1:9", .no_sign_request = true});
    const auto store = set->StoreFor(Parse("s3://bucket/x"));
    EXPECT_EQ(store.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(store.status().ToString().find("FOREBAY_NODE_BANDWIDTH"), std::string::npos);
  }
  for (const char* text : {"2.5G", "100M", "1000", "", "1MiB", "2.5 GB", "64KiB/s", "1TB", "9B"}) {
    ::setenv("FOREBAY_NODE_BANDWIDTH", text, 1);
    const auto set =
        *StoreSet::Make({.endpoint_url = "http://127.0.0.1:9", .no_sign_request = true});
    EXPECT_TRUE(set->StoreFor(Parse("s3://bucket/x")).ok()) << text;
  }
  ::unsetenv("FOREBAY_NODE_BANDWIDTH");
}

TEST(StoreSet, refuses_options_that_cannot_be_meant) {
  EXPECT_EQ(StoreSet::Make({.endpoint_url = "127.0.0.1:9"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(StoreSet::Make({.addressing_style = "sideways"}).code(), Code::kInvalidArgument);
  EXPECT_EQ(StoreSet::Make({.max_attempts = -1}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::engine
