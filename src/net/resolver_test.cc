#include "net/resolver.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <future>
#include <set>

#include "sys/event_loop.h"
#include "testing/manual_executor.h"
#include "testing/temp_folder.h"

namespace forebay::net {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

sys::IpAddress Ip(const std::string& text) { return *sys::ParseIpAddress(text); }

Addresses Ips(std::initializer_list<const char*> texts) {
  Addresses all;
  for (const char* text : texts) all.push_back(Ip(text));
  return all;
}

std::set<std::string> Texts(const Addresses& addresses) {
  std::set<std::string> texts;
  for (const sys::IpAddress& ip : addresses) texts.insert(ip.ToString());
  return texts;
}

// One cache and one resolver in virtual time; lookups wait until the test answers them.
class ResolverTest : public ::testing::Test {
 protected:
  std::shared_ptr<HostCache> MakeCache() {
    return HostCache::Make({.lookup =
                                [this](const std::string& host, HostCache::OnAnswer on_answer) {
                                  asked.push_back(host);
                                  pending.push_back(std::move(on_answer));
                                  if (automatic) Reply(automatic());
                                },
                            .now = [this] { return executor.Now(); },
                            .seed = 7});
  }
  void Reply(Result<Addresses> answer) {
    ASSERT_FALSE(pending.empty());
    HostCache::OnAnswer on_answer = std::move(pending.front());
    pending.erase(pending.begin());
    on_answer(std::move(answer));
  }
  // The answer that comes without time passing.
  Result<Addresses> Now(const std::string& host = "h") {
    Result<Addresses> got = Status(Code::kInternal, "no answer yet");
    resolver.Resolve(host, kNever, [&got](Result<Addresses> answer) { got = std::move(answer); });
    executor.RunReady();
    return got;
  }

 public:
  testing::ManualExecutor executor;
  std::vector<std::string> asked;
  std::vector<HostCache::OnAnswer> pending;
  std::function<Result<Addresses>()> automatic;
  std::shared_ptr<HostCache> cache = MakeCache();
  Resolver resolver{executor, cache};
};

const Status kDown(Code::kUnavailable, "DNS is down");

TEST_F(ResolverTest, a_thousand_waiters_cost_one_lookup_and_start_at_different_addresses) {
  std::map<std::string, int> first;
  int answered = 0;
  for (int i = 0; i < 1000; ++i) {
    resolver.Resolve("h", kNever, [&](Result<Addresses> answer) {
      ASSERT_TRUE(answer.ok());
      EXPECT_EQ(answer->size(), 4U);
      ++first[answer->front().ToString()];
      ++answered;
    });
  }
  executor.RunReady();
  EXPECT_EQ(answered, 0);
  ASSERT_EQ(asked.size(), 1U);
  Reply(Ips({"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"}));
  EXPECT_EQ(answered, 0) << "a callback ran on the thread of the lookup";
  executor.RunReady();
  EXPECT_EQ(answered, 1000);
  EXPECT_EQ(asked.size(), 1U);
  ASSERT_EQ(first.size(), 4U);
  for (const auto& [ip, times] : first) EXPECT_EQ(times, 250) << ip;
}

TEST_F(ResolverTest, other_executors_of_the_process_share_the_lookup) {
  Resolver other(executor, cache);
  int answered = 0;
  for (Resolver* one : {&resolver, &other, &other}) {
    one->Resolve("h", kNever, [&](Result<Addresses> answer) { answered += answer.ok() ? 1 : 0; });
  }
  Reply(Ips({"10.0.0.1"}));
  executor.RunReady();
  EXPECT_EQ(answered, 3);
  EXPECT_EQ(cache->lookups(), 1U);
}

TEST_F(ResolverTest, an_answer_is_used_for_a_minute_and_then_renewed_behind_its_users) {
  automatic = [] { return Ips({"10.0.0.1"}); };
  EXPECT_TRUE(Now().ok());
  for (int second = 0; second < 47; ++second) {
    executor.Advance(seconds(1));
    EXPECT_TRUE(Now().ok());
  }
  EXPECT_EQ(asked.size(), 1U);
  automatic = nullptr;
  executor.Advance(seconds(26));
  EXPECT_TRUE(Now().ok()) << "a user waited for the renewal";
  EXPECT_TRUE(Now().ok());
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(ResolverTest, answers_are_merged_and_what_no_answer_names_for_minutes_is_dropped) {
  int n = 0;
  automatic = [&n] {
    ++n;
    return n == 1 ? Ips({"10.0.0.1", "10.0.0.2"}) : Ips({"10.0.0.2", "10.0.0.3"});
  };
  EXPECT_TRUE(Now().ok());
  executor.Advance(seconds(100));
  EXPECT_TRUE(Now().ok());
  EXPECT_EQ(Texts(*Now()), (std::set<std::string>{"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
  for (int i = 0; i < 4; ++i) {
    executor.Advance(seconds(75));
    EXPECT_TRUE(Now().ok());
  }
  EXPECT_EQ(Texts(*Now()), (std::set<std::string>{"10.0.0.2", "10.0.0.3"}));
}

TEST_F(ResolverTest, a_minute_without_dns_rides_on_the_last_answer) {
  automatic = [] { return Ips({"10.0.0.1", "10.0.0.2"}); };
  EXPECT_TRUE(Now().ok());
  automatic = [] { return kDown; };
  executor.Advance(seconds(50));
  for (int second = 0; second < 60; ++second) {
    executor.Advance(seconds(1));
    const auto answer = Now();
    ASSERT_TRUE(answer.ok()) << second << " s: " << answer.status().ToString();
    EXPECT_EQ(answer->size(), 2U);
  }
  EXPECT_GE(asked.size(), 3U) << "it was not asked again";
  EXPECT_LE(asked.size(), 10U) << "a name that fails is asked for at growing intervals";
  automatic = [] { return Ips({"10.0.0.3"}); };
  executor.Advance(seconds(60));
  EXPECT_TRUE(Now().ok());
  EXPECT_EQ(Texts(*Now()).count("10.0.0.3"), 1U);
}

TEST_F(ResolverTest, an_old_answer_is_used_when_its_renewal_takes_longer_than_patience) {
  automatic = [] { return Ips({"10.0.0.1"}); };
  EXPECT_TRUE(Now().ok());
  automatic = nullptr;
  executor.Advance(minutes(60));
  Result<Addresses> got = Status(Code::kInternal, "no answer yet");
  resolver.Resolve("h", kNever, [&](Result<Addresses> answer) { got = std::move(answer); });
  executor.Advance(seconds(2));
  EXPECT_EQ(got.code(), Code::kInternal) << "an hour old, used without asking";
  executor.Advance(seconds(2));
  EXPECT_EQ(Texts(*got), (std::set<std::string>{"10.0.0.1"}));
  Reply(Ips({"10.0.0.9"}));
  EXPECT_EQ(Texts(*Now()), (std::set<std::string>{"10.0.0.9"}));
}

TEST_F(ResolverTest, failing_addresses_rest_and_are_the_last_resort) {
  automatic = [] { return Ips({"10.0.0.1", "10.0.0.2", "10.0.0.3"}); };
  EXPECT_TRUE(Now().ok());
  for (int i = 0; i < 50; ++i) cache->ReportFailure("h", Ip("10.0.0.2"));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(Now()->back(), Ip("10.0.0.2"));
  executor.Advance(seconds(6));
  std::set<std::string> first;
  for (int i = 0; i < 3; ++i) first.insert(Now()->front().ToString());
  EXPECT_EQ(first.size(), 3U) << "fifty failures at once rest as long as one";
  cache->ReportFailure("h", Ip("10.0.0.2"));
  executor.Advance(seconds(8));
  EXPECT_EQ(Now()->back(), Ip("10.0.0.2")) << "the second rest is no longer than the first";
  cache->ReportSuccess("h", Ip("10.0.0.2"));
  first.clear();
  for (int i = 0; i < 3; ++i) first.insert(Now()->front().ToString());
  EXPECT_EQ(first.size(), 3U);
  cache->ReportFailure("h", Ip("10.0.0.3"));
  executor.Advance(seconds(1));
  cache->ReportFailure("h", Ip("10.0.0.1"));
  executor.Advance(seconds(1));
  cache->ReportFailure("h", Ip("10.0.0.2"));
  EXPECT_EQ(*Now(), Ips({"10.0.0.3", "10.0.0.1", "10.0.0.2"})) << "all rest: the longest first";
}

TEST_F(ResolverTest, a_failing_address_brings_a_new_lookup_before_its_time) {
  automatic = [] { return Ips({"10.0.0.1"}); };
  EXPECT_TRUE(Now().ok());
  cache->ReportFailure("h", Ip("10.0.0.1"));
  EXPECT_EQ(asked.size(), 1U);
  executor.Advance(seconds(10));
  cache->ReportFailure("h", Ip("10.0.0.1"));
  EXPECT_EQ(asked.size(), 2U);
  cache->ReportFailure("h", Ip("10.9.9.9"));  // never given out
  cache->ReportFailure("unknown", Ip("10.0.0.1"));
  EXPECT_EQ(asked.size(), 2U);
}

TEST_F(ResolverTest, a_name_that_never_resolved_fails_at_once_between_two_lookups) {
  automatic = [] { return kDown; };
  EXPECT_EQ(Now().code(), Code::kUnavailable);
  EXPECT_EQ(Now().code(), Code::kUnavailable);
  EXPECT_EQ(asked.size(), 1U);
  automatic = [] { return Ips({"10.0.0.1"}); };
  executor.Advance(seconds(2));
  EXPECT_TRUE(Now().ok());
}

TEST_F(ResolverTest, waiting_ends_at_the_deadline_or_when_cancelled) {
  std::vector<Code> codes;
  const auto note = [&](Result<Addresses> answer) { codes.push_back(answer.code()); };
  resolver.Resolve("h", executor.Now() + seconds(2), note);
  const auto cancelled = resolver.Resolve("h", kNever, note);
  resolver.Resolve("h", executor.Now() + seconds(9), note);
  executor.Advance(seconds(3));
  EXPECT_EQ(codes, std::vector{Code::kDeadlineExceeded});
  resolver.Cancel(cancelled);
  Reply(Ips({"10.0.0.1"}));
  executor.Advance(seconds(10));
  EXPECT_EQ(codes, (std::vector{Code::kDeadlineExceeded, Code::kOk}));
  EXPECT_TRUE(resolver.Cached("h").has_value());
  EXPECT_FALSE(resolver.Cached("other").has_value());
}

TEST_F(ResolverTest, numbers_and_the_names_of_this_machine_are_never_asked_for) {
  EXPECT_EQ(*Now("127.0.0.1"), Ips({"127.0.0.1"}));
  EXPECT_EQ(*Now("[fd00::1]"), Ips({"fd00::1"}));
  EXPECT_EQ(*Now("::1"), Ips({"::1"}));
  EXPECT_EQ(*Now("bucket.s3.localhost"), Ips({"127.0.0.1", "::1"}));
  EXPECT_EQ(resolver.Cached("10.0.0.1"), Ips({"10.0.0.1"}));
  EXPECT_TRUE(asked.empty());
}

TEST_F(ResolverTest, addresses_of_the_family_preferred_by_the_system_come_first) {
  automatic = [] { return Ips({"fd00::1", "10.0.0.1", "fd00::2"}); };
  EXPECT_TRUE(Now().ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Now()->back(), Ip("10.0.0.1"));
  cache->ReportFailure("h", Ip("fd00::1"));
  cache->ReportFailure("h", Ip("fd00::2"));
  EXPECT_EQ(Now()->front(), Ip("10.0.0.1"));
}

TEST_F(ResolverTest, a_resolver_may_go_while_its_lookup_runs) {
  auto gone = std::make_unique<Resolver>(executor, cache);
  bool called = false;
  gone->Resolve("h", executor.Now() + seconds(1), [&](Result<Addresses>) { called = true; });
  gone.reset();
  Reply(Ips({"10.0.0.1"}));
  executor.Advance(seconds(5));
  EXPECT_FALSE(called);
}

TEST(HostCache, asks_the_system_on_a_helper_thread) {
  const testing::TempFolder folder;
  ::setenv("XDG_RUNTIME_DIR", folder.path().c_str(), 1);
  auto loop = *sys::EventLoop::Make("resolver");
  Resolver resolver(*loop, HostCache::OfProcess());
  std::promise<Result<Addresses>> promise;
  loop->Post([&] {
    // In no DNS, by RFC 6761; refused by the system's resolver or by the network.
    resolver.Resolve("forebay-test.invalid", loop->Now() + seconds(20),
                     [&](Result<Addresses> answer) { promise.set_value(std::move(answer)); });
  });
  const Result<Addresses> answer = promise.get_future().get();
  ASSERT_FALSE(answer.ok());
  EXPECT_NE(answer.status().ToString().find("forebay-test.invalid"), std::string::npos);
  loop->Stop();
}

}  // namespace
}  // namespace forebay::net
