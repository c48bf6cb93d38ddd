#include "store/s3/credentials.h"

#include <gtest/gtest.h>

#include <fstream>

#include <cstdlib>

#include "store/s3/credentials/spec.h"
#include "testing/fake_environment.h"
#include "testing/temp_folder.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::Texts;

Environment Fake(Texts variables, Texts files = {}) {
  return forebay::testing::FakeEnvironment(std::move(variables), std::move(files));
}

constexpr char kCredentialsFile[] =
    "# comment\r\n[default]\naws_access_key_id = DEFAULTID\naws_secret_access_key=s3cr=t/+  \n"
    "\n[ work ]\naws_access_key_id=WORKID ; mine\naws_secret_access_key=ws\n"
    "AWS_Session_Token: wt\n[half]\naws_access_key_id = HALFID\n[empty]\n";
constexpr char kConfigFile[] =
    "[default]\nregion = eu-north-1\n[profile work]\nregion=ap-south-1\nmax_attempts = 9\n"
    "s3 =\n  addressing_style = virtual\n  endpoint_url = http://nested\nca_bundle = /ca.pem\n"
    "[profile \"with space\"]\naws_access_key_id=SPACEID\naws_secret_access_key=x\n";
const Texts kFiles{{"/home/u/.aws/credentials", kCredentialsFile},
                   {"/home/u/.aws/config", kConfigFile}};

TEST(AwsConfig, the_environment_gives_keys_region_and_endpoint) {
  auto config = LoadAwsConfig({}, Fake({{"AWS_ACCESS_KEY_ID", "ID"},
                                        {"AWS_SECRET_ACCESS_KEY", "SECRET"},
                                        {"AWS_SESSION_TOKEN", "TOKEN"},
                                        {"AWS_DEFAULT_REGION", "r1"},
                                        {"AWS_ENDPOINT_URL", "http://general"},
                                        {"AWS_CA_BUNDLE", "/bundle"},
                                        {"AWS_MAX_ATTEMPTS", "7"}},
                                       kFiles));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->credentials.access_key_id, "ID");
  EXPECT_EQ(config->credentials.secret_access_key, "SECRET");
  EXPECT_EQ(config->credentials.session_token, "TOKEN");
  EXPECT_EQ(config->region, "r1");
  EXPECT_EQ(config->endpoint_url, "http://general");
  EXPECT_EQ(config->ca_bundle, "/bundle");
  EXPECT_EQ(config->max_attempts, 7);
  const Texts both{{"AWS_ACCESS_KEY_ID", "ID"},
                   {"AWS_SECRET_ACCESS_KEY", "S"},
                   {"AWS_REGION", "r2"},
                   {"AWS_DEFAULT_REGION", "r1"},
                   {"AWS_ENDPOINT_URL", "http://general"},
                   {"AWS_ENDPOINT_URL_S3", "http://s3"}};
  config = LoadAwsConfig({}, Fake(both));
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->region, "r2");
  EXPECT_EQ(config->endpoint_url, "http://s3");
  EXPECT_EQ(config->max_attempts, 5);
}

TEST(AwsConfig, attempts_that_are_no_number_are_told_and_not_taken) {
  const Texts keys{{"AWS_ACCESS_KEY_ID", "ID"}, {"AWS_SECRET_ACCESS_KEY", "S"}};
  for (const std::string text : {"abc", "0", "-3", "5x", "99999999999"}) {
    Texts all = keys;
    all["AWS_MAX_ATTEMPTS"] = text;
    ::testing::internal::CaptureStderr();
    const auto config = LoadAwsConfig({}, Fake(all));
    const std::string said = ::testing::internal::GetCapturedStderr();
    ASSERT_TRUE(config.ok());
    EXPECT_EQ(config->max_attempts, 5);
    EXPECT_NE(said.find("AWS_MAX_ATTEMPTS"), std::string::npos) << text;
    EXPECT_NE(said.find("'" + text + "'"), std::string::npos) << said;
  }
}

TEST(AwsConfig, a_region_that_can_be_none_is_an_error) {
  const auto load = [](const std::string& region, const std::string& endpoint) {
    return LoadAwsConfig({.endpoint_url = endpoint, .region = region, .no_sign_request = true},
                         Fake({}))
        .status();
  };
  for (const char* region :
       {"us east-1", "us-east-1/", "-x", "x-", "us-east-1\n", "a.b", "\xc3\xbc"}) {
    const Status status = load(region, "");
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << region;
    EXPECT_NE(status.ToString().find("AWS_REGION"), std::string::npos);
  }
  EXPECT_EQ(load(std::string(64, 'a'), "").code(), Code::kInvalidArgument);
  for (const char* region : {"us-east-1", "us-iso-east-1", "auto", "Elsewhere"}) {
    EXPECT_TRUE(load(region, "").ok()) << region;
  }
  EXPECT_TRUE(load("my_rack.1", "http://store").ok())
      << "stores that are not AWS name as they like";
  EXPECT_EQ(load("my/rack", "http://store").code(), Code::kInvalidArgument);
}

TEST(AwsConfig, a_file_that_a_variable_names_must_be_readable_if_it_is_there) {
  const testing::TempFolder folder;
  const std::string file = folder.path() + "/config";
  std::ofstream(file) << "[default]\nregion = eu-north-1\n";
  for (const char* variable : {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"}) {
    const auto load = [&](const std::string& path) {
      Environment environment = Fake({{variable, path}});
      environment.check_file = Environment::Process().check_file;
      return LoadAwsConfig({.no_sign_request = true}, environment).status();
    };
    EXPECT_TRUE(load(file).ok());
    EXPECT_TRUE(load(folder.path() + "/none").ok()) << "as the AWS tools take it";
    EXPECT_TRUE(load("/dev/null").ok());
    const Status status = load(folder.path());
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.ToString().find(variable), std::string::npos) << status.ToString();
    EXPECT_NE(status.ToString().find(folder.path()), std::string::npos) << status.ToString();
  }
}

TEST(AwsConfig, profiles_are_read_as_the_aws_tools_read_them) {
  auto config = LoadAwsConfig({}, Fake({}, kFiles));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->credentials.access_key_id, "DEFAULTID");
  EXPECT_EQ(config->credentials.secret_access_key, "s3cr=t/+");
  EXPECT_EQ(config->region, "eu-north-1");
  config = LoadAwsConfig({}, Fake({{"AWS_PROFILE", "work"}}, kFiles));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->credentials.access_key_id, "WORKID");
  EXPECT_EQ(config->credentials.session_token, "wt");
  EXPECT_EQ(config->region, "ap-south-1");
  EXPECT_EQ(config->addressing_style, "virtual");
  EXPECT_EQ(config->endpoint_url, "http://nested");
  EXPECT_EQ(config->ca_bundle, "/ca.pem");
  EXPECT_EQ(config->max_attempts, 9);
  config = LoadAwsConfig({.profile = "with space"}, Fake({}, kFiles));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->credentials.access_key_id, "SPACEID");
  EXPECT_EQ(config->region, "us-east-1");
}

// Whose keys a program gives may depend on all that it sees; not on which rank of a job asks.
TEST(AwsConfig, a_programs_keys_are_shared_by_equal_surroundings_alone) {
  const Texts files{{"/home/u/.aws/config", "[default]\ncredential_process = ./keys\n"}};
  const auto identity = [&](const char* team) {
    Environment environment = Fake({}, files);
    environment.surroundings = [team] { return std::string("TEAM=") + team; };
    const auto config = LoadAwsConfig({}, environment);
    EXPECT_TRUE(config.ok()) << config.status().ToString();
    return config.ok() && config->fetched_by ? config->fetched_by->Identity() : "";
  };
  EXPECT_EQ(identity("a"), identity("a"));
  EXPECT_NE(identity("a"), identity("b"));
  const auto process = Environment::Process();
  ::setenv("RANK", "1", 1);
  const std::string one = process.surroundings();
  ::setenv("RANK", "2", 1);
  EXPECT_EQ(process.surroundings(), one);
  ::setenv("FOO_TEAM", "b", 1);
  EXPECT_NE(process.surroundings(), one);
  ::unsetenv("RANK");
  ::unsetenv("FOO_TEAM");
}

TEST(AwsConfig, a_profile_asked_for_outranks_the_keys_in_the_environment) {
  const Texts keys{{"AWS_ACCESS_KEY_ID", "ID"}, {"AWS_SECRET_ACCESS_KEY", "S"}};
  EXPECT_EQ(LoadAwsConfig({.profile = "work"}, Fake(keys, kFiles))->credentials.access_key_id,
            "WORKID");
  Texts named = keys;
  named["AWS_PROFILE"] = "work";
  EXPECT_EQ(LoadAwsConfig({}, Fake(named, kFiles))->credentials.access_key_id, "ID");
  EXPECT_EQ(LoadAwsConfig({}, Fake(named, kFiles))->region, "ap-south-1");
}

Result<AwsConfig> WithKeys(Texts variables, const std::string& config_file = "") {
  variables.emplace("AWS_ACCESS_KEY_ID", "ID");
  variables.emplace("AWS_SECRET_ACCESS_KEY", "S");
  return LoadAwsConfig({}, Fake(std::move(variables), {{"/home/u/.aws/config", config_file}}));
}

TEST(AwsConfig, the_endpoint_is_the_most_specific_one_that_anything_names) {
  const std::string services =
      "[default]\nendpoint_url = http://profile\nservices = mine\n"
      "[services mine]\ns3 =\n  endpoint_url = http://services\n";
  EXPECT_EQ(WithKeys({}, "[default]\nendpoint_url = http://profile\n")->endpoint_url,
            "http://profile");
  EXPECT_EQ(WithKeys({}, services)->endpoint_url, "http://services");
  EXPECT_EQ(WithKeys({{"AWS_ENDPOINT_URL", "http://all"}}, services)->endpoint_url, "http://all");
  EXPECT_EQ(
      WithKeys({{"AWS_ENDPOINT_URL", "http://all"}, {"AWS_ENDPOINT_URL_S3", "http://s3"}}, services)
          ->endpoint_url,
      "http://s3");
  EXPECT_EQ(WithKeys({{"S3_ENDPOINT_URL", "http://s5"}})->endpoint_url, "http://s5");
  EXPECT_EQ(WithKeys({{"S3_ENDPOINT_URL", "http://s5"}}, services)->endpoint_url,
            "http://services");
  Texts ignored{{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True"},
                {"AWS_ENDPOINT_URL_S3", "http://s3"}};
  EXPECT_EQ(WithKeys(ignored, services)->endpoint_url, "");
  EXPECT_EQ(LoadAwsConfig({.endpoint_url = "http://told", .no_sign_request = true}, Fake(ignored))
                ->endpoint_url,
            "http://told");
}

TEST(AwsConfig, settings_of_requests_come_from_the_environment_and_then_from_the_profile) {
  const std::string file =
      "[default]\nretry_mode = adaptive\nuse_dualstack_endpoint = true\n"
      "use_fips_endpoint = true\nrequest_checksum_calculation = when_required\n"
      "response_checksum_validation = when_required\ns3 =\n  use_accelerate_endpoint = true\n";
  auto config = WithKeys({}, file);
  EXPECT_EQ(config->retry_mode, "adaptive");
  EXPECT_TRUE(config->use_dualstack && config->use_fips && config->use_accelerate);
  EXPECT_EQ(config->request_checksum, "when_required");
  EXPECT_EQ(config->response_checksum, "when_required");
  config = WithKeys({{"AWS_RETRY_MODE", "legacy"},
                     {"AWS_USE_DUALSTACK_ENDPOINT", "false"},
                     {"AWS_USE_FIPS_ENDPOINT", "FALSE"},
                     {"AWS_REQUEST_CHECKSUM_CALCULATION", "WHEN_SUPPORTED"},
                     {"AWS_RESPONSE_CHECKSUM_VALIDATION", "when_supported"}},
                    file);
  EXPECT_EQ(config->retry_mode, "legacy");
  EXPECT_FALSE(config->use_dualstack || config->use_fips);
  EXPECT_EQ(config->request_checksum, "when_supported");
  EXPECT_EQ(config->response_checksum, "when_supported");
  config = WithKeys({{"AWS_RETRY_MODE", "often"}});
  EXPECT_EQ(config->retry_mode, "standard");
  EXPECT_EQ(config->request_checksum, "");
  EXPECT_FALSE(config->use_dualstack || config->use_fips || config->use_accelerate);
}

TEST(AwsConfig, files_lie_where_the_environment_says) {
  auto config = LoadAwsConfig(
      {}, Fake({{"AWS_SHARED_CREDENTIALS_FILE", "~/c"}, {"AWS_CONFIG_FILE", "/etc/aws"}},
               {{"/home/u/c", kCredentialsFile}, {"/etc/aws", kConfigFile}}));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_EQ(config->credentials.access_key_id, "DEFAULTID");
  EXPECT_EQ(config->region, "eu-north-1");
}

TEST(AwsConfig, anonymous_access_is_never_assumed_and_needs_nothing) {
  auto config = LoadAwsConfig({.no_sign_request = true}, Fake({{"AWS_PROFILE", "missing"}}));
  ASSERT_TRUE(config.ok()) << config.status().ToString();
  EXPECT_TRUE(config->credentials.anonymous);
  EXPECT_EQ(config->credentials.access_key_id, "");
}

TEST(AwsConfig, without_credentials_the_error_names_what_was_tried_and_no_secret) {
  const Texts alone{{"AWS_EC2_METADATA_DISABLED", "true"}};
  auto config = LoadAwsConfig({}, Fake(alone, {{"/home/u/.aws/credentials", "[other]\nx=y\n"}}));
  ASSERT_EQ(config.code(), Code::kPermissionDenied);
  const std::string text = config.status().ToString();
  for (const char* part :
       {"AWS_ACCESS_KEY_ID", "'default'", "/home/u/.aws/credentials", "/home/u/.aws/config"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(LoadAwsConfig({.profile = "absent"}, Fake({}, kFiles)).code(), Code::kPermissionDenied);
  EXPECT_EQ(LoadAwsConfig({.profile = "half"}, Fake({}, kFiles)).code(), Code::kPermissionDenied);
  EXPECT_EQ(LoadAwsConfig({.profile = "empty"}, Fake(alone, kFiles)).code(),
            Code::kPermissionDenied);
  auto half = LoadAwsConfig({}, Fake({{"AWS_SECRET_ACCESS_KEY", "SECRETVALUE"}}, kFiles));
  EXPECT_EQ(half.code(), Code::kPermissionDenied);
  EXPECT_EQ(half.status().ToString().find("SECRETVALUE"), std::string::npos);
}

}  // namespace
}  // namespace forebay::store::s3
