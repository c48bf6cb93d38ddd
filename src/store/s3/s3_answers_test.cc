// What servers should not say, said by a scripted one: each answer is the right typed error and
// never data.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "testing/scripted_s3.h"

namespace forebay::store::s3 {
namespace {

using forebay::testing::ErrorXml;
using forebay::testing::GoodRange;
using forebay::testing::HttpText;
using forebay::testing::Say;
using forebay::testing::ScriptedReply;
using forebay::testing::ScriptedS3;
using forebay::testing::SeenRequest;
using Then = ScriptedReply::Then;

TEST(S3Read, a_right_answer_is_data_and_the_request_was_pinned) {
  ScriptedS3 answers(Say(GoodRange()));
  const Status status = answers.Read();
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(answers.text, "2345");
  EXPECT_EQ(answers.read.bytes, 4U);
  EXPECT_EQ(answers.read.object_size, 10U);
  EXPECT_EQ(answers.read.etag, "e");
  const SeenRequest seen = answers.server().seen().at(0);
  EXPECT_EQ(seen.target, "/b/k");
  EXPECT_EQ(net::FindHeader(seen.headers, "range"), "bytes=2-5");
  EXPECT_EQ(net::FindHeader(seen.headers, "if-match"), "\"e\"");
  EXPECT_EQ(net::FindHeader(seen.headers, "x-amz-date"), "20260528T202640Z");
}

struct Wrong {
  const char* name;
  ScriptedReply reply;
  Code code;
};

// Statuses of success with something wrong behind them.
std::vector<Wrong> WrongData() {
  const net::HeaderList range{{"Content-Range", "bytes 2-5/10"}, {"ETag", "\"e\""}};
  net::HeaderList gzip = range;
  gzip.emplace_back("Content-Encoding", "gzip");
  const std::string part = "HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/10\r\nETag: \"e\"\r\n";
  return {
      {"200 to a range", {HttpText(200, {{"ETag", "\"e\""}}, "0123456789")}, Code::kDataLoss},
      {"200 of the range's length", {HttpText(200, {{"ETag", "\"e\""}}, "0123")}, Code::kDataLoss},
      {"error in a 200", {HttpText(200, {}, ErrorXml("InternalError"))}, Code::kDataLoss},
      {"error in a 206", {HttpText(206, {}, ErrorXml("InternalError"))}, Code::kDataLoss},
      {"shifted range",
       {HttpText(206, {{"Content-Range", "bytes 3-6/10"}, {"ETag", "\"e\""}}, "3456")},
       Code::kDataLoss},
      {"shorter range",
       {HttpText(206, {{"Content-Range", "bytes 2-4/10"}, {"ETag", "\"e\""}}, "234")},
       Code::kDataLoss},
      {"no range", {HttpText(206, {{"ETag", "\"e\""}}, "2345")}, Code::kDataLoss},
      {"unknown total",
       {HttpText(206, {{"Content-Range", "bytes 2-5/*"}, {"ETag", "\"e\""}}, "2345")},
       Code::kDataLoss},
      {"length against range", {HttpText(206, range, "23456")}, Code::kDataLoss},
      {"another etag",
       {HttpText(206, {{"Content-Range", "bytes 2-5/10"}, {"ETag", "\"f\""}}, "2345")},
       Code::kDataLoss},
      {"another version",
       {HttpText(206,
                 {{"Content-Range", "bytes 2-5/10"}, {"ETag", "\"e\""}, {"x-amz-version-id", "v2"}},
                 "2345")},
       Code::kDataLoss},
      {"no etag", {HttpText(206, {{"Content-Range", "bytes 2-5/10"}}, "2345")}, Code::kDataLoss},
      {"gzip", {HttpText(206, gzip, "2345")}, Code::kDataLoss},
      {"short body", {part + "Content-Length: 4\r\n\r\n23", Then::kClose}, Code::kDataLoss},
      {"short chunks",
       {part + "Transfer-Encoding: chunked\r\n\r\n2\r\n23\r\n0\r\n\r\n"},
       Code::kDataLoss},
      {"long chunks",
       {part + "Transfer-Encoding: chunked\r\n\r\n5\r\n23456\r\n0\r\n\r\n"},
       Code::kDataLoss},
      {"short without a length",
       {part + "Connection: close\r\n\r\n234", Then::kClose},
       Code::kDataLoss},
      {"reset in the body",
       {part + "Content-Length: 4\r\n\r\n23", Then::kReset},
       Code::kUnavailable},
  };
}

std::vector<Wrong> Refusals() {
  return {
      {"412", {HttpText(412, {}, ErrorXml("PreconditionFailed"))}, Code::kPreconditionFailed},
      {"304", {"HTTP/1.1 304 N\r\n\r\n"}, Code::kPreconditionFailed},
      {"416", {HttpText(416, {}, ErrorXml("InvalidRange"))}, Code::kInvalidArgument},
      {"404", {HttpText(404, {}, ErrorXml("NoSuchKey"))}, Code::kNotFound},
      {"403 without a body", {HttpText(403, {}, "")}, Code::kPermissionDenied},
      {"400 expired token", {HttpText(400, {}, ErrorXml("ExpiredToken"))}, Code::kPermissionDenied},
      {"400 slow request", {HttpText(400, {}, ErrorXml("RequestTimeout"))}, Code::kUnavailable},
      {"503 slow down", {HttpText(503, {}, ErrorXml("SlowDown"))}, Code::kResourceExhausted},
      {"503 without a word, as to a HEAD", {HttpText(503, {}, "")}, Code::kResourceExhausted},
      {"503 of a proxy", {HttpText(503, {}, "<html>busy")}, Code::kUnavailable},
      {"429", {HttpText(429, {}, "")}, Code::kResourceExhausted},
      {"500", {HttpText(500, {}, ErrorXml("InternalError"))}, Code::kUnavailable},
      {"chunked error",
       {"HTTP/1.1 403 F\r\nTransfer-Encoding: chunked\r\n\r\n2a\r\n<Error><Code>SlowDown</Code>"
        "</Error>      \r\n0\r\n\r\n"},
       Code::kResourceExhausted},
      {"error cut short",
       {"HTTP/1.1 404 N\r\nContent-Length: 500\r\n\r\n<Error><Code>NoSu", Then::kClose},
       Code::kNotFound},
      {"endless error", {HttpText(404, {}, std::string(400'000, 'x'))}, Code::kNotFound},
      {"204", {"HTTP/1.1 204 N\r\n\r\n"}, Code::kDataLoss},
  };
}

TEST(S3Read, wrong_answers_are_typed_errors_and_never_data) {
  std::vector<Wrong> wrongs = WrongData();
  for (const Wrong& refusal : Refusals()) wrongs.push_back(refusal);
  for (const Wrong& wrong : wrongs) {
    ScriptedS3 answers(Say(wrong.reply));
    const Status status = answers.Read(false, {2, 6}, "e", "v1");
    EXPECT_EQ(status.code(), wrong.code) << wrong.name << ": " << status.ToString();
    EXPECT_EQ(status.detail().uri, "s3://b/k") << wrong.name;
    EXPECT_EQ(status.detail().offset, 2) << wrong.name;
    EXPECT_EQ(status.ToString().find(testing::kScriptSecret), std::string::npos) << wrong.name;
    // At most one question is asked about it.
    const size_t requests = answers.requests();
    EXPECT_TRUE(requests == 1 || (requests == 2 && answers.seen(1).method == "HEAD")) << wrong.name;
  }
}

TEST(S3Read, the_error_keeps_status_and_request_id) {
  ScriptedS3 header(
      Say({HttpText(404, {{"x-amz-request-id", "header-id"}}, ErrorXml("NoSuchKey"))}));
  EXPECT_EQ(header.Read().detail().request_id, "header-id");
  ScriptedS3 xml(Say({HttpText(404, {}, ErrorXml("NoSuchKey"))}));
  const Status status = xml.Read();
  EXPECT_EQ(status.detail().request_id, "xml-id");
  EXPECT_EQ(status.detail().http_status, 404);
}

TEST(S3Read, what_a_terminal_would_obey_is_taken_out_of_what_a_server_says) {
  ScriptedS3 answers(Say({HttpText(404,
                                   {{"x-amz-request-id",
                                     "i\x9b"
                                     "2Jd\xc2\x9b"
                                     "x"}},
                                   "<Error><Code>No\xc2\x9bSuch</Code><Message>a\xc2\x85"
                                   "b"
                                   "</Message></Error>")}));
  const Status status = answers.Read();
  EXPECT_EQ(status.detail().request_id, "i 2Jd x");
  EXPECT_NE(status.ToString().find("404 No Such: a b"), std::string::npos) << status.ToString();
}

TEST(S3Head, of_what_is_not_there_says_so_without_a_body) {
  ScriptedS3 answers(Say(testing::HeadReply(404, {}, 0)));
  const Result<ObjectInfo> info = answers.store().Head("k");
  EXPECT_EQ(info.code(), Code::kNotFound);
  EXPECT_NE(info.status().ToString().find("no such object, or no such bucket"), std::string::npos)
      << info.status().ToString();
}

TEST(S3Read, a_200_is_data_only_when_it_is_the_whole_object) {
  ScriptedS3 whole(Say({HttpText(200, {{"ETag", "\"e\""}}, "0123456789")}));
  const Status status = whole.Read(false, {0, 10});
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(whole.text, "0123456789");
  EXPECT_EQ(whole.Read(false, {0, 9}).code(), Code::kDataLoss);
  EXPECT_EQ(whole.Read(false, {0, 11}).code(), Code::kDataLoss);
  EXPECT_TRUE(whole.Read(true, {0, 20}).ok());
  EXPECT_EQ(whole.read.bytes, 10U);
  EXPECT_EQ(whole.text, "0123456789##########");
}

TEST(S3Read, a_range_past_the_end_is_refused_or_clamped_as_asked) {
  ScriptedS3 tail(
      Say({HttpText(206, {{"Content-Range", "bytes 8-9/10"}, {"ETag", "\"e\""}}, "89")}));
  EXPECT_EQ(tail.Read(false, {8, 12}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(tail.Read(true, {8, 12}).ok());
  EXPECT_EQ(tail.read.bytes, 2U);
  EXPECT_EQ(tail.text, "89##");
  ScriptedS3 past(
      Say({HttpText(416, {{"Content-Range", "bytes */10"}}, ErrorXml("InvalidRange"))}));
  EXPECT_EQ(past.Read(false, {10, 12}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(past.Read(true, {10, 12}).ok());
  EXPECT_EQ(past.read.bytes, 0U);
  EXPECT_EQ(past.read.object_size, 10U);
  // Without the size, the object is asked for it.
  for (const auto& [size, code] :
       {std::pair(0, Code::kOk), std::pair(10, Code::kOk), std::pair(11, Code::kInvalidArgument)}) {
    ScriptedS3 mute([size](const SeenRequest& request) -> ScriptedReply {
      if (request.method == "HEAD") return testing::HeadReply(200, {{"ETag", "\"e\""}}, size);
      return {HttpText(416, {}, ErrorXml("InvalidRange"))};
    });
    EXPECT_EQ(mute.Read(true, {10, 12}).code(), code) << size;
    EXPECT_EQ(mute.requests(), 2U);
    EXPECT_EQ(mute.read.object_size, code == Code::kOk ? static_cast<uint64_t>(size) : 0U);
  }
  // 416 for a range that begins inside the object is no end of file.
  EXPECT_EQ(past.Read(true, {9, 12}).code(), Code::kInvalidArgument);
}

TEST(S3Errors, hints_name_the_bucket_region_and_the_clock) {
  // Each answer is the same again after the correction that it called for.
  ScriptedS3 region(Say({HttpText(301, {{"x-amz-bucket-region", "eu-west-3"}}, "")}));
  EXPECT_EQ(region.Read().code(), Code::kInvalidArgument);
  ScriptedS3 forged(Say({HttpText(301, {{"x-amz-bucket-region", "evil.example/"}}, "")}));
  EXPECT_EQ(forged.Read().ToString().find("evil"), std::string::npos);
  ScriptedS3 gone(Say({HttpText(405, {{"x-amz-delete-marker", "true"}}, "")}));
  EXPECT_EQ(gone.Read().code(), Code::kNotFound);
}

TEST(S3Upload, an_error_inside_a_200_is_no_success_however_it_is_padded) {
  const auto complete = [](const std::string& body) {
    ScriptedS3 answers(Say({HttpText(200, {}, body)}));
    auto result =
        answers.store().CompleteUpload({.key = "k", .upload_id = "u", .part_etags = {"a&\"b"}});
    EXPECT_NE(answers.server().seen().at(0).body.find("<ETag>&quot;a&amp;&quot;b&quot;</ETag>"),
              std::string::npos);
    return std::pair(result.code(), result.ok() ? result->etag : "");
  };
  const std::string good =
      "<CompleteMultipartUploadResult><ETag>&quot;x-1&quot;</ETag></CompleteMultipartUploadResult>";
  EXPECT_EQ(complete("  \n  <?xml version=\"1.0\"?>" + good),
            std::pair(Code::kOk, std::string("x-1")));
  EXPECT_EQ(complete("\n\n " + ErrorXml("InternalError")).first, Code::kUnavailable);
  EXPECT_EQ(complete(ErrorXml("SlowDown")).first, Code::kResourceExhausted);
  EXPECT_EQ(complete(ErrorXml("NoSuchUpload")).first, Code::kNotFound);
  for (const std::string& broken : {std::string(), std::string("   "), good.substr(0, 60)}) {
    EXPECT_EQ(complete(broken).first, Code::kDataLoss) << broken;
  }
}

TEST(S3Upload, an_error_inside_a_200_keeps_its_code_whatever_was_asked_for) {
  const ScriptedReply reply{
      HttpText(200, {}, "<Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>")};
  ScriptedS3 answers(Say(reply));
  const Status statuses[] = {
      answers.store().List({.prefix = "p"}).status(),
      answers.store().CreateUpload({.key = "k"}).status(),
      answers.store().CompleteUpload({.key = "k", .upload_id = "u", .part_etags = {"e"}}).status(),
      answers.store().PutPart({.key = "k", .upload_id = "u"}).status(),
  };
  for (const Status& status : statuses) {
    EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.ToString();
    EXPECT_NE(status.ToString().find("answered 200 with the error SlowDown: Reduce your rate"),
              std::string::npos)
        << status.ToString();
  }
}

TEST(S3Upload, a_refusal_inside_a_200_is_one_and_not_tried_again) {
  const std::pair<const char*, Code> refusals[] = {{"AccessDenied", Code::kPermissionDenied},
                                                   {"InvalidPart", Code::kInvalidArgument},
                                                   {"EntityTooSmall", Code::kInvalidArgument}};
  for (const auto& [code, meaning] : refusals) {
    ScriptedS3 answers(Say({HttpText(
        200, {}, fmt::format("   <Error><Code>{}</Code><Message>no</Message></Error>", code))}));
    const Status status = answers.store()
                              .CompleteUpload({.key = "k", .upload_id = "u", .part_etags = {"e"}})
                              .status();
    EXPECT_EQ(status.code(), meaning) << status.ToString();
    EXPECT_EQ(status.detail().http_status, 200);
  }
}

TEST(S3List, what_does_not_begin_with_the_prefix_is_no_answer) {
  const auto list = [](const std::string& inside) {
    ScriptedS3 answers(Say({HttpText(
        200, {},
        "<ListBucketResult><IsTruncated>false</IsTruncated>" + inside + "</ListBucketResult>")}));
    return answers.store().List({.prefix = "a/b", .delimiter = "/"}).status();
  };
  const auto object = [](const std::string& key) {
    return "<Contents><Key>" + key + "</Key><Size>1</Size><ETag>e</ETag></Contents>";
  };
  const auto folder = [](const std::string& key) {
    return "<CommonPrefixes><Prefix>" + key + "</Prefix></CommonPrefixes>";
  };
  EXPECT_TRUE(list(object("a/b") + object("a/bc") + folder("a/b/")).ok());
  for (const std::string& outside :
       {object("a/b1") + object("a/c"), object("../../etc/passwd"), folder("a/"), object("a")}) {
    const Status status = list(outside);
    EXPECT_EQ(status.code(), Code::kDataLoss) << outside;
    EXPECT_NE(status.ToString().find("does not begin with 'a/b'"), std::string::npos);
  }
}

TEST(S3List, decodes_keys_and_refuses_what_is_not_whole) {
  const auto list = [](const std::string& body) {
    ScriptedS3 answers(Say({HttpText(200, {}, body)}));
    auto page = answers.store().List({.prefix = "", .continuation_token = "before"});
    EXPECT_EQ(answers.server().seen().at(0).target,
              "/b?continuation-token=before&encoding-type=url&list-type=2&max-keys=1000");
    return page;
  };
  const std::string head = "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"x\">";
  const std::string object =
      "<Contents><Key>a%2Bb+c</Key><Size>12</Size><ETag>&quot;t&quot;</ETag>"
      "<LastModified>2026-05-28T20:26:40.000Z</LastModified></Contents>";
  auto page = list(head + "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>" +
                   "<NextContinuationToken>t+/=</NextContinuationToken>" + object +
                   "<CommonPrefixes><Prefix>d+e/</Prefix></CommonPrefixes></ListBucketResult>");
  ASSERT_TRUE(page.ok()) << page.status().ToString();
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].key, "a+b c");
  EXPECT_EQ(page->objects[0].size, 12U);
  EXPECT_EQ(page->objects[0].etag, "t");
  EXPECT_EQ(page->objects[0].modified_unix_s, testing::kScriptNow);
  EXPECT_EQ(page->common_prefixes, std::vector<std::string>{"d e/"});
  EXPECT_EQ(page->next_token, "t+/=");
  for (const std::string& broken :
       {head + object, head + "</ListBucketResult>", std::string("<html/>"), std::string(),
        head + "<IsTruncated>true</IsTruncated></ListBucketResult>",
        head + "<IsTruncated>true</IsTruncated><NextContinuationToken>before"
               "</NextContinuationToken></ListBucketResult>",
        head + "<IsTruncated>false</IsTruncated><Contents><Key>k</Key></Contents>"
               "</ListBucketResult>"}) {
    EXPECT_EQ(list(broken).code(), Code::kDataLoss) << broken;
  }
}

TEST(S3Stack, a_failed_attempt_is_repeated_signed_anew_and_counted) {
  ScriptedS3 answers(
      [](const SeenRequest& request) -> ScriptedReply {
        switch (request.number) {
          case 1:
            return {HttpText(503, {}, ErrorXml("SlowDown"))};
          case 2:
            return {HttpText(200, {{"ETag", "\"e\""}}, "0123456789")};
          case 3:
            return {
                "HTTP/1.1 206 P\r\nContent-Range: bytes 2-5/10\r\nETag: \"e\"\r\n"
                "Content-Length: 4\r\n\r\nXX",
                Then::kClose};
          default:
            return GoodRange();
        }
      },
      {.stack = true});
  const Status status = answers.Read();
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(answers.text, "2345");
  EXPECT_EQ(answers.read.attempts, 4);
  const VerbCounters& counters = answers.meter().counters().of(Verb::kRead);
  EXPECT_EQ(counters.finished(), 1U);
  EXPECT_EQ(counters.errors(), 0U);
  EXPECT_EQ(counters.retried(), 3U);
  EXPECT_EQ(counters.retries[static_cast<size_t>(Code::kDataLoss)], 2U);
  EXPECT_EQ(counters.bytes, 4U);
}

TEST(S3Stack, what_no_repetition_can_mend_is_not_repeated) {
  ScriptedS3 answers(Say({HttpText(404, {}, ErrorXml("NoSuchKey"))}), {.stack = true});
  EXPECT_EQ(answers.Read().code(), Code::kNotFound);
  EXPECT_EQ(answers.server().seen().size(), 1U);
}

}  // namespace
}  // namespace forebay::store::s3
