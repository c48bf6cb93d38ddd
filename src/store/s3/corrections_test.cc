// What a refusal teaches is put right inside the operation, once: region, redirect, clock,
// credentials. And what an answer leaves open is asked.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "testing/scripted_s3.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::AccessKeyOf;
using forebay::testing::ErrorXml;
using forebay::testing::GoodRange;
using forebay::testing::HeadReply;
using forebay::testing::HttpText;
using forebay::testing::Say;
using forebay::testing::ScopeOf;
using forebay::testing::ScriptedReply;
using forebay::testing::ScriptedS3;
using forebay::testing::SeenRequest;

// ---- region

// Refuses what is not signed for eu-west-3, in one of S3's ways.
testing::ScriptedServer::Script OnlyEuWest3(ScriptedReply refusal, ScriptedReply right) {
  return [refusal, right](const SeenRequest& request) {
    return ScopeOf(request) == "20260528/eu-west-3/s3" ? right : refusal;
  };
}

TEST(S3Region, every_way_of_naming_another_region_is_followed_once_and_remembered) {
  const std::vector<ScriptedReply> refusals{
      {HttpText(301, {{"x-amz-bucket-region", "eu-west-3"}}, ErrorXml("PermanentRedirect"))},
      {HttpText(400, {{"x-amz-bucket-region", "eu-west-3"}}, "")},
      {HttpText(400, {}, ErrorXml("AuthorizationHeaderMalformed", "<Region>eu-west-3</Region>"))},
      {HttpText(307, {{"x-amz-bucket-region", "eu-west-3"}}, ErrorXml("TemporaryRedirect"))},
      {HttpText(400, {{"x-amz-bucket-region", "eu-west-3"}},
                ErrorXml("IllegalLocationConstraintException"))},
  };
  for (const ScriptedReply& refusal : refusals) {
    ScriptedS3 s3(OnlyEuWest3(refusal, GoodRange()));
    const Status first = s3.Read();
    EXPECT_TRUE(first.ok()) << first.ToString();
    EXPECT_EQ(s3.text, "2345");
    EXPECT_TRUE(s3.Read().ok());
    EXPECT_EQ(s3.requests(), 3U) << "the second read knows the region";
  }
}

TEST(S3Region, a_head_that_is_refused_without_a_word_finds_the_region_too) {
  for (const int status : {301, 400}) {
    ScriptedS3 s3(OnlyEuWest3(HeadReply(status, {{"x-amz-bucket-region", "eu-west-3"}}, 0),
                              HeadReply(200, {{"ETag", "\"e\""}})));
    const auto info = s3.store().Head("k");
    ASSERT_TRUE(info.ok()) << info.status().ToString();
    EXPECT_EQ(s3.requests(), 2U);
  }
  // Not even the header: the bucket is asked.
  ScriptedS3 s3([](const SeenRequest& request) -> ScriptedReply {
    if (ScopeOf(request) == "20260528/eu-west-3/s3") return HeadReply(200, {{"ETag", "\"e\""}});
    if (request.target == "/b") return HeadReply(403, {{"x-amz-bucket-region", "eu-west-3"}}, 0);
    return HeadReply(301, {}, 0);
  });
  const auto info = s3.store().Head("k");
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(s3.requests(), 3U);
}

TEST(S3Region, no_loop_and_no_forged_host) {
  ScriptedS3 loop([](const SeenRequest& request) -> ScriptedReply {
    const bool east = ScopeOf(request).find("us-east-1") != std::string::npos;
    return {HttpText(301, {{"x-amz-bucket-region", east ? "eu-west-3" : "us-east-1"}}, "")};
  });
  EXPECT_FALSE(loop.Read().ok());
  EXPECT_LE(loop.requests(), 3U);
  for (const std::string forged : {"evil.example/", "a b", "us-west-2.evil.example", "-x"}) {
    ScriptedS3 s3(Say({HttpText(400, {{"x-amz-bucket-region", forged}}, ErrorXml("X"))}));
    EXPECT_FALSE(s3.Read().ok());
    for (const SeenRequest& seen : s3.server().seen()) {
      EXPECT_EQ(ScopeOf(seen), "20260528/us-east-1/s3");
    }
  }
}

TEST(S3Region, a_temporary_redirect_is_followed_inside_the_domain_and_nowhere_else) {
  testing::ScriptedServer other(Say(GoodRange()));
  const auto redirect = [](const std::string& location) {
    return Say({HttpText(307, {{"Location", location}}, ErrorXml("TemporaryRedirect"))});
  };
  ScriptedS3 inside(redirect(other.url() + "/b/k"));
  const Status status = inside.Read();
  EXPECT_TRUE(status.ok()) << status.ToString();
  ASSERT_EQ(other.seen().size(), 1U);
  EXPECT_EQ(net::FindHeader(other.seen()[0].headers, "host"), other.url().substr(7));

  for (const std::string& location :
       {std::string("http://localhost.evil.example/b/k"), std::string("https://127.0.0.1:1/b/k"),
        other.url() + "/other/path", std::string("/b/k"), std::string("http://")}) {
    ScriptedS3 outside(redirect(location));
    EXPECT_FALSE(outside.Read().ok()) << location;
    EXPECT_EQ(outside.requests(), 1U) << location;
  }
  EXPECT_EQ(other.seen().size(), 1U);
  // Round and round: once.
  std::string self;
  ScriptedS3 loop([&self](const SeenRequest&) -> ScriptedReply {
    return {HttpText(307, {{"Location", self + "/k"}}, "")};
  });
  self = loop.server().url();
  EXPECT_FALSE(loop.Read().ok());
  EXPECT_EQ(loop.requests(), 2U);
}

// ---- clock

TEST(S3Clock, a_skewed_clock_is_corrected_once_for_all_that_follow) {
  ScriptedS3 s3([](const SeenRequest& request) -> ScriptedReply {
    const bool right = net::FindHeader(request.headers, "x-amz-date") == "20260528T192640Z";
    if (right) return GoodRange();
    return {HttpText(403, {{"Date", "Thu, 28 May 2026 19:26:40 GMT"}},
                     ErrorXml("RequestTimeTooSkewed"))};
  });
  const Status first = s3.Read();
  EXPECT_TRUE(first.ok()) << first.ToString();
  EXPECT_EQ(s3.clock_offset_s(), -3600);
  EXPECT_TRUE(s3.Read().ok());
  EXPECT_EQ(s3.requests(), 3U);

  ScriptedS3 stubborn(Say({HttpText(403, {{"Date", "Thu, 28 May 2026 19:26:40 GMT"}},
                                    ErrorXml("RequestTimeTooSkewed"))}));
  EXPECT_EQ(stubborn.Read().code(), Code::kPermissionDenied);
  EXPECT_EQ(stubborn.requests(), 2U);
  // A denial at the right time is no matter of clocks.
  ScriptedS3 denied(
      Say({HttpText(403, {{"Date", "Thu, 28 May 2026 19:26:40 GMT"}}, ErrorXml("AccessDenied"))}));
  EXPECT_EQ(denied.Read().code(), Code::kPermissionDenied);
  EXPECT_EQ(denied.requests(), 1U);
  EXPECT_EQ(denied.clock_offset_s(), 0);
}

TEST(S3Clock, a_head_learns_it_too) {
  ScriptedS3 s3([](const SeenRequest& request) -> ScriptedReply {
    const bool right = net::FindHeader(request.headers, "x-amz-date") == "20260528T192640Z";
    if (right) return HeadReply(200, {{"ETag", "\"e\""}});
    return HeadReply(403, {{"Date", "Thu, 28 May 2026 19:26:40 GMT"}}, 0);
  });
  EXPECT_TRUE(s3.store().Head("k").ok());
  EXPECT_EQ(s3.requests(), 2U);
}

// ---- credentials

// Gives ID1, then ID2 and so on each time they are refused.
class Renewing final : public CredentialsProvider {
 public:
  Renewing() { Next(); }
  void Invalidate(uint64_t epoch) override {
    if (const auto now = Current(); now && now->epoch == epoch) {
      ++refreshes;
      Offer(nullptr);
    }
  }
  std::atomic<int> refreshes = 0;

 private:
  void Want() override { Next(); }
  void Next() {
    const uint64_t epoch = ++last_;
    Offer(std::make_shared<CredentialsSnapshot>(
        CredentialsSnapshot{.credentials = {.access_key_id = "ID" + std::to_string(epoch),
                                            .secret_access_key = "secret",
                                            .session_token = "token"},
                            .epoch = epoch}));
  }
  std::atomic<uint64_t> last_ = 0;
};

ScriptedS3::Options With(const std::shared_ptr<Renewing>& keys) {
  return {.adjust = [keys](S3StoreOptions& options) { options.config.provider = keys; }};
}

TEST(S3Credentials, expired_ones_are_renewed_once_and_the_request_is_signed_again) {
  const std::vector<ScriptedReply> refusals{{HttpText(400, {}, ErrorXml("ExpiredToken"))},
                                            {HttpText(403, {}, ErrorXml("ExpiredTokenException"))},
                                            {HttpText(400, {}, ErrorXml("InvalidToken"))},
                                            {HttpText(403, {}, ErrorXml("InvalidAccessKeyId"))},
                                            {HttpText(400, {}, "")},
                                            {HttpText(403, {}, "")}};
  for (const ScriptedReply& refusal : refusals) {
    const auto keys = std::make_shared<Renewing>();
    ScriptedS3 s3(
        [refusal](const SeenRequest& request) {
          return AccessKeyOf(request) == "ID1" ? refusal : GoodRange();
        },
        With(keys));
    const Status status = s3.Read();
    EXPECT_TRUE(status.ok()) << status.ToString();
    EXPECT_EQ(keys->refreshes, 1);
    EXPECT_EQ(s3.requests(), 2U);
  }
  const auto keys = std::make_shared<Renewing>();
  ScriptedS3 never(Say({HttpText(400, {}, ErrorXml("ExpiredToken"))}), With(keys));
  EXPECT_EQ(never.Read().code(), Code::kPermissionDenied);
  EXPECT_EQ(never.requests(), 2U);
}

TEST(S3Credentials, a_mute_head_is_asked_again_as_a_get_that_can_say_why) {
  const auto keys = std::make_shared<Renewing>();
  ScriptedS3 expired(
      [](const SeenRequest& request) -> ScriptedReply {
        if (AccessKeyOf(request) != "ID1") return HeadReply(200, {{"ETag", "\"e\""}});
        if (request.method == "HEAD") return HeadReply(400, {}, 0);
        EXPECT_EQ(net::FindHeader(request.headers, "range"), "bytes=0-0");
        return {HttpText(400, {}, ErrorXml("ExpiredToken"))};
      },
      With(keys));
  const auto info = expired.store().Head("k");
  EXPECT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(keys->refreshes, 1);

  // Mute again: as S3 has it for an expired token.
  for (const int status : {400, 403}) {
    const auto others = std::make_shared<Renewing>();
    ScriptedS3 mute(
        [status](const SeenRequest& request) -> ScriptedReply {
          if (AccessKeyOf(request) != "ID1") return HeadReply(200, {{"ETag", "\"e\""}});
          return HeadReply(status, {}, 0);
        },
        With(others));
    EXPECT_TRUE(mute.store().Head("k").ok());
    EXPECT_EQ(others->refreshes, 1);
  }
  // A refusal with a reason renews nothing, and the reason is told.
  const auto kept = std::make_shared<Renewing>();
  ScriptedS3 denied(
      [](const SeenRequest& request) -> ScriptedReply {
        if (request.method == "HEAD") return HeadReply(403, {}, 0);
        return {HttpText(403, {}, ErrorXml("AccessDenied"))};
      },
      With(kept));
  const Status status = denied.store().Head("k").status();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_NE(status.ToString().find("AccessDenied"), std::string::npos) << status.ToString();
  EXPECT_EQ(kept->refreshes, 0);
}

TEST(S3Credentials, those_that_cannot_be_renewed_are_not_tried_twice) {
  ScriptedS3 s3(Say({HttpText(400, {}, ErrorXml("ExpiredToken"))}));
  EXPECT_EQ(s3.Read().code(), Code::kPermissionDenied);
  EXPECT_EQ(s3.requests(), 1U);
}

TEST(S3Requests, anonymous_ones_are_not_signed_and_payers_say_so_in_what_is_signed) {
  ScriptedS3 anonymous(Say(GoodRange()), {.adjust = [](S3StoreOptions& options) {
                         options.config.credentials = {.anonymous = true};
                       }});
  EXPECT_TRUE(anonymous.Read().ok());
  EXPECT_EQ(net::FindHeader(anonymous.seen(0).headers, "authorization"), "");
  EXPECT_EQ(net::FindHeader(anonymous.seen(0).headers, "x-amz-date"), "");

  ScriptedS3 payer(Say(GoodRange()),
                   {.adjust = [](S3StoreOptions& options) { options.request_payer = true; }});
  EXPECT_TRUE(payer.Read().ok());
  (void)payer.store().Head("k");
  (void)payer.store().List({.prefix = "p"});
  (void)payer.store().Put({.key = "k", .body = {}});
  ASSERT_GE(payer.requests(), 4U);
  for (const SeenRequest& seen : payer.server().seen()) {
    EXPECT_EQ(net::FindHeader(seen.headers, "x-amz-request-payer"), "requester");
    EXPECT_NE(net::FindHeader(seen.headers, "authorization").find("x-amz-request-payer"),
              std::string_view::npos);
  }
}

}  // namespace
}  // namespace forebay::store::s3
