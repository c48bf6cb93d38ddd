#include "store/s3/endpoint.h"

#include <gtest/gtest.h>

namespace forebay::store::s3 {
namespace {

struct Resolved {
  std::string url;  // of the key "k"
  Code code = Code::kOk;
};

Resolved Resolve(const std::string& endpoint_url, const std::string& bucket,
                 const std::string& style = "auto", const std::string& region = "eu-west-1") {
  auto endpoint = ResolveEndpoint(
      {.endpoint_url = endpoint_url, .region = region, .bucket = bucket, .style = style});
  if (!endpoint.ok()) return {"", endpoint.code()};
  return {endpoint->UrlOf(endpoint->PathOf("k"), ""), Code::kOk};
}

TEST(Endpoint, aws_is_reached_by_virtual_host_unless_the_bucket_forbids_it) {
  EXPECT_EQ(Resolve("", "bucket").url, "https://bucket.s3.eu-west-1.amazonaws.com/k");
  EXPECT_EQ(Resolve("", "with.dots").url, "https://s3.eu-west-1.amazonaws.com/with.dots/k");
  EXPECT_EQ(Resolve("", "Upper").url, "https://s3.eu-west-1.amazonaws.com/Upper/k");
  EXPECT_EQ(Resolve("", "under_score").url, "https://s3.eu-west-1.amazonaws.com/under_score/k");
  EXPECT_EQ(Resolve("", "bucket", "path").url, "https://s3.eu-west-1.amazonaws.com/bucket/k");
  EXPECT_EQ(Resolve("", "bucket", "auto", "cn-north-1").url,
            "https://bucket.s3.cn-north-1.amazonaws.com.cn/k");
}

TEST(Endpoint, custom_endpoints_are_reached_by_path_unless_told_otherwise) {
  EXPECT_EQ(Resolve("http://127.0.0.1:8333", "bucket").url, "http://127.0.0.1:8333/bucket/k");
  EXPECT_EQ(Resolve("https://s3.example:443/", "bucket").url, "https://s3.example/bucket/k");
  EXPECT_EQ(Resolve("http://gw.example/s3/", "bucket").url, "http://gw.example/s3/bucket/k");
  EXPECT_EQ(Resolve("http://s3.localhost:1", "bucket", "virtual").url,
            "http://bucket.s3.localhost:1/k");
}

TEST(Endpoint, what_can_make_no_host_is_refused) {
  for (const char* url :
       {"127.0.0.1:8333", "ftp://x", "http://", "http://a b", "http://x?y", "http://user@host",
        "http://x#y", "http://x/a\nb", "http://x/\x01", "http://x/\xc3\xa9"}) {
    EXPECT_EQ(Resolve(url, "bucket").code, Code::kInvalidArgument) << url;
  }
  for (const char* bucket : {"", "a/b", "a b", "..", "a\nb", "b\xc3\xa9"}) {
    EXPECT_EQ(Resolve("", bucket).code, Code::kInvalidArgument) << bucket;
  }
  EXPECT_EQ(Resolve("", "bucket", "auto", "evil.example/").code, Code::kInvalidArgument);
  EXPECT_EQ(Resolve("", "bucket", "sideways").code, Code::kInvalidArgument);
  EXPECT_EQ(Resolve("", "under_score", "virtual").code, Code::kInvalidArgument);
  EXPECT_EQ(Resolve("http://127.0.0.1:1", "bucket", "virtual").code, Code::kInvalidArgument);
}

TEST(Endpoint, access_points_and_directory_buckets_have_hosts_of_their_own) {
  const std::string arn = "arn:aws:s3:us-west-2:123456789012:accesspoint/my-point";
  EXPECT_EQ(Resolve("", arn).url,
            "https://my-point-123456789012.s3-accesspoint.us-west-2.amazonaws.com/k");
  EXPECT_EQ(Resolve("http://s3.localhost:1", arn).url,
            "http://my-point-123456789012.s3.localhost:1/k");
  const auto point = *ResolveEndpoint({.region = "eu-west-1", .bucket = arn});
  EXPECT_EQ(point.region, "us-west-2");
  EXPECT_EQ(point.service, "s3");
  EXPECT_FALSE(point.region_follows);
  const auto lambda = *ResolveEndpoint(
      {.region = "x",
       .bucket = "arn:aws-cn:s3-object-lambda:cn-north-1:123456789012:accesspoint:p"});
  EXPECT_EQ(lambda.host, "p-123456789012.s3-object-lambda.cn-north-1.amazonaws.com.cn");
  EXPECT_EQ(lambda.service, "s3-object-lambda");

  const auto zone = *ResolveEndpoint({.region = "us-west-2", .bucket = "data--usw2-az1--x-s3"});
  EXPECT_EQ(zone.host, "data--usw2-az1--x-s3.s3express-usw2-az1.us-west-2.amazonaws.com");
  EXPECT_EQ(zone.service, "s3express");
  EXPECT_TRUE(zone.directory_bucket);
  // An access point's alias is a plain bucket.
  EXPECT_EQ(Resolve("", "point-abc123-s3alias").url,
            "https://point-abc123-s3alias.s3.eu-west-1.amazonaws.com/k");
}

TEST(Endpoint, arns_that_cannot_be_used_say_why) {
  const auto refuse = [](const std::string& arn) {
    return ResolveEndpoint({.region = "us-west-2", .bucket = arn}).status();
  };
  const Status several = refuse("arn:aws:s3::123456789012:accesspoint/name.mrap");
  EXPECT_EQ(several.code(), Code::kUnimplemented);
  EXPECT_NE(several.message().find("SigV4A"), std::string::npos);
  EXPECT_EQ(refuse("arn:aws:s3-outposts:us-west-2:123456789012:outpost/o/accesspoint/a").code(),
            Code::kUnimplemented);
  for (const char* arn :
       {"arn:", "arn:aws:s3:us-west-2:123456789012:bucket/b",
        "arn:aws:s3:us-west-2:1:accesspoint/a", "arn:aws:s3:us-west-2:123456789012:accesspoint/",
        "arn:aws:iam::123456789012:role/x", "arn:aws:s3:evil.example/:123456789012:accesspoint/a",
        "arn:aws:s3:us-west-2:123456789012:accesspoint/a/b"}) {
    EXPECT_EQ(refuse(arn).code(), Code::kInvalidArgument) << arn;
  }
}

TEST(Endpoint, the_variants_of_aws_are_other_hosts) {
  EndpointOptions options{.region = "us-east-2", .bucket = "bucket"};
  const auto host = [&options] { return ResolveEndpoint(options)->host; };
  options.dualstack = true;
  EXPECT_EQ(host(), "bucket.s3.dualstack.us-east-2.amazonaws.com");
  options.fips = true;
  EXPECT_EQ(host(), "bucket.s3-fips.dualstack.us-east-2.amazonaws.com");
  options = {.region = "us-east-2", .bucket = "bucket", .accelerate = true};
  EXPECT_EQ(host(), "bucket.s3-accelerate.amazonaws.com");
  EXPECT_EQ(ResolveEndpoint(options)->region, "us-east-2");
  options = {.region = "aws-global", .bucket = "bucket"};
  EXPECT_EQ(host(), "bucket.s3.amazonaws.com");
  EXPECT_EQ(ResolveEndpoint(options)->region, "us-east-1");
}

TEST(Endpoint, redirects_stay_inside_the_domain) {
  const auto aws = *ResolveEndpoint({.region = "us-east-1", .bucket = "bucket"});
  EXPECT_TRUE(aws.is_aws);
  EXPECT_TRUE(MayRedirectTo(aws, "bucket.s3-us-west-2.amazonaws.com"));
  for (const char* host : {"amazonaws.com.evil.example", "evil-amazonaws.com", "evil.example", "",
                           "bucket.s3.amazonaws.com.cn", "x@s3.amazonaws.com"}) {
    EXPECT_FALSE(MayRedirectTo(aws, host)) << host;
  }
  const auto own = *ResolveEndpoint(
      {.endpoint_url = "http://gw.example:9000", .region = "r", .bucket = "bucket"});
  EXPECT_FALSE(own.is_aws);
  EXPECT_TRUE(MayRedirectTo(own, "gw.example:9001"));
  EXPECT_TRUE(MayRedirectTo(own, "a.gw.example"));
  EXPECT_FALSE(MayRedirectTo(own, "b.example"));
  EXPECT_TRUE(ResolveEndpoint({.endpoint_url = "https://b.vpce-1.s3.us-east-1.vpce.amazonaws.com",
                               .region = "us-east-1",
                               .bucket = "b"})
                  ->is_aws);
}

TEST(Endpoint, keys_are_encoded_byte_by_byte_and_never_normalised) {
  const auto endpoint = *ResolveEndpoint({.region = "r", .bucket = "bucket"});
  EXPECT_EQ(endpoint.PathOf("//key//..//whatever/."), "///key//..//whatever/.");
  EXPECT_EQ(endpoint.PathOf("/x"), "//x");
  EXPECT_EQ(endpoint.PathOf("x/"), "/x/");
  EXPECT_EQ(endpoint.PathOf("a b+c%2Bd"), "/a%20b%2Bc%252Bd");
  EXPECT_EQ(endpoint.PathOf("\xc3\xa9\x01~*'()!"), "/%C3%A9%01~%2A%27%28%29%21");
  EXPECT_EQ(endpoint.PathOf("dt=2024-01-01/x;y&z?#\""), "/dt%3D2024-01-01/x%3By%26z%3F%23%22");
  EXPECT_EQ(endpoint.PathOf(""), "/");
}

TEST(EncodeQuery, sorts_by_encoded_name_and_keeps_empty_values) {
  EXPECT_EQ(EncodeQuery({{"uploads", ""}}), "uploads=");
  EXPECT_EQ(EncodeQuery({{"prefix", "a/b +"}, {"continuation-token", "x+/="}, {"max-keys", "2"}}),
            "continuation-token=x%2B%2F%3D&max-keys=2&prefix=a%2Fb%20%2B");
}

TEST(FormDecode, undoes_what_listings_do_to_keys) {
  EXPECT_EQ(*FormDecode("a+b%2Bc%20d%C3%a9"), "a b+c d\xc3\xa9");
  EXPECT_EQ(*FormDecode(""), "");
  for (const char* broken : {"%", "%4", "a%zz", "%4g"}) {
    EXPECT_EQ(FormDecode(broken).code(), Code::kDataLoss) << broken;
  }
}

}  // namespace
}  // namespace forebay::store::s3
