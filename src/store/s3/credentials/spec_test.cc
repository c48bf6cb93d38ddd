#include "store/s3/credentials/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/fake_environment.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::FakeEnvironment;
using forebay::testing::Texts;
using Kind = CredentialSpec::Kind;
using ::testing::HasSubstr;
using ::testing::Not;

Result<CredentialSpec> Choose(const Texts& variables, const std::string& config = "",
                              const std::string& option = "") {
  const Environment environment = FakeEnvironment(variables, {{"/home/u/.aws/config", config}});
  const Profiles profiles = Profiles::Load(environment);
  const StoreOptions options{.profile = option};
  std::string profile = option.empty() ? environment.Text("AWS_PROFILE") : option;
  return ChooseCredentials({.options = options,
                            .environment = environment,
                            .profiles = profiles,
                            .profile = profile.empty() ? "default" : profile,
                            .region = "eu-west-1"});
}

constexpr char kKeys[] = "aws_access_key_id = PROFILEID\naws_secret_access_key = pr0file-secret\n";
const Texts kEnvironmentKeys{{"AWS_ACCESS_KEY_ID", "ENVID"}, {"AWS_SECRET_ACCESS_KEY", "es"}};

TEST(ChooseCredentials, goes_through_the_places_in_botocores_order) {
  // Each step takes away what won before.
  Texts variables = kEnvironmentKeys;
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  variables["AWS_ROLE_ARN"] = "arn:env";
  variables["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"] = "/v2/x";
  std::string config =
      "[default]\nrole_arn = arn:profile\nsource_profile = base\n"
      "sso_start_url = https://x\nsso_region = r\nsso_account_id = 1\nsso_role_name = n\n"
      "credential_process = prog\n" +
      std::string(kKeys) + "[profile base]\n" + kKeys;
  const auto drop = [&config](const std::string& key) {
    const size_t begin = config.find(key);
    config.erase(begin, config.find('\n', begin) + 1 - begin);
  };
  EXPECT_EQ(Choose(variables, config)->fixed.access_key_id, "ENVID");
  variables.erase("AWS_ACCESS_KEY_ID");
  variables.erase("AWS_SECRET_ACCESS_KEY");
  EXPECT_EQ(Choose(variables, config)->role_arn, "arn:profile");
  drop("role_arn");
  drop("source_profile");
  EXPECT_EQ(Choose(variables, config)->role_arn, "arn:env");
  variables.erase("AWS_WEB_IDENTITY_TOKEN_FILE");
  EXPECT_EQ(Choose(variables, config)->kind, Kind::kSso);
  drop("sso_start_url");
  EXPECT_EQ(Choose(variables, config)->kind, Kind::kProcess);
  drop("credential_process");
  EXPECT_EQ(Choose(variables, config)->fixed.access_key_id, "PROFILEID");
  drop("aws_access_key_id");
  drop("aws_secret_access_key");
  EXPECT_EQ(Choose(variables, config)->kind, Kind::kContainer);
  variables.erase("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  EXPECT_EQ(Choose(variables, config)->kind, Kind::kMetadata);
  variables["AWS_EC2_METADATA_DISABLED"] = "TRUE";
  const Status none = Choose(variables, config).status();
  EXPECT_EQ(none.code(), Code::kPermissionDenied);
  for (const char* part : {"AWS_ACCESS_KEY_ID", "'default'", "/home/u/.aws/config", "container",
                           "AWS_EC2_METADATA_DISABLED", "unsigned"}) {
    EXPECT_THAT(none.ToString(), HasSubstr(part));
  }
}

TEST(ChooseCredentials, keys_in_the_credentials_file_come_before_a_credential_process) {
  const Environment environment =
      FakeEnvironment({}, {{"/home/u/.aws/credentials", "[default]\n" + std::string(kKeys)},
                           {"/home/u/.aws/config", "[default]\ncredential_process = prog\n"}});
  const Profiles profiles = Profiles::Load(environment);
  const auto spec = ChooseCredentials({.options = {},
                                       .environment = environment,
                                       .profiles = profiles,
                                       .profile = "default",
                                       .region = "r"});
  EXPECT_EQ(spec->kind, Kind::kFixed);
}

TEST(ChooseCredentials, an_explicit_profile_outranks_keys_and_web_identity_of_the_environment) {
  Texts variables = kEnvironmentKeys;
  variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  variables["AWS_ROLE_ARN"] = "arn:env";
  const std::string config = "[profile p]\n" + std::string(kKeys);
  EXPECT_EQ(Choose(variables, config, "p")->fixed.access_key_id, "PROFILEID");
  variables["AWS_PROFILE"] = "p";
  EXPECT_EQ(Choose(variables, config)->fixed.access_key_id, "ENVID");
}

TEST(ChooseCredentials, web_identity_comes_from_three_variables_or_the_profile) {
  auto spec = Choose({{"AWS_WEB_IDENTITY_TOKEN_FILE", "~/token"},
                      {"AWS_ROLE_ARN", "arn:r"},
                      {"AWS_ROLE_SESSION_NAME", "me"}});
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->kind, Kind::kWebIdentity);
  EXPECT_EQ(spec->token_file, "/home/u/token");
  EXPECT_EQ(spec->role_arn, "arn:r");
  EXPECT_EQ(spec->session_name, "me");
  EXPECT_EQ(spec->url, "https://sts.eu-west-1.amazonaws.com") << "not the regional one";
  spec = Choose({},
                "[default]\nweb_identity_token_file = /t\nrole_arn = arn:p\n"
                "duration_seconds = 900\n");
  EXPECT_EQ(spec->token_file, "/t");
  EXPECT_EQ(spec->duration_s, "900");
  EXPECT_EQ(spec->session_name, "forebay");
  EXPECT_EQ(Choose({{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}}).code(), Code::kPermissionDenied);
  EXPECT_EQ(Choose({{"AWS_WEB_IDENTITY_TOKEN_FILE", ""}, {"AWS_ROLE_ARN", ""}})->kind,
            Kind::kMetadata)
      << "an empty variable counts as unset";
}

TEST(ChooseCredentials, sts_is_where_the_configuration_says) {
  const Texts web{{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}, {"AWS_ROLE_ARN", "arn:r"}};
  Texts more = web;
  more["AWS_ENDPOINT_URL"] = "http://all";
  EXPECT_EQ(Choose(more)->url, "http://all");
  more["AWS_ENDPOINT_URL_STS"] = "http://sts";
  EXPECT_EQ(Choose(more)->url, "http://sts");
  more["AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"] = "true";
  EXPECT_EQ(Choose(more)->url, "https://sts.eu-west-1.amazonaws.com");
  more["AWS_USE_FIPS_ENDPOINT"] = "true";
  EXPECT_EQ(Choose(more)->url, "https://sts-fips.eu-west-1.amazonaws.com");
}

TEST(ChooseCredentials, roles_chain_to_the_keys_that_sign_for_the_first) {
  const std::string config =
      "[profile a]\nrole_arn = arn:a\nsource_profile = b\nexternal_id = x\n"
      "role_session_name = me\n[profile b]\nrole_arn = arn:b\nsource_profile = c\n"
      "[profile c]\n" +
      std::string(kKeys);
  const auto spec = Choose({{"AWS_PROFILE", "a"}}, config);
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->role_arn, "arn:a");
  EXPECT_EQ(spec->external_id, "x");
  EXPECT_EQ(spec->session_name, "me");
  ASSERT_NE(spec->base, nullptr);
  EXPECT_EQ(spec->base->role_arn, "arn:b");
  ASSERT_NE(spec->base->base, nullptr);
  EXPECT_EQ(spec->base->base->fixed.access_key_id, "PROFILEID");
}

TEST(ChooseCredentials, a_role_may_name_its_own_profiles_keys_as_the_source) {
  const auto spec =
      Choose({{"AWS_PROFILE", "a"}},
             "[profile a]\nrole_arn = arn:a\nsource_profile = a\n" + std::string(kKeys));
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->base->fixed.access_key_id, "PROFILEID");
}

TEST(ChooseCredentials, a_role_takes_its_keys_from_each_kind_of_credential_source) {
  const auto with = [](const std::string& source, Texts variables) {
    variables["AWS_PROFILE"] = "a";
    return Choose(variables, "[profile a]\nrole_arn = arn:a\ncredential_source = " + source + "\n",
                  "a");
  };
  EXPECT_EQ(with("Environment", kEnvironmentKeys)->base->fixed.access_key_id, "ENVID");
  EXPECT_EQ(with("Ec2InstanceMetadata", {})->base->kind, Kind::kMetadata);
  EXPECT_EQ(with("EcsContainer", {{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x"}})->base->kind,
            Kind::kContainer);
  for (const char* source : {"Environment", "EcsContainer", "Elsewhere"}) {
    EXPECT_EQ(with(source, {}).code(), Code::kPermissionDenied) << source;
  }
}

TEST(ChooseCredentials, a_role_that_cannot_work_is_told_why) {
  const auto told = [](const std::string& profile) {
    const auto spec = Choose({{"AWS_PROFILE", "a"}}, "[profile a]\nrole_arn = arn:a\n" + profile);
    EXPECT_EQ(spec.code(), Code::kPermissionDenied) << profile;
    return spec.status().ToString();
  };
  EXPECT_THAT(told(""), HasSubstr("neither source_profile nor credential_source"));
  EXPECT_THAT(told("source_profile = b\ncredential_source = Environment\n"), HasSubstr("both"));
  EXPECT_THAT(told("source_profile = b\n"), HasSubstr("'b'"));
  EXPECT_THAT(told("source_profile = b\nmfa_serial = m\n[profile b]\n" + std::string(kKeys)),
              HasSubstr("MFA"));
  EXPECT_THAT(told("source_profile = b\n[profile b]\nrole_arn = arn:b\nsource_profile = a\n"),
              HasSubstr("back to itself"));
  EXPECT_THAT(told("source_profile = b\n[profile b]\nregion = x\n"), HasSubstr("no credentials"));
  EXPECT_THAT(told("source_profile = b\n[profile b]\naws_access_key_id = x\n"), HasSubstr("lack"));
}

TEST(ChooseCredentials, sso_finds_its_token_where_the_login_leaves_it) {
  auto spec = Choose({},
                     "[default]\nsso_session = mine\nsso_account_id = 12\nsso_role_name = r\n"
                     "[sso-session mine]\nsso_start_url = https://x\nsso_region = ap-1\n");
  ASSERT_TRUE(spec.ok()) << spec.status().ToString();
  EXPECT_EQ(spec->kind, Kind::kSso);
  EXPECT_EQ(spec->sso_cache_file,
            "/home/u/.aws/sso/cache/8034c43d15bb7ef42e2cc24255217acfc5f4b2f4.json");
  EXPECT_EQ(spec->url, "https://portal.sso.ap-1.amazonaws.com");
  EXPECT_EQ(spec->oidc_url, "https://oidc.ap-1.amazonaws.com");
  const std::string old =
      "[default]\nsso_start_url = https://x\nsso_region = ap-1\nsso_account_id = 12\n";
  EXPECT_THAT(Choose({}, old).status().ToString(), HasSubstr("sso_role_name"));
  spec = Choose({{"AWS_ENDPOINT_URL_SSO", "http://sso"}}, old + "sso_role_name = r\n");
  EXPECT_EQ(spec->url, "http://sso");
  EXPECT_EQ(spec->oidc_url, "") << "a token of the old kind is never renewed";
  spec = Choose({{"AWS_ENDPOINT_URL_SSO_OIDC", "http://oidc"}},
                "[default]\nsso_session = mine\nsso_account_id = 12\nsso_role_name = r\n"
                "[sso-session mine]\nsso_start_url = https://x\nsso_region = ap-1\n");
  EXPECT_EQ(spec->oidc_url, "http://oidc");
}

TEST(ChooseCredentials, a_container_may_be_asked_in_the_clear_only_near_by) {
  const auto choose = [](const std::string& uri) {
    return Choose({{"AWS_CONTAINER_CREDENTIALS_FULL_URI", uri},
                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN", "t"},
                   {"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/f"}});
  };
  for (const char* uri :
       {"http://localhost:80/x", "http://127.0.0.1/x", "http://127.9.9.9:1/x", "http://[::1]:5/x",
        "http://169.254.170.2/x", "http://169.254.170.23/v1/credentials",
        "http://[fd00:ec2::23]/v1/credentials", "https://example.com/x"}) {
    const auto spec = choose(uri);
    ASSERT_TRUE(spec.ok()) << spec.status().ToString();
    EXPECT_EQ(spec->url, uri);
    EXPECT_EQ(spec->token, "t");
    EXPECT_EQ(spec->token_file, "/f");
  }
  for (const char* uri : {"http://example.com/x", "http://10.0.0.1/x", "http://169.254.169.254/x",
                          "http://127.0.0.1@evil/x", "http://127.0.0.1.evil.com/x",
                          "ftp://127.0.0.1/x", "nonsense"}) {
    EXPECT_EQ(choose(uri).code(), Code::kPermissionDenied) << uri;
  }
  EXPECT_EQ(Choose({{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "x"}}).code(),
            Code::kPermissionDenied);
}

TEST(ChooseCredentials, the_metadata_service_is_where_and_as_patient_as_the_variables_say) {
  EXPECT_EQ(Choose({})->url, "http://169.254.169.254");
  EXPECT_EQ(Choose({{"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"}})->url,
            "http://[fd00:ec2::254]");
  auto spec = Choose({{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://h:1/"},
                      {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6"},
                      {"AWS_METADATA_SERVICE_TIMEOUT", "2.5"},
                      {"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "7"}});
  EXPECT_EQ(spec->url, "http://h:1");
  EXPECT_EQ(spec->timeout, std::chrono::milliseconds(2500));
  EXPECT_EQ(spec->attempts, 7);
  spec = Choose(
      {{"AWS_METADATA_SERVICE_TIMEOUT", "nan"}, {"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "many"}},
      "[default]\nec2_metadata_service_endpoint_mode = ipv6\n");
  EXPECT_EQ(spec->timeout.count(), 0);
  EXPECT_EQ(spec->attempts, 0);
  EXPECT_EQ(spec->url, "http://[fd00:ec2::254]");
}

TEST(CredentialSpec, an_identity_differs_with_all_that_decides_the_keys_and_holds_no_secret) {
  const std::string config = "[profile a]\nrole_arn = arn:a\nsource_profile = b\n[profile b]\n";
  const std::string one = Choose({{"AWS_PROFILE", "a"}}, config + kKeys)->Identity();
  EXPECT_THAT(one, Not(HasSubstr("pr0file-secret")));
  EXPECT_EQ(one, Choose({{"AWS_PROFILE", "a"}}, config + kKeys)->Identity());
  EXPECT_NE(one, Choose({{"AWS_PROFILE", "a"}}, config + "aws_access_key_id = OTHER\n"
                                                         "aws_secret_access_key = pr0file-secret\n")
                     ->Identity());
  EXPECT_NE(one,
            Choose({{"AWS_PROFILE", "a"}, {"AWS_ENDPOINT_URL_STS", "http://x"}}, config + kKeys)
                ->Identity());
}

}  // namespace
}  // namespace forebay::store::s3
