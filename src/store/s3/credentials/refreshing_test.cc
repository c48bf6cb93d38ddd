// The provider in virtual time.
#include "store/s3/credentials/refreshing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>

#include "testing/manual_executor.h"

namespace forebay::store::s3 {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr int64_t kStart = 1'780'000'000;

class RefreshTest : public ::testing::Test {
 protected:
  std::unique_ptr<RefreshingProvider> Make() {
    return std::make_unique<RefreshingProvider>(
        executor,
        [this](std::string without, OnFetched on_fetched) {
          rejected.push_back(std::move(without));
          asked_at.push_back(Now());
          pending = std::move(on_fetched);
          if (automatic) Reply(automatic());
        },
        RefreshOptions{
            .source = "the test", .unix_time_s = [this] { return kStart + Now(); }, .seed = 7});
  }
  int64_t Now() const {
    return std::chrono::duration_cast<seconds>(executor.Now().time_since_epoch()).count();
  }
  void Reply(Result<Fetched> fetched) { std::exchange(pending, nullptr)(std::move(fetched)); }
  // Keys K1, K2, .. that end after `life`.
  Fetched Next(int64_t life) {
    return {
        .credentials = {.access_key_id = "K" + std::to_string(++keys), .secret_access_key = "s"},
        .expires_unix_s = kStart + Now() + life};
  }
  std::string Current() {
    const CredentialsSnapshot* snapshot = client->Current();
    return snapshot == nullptr ? "-" : snapshot->credentials.access_key_id;
  }
  void Get() {
    client->Get(kNever, [this](Result<CredentialsPtr> answer) {
      got.push_back(answer.ok() ? (*answer)->credentials.access_key_id
                                : std::string(CodeName(answer.code())));
    });
  }

  testing::ManualExecutor executor;
  std::vector<std::string> rejected;
  std::vector<int64_t> asked_at;
  OnFetched pending;
  std::function<Result<Fetched>()> automatic;
  int keys = 0;
  std::shared_ptr<RefreshingProvider> provider = Make();
  std::unique_ptr<CredentialsClient> client =
      std::make_unique<CredentialsClient>(executor, provider);
  std::vector<std::string> got;
};

const Status kThrottled(Code::kUnavailable, "429");

TEST_F(RefreshTest, any_number_of_waiters_cost_one_fetch) {
  for (int i = 0; i < 100; ++i) Get();
  executor.RunReady();
  EXPECT_EQ(asked_at.size(), 1U);
  Reply(Next(3600));
  executor.RunReady();
  EXPECT_EQ(got, std::vector<std::string>(100, "K1"));
  EXPECT_EQ(asked_at.size(), 1U);
}

TEST(RefreshingProvider, renews_a_quarter_of_an_hour_ahead_with_jitter) {
  std::map<int64_t, int> times;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    testing::ManualExecutor executor;
    std::vector<int64_t> asked_at;
    const auto now = [&] {
      return std::chrono::duration_cast<seconds>(executor.Now().time_since_epoch()).count();
    };
    RefreshingProvider provider(
        executor,
        [&](const std::string&, OnFetched on_fetched) {
          asked_at.push_back(now());
          on_fetched(Fetched{
              .credentials = {.access_key_id = std::to_string(now()), .secret_access_key = "s"},
              .expires_unix_s = kStart + now() + 3600});
        },
        {.source = "s", .unix_time_s = [&] { return kStart + now(); }, .seed = seed});
    provider.Start();
    executor.Advance(minutes(50));
    ASSERT_EQ(asked_at.size(), 2U);
    ++times[asked_at[1]];
    EXPECT_GE(asked_at[1], 3600 - 18 * 60 - 1);
    EXPECT_LE(asked_at[1], 3600 - 12 * 60);
  }
  EXPECT_GT(times.size(), 20U) << "processes that started together renew together";
}

TEST_F(RefreshTest, users_go_on_with_the_old_ones_while_a_renewal_runs_up_to_the_last_ten_minutes) {
  Get();
  executor.RunReady();
  Reply(Next(3600));
  executor.Advance(minutes(49));
  EXPECT_EQ(asked_at.size(), 2U);
  EXPECT_EQ(Current(), "K1");
  executor.Advance(minutes(2));
  EXPECT_EQ(Current(), "-") << "used on within ten minutes of the end";
  Get();
  executor.RunReady();
  EXPECT_EQ(got.size(), 1U);
  Reply(Next(3600));
  executor.RunReady();
  EXPECT_EQ(got.back(), "K2");
  EXPECT_EQ(Current(), "K2");
}

TEST_F(RefreshTest, an_hour_without_the_service_leaves_the_old_ones_in_use_and_is_asked_gently) {
  automatic = [this] { return Next(1800); };
  Get();
  executor.RunReady();
  automatic = [] { return kThrottled; };
  asked_at.clear();
  for (int minute = 0; minute < 90; ++minute) {
    executor.Advance(minutes(1));
    Get();
    executor.RunReady();
    ASSERT_EQ(got.back(), "K1") << minute;
    ASSERT_EQ(Current(), "K1") << minute;
  }
  EXPECT_GE(asked_at.size(), 50U);
  EXPECT_LE(asked_at.size(), 100U) << "an outage is hammered at";
  automatic = [this] { return Next(3600); };
  executor.Advance(minutes(2));
  EXPECT_EQ(Current(), "K2");
}

TEST_F(RefreshTest, tokens_that_live_five_seconds_are_always_good_when_used) {
  int64_t ends = 0;
  automatic = [&] {
    Fetched fetched = Next(5);
    ends = fetched.expires_unix_s;
    return fetched;
  };
  Get();
  executor.RunReady();
  for (int i = 0; i < 600; ++i) {
    executor.Advance(std::chrono::milliseconds(100));
    EXPECT_LT(kStart + Now(), ends) << i;
    EXPECT_NE(Current(), "-");
  }
  EXPECT_LE(asked_at.size(), 24U);
}

TEST_F(RefreshTest, refused_keys_are_fetched_anew_once_for_each_epoch) {
  automatic = [this] { return Next(3600); };
  Get();
  executor.RunReady();
  automatic = nullptr;
  const uint64_t epoch = client->Current()->epoch;
  for (int i = 0; i < 50; ++i) client->Invalidate(epoch);
  EXPECT_EQ(Current(), "-") << "the next attempt would be signed with what was just refused";
  executor.RunReady();
  EXPECT_EQ(asked_at.size(), 2U);
  EXPECT_EQ(rejected.back(), "K1");
  EXPECT_EQ(Current(), "-");
  Get();
  Reply(Next(3600));
  executor.RunReady();
  EXPECT_EQ(got.back(), "K2");
  EXPECT_GT(client->Current()->epoch, epoch);
  for (int i = 0; i < 50; ++i) client->Invalidate(epoch);  // latecomers
  executor.RunReady();
  EXPECT_EQ(asked_at.size(), 2U);
}

TEST_F(RefreshTest, refused_keys_come_back_when_there_are_no_others) {
  automatic = [this] { return Next(3600); };
  Get();
  executor.RunReady();
  automatic = [] { return kThrottled; };
  const uint64_t epoch = client->Current()->epoch;
  client->Invalidate(epoch);
  Get();
  executor.RunReady();
  EXPECT_EQ(got.back(), "K1");
  EXPECT_EQ(asked_at.size(), 2U);
  client->Invalidate(epoch);
  executor.RunReady();
  EXPECT_EQ(asked_at.size(), 2U) << "fetched twice for one epoch";
  automatic = [this] { return Next(3600); };
  executor.Advance(seconds(2));
  EXPECT_EQ(Current(), "K2") << "nobody tried again";
}

TEST_F(RefreshTest, keys_refused_while_renewals_fail_stay_in_use) {
  automatic = [this] { return Next(3600); };
  Get();
  executor.RunReady();
  automatic = [] { return kThrottled; };
  executor.Advance(minutes(55));
  client->Invalidate(client->Current()->epoch);
  EXPECT_EQ(Current(), "K1");
  executor.Advance(minutes(1));
  EXPECT_EQ(Current(), "K1");
}

TEST_F(RefreshTest, what_is_refused_as_its_renewal_arrives_does_not_take_the_new_ones_away) {
  automatic = [this] { return Next(3600); };
  Get();
  executor.RunReady();
  const uint64_t epoch = client->Current()->epoch;
  automatic = nullptr;
  executor.Advance(minutes(49));
  client->Invalidate(epoch);
  Reply(Next(3600));  // before what Invalidate posted has run
  executor.RunReady();
  EXPECT_EQ(Current(), "K2");
  EXPECT_EQ(asked_at.size(), 2U);
}

TEST_F(RefreshTest, keys_refused_during_a_renewal_are_not_taken_from_it) {
  automatic = [this] { return Next(3600); };
  Get();
  executor.RunReady();
  automatic = nullptr;
  executor.Advance(minutes(49));
  ASSERT_EQ(asked_at.size(), 2U);
  client->Invalidate(client->Current()->epoch);
  executor.RunReady();
  Reply(Fetched{.credentials = {.access_key_id = "K1", .secret_access_key = "s"},
                .expires_unix_s = kStart + 3600});
  EXPECT_EQ(asked_at.size(), 3U);
  EXPECT_EQ(rejected.back(), "K1");
  Reply(Next(3600));
  EXPECT_EQ(Current(), "K2");
}

TEST_F(RefreshTest, the_same_keys_again_are_the_same_epoch_and_are_asked_for_again_later) {
  Fetched same{.credentials = {.access_key_id = "K", .secret_access_key = "s"},
               .expires_unix_s = kStart + 3600};
  automatic = [&] { return same; };
  Get();
  executor.RunReady();
  const uint64_t epoch = client->Current()->epoch;
  executor.Advance(minutes(55));
  EXPECT_EQ(client->Current()->epoch, epoch);
  EXPECT_GE(asked_at.size(), 5U);
  EXPECT_LE(asked_at.size(), 20U);
}

TEST_F(RefreshTest, a_first_failure_is_told_at_once_and_not_repeated_for_a_while) {
  automatic = [] { return Status(Code::kPermissionDenied, "refused"); };
  for (int i = 0; i < 20; ++i) {
    Get();
    executor.RunReady();
  }
  EXPECT_EQ(got, std::vector<std::string>(20, "permission_denied"));
  EXPECT_EQ(asked_at.size(), 1U);
  automatic = [this] { return Next(3600); };
  executor.Advance(seconds(2));
  Get();
  executor.RunReady();
  EXPECT_EQ(got.back(), "K1");
}

TEST_F(RefreshTest, keys_without_an_end_are_never_asked_for_again) {
  automatic = [] {
    return Fetched{.credentials = {.access_key_id = "K", .secret_access_key = "s"}};
  };
  Get();
  executor.RunReady();
  executor.Advance(minutes(6000));
  EXPECT_EQ(asked_at.size(), 1U);
}

}  // namespace
}  // namespace forebay::store::s3
