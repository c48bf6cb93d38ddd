// What an answer leaves open is asked, once: whether the object changed, how it is stored, whether
// a write whose answer was lost has happened.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>

#include "store/s3/xml.h"
#include "testing/scripted_s3.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::ErrorXml;
using forebay::testing::GoodRange;
using forebay::testing::HeadReply;
using forebay::testing::HttpText;
using forebay::testing::Say;
using forebay::testing::ScriptedReply;
using forebay::testing::ScriptedS3;
using forebay::testing::SeenRequest;

ScriptedReply RangeWith(const std::string& etag, net::HeaderList more = {}) {
  more.emplace_back("Content-Range", "bytes 2-5/10");
  more.emplace_back("ETag", etag);
  return {HttpText(206, more, "2345")};
}

// GETs get `get`, HEADs an object with that etag.
testing::ScriptedServer::Script Script(ScriptedReply get, const std::string& head_etag) {
  return [=](const SeenRequest& request) {
    return request.method == "HEAD" ? HeadReply(200, {{"ETag", head_etag}}) : get;
  };
}

// ---- the object changed, or an answer is wrong

TEST(S3Pinned, an_etag_that_the_store_does_not_confirm_is_a_wrong_answer) {
  ScriptedS3 flipped(Script(RangeWith("\"f\""), "\"e\""));
  const Status first = flipped.Read();
  EXPECT_EQ(first.code(), Code::kDataLoss) << first.ToString();
  EXPECT_EQ(flipped.requests(), 1U) << "the next attempt will tell";
  EXPECT_EQ(flipped.Read().code(), Code::kDataLoss);
  EXPECT_EQ(flipped.text, "####");
  EXPECT_EQ(flipped.requests(), 3U);
  EXPECT_EQ(flipped.seen(2).method, "HEAD");
  EXPECT_EQ(net::FindHeader(flipped.seen(2).headers, "if-match"), "");
  // Nor one that differs from answer to answer.
  ScriptedS3 wild(Script(RangeWith("\"f\""), "\"g\""));
  EXPECT_EQ(wild.Read().code(), Code::kDataLoss);
  EXPECT_EQ(wild.Read().code(), Code::kDataLoss);
}

TEST(S3Pinned, a_store_that_ignores_if_match_tells_of_a_change_by_a_second_answer) {
  ScriptedS3 s3(Script(RangeWith("\"f\""), "\"f\""), {.stack = true});
  const Status status = s3.Read();
  EXPECT_EQ(status.code(), Code::kPreconditionFailed) << status.ToString();
  EXPECT_NE(status.ToString().find("its etag is f, e was expected"), std::string::npos);
  EXPECT_EQ(s3.requests(), 3U);
}

TEST(S3Pinned, a_refused_condition_names_both_etags) {
  for (const int refusal : {412, 304}) {
    ScriptedS3 s3(Script({HttpText(refusal, {}, "")}, "\"f\""));
    const Status status = s3.Read();
    EXPECT_EQ(status.code(), Code::kPreconditionFailed) << status.ToString();
    EXPECT_NE(status.ToString().find("its etag is f, e was expected"), std::string::npos)
        << status.ToString();
  }
  ScriptedS3 gone([](const SeenRequest& request) -> ScriptedReply {
    return request.method == "HEAD" ? HeadReply(404, {}, 0) : ScriptedReply{HttpText(412, {}, "")};
  });
  EXPECT_EQ(gone.Read().code(), Code::kPreconditionFailed);
  // Refused, though it is the one: no reason to give up.
  ScriptedS3 wrong(Script({HttpText(412, {}, "")}, "\"e\""));
  EXPECT_EQ(wrong.Read().code(), Code::kDataLoss);
}

TEST(S3Pinned, quotes_and_weak_marks_do_not_make_another_etag) {
  for (const std::string etag : {"e", "\"e\"", "W/\"e\""}) {
    ScriptedS3 s3(Say(RangeWith(etag)));
    EXPECT_TRUE(s3.Read().ok()) << etag;
    EXPECT_TRUE(s3.Read(false, {2, 6}, "\"e\"").ok()) << etag;
    EXPECT_EQ(net::FindHeader(s3.seen(1).headers, "if-match"), "\"e\"");
  }
}

TEST(S3Versions, a_version_is_asked_for_and_told) {
  ScriptedS3 s3([](const SeenRequest& request) -> ScriptedReply {
    if (request.method == "HEAD") {
      return HeadReply(200, {{"ETag", "\"e\""}, {"x-amz-version-id", "v1"}});
    }
    if (request.method == "PUT") {
      return {HttpText(200, {{"ETag", "\"e\""}, {"x-amz-version-id", "v2"}}, "")};
    }
    if (request.method == "DELETE") return {HttpText(204, {}, "")};
    return RangeWith("\"e\"", {{"x-amz-version-id", "v1"}});
  });
  EXPECT_TRUE(s3.Read(false, {2, 6}, "e", "v1").ok());
  EXPECT_EQ(s3.read.version_id, "v1");
  EXPECT_EQ(s3.seen(0).target, "/b/k?versionId=v1");
  EXPECT_EQ(s3.Read(false, {2, 6}, "e", "null").code(), Code::kDataLoss);
  EXPECT_EQ(s3.seen(1).target, "/b/k?versionId=null");
  EXPECT_EQ(s3.store().Head("k")->version_id, "v1");
  EXPECT_EQ(s3.store().Put({.key = "k", .body = {}})->version_id, "v2");
}

// ---- content-encoding

TEST(S3Encoding, an_object_stored_with_an_encoding_is_delivered_as_stored) {
  ScriptedS3 s3([](const SeenRequest& request) -> ScriptedReply {
    EXPECT_EQ(net::FindHeader(request.headers, "accept-encoding"), "identity");
    if (request.method == "HEAD") {
      return HeadReply(200, {{"ETag", "\"e\""}, {"Content-Encoding", "gzip"}});
    }
    return RangeWith("\"e\"", {{"Content-Encoding", "gzip"}});
  });
  Status status = s3.Read();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(s3.text, "2345");
  EXPECT_EQ(s3.requests(), 3U);
  // It is known from then on; and from a HEAD.
  EXPECT_TRUE(s3.Read().ok());
  EXPECT_EQ(s3.requests(), 4U);
}

TEST(S3Encoding, one_that_the_stored_object_lacks_is_an_error) {
  ScriptedS3 s3(Script(RangeWith("\"e\"", {{"Content-Encoding", "gzip"}}), "\"e\""));
  EXPECT_EQ(s3.Read().code(), Code::kDataLoss);
  EXPECT_EQ(s3.text, "####");
  for (const std::string harmless : {"aws-chunked", "identity", "identity, aws-chunked"}) {
    ScriptedS3 plain(Say(RangeWith("\"e\"", {{"Content-Encoding", harmless}})));
    EXPECT_TRUE(plain.Read().ok()) << harmless;
  }
}

// ---- writes whose answer was lost

constexpr char kCompleted[] =
    "<CompleteMultipartUploadResult><ETag>&quot;x-1&quot;</ETag></CompleteMultipartUploadResult>";
constexpr char kCreated[] =
    "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>";
const std::string kPartEtag = "9e107d9d372bb6826bd81d3542a419d6";

// Answers the first CompleteMultipartUpload with nothing, having done it; then there is no such
// upload. The object is there with what `own` says of it.
struct LostCompletion {
  std::shared_ptr<std::string> id = std::make_shared<std::string>();
  std::function<net::HeaderList(const std::string& id)> own;
  std::shared_ptr<std::atomic<int>> completions = std::make_shared<std::atomic<int>>(0);

  ScriptedReply operator()(const SeenRequest& request) const {
    if (request.method == "HEAD") return HeadReply(200, own(*id));
    if (request.target.find("uploads=") != std::string::npos) {
      *id = net::FindHeader(request.headers, "x-amz-meta-forebay-write");
      return {HttpText(200, {}, kCreated)};
    }
    if (++*completions == 1) return {"", ScriptedReply::Then::kClose};
    return {HttpText(404, {}, ErrorXml("NoSuchUpload"))};
  }
};

Result<PutResult> Complete(ScriptedS3& s3, bool create) {
  if (create) {
    auto id = s3.store().CreateUpload({.key = "k"});
    EXPECT_TRUE(id.ok()) << id.status().ToString();
  }
  return s3.store().CompleteUpload({.key = "k", .upload_id = "u", .part_etags = {kPartEtag}});
}

TEST(S3Upload, a_completion_whose_answer_was_lost_is_found_to_have_happened) {
  ScriptedS3 by_id(LostCompletion{.own =
                                      [](const std::string& id) {
                                        return net::HeaderList{{"ETag", "\"opaque\""},
                                                               {"x-amz-meta-forebay-write", id}};
                                      }},
                   {.stack = true});
  Result<PutResult> done = Complete(by_id, true);
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_EQ(done->etag, "opaque");

  // An upload that another process created: by what its etag must be.
  ScriptedS3 by_etag(LostCompletion{.own =
                                        [](const std::string&) {
                                          return net::HeaderList{
                                              {"ETag", "\"" + CompletedEtag({kPartEtag}) + "\""}};
                                        }},
                     {.stack = true});
  done = Complete(by_etag, false);
  EXPECT_TRUE(done.ok()) << done.status().ToString();
}

TEST(S3Upload, an_object_of_somebody_else_is_not_taken_for_ours) {
  ScriptedS3 other(LostCompletion{.own =
                                      [](const std::string&) {
                                        return net::HeaderList{
                                            {"ETag", "\"" + CompletedEtag({kPartEtag}) + "\""},
                                            {"x-amz-meta-forebay-write", "another"}};
                                      }},
                   {.stack = true});
  EXPECT_EQ(Complete(other, true).code(), Code::kNotFound);
}

TEST(S3Upload, a_completed_etag_is_the_md5_of_the_parts_md5s) {
  EXPECT_EQ(CompletedEtag({"9e107d9d372bb6826bd81d3542a419d6", "e4d909c290d0fb1ca068ffaddf22cbd0"}),
            "17b630c8d385a942f1d3f7d0ca327a6c-2");
  EXPECT_EQ(CompletedEtag({"not-an-md5"}), "");
  EXPECT_EQ(CompletedEtag({"zz107d9d372bb6826bd81d3542a419d6"}), "");
}

TEST(S3Put, a_conditional_write_whose_answer_was_lost_knows_itself_again) {
  for (const bool ours : {true, false}) {
    const auto id = std::make_shared<std::string>();
    const auto puts = std::make_shared<std::atomic<int>>(0);
    ScriptedS3 s3(
        [=](const SeenRequest& request) -> ScriptedReply {
          if (request.method == "HEAD") {
            return HeadReply(
                200, {{"ETag", "\"e\""}, {"x-amz-meta-forebay-write", ours ? *id : "another"}});
          }
          EXPECT_EQ(net::FindHeader(request.headers, "if-none-match"), "*");
          *id = net::FindHeader(request.headers, "x-amz-meta-forebay-write");
          EXPECT_FALSE(id->empty());
          if (++*puts == 1) return {"", ScriptedReply::Then::kClose};
          return {HttpText(412, {}, ErrorXml("PreconditionFailed"))};
        },
        {.stack = true});
    const auto put = s3.store().Put({.key = "k", .body = {AsBytes("x")}, .if_none_match = true});
    EXPECT_EQ(put.code(), ours ? Code::kOk : Code::kPreconditionFailed);
    EXPECT_EQ(*puts, 2);
  }
}

TEST(S3Put, a_plain_write_carries_no_mark_and_conditions_are_sent_quoted) {
  ScriptedS3 s3([](const SeenRequest& request) -> ScriptedReply {
    if (request.method == "POST") return {HttpText(200, {}, kCompleted)};
    return {HttpText(200, {{"ETag", "\"e\""}}, "")};
  });
  EXPECT_TRUE(s3.store().Put({.key = "k", .body = {}}).ok());
  EXPECT_EQ(net::FindHeader(s3.seen(0).headers, "x-amz-meta-forebay-write"), "");
  EXPECT_TRUE(s3.store().Put({.key = "k", .body = {}, .if_match = "tag"}).ok());
  EXPECT_EQ(net::FindHeader(s3.seen(1).headers, "if-match"), "\"tag\"");
  EXPECT_TRUE(
      s3.store()
          .CompleteUpload(
              {.key = "k", .upload_id = "u", .part_etags = {kPartEtag}, .if_none_match = true})
          .ok());
  EXPECT_EQ(net::FindHeader(s3.seen(2).headers, "if-none-match"), "*");
}

// ---- checksums

TEST(S3Checksums, only_stores_that_are_amazons_or_were_named_get_one) {
  const auto put = [](const std::string& setting) {
    ScriptedS3 s3(
        [](const SeenRequest& request) -> ScriptedReply {
          if (request.method == "POST") return {HttpText(200, {}, kCreated)};
          return {HttpText(200, {{"ETag", "\"e\""}}, "")};
        },
        {.adjust = [=](S3StoreOptions& options) { options.config.request_checksum = setting; }});
    EXPECT_TRUE(s3.store().Put({.key = "k", .body = {AsBytes("1234"), AsBytes("56789")}}).ok());
    EXPECT_TRUE(s3.store().CreateUpload({.key = "k"}).ok());
    for (const SeenRequest& seen : s3.server().seen()) {
      EXPECT_EQ(net::FindHeader(seen.headers, "x-amz-trailer"), "");
      EXPECT_EQ(net::FindHeader(seen.headers, "content-encoding"), "");
    }
    return std::string(net::FindHeader(s3.seen(0).headers, "x-amz-checksum-crc64nvme")) + "|" +
           std::string(net::FindHeader(s3.seen(1).headers, "x-amz-checksum-algorithm"));
  };
  EXPECT_EQ(put(""), "|");
  EXPECT_EQ(put("when_required"), "|");
  EXPECT_EQ(put("when_supported"), "rosUhgp5mIg=|CRC64NVME");  // of "123456789"
}

// ---- sessions of directory buckets

std::string SessionXml(const std::string& key, const std::string& expires) {
  return "<CreateSessionResult><Credentials><SessionToken>session-token</SessionToken>"
         "<SecretAccessKey>session-secret</SecretAccessKey><AccessKeyId>" +
         key + "</AccessKeyId><Expiration>" + expires +
         "</Expiration></Credentials></CreateSessionResult>";
}

bool IsSession(const SeenRequest& request) {
  return request.target.find("session=") != std::string::npos;
}

int Sessions(const ScriptedS3& s3, size_t requests) {
  int sessions = 0;
  for (size_t i = 0; i < requests; ++i) sessions += IsSession(s3.seen(i)) ? 1 : 0;
  return sessions;
}

TEST(S3Express, one_session_signs_all_requests_of_a_directory_bucket) {
  ScriptedS3 s3(
      [](const SeenRequest& request) -> ScriptedReply {
        if (IsSession(request)) {
          EXPECT_EQ(testing::AccessKeyOf(request), "ID");
          EXPECT_EQ(testing::ScopeOf(request), "20260528/us-east-1/s3express");
          return {HttpText(200, {}, SessionXml("SESSION", "2026-05-28T20:31:40Z"))};
        }
        EXPECT_EQ(testing::AccessKeyOf(request), "SESSION");
        EXPECT_EQ(net::FindHeader(request.headers, "x-amz-s3session-token"), "session-token");
        EXPECT_EQ(net::FindHeader(request.headers, "x-amz-security-token"), "");
        return GoodRange();
      },
      {.bucket = "b--usw2-az1--x-s3"});
  EXPECT_TRUE(s3.Read().ok());
  std::vector<std::thread> readers;
  readers.reserve(4);
  std::atomic<int> good = 0;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      std::string text(4, '#');
      auto read = s3.store().Read({.key = "k",
                                   .etag = "e",
                                   .range = {2, 6},
                                   .target = {std::as_writable_bytes(std::span(text))}});
      good += read.ok() ? 1 : 0;
    });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(good, 4);
  EXPECT_EQ(Sessions(s3, s3.requests()), 1);
}

TEST(S3Express, a_session_that_is_refused_is_made_anew_once) {
  const auto made = std::make_shared<std::atomic<int>>(0);
  ScriptedS3 s3(
      [made](const SeenRequest& request) -> ScriptedReply {
        if (IsSession(request)) {
          return {
              HttpText(200, {}, SessionXml("S" + std::to_string(++*made), "2026-05-28T20:31:40Z"))};
        }
        if (testing::AccessKeyOf(request) == "S1") {
          return {HttpText(403, {}, ErrorXml("ExpiredToken"))};
        }
        return GoodRange();
      },
      {.bucket = "b--usw2-az1--x-s3"});
  const Status status = s3.Read();
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(*made, 2);
}

TEST(S3Express, a_session_that_cannot_be_made_is_the_requests_error) {
  ScriptedS3 s3(Say({HttpText(403, {}, ErrorXml("AccessDenied"))}),
                {.bucket = "b--usw2-az1--x-s3"});
  const Status status = s3.Read();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_NE(status.ToString().find("create session"), std::string::npos) << status.ToString();
  EXPECT_EQ(status.ToString().find(testing::kScriptSecret), std::string::npos);
  ScriptedS3 broken(Say({HttpText(200, {}, "<CreateSessionResult>")}),
                    {.bucket = "b--usw2-az1--x-s3"});
  EXPECT_EQ(broken.Read().code(), Code::kDataLoss);
}

TEST(S3Express, a_prefix_inside_a_folder_is_listed_through_the_folder) {
  ScriptedS3 s3(
      [](const SeenRequest& request) -> ScriptedReply {
        if (IsSession(request)) {
          return {HttpText(200, {}, SessionXml("SESSION", "2026-05-28T20:31:40Z"))};
        }
        EXPECT_NE(request.target.find("prefix=a%2F"), std::string::npos) << request.target;
        EXPECT_EQ(request.target.find("prefix=a%2Fb"), std::string::npos) << request.target;
        return {HttpText(200, {},
                         "<ListBucketResult><IsTruncated>false</IsTruncated>"
                         "<Contents><Key>a/b1</Key><Size>1</Size></Contents>"
                         "<Contents><Key>a/c</Key><Size>1</Size></Contents></ListBucketResult>")};
      },
      {.bucket = "b--usw2-az1--x-s3"});
  const auto page = s3.store().List({.prefix = "a/b"});
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].key, "a/b1");
}

}  // namespace
}  // namespace forebay::store::s3
