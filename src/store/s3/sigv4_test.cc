// The values are AWS's own: the worked examples of "Authenticating Requests (AWS Signature Version
// 4)" in the S3 API reference, and two of its signature test suite.
#include "store/s3/sigv4.h"

#include <gtest/gtest.h>

#include "store/s3/endpoint.h"

namespace forebay::store::s3 {
namespace {

const Credentials kExample{.access_key_id = "AKIAIOSFODNN7EXAMPLE",
                           .secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"};
constexpr int64_t kExampleTime = 1369353600;  // 20130524T000000Z

std::string SignatureOf(const Credentials& credentials, Signer& signer, const SignRequest& request,
                        net::HeaderList headers) {
  signer.Sign(credentials, request, headers);
  const std::string_view text = net::FindHeader(headers, "authorization");
  return std::string(text.substr(text.find("Signature=") + 10));
}

std::string ExampleSignature(std::string_view method, std::string_view path, std::string_view query,
                             net::HeaderList headers, std::string_view payload = kEmptySha256) {
  Signer signer("us-east-1", "s3");
  return SignatureOf(kExample, signer,
                     {.method = method,
                      .host = "examplebucket.s3.amazonaws.com",
                      .path = path,
                      .query = query,
                      .payload_sha256 = payload,
                      .unix_time_s = kExampleTime},
                     std::move(headers));
}

TEST(Signer, signs_the_s3_examples_as_aws_does) {
  EXPECT_EQ(ExampleSignature("GET", "/test.txt", "", {{"Range", "bytes=0-9"}}),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
  EXPECT_EQ(ExampleSignature("PUT", "/" + UriEncode("test$file.text", true), "",
                             {{"Date", "Fri, 24 May 2013 00:00:00 GMT"},
                              {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
                             HexSha256({AsBytes("Welcome to "), AsBytes("Amazon S3.")})),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
  EXPECT_EQ(ExampleSignature("GET", "/", EncodeQuery({{"lifecycle", ""}}), {}),
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
  EXPECT_EQ(ExampleSignature("GET", "/", EncodeQuery({{"prefix", "J"}, {"max-keys", "2"}}), {}),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

TEST(Signer, signs_the_generic_suite_as_aws_does) {
  const Credentials credentials{.access_key_id = "AKIDEXAMPLE",
                                .secret_access_key = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"};
  Signer signer("us-east-1", "service");
  SignRequest request{.method = "GET",
                      .host = "example.amazonaws.com",
                      .path = "/",
                      .payload_sha256 = kEmptySha256,
                      .unix_time_s = 1440938160,  // 20150830T123600Z
                      .add_content_sha256 = false};
  EXPECT_EQ(SignatureOf(credentials, signer, request, {}),
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
  const std::string query = EncodeQuery({{"Param2", "value2"}, {"Param1", "value1"}});
  request.query = query;
  EXPECT_EQ(SignatureOf(credentials, signer, request, {}),
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500");
}

TEST(Signer, the_cached_key_follows_day_and_secret) {
  Signer signer("us-east-1", "s3");
  SignRequest request{.method = "GET",
                      .host = "examplebucket.s3.amazonaws.com",
                      .path = "/test.txt",
                      .payload_sha256 = kEmptySha256,
                      .unix_time_s = kExampleTime};
  const net::HeaderList headers{{"range", "bytes=0-9"}};
  const std::string first = SignatureOf(kExample, signer, request, headers);
  Credentials other = kExample;
  other.secret_access_key = "another";
  EXPECT_NE(SignatureOf(other, signer, request, headers), first);
  SignRequest later = request;
  later.unix_time_s += 86'400;
  EXPECT_NE(SignatureOf(kExample, signer, later, headers), first);
  EXPECT_EQ(SignatureOf(kExample, signer, request, headers), first);
}

TEST(Signer, a_session_token_is_sent_and_signed_and_anonymous_adds_nothing) {
  Signer signer("us-east-1", "s3");
  Credentials session = kExample;
  session.session_token = "token==";
  net::HeaderList headers;
  const SignRequest request{.method = "GET", .host = "h", .path = "/", .payload_sha256 = "x"};
  signer.Sign(session, request, headers);
  EXPECT_EQ(net::FindHeader(headers, "x-amz-security-token"), "token==");
  EXPECT_NE(net::FindHeader(headers, "authorization").find(";x-amz-security-token,"),
            std::string_view::npos);
  net::HeaderList none;
  signer.Sign({.anonymous = true}, request, none);
  EXPECT_TRUE(none.empty());
}

TEST(CanonicalRequest, sorts_by_name_joins_duplicates_and_squeezes_blanks) {
  std::string signed_headers;
  const std::string text = CanonicalRequest(
      {.method = "GET", .host = "h", .path = "/p", .query = "a=b", .payload_sha256 = "hash"},
      {{"x-amz-meta-kms-id", "2"}, {"X-Amz-Meta-Kms", " a   b "}, {"x-amz-meta-kms", "c"}},
      signed_headers);
  EXPECT_EQ(signed_headers, "host;x-amz-meta-kms;x-amz-meta-kms-id");
  EXPECT_EQ(text,
            "GET\n/p\na=b\nhost:h\nx-amz-meta-kms:a b,c\nx-amz-meta-kms-id:2\n\n"
            "host;x-amz-meta-kms;x-amz-meta-kms-id\nhash");
}

}  // namespace
}  // namespace forebay::store::s3
