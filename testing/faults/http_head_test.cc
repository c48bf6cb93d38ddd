#include "testing/faults/http_head.h"

#include <gtest/gtest.h>

#include <string>

namespace forebay::faults {
namespace {

TEST(RequestHead, keeps_target_and_headers_as_they_came) {
  const auto head = ParseRequestHead(
      "PUT /b/a%2Fb//c?x=%20&y HTTP/1.1\r\nHost: h:1\r\nX-Amz-Date:  20260101T000000Z \r\n"
      "content-LENGTH: 5\r\nExpect: 100-Continue\r\n\r\n");
  ASSERT_TRUE(head.ok()) << head.status().ToString();
  EXPECT_EQ(head->method, "PUT");
  EXPECT_EQ(head->target, "/b/a%2Fb//c?x=%20&y");
  EXPECT_EQ(head->framing, Framing::kLength);
  EXPECT_EQ(head->content_length, 5U);
  EXPECT_TRUE(head->keep_alive);
  EXPECT_TRUE(head->expects_continue);
  EXPECT_EQ(FindField(head->fields, "x-amz-date")->value, "20260101T000000Z");
  EXPECT_EQ(FormatRequestHead(*head),
            "PUT /b/a%2Fb//c?x=%20&y HTTP/1.1\r\nHost: h:1\r\nX-Amz-Date: 20260101T000000Z\r\n"
            "content-LENGTH: 5\r\nExpect: 100-Continue\r\n\r\n");
}

TEST(RequestHead, broken_and_ambiguous_heads_are_refused) {
  const std::string many = [] {
    std::string text = "GET / HTTP/1.1\r\n";
    for (size_t i = 0; i <= kMaxFields; ++i) text += "a: b\r\n";
    return text + "\r\n";
  }();
  for (const std::string& text : {
           std::string("GET /\r\n\r\n"),
           std::string("GET  HTTP/1.1\r\n\r\n"),
           std::string("GET /a b HTTP/1.1\r\n\r\n"),
           std::string("GET / HTTP/2.0\r\n\r\n"),
           std::string("G(T / HTTP/1.1\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nno colon\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nName : v\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nA: b\nC: d\r\n\r\n"),
           std::string("GET / HTTP/1.1\r\nA: \x01\r\n\r\n"),
           std::string("PUT / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
           std::string("PUT / HTTP/1.1\r\nContent-Length: 1x\r\n\r\n"),
           std::string("PUT / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"),
           std::string("PUT / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
           std::string("PUT / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
           std::string("PUT / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
           many,
       }) {
    EXPECT_EQ(ParseRequestHead(text).code(), Code::kInvalidArgument) << text.substr(0, 80);
  }
}

TEST(RequestHead, a_head_without_an_end_is_given_up_at_the_limit) {
  std::string text = "GET / HTTP/1.1\r\nA: ";
  EXPECT_EQ(*FindHeadEnd(text), std::nullopt);
  text.append(kMaxHeadBytes, 'x');
  EXPECT_EQ(FindHeadEnd(text).code(), Code::kInvalidArgument);
}

TEST(RequestHead, connection_headers_end_at_the_hop) {
  auto head = ParseRequestHead(
      "GET / HTTP/1.1\r\nHost: h\r\nConnection: close, X-Mine, Host\r\nX-Mine: 1\r\n"
      "Keep-Alive: timeout=5\r\nRange: bytes=0-1\r\n\r\n");
  ASSERT_TRUE(head.ok());
  EXPECT_FALSE(head->keep_alive);
  RemoveHopFields(head->fields);
  EXPECT_EQ(FormatRequestHead(*head), "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\n\r\n");
}

TEST(ResponseHead, tells_how_the_body_ends) {
  const auto framing = [](std::string_view text, std::string_view method) {
    const auto head = ParseResponseHead(text, method);
    EXPECT_TRUE(head.ok()) << text;
    return head.ok() ? head->framing : Framing::kNone;
  };
  const std::string_view sized = "HTTP/1.1 206 Partial Content\r\nContent-Length: 9\r\n\r\n";
  EXPECT_EQ(framing(sized, "GET"), Framing::kLength);
  EXPECT_EQ(framing(sized, "HEAD"), Framing::kNone);
  EXPECT_EQ(framing("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", "GET"),
            Framing::kNone);
  EXPECT_EQ(framing("HTTP/1.1 204\r\n\r\n", "GET"), Framing::kNone);
  EXPECT_EQ(framing("HTTP/1.1 200 OK\r\n\r\n", "GET"), Framing::kUntilClose);
  EXPECT_EQ(framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "GET"),
            Framing::kChunked);
  for (const char* text :
       {"HTTP/1.1 20 OK\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "HTTP/1.1200 \r\n\r\n",
        "SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n"}) {
    EXPECT_FALSE(ParseResponseHead(text, "GET").ok()) << text;
  }
}

TEST(BodyFramer, finds_the_end_of_chunks_wherever_the_pieces_are_cut) {
  const std::string raw = "5\r\nhello\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: t\r\n\r\n";
  for (size_t piece = 1; piece <= raw.size(); ++piece) {
    BodyFramer framer(Framing::kChunked, 0);
    uint64_t payload = 0;
    size_t at = 0;
    while (!framer.done()) {
      ASSERT_LT(at, raw.size());
      const auto step = framer.Consume(std::string_view(raw).substr(at, piece), UINT64_MAX);
      ASSERT_TRUE(step.ok());
      at += step->raw;
      payload += step->payload;
    }
    EXPECT_EQ(at, raw.size());
    EXPECT_EQ(payload, 15U);
  }
}

TEST(BodyFramer, stops_right_after_the_wanted_byte_of_payload) {
  const std::string raw = "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\nGET";
  BodyFramer framer(Framing::kChunked, 0);
  auto step = framer.Consume(raw, 4);
  ASSERT_TRUE(step.ok());
  EXPECT_EQ(step->payload, 4U);
  EXPECT_EQ(raw.substr(0, step->raw), "3\r\nabc\r\n3\r\nd");
  step = framer.Consume(std::string_view(raw).substr(step->raw), UINT64_MAX);
  ASSERT_TRUE(step.ok());
  EXPECT_TRUE(framer.done());
  EXPECT_EQ(step->payload, 2U);
}

TEST(BodyFramer, broken_chunks_are_refused) {
  for (const char* raw : {"x\r\n", "\r\n", "5 \n", "fffffffffffffffff\r\n", "1\r\nabc", "1\r\na\rb",
                          "0\r\nT: t\n\n", "1;\n"}) {
    BodyFramer framer(Framing::kChunked, 0);
    EXPECT_FALSE(framer.Consume(raw, UINT64_MAX).ok()) << raw;
  }
  BodyFramer framer(Framing::kChunked, 0);
  EXPECT_FALSE(framer.Consume("1;" + std::string(10'000, 'x'), UINT64_MAX).ok());
}

TEST(PercentDecode, leaves_broken_escapes_alone) {
  EXPECT_EQ(PercentDecode("a%20b+c%2", false), "a b+c%2");
  EXPECT_EQ(PercentDecode("a+b%zz%41", true), "a b%zzA");
  EXPECT_EQ(PercentEncode("a b/c+\xc3\xa9", "/"), "a%20b/c%2B%C3%A9");
}

}  // namespace
}  // namespace forebay::faults
