#include "net/lean/response_parser.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace forebay::net::lean {
namespace {

struct Parsed {
  Status status;
  bool complete = false;
  std::string rest;
};

// Fed `step` bytes at a time.
Parsed Feed(HeadParser& parser, std::string_view text, size_t step = 1 << 20,
            bool to_head_request = false) {
  parser.Reset(to_head_request);
  Parsed parsed;
  while (!text.empty() && !parsed.complete) {
    const std::string piece(text.substr(0, step));
    text.remove_prefix(piece.size());
    ByteView bytes = AsBytes(piece);
    const Result<bool> complete = parser.Take(bytes);
    if (!complete.ok()) {
      parsed.status = complete.status();
      return parsed;
    }
    parsed.complete = *complete;
    parsed.rest = AsText(bytes);
    if (!parsed.complete) {
      EXPECT_EQ(parsed.rest, "");
    }
  }
  parsed.rest += text;
  return parsed;
}

Code CodeOf(std::string_view text) {
  HeadParser parser;
  return Feed(parser, text).status.code();
}

TEST(HeadParser, reads_a_head_however_it_is_cut) {
  const std::string text =
      "HTTP/1.1 206 Partial Content\r\nETag: \"e\"\r\nx-amz-request-id:R1 \r\n"
      "X-Empty:\r\nContent-Length: 10\r\n\r\nbody";
  for (size_t step = 1; step <= text.size(); ++step) {
    HeadParser parser;
    const Parsed parsed = Feed(parser, text, step);
    ASSERT_TRUE(parsed.status.ok()) << parsed.status.ToString();
    ASSERT_TRUE(parsed.complete);
    EXPECT_EQ(parsed.rest, "body");
    EXPECT_EQ(parser.head().status, 206);
    EXPECT_EQ(parser.head().content_length, 10);
    EXPECT_EQ(parser.framing(), Framing::kLength);
    EXPECT_TRUE(parser.keeps_alive());
    EXPECT_EQ(parser.head_bytes(), text.size() - 4);
    EXPECT_EQ(parser.head().headers.size(), 4U);
    EXPECT_EQ(FindHeader(parser.head().headers, "etag"), "\"e\"");
    EXPECT_EQ(FindHeader(parser.head().headers, "X-Amz-Request-Id"), "R1");
    EXPECT_EQ(FindHeader(parser.head().headers, "x-empty"), "");
  }
}

TEST(HeadParser, forgets_one_answer_before_the_next) {
  HeadParser parser;
  Feed(parser, "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\nConnection: close\r\n\r\n");
  Feed(parser, "HTTP/1.1 404 x\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_EQ(parser.head().status, 404);
  EXPECT_EQ(parser.head().headers.size(), 1U);
  EXPECT_EQ(parser.head().content_length, -1);
  EXPECT_TRUE(parser.keeps_alive());
}

TEST(HeadParser, drops_interim_heads) {
  HeadParser parser;
  const Parsed parsed =
      Feed(parser,
           "HTTP/1.1 100 Continue\r\nContent-Length: 9\r\n\r\nHTTP/1.1 103 x\r\nLink: y\r\n\r\n"
           "HTTP/1.1 200\r\n\r\n");
  ASSERT_TRUE(parsed.complete) << parsed.status.ToString();
  EXPECT_EQ(parser.head().status, 200);
  EXPECT_TRUE(parser.head().headers.empty());
  EXPECT_EQ(parser.head().content_length, -1);
  EXPECT_EQ(CodeOf("HTTP/1.1 101 Switching Protocols\r\n\r\n"), Code::kDataLoss);
}

TEST(HeadParser, knows_what_delimits_the_body) {
  const auto framing = [](std::string_view fields, int status = 200, bool to_head = false) {
    HeadParser parser;
    const std::string text =
        "HTTP/1.1 " + std::to_string(status) + " x\r\n" + std::string(fields) + "\r\n";
    EXPECT_TRUE(Feed(parser, text, 1 << 20, to_head).complete) << text;
    return parser.framing();
  };
  EXPECT_EQ(framing("Content-Length: 0\r\n"), Framing::kLength);
  EXPECT_EQ(framing("content-length: 5\r\nContent-Length: 5\r\n"), Framing::kLength);
  EXPECT_EQ(framing("transfer-encoding: Chunked\r\n"), Framing::kChunked);
  EXPECT_EQ(framing("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), Framing::kChunked);
  EXPECT_EQ(framing(""), Framing::kUntilClose);
  EXPECT_EQ(framing("Content-Length: 5\r\n", 200, true), Framing::kNone);
  EXPECT_EQ(framing("Transfer-Encoding: chunked\r\n", 200, true), Framing::kNone);
  EXPECT_EQ(framing("", 204), Framing::kNone);
  EXPECT_EQ(framing("Content-Length: 5\r\n", 304), Framing::kNone);
}

TEST(HeadParser, knows_whether_the_connection_goes_on) {
  const auto keeps_alive = [](std::string_view text) {
    HeadParser parser;
    EXPECT_TRUE(Feed(parser, text).complete) << text;
    return parser.keeps_alive();
  };
  EXPECT_TRUE(keeps_alive("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"));
  EXPECT_TRUE(keeps_alive("HTTP/1.1 204 x\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: Close\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: a ,close\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n"));
  EXPECT_FALSE(keeps_alive("HTTP/1.1 200 OK\r\n\r\n"));
  EXPECT_FALSE(
      keeps_alive("HTTP/1.1 200 x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"));
}

TEST(HeadParser, refuses_what_is_no_answer) {
  const std::string good = "HTTP/1.1 200 OK\r\n";
  for (const std::string& text : std::vector<std::string>{
           "SSH-2.0-OpenSSH\r\n",
           "\r\n",
           "HTTP/2 200\r\n",
           "HTTP/1.1\r\n",
           "HTTP/1.1 20\r\n",
           "HTTP/1.1 2000 x\r\n",
           "HTTP/1.1 020 x\r\n",
           "HTTP/1.1 -20 x\r\n",
           "HTTP/1.x 200 x\r\n",
           "HTTP/1.1 200 a\rb\r\n",
           good + " folded: x\r\n",
           good + "A: b\r\n c\r\n",
           good + "no colon\r\n",
           good + ": x\r\n",
           good + "a b: x\r\n",
           good + "a : x\r\n",
           good + "a: \x01\r\n",
           good + std::string("a: \0b\r\n", 7),
           good + "a: b\rc: d\r\n",
           good + "Content-Length: \r\n",
           good + "Content-Length: -1\r\n",
           good + "Content-Length: +1\r\n",
           good + "Content-Length: 1 2\r\n",
           good + "Content-Length: 5, 5\r\n",
           good + "Content-Length: 99999999999999999999\r\n",
           good + "Content-Length: 1\r\nContent-Length: 2\r\n",
           good + "Transfer-Encoding: gzip, chunked\r\n",
           good + "Transfer-Encoding: identity\r\n",
           good + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"}) {
    EXPECT_EQ(CodeOf(text), Code::kDataLoss) << text;
  }
}

TEST(HeadParser, bounds_the_head_with_all_interim_ones) {
  const std::string line = "A: " + std::string(1000, 'x') + "\r\n";
  std::string fields;
  while (fields.size() + line.size() < kMaxHeadBytes - 100) fields += line;
  EXPECT_EQ(CodeOf("HTTP/1.1 200 OK\r\n" + fields + "\r\n"), Code::kOk);
  EXPECT_EQ(CodeOf("HTTP/1.1 200 OK\r\n" + fields + line + "\r\n"), Code::kDataLoss);
  EXPECT_EQ(CodeOf("HTTP/1.1 200 OK\r\nA: " + std::string(70'000, 'x')), Code::kDataLoss);
  std::string interim;
  while (interim.size() < kMaxHeadBytes) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  EXPECT_EQ(CodeOf(interim), Code::kDataLoss);
}

struct Decoded {
  Status status;
  bool done = false;
  std::string body;
  std::string rest;
};

Decoded Decode(std::string_view text, size_t step = 1 << 20) {
  ChunkDecoder decoder;
  Decoded decoded;
  while (!text.empty() && !decoder.done()) {
    const std::string piece(text.substr(0, step));
    text.remove_prefix(piece.size());
    ByteView bytes = AsBytes(piece);
    for (;;) {
      const Result<ByteView> body = decoder.Next(bytes);
      if (!body.ok()) {
        decoded.status = body.status();
        return decoded;
      }
      decoded.body += AsText(*body);
      if (body->empty()) break;
    }
    decoded.rest = AsText(bytes);
  }
  decoded.done = decoder.done();
  decoded.rest += text;
  return decoded;
}

TEST(ChunkDecoder, joins_the_chunks_however_they_are_cut) {
  const std::string text =
      "4;x=y\r\nabcd\r\n00A \r\n0123456789\r\n0\r\nX-Trailer: 1\r\nY: 2\r\n\r\nmore";
  for (size_t step = 1; step <= text.size(); ++step) {
    const Decoded decoded = Decode(text, step);
    ASSERT_TRUE(decoded.status.ok()) << decoded.status.ToString();
    EXPECT_TRUE(decoded.done);
    EXPECT_EQ(decoded.body, "abcd0123456789");
    EXPECT_EQ(decoded.rest, "more");
  }
  EXPECT_TRUE(Decode("0\r\n\r\n").done);
  EXPECT_TRUE(Decode("1\na\n0\n\n").done);
}

TEST(ChunkDecoder, is_not_done_before_the_end) {
  const std::string text = "4\r\nabcd\r\n0\r\nT: x\r\n\r\n";
  for (size_t size = 0; size < text.size(); ++size) {
    const Decoded decoded = Decode(std::string_view(text).substr(0, size));
    EXPECT_TRUE(decoded.status.ok());
    EXPECT_FALSE(decoded.done) << size;
  }
}

TEST(ChunkDecoder, refuses_what_is_no_chunk) {
  for (const std::string& text : std::vector<std::string>{
           "\r\n", "g\r\n", "-1\r\n", "0x4\r\n", ";x\r\n", "4\r\nabcde\r\n", "4\r\nabcdX",
           "4\rabcd", "1000000000000000\r\n", "4;" + std::string(5000, 'x'),
           "0\r\n" + std::string(70'000, 'x')}) {
    EXPECT_EQ(Decode(text).status.code(), Code::kDataLoss) << text.substr(0, 50);
  }
}

}  // namespace
}  // namespace forebay::net::lean
