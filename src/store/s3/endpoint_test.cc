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
  auto endpoint = ResolveEndpoint(endpoint_url, region, bucket, style);
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
  EXPECT_EQ(Resolve("", "arn:aws:s3:r:1:accesspoint/n").code, Code::kUnimplemented);
}

TEST(Endpoint, keys_are_encoded_byte_by_byte_and_never_normalised) {
  const auto endpoint = *ResolveEndpoint("", "r", "bucket", "auto");
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
