// Each kind of source against a scripted service, in its moods.
#include "store/s3/credentials/sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "testing/credential_services.h"
#include "testing/fake_environment.h"
#include "testing/temp_folder.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::FakeEnvironment;
using forebay::testing::KeysJson;
using forebay::testing::KeysXml;
using forebay::testing::Say;
using forebay::testing::ScriptedReply;
using forebay::testing::ScriptedServer;
using forebay::testing::SeenRequest;
using forebay::testing::SourceBench;
using forebay::testing::TempFolder;
using Kind = CredentialSpec::Kind;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kNow = 1'780'000'000;
constexpr int64_t kHour = 3600;

void ExpectKeys(const Result<Fetched>& fetched, const std::string& id, int64_t expires) {
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  EXPECT_EQ(fetched->credentials.access_key_id, id);
  EXPECT_EQ(fetched->credentials.secret_access_key, id + "-secret");
  EXPECT_EQ(fetched->credentials.session_token, id + "-token");
  EXPECT_EQ(fetched->expires_unix_s, expires);
}

std::string Header(const SeenRequest& request, const std::string& name) {
  return std::string(net::FindHeader(request.headers, name));
}

// ---- the metadata service

// Answers as the real one; `refuse` may answer first.
ScriptedReply Metadata(const SeenRequest& request) {
  if (request.method == "PUT" && request.target == "/latest/api/token") {
    return Say(200, fmt::format("token{}", request.number),
               {{"x-aws-ec2-metadata-token-ttl-seconds", "21600"}});
  }
  if (!Header(request, "x-aws-ec2-metadata-token").starts_with("token")) return Say(401, "");
  if (request.target.ends_with("/security-credentials/")) return Say(200, "the-role");
  if (request.target.ends_with("/the-role")) return Say(200, KeysJson("M", kNow + kHour));
  return Say(404, "");
}

CredentialSpec MetadataSpec(const ScriptedServer& server) {
  return {.kind = Kind::kMetadata, .name = "the instance metadata service", .url = server.url()};
}

int Count(const ScriptedServer& server, const std::string& method) {
  int count = 0;
  for (const SeenRequest& request : server.seen()) count += request.method == method ? 1 : 0;
  return count;
}

TEST(MetadataSource, asks_with_a_session_token_that_is_used_again) {
  ScriptedServer server(Metadata);
  SourceBench bench(FakeEnvironment({}));
  const auto source = MakeSource(MetadataSpec(server), bench.context);
  ExpectKeys(bench.Fetch(*source), "M", kNow + kHour);
  ExpectKeys(bench.Fetch(*source), "M", kNow + kHour);
  EXPECT_EQ(Count(server, "PUT"), 1);
  EXPECT_EQ(Count(server, "GET"), 4);
  EXPECT_EQ(Header(server.seen()[0], "x-aws-ec2-metadata-token-ttl-seconds"), "21600");
  for (const SeenRequest& request : server.seen()) {
    const bool versioned =
        request.method == "PUT" || Header(request, "x-aws-ec2-metadata-token") == "token1";
    EXPECT_TRUE(versioned) << request.target << ": version 1 was spoken";
  }
}

TEST(MetadataSource, takes_a_new_token_when_the_old_one_is_refused) {
  std::atomic<bool> rotated = false;
  ScriptedServer server([&](const SeenRequest& request) {
    if (rotated && Header(request, "x-aws-ec2-metadata-token") == "token1") return Say(401, "");
    return Metadata(request);
  });
  SourceBench bench(FakeEnvironment({}));
  const auto source = MakeSource(MetadataSpec(server), bench.context);
  ExpectKeys(bench.Fetch(*source), "M", kNow + kHour);
  rotated = true;
  ExpectKeys(bench.Fetch(*source), "M", kNow + kHour);
  EXPECT_EQ(Count(server, "PUT"), 2);
}

TEST(MetadataSource, outlasts_429_503_resets_and_an_answer_after_two_seconds) {
  ScriptedServer server([](const SeenRequest& request) {
    switch (request.number) {
      case 1:
        return Say(429, "slow down");
      case 2:
        return Say(503, "");
      case 3:
        return ScriptedReply{.bytes = "", .then = ScriptedReply::Then::kReset};
      case 5:
        std::this_thread::sleep_for(std::chrono::seconds(2));
        return Metadata(request);
      default:
        return Metadata(request);
    }
  });
  SourceBench bench(FakeEnvironment({}));
  ExpectKeys(bench.Fetch(MetadataSpec(server)), "M", kNow + kHour);
  EXPECT_EQ(server.seen().size(), 6U);
}

TEST(MetadataSource, gives_up_as_soon_as_the_variables_say) {
  ScriptedServer server([](const SeenRequest&) {
    return ScriptedReply{.bytes = "", .then = ScriptedReply::Then::kHang};
  });
  SourceBench bench(FakeEnvironment({}));
  CredentialSpec spec = MetadataSpec(server);
  spec.timeout = std::chrono::milliseconds(50);
  spec.attempts = 2;
  spec.tried = "this and that";
  const auto fetched = bench.Fetch(spec);
  EXPECT_EQ(fetched.code(), Code::kPermissionDenied);
  for (const std::string& part :
       {std::string("this and that"), server.url(), std::string("AWS_ACCESS_KEY_ID"),
        std::string("hop limit"), std::string("unsigned"), std::string("2 attempts")}) {
    EXPECT_THAT(fetched.status().ToString(), HasSubstr(part));
  }
  EXPECT_EQ(server.seen().size(), 2U);
}

TEST(MetadataSource, says_what_is_missing) {
  ScriptedServer no_role([](const SeenRequest& request) {
    if (request.method == "PUT") return Metadata(request);
    return Say(404, "");
  });
  SourceBench bench(FakeEnvironment({}));
  CredentialSpec last = MetadataSpec(no_role);
  last.tried = "this and that";
  auto fetched = bench.Fetch(last);
  EXPECT_EQ(fetched.code(), Code::kPermissionDenied);
  EXPECT_THAT(fetched.status().ToString(), HasSubstr("no role is attached"));
  EXPECT_THAT(fetched.status().ToString(), HasSubstr("tried this and that"));
  ScriptedServer off([](const SeenRequest&) { return Say(403, ""); });
  fetched = bench.Fetch(MetadataSpec(off));
  EXPECT_EQ(fetched.code(), Code::kPermissionDenied);
  EXPECT_THAT(fetched.status().ToString(), HasSubstr("403"));
  ScriptedServer assuming([](const SeenRequest& request) {
    if (!request.target.ends_with("/the-role")) return Metadata(request);
    return Say(200, R"({"Code":"AssumeRoleUnauthorizedAccess","SecretAccessKey":"hidden"})");
  });
  fetched = bench.Fetch(MetadataSpec(assuming));
  EXPECT_EQ(fetched.code(), Code::kUnavailable);
  EXPECT_THAT(fetched.status().ToString(), HasSubstr("AssumeRoleUnauthorizedAccess"));
  EXPECT_THAT(fetched.status().ToString(), Not(HasSubstr("hidden")));
}

// ---- containers

TEST(ContainerSource, reads_its_token_again_at_every_fetch) {
  ScriptedServer server([](const SeenRequest& request) {
    const bool known = Header(request, "Authorization") == "Bearer second";
    return known ? Say(200, KeysJson("C", kNow + kHour)) : Say(403, "{}");
  });
  const TempFolder folder;
  SourceBench bench(Environment::Process());
  const auto source = MakeSource({.kind = Kind::kContainer,
                                  .name = "FULL_URI",
                                  .url = server.url() + "/v1/credentials",
                                  .token = "ignored for the file",
                                  .token_file = folder / "token"},
                                 bench.context);
  EXPECT_EQ(bench.Fetch(*source).code(), Code::kPermissionDenied) << "there is no token yet";
  EXPECT_TRUE(server.seen().empty());
  std::ofstream(folder / "token") << "Bearer first";
  EXPECT_EQ(bench.Fetch(*source).code(), Code::kPermissionDenied);
  std::ofstream(folder / "token") << "Bearer second\n";
  ExpectKeys(bench.Fetch(*source), "C", kNow + kHour);
  EXPECT_EQ(server.seen().back().target, "/v1/credentials");
}

TEST(ContainerSource, a_relative_uri_leads_to_the_agent_of_the_machine) {
  ScriptedServer server([](const SeenRequest& request) {
    return request.number <= 2 ? Say(429, "") : Say(200, KeysJson("C", kNow + kHour));
  });
  SourceBench bench(FakeEnvironment({}));
  EXPECT_EQ(bench.context.container_host, "http://169.254.170.2");
  bench.context.container_host = server.url();
  CredentialSpec spec{.kind = Kind::kContainer, .name = "R", .url = "/v2/credentials/x?y=z"};
  ExpectKeys(bench.Fetch(spec), "C", kNow + kHour);
  EXPECT_EQ(server.seen().back().target, "/v2/credentials/x?y=z");
  EXPECT_EQ(Header(server.seen().back(), "Authorization"), "");
  spec.token = "Basic\r\nX: y";
  EXPECT_EQ(bench.Fetch(spec).code(), Code::kPermissionDenied);
}

// ---- roles

TEST(StsSource, assumes_a_role_with_a_request_signed_by_the_base) {
  ScriptedServer server([](const SeenRequest& request) {
    return request.number == 1 ? Say(500, "") : Say(200, KeysXml("AssumeRole", "R", kNow + kHour));
  });
  SourceBench bench(FakeEnvironment({}));
  const auto base = std::make_shared<CredentialSpec>(CredentialSpec{
      .fixed = {.access_key_id = "BASE", .secret_access_key = "s", .session_token = "t"}});
  ExpectKeys(bench.Fetch({.kind = Kind::kAssumeRole,
                          .name = "p",
                          .url = server.url(),
                          .region = "eu-west-1",
                          .role_arn = "arn:aws:iam::1:role/a+b",
                          .session_name = "me",
                          .external_id = "x y",
                          .duration_s = "900",
                          .base = base}),
             "R", kNow + kHour);
  const SeenRequest request = server.seen().back();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/");
  EXPECT_EQ(request.body,
            "Action=AssumeRole&DurationSeconds=900&ExternalId=x%20y&"
            "RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%2Bb&RoleSessionName=me&Version=2011-06-15");
  EXPECT_THAT(Header(request, "Authorization"), HasSubstr("Credential=BASE/"));
  EXPECT_THAT(Header(request, "Authorization"), HasSubstr("/eu-west-1/sts/aws4_request"));
  EXPECT_EQ(Header(request, "x-amz-security-token"), "t");
}

TEST(StsSource, a_chain_asks_for_one_role_with_the_keys_of_the_other) {
  ScriptedServer server([](const SeenRequest& request) {
    const bool first = request.body.find("arn%3Ab") != request.body.npos;
    return Say(200, KeysXml("AssumeRole", first ? "B" : "A", kNow + kHour));
  });
  SourceBench bench(FakeEnvironment({}));
  auto keys = std::make_shared<CredentialSpec>(
      CredentialSpec{.fixed = {.access_key_id = "BASE", .secret_access_key = "s"}});
  auto inner = std::make_shared<CredentialSpec>(CredentialSpec{.kind = Kind::kAssumeRole,
                                                               .url = server.url(),
                                                               .region = "r",
                                                               .role_arn = "arn:b",
                                                               .base = keys});
  ExpectKeys(bench.Fetch({.kind = Kind::kAssumeRole,
                          .url = server.url(),
                          .region = "r",
                          .role_arn = "arn:a",
                          .base = inner}),
             "A", kNow + kHour);
  EXPECT_THAT(Header(server.seen()[1], "Authorization"), HasSubstr("Credential=B/"));
}

TEST(StsSource, a_web_identity_sends_the_token_of_the_moment_unsigned) {
  ScriptedServer server([](const SeenRequest& request) {
    if (request.number == 1) {
      return Say(400,
                 "<ErrorResponse><Error><Code>IDPCommunicationError</Code></Error>"
                 "</ErrorResponse>");
    }
    return Say(200, KeysXml("AssumeRoleWithWebIdentity", "W", kNow + kHour));
  });
  const TempFolder folder;
  std::ofstream(folder / "jwt") << "first\n";
  SourceBench bench(Environment::Process());
  const auto source = MakeSource({.kind = Kind::kWebIdentity,
                                  .name = "web",
                                  .url = server.url(),
                                  .region = "r",
                                  .token_file = folder / "jwt",
                                  .role_arn = "arn:r",
                                  .session_name = "forebay"},
                                 bench.context);
  ExpectKeys(bench.Fetch(*source), "W", kNow + kHour);
  EXPECT_THAT(server.seen().back().body, HasSubstr("WebIdentityToken=first"));
  EXPECT_EQ(Header(server.seen().back(), "Authorization"), "");
  std::ofstream(folder / "jwt") << "second\n";
  ExpectKeys(bench.Fetch(*source), "W", kNow + kHour);
  EXPECT_THAT(server.seen().back().body, HasSubstr("WebIdentityToken=second"));
  std::filesystem::remove(folder / "jwt");
  const auto gone = bench.Fetch(*source);
  EXPECT_EQ(gone.code(), Code::kPermissionDenied);
  EXPECT_THAT(gone.status().ToString(), HasSubstr(folder / "jwt"));
}

TEST(StsSource, a_refusal_is_told_and_what_was_signed_is_not) {
  const auto refusing = [](int status, const std::string& code) {
    ScriptedServer server([=](const SeenRequest&) {
      return Say(status, "<ErrorResponse><Error><Code>" + code +
                             "</Code><Message>words with t0k3n</Message></Error></ErrorResponse>");
    });
    SourceBench bench(FakeEnvironment({}));
    const auto base = std::make_shared<CredentialSpec>(CredentialSpec{
        .fixed = {.access_key_id = "I", .secret_access_key = "s", .session_token = "t0k3n"}});
    return bench
        .Fetch(
            {.kind = Kind::kAssumeRole, .name = "profile 'p'", .url = server.url(), .base = base})
        .status();
  };
  const Status denied = refusing(403, "AccessDenied");
  EXPECT_EQ(denied.code(), Code::kPermissionDenied);
  EXPECT_THAT(denied.ToString(), HasSubstr("AccessDenied: words"));
  EXPECT_THAT(denied.ToString(), HasSubstr("profile 'p'"));
  const Status unsigned_well = refusing(403, "SignatureDoesNotMatch");
  EXPECT_EQ(unsigned_well.code(), Code::kPermissionDenied);
  EXPECT_THAT(unsigned_well.ToString(), Not(HasSubstr("t0k3n")));
}

// ---- programs

TEST(ProcessSource, takes_what_the_program_prints) {
  SourceBench bench(FakeEnvironment({}));
  const TempFolder folder;
  std::ofstream(folder / "keys") << fmt::format(
      R"({{"Version":1,"AccessKeyId":"P","SecretAccessKey":"P-secret","SessionToken":"P-token",)"
      R"("Expiration":"{}"}})",
      FormatUtcTime(kNow + kHour));
  ExpectKeys(bench.Fetch({.kind = Kind::kProcess, .command = "cat '" + (folder / "keys") + "'"}),
             "P", kNow + kHour);
  ASSERT_EQ(bench.programs.size(), 1U);
  EXPECT_EQ(bench.programs[0], (std::vector<std::string>{"cat", folder / "keys"}));
}

TEST(ProcessSource, refuses_what_is_no_answer_and_repeats_nothing_of_it) {
  SourceBench bench(FakeEnvironment({}));
  bench.program_limit = std::chrono::milliseconds(100);
  const TempFolder folder;
  const auto told = [&](const std::string& output, const std::string& command = "") {
    std::ofstream(folder / "keys") << output;
    const auto fetched =
        bench.Fetch({.kind = Kind::kProcess,
                     .name = "the credential_process of profile 'p'",
                     .command = command.empty() ? "cat " + (folder / "keys") : command});
    EXPECT_EQ(fetched.code(), Code::kPermissionDenied);
    EXPECT_THAT(fetched.status().ToString(), Not(HasSubstr("hidden")));
    EXPECT_THAT(fetched.status().ToString(), HasSubstr("profile 'p'"));
    return fetched.status().ToString();
  };
  EXPECT_THAT(told("hidden"), HasSubstr("no JSON"));
  EXPECT_THAT(told(R"({"AccessKeyId":"hidden","SecretAccessKey":"hidden"})"),
              HasSubstr("\"Version\": 1"));
  EXPECT_THAT(told(R"({"Version":1,"AccessKeyId":"hidden"})"), HasSubstr("no SecretAccessKey"));
  EXPECT_THAT(told(R"({"Version":1,"AccessKeyId":"hidden","SecretAccessKey":"hidden",)"
                   R"("Expiration":"hidden"})"),
              HasSubstr("Expiration"));
  EXPECT_THAT(told("", "sh -c 'echo hidden; exit 7'"), HasSubstr("exit code 7"));
  EXPECT_THAT(told("", "sleep 50"), HasSubstr("60 s"));
  EXPECT_THAT(told("", "/no/hidden-program"), HasSubstr("not there"));
  EXPECT_THAT(told("", "'hidden"), HasSubstr("no command line"));
}

// ---- SSO

class SsoTest : public ::testing::Test {
 protected:
  CredentialSpec Spec(const ScriptedServer& server, bool renewable) {
    return {.kind = Kind::kSso,
            .name = "profile 'p' (SSO)",
            .url = server.url(),
            .region = "r",
            .sso_account_id = "12",
            .sso_role_name = "a b",
            .sso_cache_file = folder_ / "token.json",
            .oidc_url = renewable ? server.url() : "",
            .profile = "p"};
  }
  void Login(int64_t expires, const FlatJson& more = {}) {
    FlatJson values = more;
    values["accessToken"] = "old-access";
    values["expiresAt"] = FormatUtcTime(expires);
    std::ofstream(folder_ / "token.json") << WriteFlatJson(values);
  }
  static ScriptedReply Answer(const SeenRequest& request) {
    if (request.target == "/token") {
      return Say(200, R"({"accessToken":"new-access","expiresIn":28800,"refreshToken":"r2"})");
    }
    const std::string bearer = Header(request, "x-amz-sso_bearer_token");
    if (bearer != "old-access" && bearer != "new-access") return Say(401, "{}");
    return Say(200, fmt::format(R"({{"roleCredentials":{{"accessKeyId":"S","secretAccessKey":)"
                                R"("S-secret","sessionToken":"S-token","expiration":{}}}}})",
                                (kNow + kHour) * 1000));
  }

  const FlatJson registration_{{"refreshToken", "r1"}, {"clientId", "c"}, {"clientSecret", "cs"}};
  TempFolder folder_;
  SourceBench bench_{Environment::Process()};
};

TEST_F(SsoTest, the_logins_token_buys_the_roles_keys) {
  ScriptedServer server(Answer);
  Login(kNow + kHour);
  ExpectKeys(bench_.Fetch(Spec(server, false)), "S", kNow + kHour);
  ASSERT_EQ(server.seen().size(), 1U);
  EXPECT_EQ(server.seen()[0].target, "/federation/credentials?account_id=12&role_name=a%20b");
  EXPECT_EQ(Header(server.seen()[0], "x-amz-sso_bearer_token"), "old-access");
}

TEST_F(SsoTest, a_token_near_its_end_is_renewed_and_kept_for_the_other_tools) {
  ScriptedServer server(Answer);
  Login(kNow + 60, registration_);
  ExpectKeys(bench_.Fetch(Spec(server, true)), "S", kNow + kHour);
  ASSERT_EQ(server.seen().size(), 2U);
  EXPECT_THAT(server.seen()[0].body, HasSubstr("\"refreshToken\":\"r1\""));
  EXPECT_EQ(Header(server.seen()[1], "x-amz-sso_bearer_token"), "new-access");
  const auto kept = ParseFlatJson(*Environment::Process().file(folder_ / "token.json"));
  EXPECT_EQ(TextOf(*kept, "accessToken"), "new-access");
  EXPECT_EQ(TextOf(*kept, "refreshToken"), "r2");
  EXPECT_EQ(TextOf(*kept, "clientSecret"), "cs");
  EXPECT_EQ(ParseUtcTime(TextOf(*kept, "expiresAt")), kNow + 28800);
}

TEST_F(SsoTest, a_session_that_has_ended_says_how_to_log_in) {
  ScriptedServer server([](const SeenRequest& request) {
    return request.target == "/token" ? Say(400, R"({"error":"invalid_grant"})") : Say(401, "{}");
  });
  const auto expect_login = [&](bool renewable) {
    const auto fetched = bench_.Fetch(Spec(server, renewable));
    EXPECT_EQ(fetched.code(), Code::kPermissionDenied);
    EXPECT_THAT(fetched.status().ToString(), HasSubstr("aws sso login --profile p"));
    EXPECT_THAT(fetched.status().ToString(), Not(HasSubstr("old-access")));
  };
  expect_login(false);  // no token at all
  Login(kNow - 5);
  expect_login(false);
  Login(kNow - 5, registration_);
  expect_login(true);
  Login(kNow + kHour);
  expect_login(false);  // refused
}

TEST(FlatJson, times_are_read_in_all_the_forms_that_services_write) {
  EXPECT_EQ(ParseUtcTime("2026-05-28T20:26:40Z"), kNow);
  EXPECT_EQ(ParseUtcTime("2026-05-28T20:26:40.123Z"), kNow);
  EXPECT_EQ(ParseUtcTime("2026-05-28T20:26:40UTC"), kNow);
  EXPECT_EQ(ParseUtcTime("2026-05-28T22:26:40+02:00"), kNow);
  EXPECT_EQ(ParseUtcTime("2026-05-28T19:56:40-00:30"), kNow);
  EXPECT_EQ(FormatUtcTime(kNow), "2026-05-28T20:26:40Z");
  for (const char* text :
       {"", "tomorrow", "2026-05-28", "2026-05-28T20:26:40 CET", "2026-05-28T20:26:40+ab:cd"}) {
    EXPECT_EQ(ParseUtcTime(text), 0) << text;
  }
}

}  // namespace
}  // namespace forebay::store::s3
