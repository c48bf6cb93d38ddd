#include "store/uri.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace forebay::store {
namespace {

std::string Key(std::string_view text) {
  Result<Uri> uri = ParseUri(text);
  return uri.ok() ? uri->key : uri.status().ToString();
}

TEST(Uri, s3_keys_are_literal) {
  for (const std::string key : {"a b", "a+b", "a%2Bb", "a&b=c?d#e", "/x", "//x", "x/", "./x",
                                "../x", "a/../b", "é", "*'()!", "dt=2024-01-01/x", ""}) {
    const std::string text = "s3://bucket/" + key;
    Result<Uri> uri = ParseUri(text);
    ASSERT_TRUE(uri.ok()) << text;
    EXPECT_EQ(uri->bucket, "bucket");
    EXPECT_EQ(uri->key, key);
    EXPECT_EQ(uri->ToString(), text);
  }
}

TEST(Uri, a_bucket_alone_has_an_empty_key) {
  Result<Uri> uri = ParseUri("s3://my.bucket-1");
  ASSERT_TRUE(uri.ok());
  EXPECT_EQ(uri->bucket, "my.bucket-1");
  EXPECT_EQ(uri->key, "");
}

TEST(Uri, the_arn_of_an_access_point_stands_for_a_bucket) {
  for (const std::string arn : {"arn:aws:s3:us-west-2:123456789012:accesspoint/name",
                                "arn:aws:s3:us-west-2:123456789012:accesspoint:name"}) {
    Result<Uri> uri = ParseUri("s3://" + arn + "/a/b");
    ASSERT_TRUE(uri.ok()) << uri.status().ToString();
    EXPECT_EQ(uri->bucket, arn);
    EXPECT_EQ(uri->key, "a/b");
    EXPECT_EQ(uri->ToString(), "s3://" + arn + "/a/b");
    EXPECT_EQ(ParseUri("s3://" + arn)->bucket, arn);
  }
  EXPECT_EQ(ParseUri("s3://arn:aws:s3:x y:accesspoint/n/k").code(), Code::kInvalidArgument);
}

TEST(Uri, paths_become_absolute_and_keep_their_final_slash) {
  EXPECT_EQ(Key("/data/x"), "data/x");
  EXPECT_EQ(Key("/data/x/"), "data/x/");
  EXPECT_EQ(Key("file:///data//a/./b/../c"), "data/a/c");
  EXPECT_EQ(Key("/"), "");
  EXPECT_EQ(Key("file:///a%20b"), "a%20b");
  const std::string here = std::filesystem::current_path().string().substr(1);
  EXPECT_EQ(Key("x y"), here + "/x y");
  EXPECT_EQ(Key("./x"), here + "/x");
  EXPECT_EQ(Key("."), here + "/");
  EXPECT_EQ(ParseUri("/data/x")->ToString(), "file:///data/x");
}

TEST(Uri, what_it_cannot_mean_is_an_error_that_shows_the_text) {
  for (const std::string text : {"", "s3://", "s3:///key", "gs://bucket/x", "file://host/x",
                                 "s3://buc ket/x", "s3://b%/x", "https://x/y", "memory://"}) {
    Result<Uri> uri = ParseUri(text);
    ASSERT_FALSE(uri.ok()) << text;
    EXPECT_EQ(uri.code(), Code::kInvalidArgument);
    EXPECT_NE(uri.status().message().find(text), std::string::npos);
  }
}

}  // namespace
}  // namespace forebay::store
