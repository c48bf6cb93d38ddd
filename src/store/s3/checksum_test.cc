// The checksums of whole objects: how they are written, which one a store takes, what a read makes
// of one.
#include "store/s3/checksum.h"

#include <gtest/gtest.h>

#include <string>

#include "testing/scripted_s3.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::ErrorXml;
using forebay::testing::HttpText;
using forebay::testing::Say;
using forebay::testing::ScriptedReply;
using forebay::testing::ScriptedS3;
using forebay::testing::SeenRequest;

TEST(Checksum, is_written_as_the_headers_want_it_however_the_bytes_are_cut) {
  const auto of = [](ChecksumKind kind, std::string_view first, std::string_view second) {
    Checksum sum(kind);
    sum.Add(AsBytes(first));
    sum.Add(AsBytes(second));
    return sum.Text();
  };
  EXPECT_EQ(of(ChecksumKind::kCrc64Nvme, "1234", "56789"), "rosUhgp5mIg=");
  EXPECT_EQ(of(ChecksumKind::kCrc32c, "1234", "56789"), "4waSgw==");
  EXPECT_EQ(of(ChecksumKind::kCrc32, "123456", "789"), "y/Q5Jg==");
  EXPECT_EQ(of(ChecksumKind::kCrc64Nvme, "", ""), "AAAAAAAAAAA=");
  EXPECT_EQ(of(ChecksumKind::kCrc32c, "", ""), "AAAAAA==");
}

TEST(Checksum, counts_as_the_objects_only_where_it_is_of_the_whole) {
  const auto found = [](net::HeaderList headers) {
    return FullObjectChecksum({.status = 206, .headers = std::move(headers)}).has_value();
  };
  EXPECT_TRUE(found({{"ETag", "\"e\""}, {"x-amz-checksum-crc32c", "4waSgw=="}}));
  EXPECT_TRUE(found({{"ETag", "\"e-2\""},
                     {"x-amz-checksum-crc64nvme", "rosUhgp5mIg="},
                     {"x-amz-checksum-type", "FULL_OBJECT"}}));
  EXPECT_FALSE(found({{"ETag", "\"e-2\""}, {"x-amz-checksum-crc32c", "4waSgw=="}}));
  EXPECT_FALSE(found({{"ETag", "\"e\""},
                      {"x-amz-checksum-crc32c", "4waSgw=="},
                      {"x-amz-checksum-type", "COMPOSITE"}}));
  EXPECT_FALSE(found({{"ETag", "\"e\""}, {"x-amz-checksum-crc32c", "4waSgw==-3"}}));
  EXPECT_FALSE(found({{"ETag", "\"e\""}, {"x-amz-checksum-sha256", "4waSgw=="}}));
}

// ---- writes

// A store that knows the kinds of checksum in `knows` and refuses all others, as `status`.
testing::ScriptedServer::Script StoreKnowing(const std::string& knows, int status) {
  return [=](const SeenRequest& request) -> ScriptedReply {
    const std::string algorithm(net::FindHeader(request.headers, "x-amz-checksum-algorithm"));
    for (const auto& [header, name] : {std::pair("x-amz-checksum-crc64nvme", "CRC64NVME"),
                                       std::pair("x-amz-checksum-crc32c", "CRC32C")}) {
      const bool used = algorithm == name || !net::FindHeader(request.headers, header).empty();
      if (used && knows.find(name) == knows.npos) {
        return {HttpText(status, {},
                         "<Error><Code>InvalidRequest</Code><Message>The Checksum algorithm is "
                         "not supported</Message></Error>")};
      }
    }
    if (request.method == "POST") {
      return {HttpText(200, {},
                       "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                       "</InitiateMultipartUploadResult>")};
    }
    return {HttpText(200, {{"ETag", "\"e\""}}, "")};
  };
}

void WhenSupported(S3StoreOptions& options) { options.config.request_checksum = "when_supported"; }

std::string SumOf(const SeenRequest& request) {
  return std::string(net::FindHeader(request.headers, "x-amz-checksum-crc64nvme")) + "|" +
         std::string(net::FindHeader(request.headers, "x-amz-checksum-crc32c"));
}

TEST(S3Checksum, is_the_one_that_the_store_takes_and_remembered) {
  struct Case {
    const char* knows;
    int status;
    const char* last;
    size_t requests;
  };
  for (const Case& one :
       {Case{"CRC64NVME", 400, "rosUhgp5mIg=|", 2}, Case{"CRC32C", 400, "|4waSgw==", 3},
        Case{"CRC32C", 501, "|4waSgw==", 3}, Case{"none", 400, "|", 4}}) {
    ScriptedS3 s3(StoreKnowing(one.knows, one.status), {.adjust = WhenSupported});
    for (int i = 0; i < 2; ++i) {
      const auto put = s3.store().Put({.key = "k", .body = {AsBytes("1234"), AsBytes("56789")}});
      EXPECT_TRUE(put.ok()) << put.status().ToString();
    }
    ASSERT_EQ(s3.requests(), one.requests) << one.knows;
    EXPECT_EQ(SumOf(s3.seen(one.requests - 1)), one.last) << one.knows;
  }
}

TEST(S3Checksum, of_a_part_is_of_the_kind_that_its_upload_was_created_for) {
  ScriptedS3 s3(StoreKnowing("CRC32C", 400), {.adjust = WhenSupported});
  ASSERT_TRUE(s3.store().CreateUpload({.key = "k"}).ok());
  EXPECT_EQ(net::FindHeader(s3.seen(1).headers, "x-amz-checksum-algorithm"), "CRC32C");
  EXPECT_EQ(net::FindHeader(s3.seen(1).headers, "x-amz-checksum-type"), "FULL_OBJECT");
  ASSERT_TRUE(
      s3.store().PutPart({.key = "k", .upload_id = "u", .body = {AsBytes("123456789")}}).ok());
  EXPECT_EQ(SumOf(s3.seen(2)), "|4waSgw==");
}

TEST(S3Checksum, a_part_that_the_store_wants_without_goes_without) {
  ScriptedS3 s3(
      [](const SeenRequest& request) -> ScriptedReply {
        if (request.method == "POST") {
          return {HttpText(200, {},
                           "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
                           "</InitiateMultipartUploadResult>")};
        }
        if (SumOf(request) == "|") return {HttpText(200, {{"ETag", "\"e\""}}, "")};
        return {HttpText(400, {},
                         "<Error><Code>InvalidRequest</Code><Message>Checksum Type mismatch "
                         "occurred</Message></Error>")};
      },
      {.adjust = WhenSupported});
  ASSERT_TRUE(s3.store().CreateUpload({.key = "k"}).ok());
  for (int part = 1; part <= 2; ++part) {
    ASSERT_TRUE(
        s3.store()
            .PutPart(
                {.key = "k", .upload_id = "u", .part_number = part, .body = {AsBytes("123456789")}})
            .ok());
  }
  EXPECT_EQ(s3.requests(), 4U);
}

// It says that the body was damaged on its way, or that something else is wrong.
TEST(S3Checksum, is_never_left_out_because_it_does_not_match) {
  for (const char* error :
       {"<Error><Code>BadDigest</Code><Message>The CRC64NVME checksum you specified did not match"
        "</Message></Error>",
        "<Error><Code>XAmzContentChecksumMismatch</Code><Message>no match</Message></Error>",
        "<Error><Code>InvalidRequest</Code><Message>no</Message></Error>"}) {
    ScriptedS3 s3(Say({HttpText(400, {}, error)}), {.adjust = WhenSupported});
    EXPECT_FALSE(s3.store().Put({.key = "k", .body = {AsBytes("x")}}).ok()) << error;
    EXPECT_EQ(s3.requests(), 1U) << error;
  }
}

// ---- reads

ScriptedReply Whole(const std::string& body, net::HeaderList more) {
  more.emplace_back("Content-Range", "bytes 0-8/9");
  more.emplace_back("ETag", "\"e\"");
  return {HttpText(206, more, body)};
}

TEST(S3Checksum, of_a_whole_object_is_checked_where_it_was_asked_for) {
  for (const auto& [header, text] : {std::pair("x-amz-checksum-crc64nvme", "rosUhgp5mIg="),
                                     std::pair("x-amz-checksum-crc32c", "4waSgw=="),
                                     std::pair("x-amz-checksum-crc32", "y/Q5Jg==")}) {
    for (const std::string setting : {"when_supported", "when_required", ""}) {
      const bool asks = setting == "when_supported";
      const auto adjust = [=](S3StoreOptions& options) {
        options.config.response_checksum = setting;
      };
      const net::HeaderList told{{header, text}};
      ScriptedS3 good(Say(Whole("123456789", told)), {.adjust = adjust});
      EXPECT_EQ(good.Read(false, {0, 9}).ToString(), Status().ToString()) << header;
      EXPECT_EQ(good.text, "123456789");
      EXPECT_EQ(net::FindHeader(good.seen(0).headers, "x-amz-checksum-mode"),
                asks ? "ENABLED" : "");
      ScriptedS3 bad(Say(Whole("123456780", told)), {.adjust = adjust});
      const Status status = bad.Read(false, {0, 9});
      EXPECT_EQ(status.code(), asks ? Code::kDataLoss : Code::kOk) << header;
      EXPECT_EQ(status.ToString().find(text) != std::string::npos, asks) << status.ToString();
    }
  }
}

TEST(S3Checksum, of_a_part_of_an_object_is_not_taken_for_the_ranges) {
  ScriptedS3 s3(Say({HttpText(206,
                              {{"Content-Range", "bytes 0-3/10"},
                               {"ETag", "\"e\""},
                               {"x-amz-checksum-crc32c", "4waSgw=="}},
                              "0123")}),
                {.adjust = [](S3StoreOptions& options) {
                  options.config.response_checksum = "when_supported";
                }});
  EXPECT_TRUE(s3.Read(false, {0, 4}).ok());
  EXPECT_TRUE(s3.Read(true, {0, 4}).ok());
}

}  // namespace
}  // namespace forebay::store::s3
