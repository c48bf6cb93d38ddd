#include "net/proxy.h"

#include <gtest/gtest.h>

#include <map>

namespace forebay::net {
namespace {

ProxyRules Rules(std::map<std::string, std::string> variables) {
  return ProxyRules([variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST(ProxyRules, apply_to_the_scheme_of_their_variable) {
  EXPECT_FALSE(ProxyRules().any());
  EXPECT_FALSE(Rules({{"http_proxy", ""}}).any());
  EXPECT_TRUE(Rules({{"HTTP_PROXY", "http://p:1"}}).Applies(false, "s3.test"));
  EXPECT_FALSE(Rules({{"HTTP_PROXY", "http://p:1"}, {"REQUEST_METHOD", "GET"}}).any());
  for (const char* list : {"*.test", "a, *", "x,.test"}) {
    EXPECT_FALSE(Rules({{"http_proxy", "p"}, {"NO_PROXY", list}}).Applies(false, "s3.test"))
        << list;
  }
  const ProxyRules http = Rules({{"http_proxy", "http://p:1"}});
  EXPECT_TRUE(http.Applies(false, "s3.test"));
  EXPECT_FALSE(http.Applies(true, "s3.test"));
  for (const char* name : {"https_proxy", "HTTPS_PROXY"}) {
    EXPECT_TRUE(Rules({{name, "p"}}).Applies(true, "s3.test")) << name;
    EXPECT_FALSE(Rules({{name, "p"}}).Applies(false, "s3.test")) << name;
  }
  for (const char* name : {"all_proxy", "ALL_PROXY"}) {
    EXPECT_TRUE(Rules({{name, "p"}}).Applies(true, "s3.test")) << name;
    EXPECT_TRUE(Rules({{name, "p"}}).Applies(false, "s3.test")) << name;
  }
}

TEST(ProxyRules, leave_out_what_no_proxy_names) {
  const auto applies = [](const char* no_proxy, const char* host) {
    return Rules({{"all_proxy", "p"}, {"no_proxy", no_proxy}}).Applies(true, host);
  };
  EXPECT_TRUE(applies("", "s3.test"));
  EXPECT_FALSE(applies("*", "s3.test"));
  EXPECT_FALSE(applies("a.b, S3.Test", "s3.test"));
  EXPECT_FALSE(applies(".s3.test", "bucket.S3.test"));
  EXPECT_FALSE(applies("s3.test.", "s3.test"));
  EXPECT_TRUE(applies("s3.test", "nots3.test"));
  EXPECT_TRUE(applies("bucket.s3.test", "s3.test"));
  EXPECT_FALSE(applies("10.0.0.0/8,fd00::/16", "10.9.8.7"));
  EXPECT_FALSE(applies("10.0.0.0/8 fd00::/16", "[fd00::1]"));
  EXPECT_TRUE(applies("10.0.0.0/8", "11.0.0.1"));
  EXPECT_TRUE(applies("10.1.0.0/99", "10.1.0.0"));
  EXPECT_FALSE(applies("169.254.169.254", "169.254.169.254"));
  EXPECT_FALSE(Rules({{"all_proxy", "p"}, {"NO_PROXY", "*"}}).Applies(true, "s3.test"));
}

TEST(ProxyRules, never_apply_to_this_machine) {
  const ProxyRules all = Rules({{"all_proxy", "p"}});
  for (const char* host : {"localhost", "s3.localhost", "127.0.0.1", "127.9.9.9", "[::1]"}) {
    EXPECT_FALSE(all.Applies(false, host)) << host;
  }
  EXPECT_TRUE(all.Applies(false, "localhost.test"));
}

}  // namespace
}  // namespace forebay::net
