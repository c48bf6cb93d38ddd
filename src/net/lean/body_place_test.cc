// A body whose place is told before its head has come: head and body are read at once as soon as
// the heads are all of one size, and whatever comes instead is taken for what it is.
#include <chrono>
#include <future>

#include <gtest/gtest.h>

#include "net/lean/lean_transport.h"
#include "testing/scripted_server.h"

namespace forebay::testing {
namespace {

using namespace std::chrono_literals;
using Then = ScriptedReply::Then;

constexpr size_t kBody = 100'000;

std::string Pattern(size_t size, size_t seed) {
  std::string text(size, ' ');
  for (size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>('a' + (i * 7 + i / 251 + seed) % 26);
  return text;
}

// Puts bodies of 200 and 206 into pieces of memory, as a store's read does, and others into a text.
class Reader : public net::HttpHandler {
 public:
  explicit Reader(size_t pieces = 3) : memory(kBody + 100, '-') {
    size_t at = 0;
    for (size_t i = 0; i < pieces; ++i) {
      const size_t n = i + 1 == pieces ? kBody - at : kBody / pieces + i;
      place.push_back(MutableBytes(reinterpret_cast<std::byte*>(memory.data()) + at, n));
      at += n;
    }
  }
  Result<net::BodyTarget> OnHead(const net::HttpHead& head) override {
    status_code = head.status;
    if (refuse) return Status(Code::kPreconditionFailed, "not this one");
    if (head.status >= 300) return net::BodyTarget{.text = &text, .text_limit = 1 << 20};
    net::BodyTarget target;
    auto left = static_cast<uint64_t>(std::max<int64_t>(head.content_length, 0));
    for (const MutableBytes piece : place) {
      const size_t n = std::min<uint64_t>(piece.size(), left);
      if (n > 0) target.pieces.push_back(piece.first(n));
      left -= n;
    }
    if (target.pieces.empty()) target.pieces = place;
    return target;
  }
  void OnBody(ByteView piece) override {
    if (told.empty()) first_piece = piece.size();
    told += AsText(piece);
  }
  void OnDone(Status result, const net::HttpTiming&) override {
    status = std::move(result);
    over.set_value();
  }

  std::string memory;
  std::vector<MutableBytes> place;
  bool refuse = false;
  int status_code = 0;
  std::string text;
  std::string told;  // all that OnBody was shown
  size_t first_piece = 0;
  Status status{Code::kInternal, "not done"};
  std::promise<void> over;
};

class BodyPlace : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = *sys::EventLoop::Make("test-net");
    transport_ = *net::MakeLeanTransport(*loop_, {});
    server_ = std::make_unique<ScriptedServer>([this](const SeenRequest&) { return reply_; });
  }
  void TearDown() override {
    std::promise<void> closed;
    loop_->Post([&] { transport_->Close([&] { closed.set_value(); }); });
    EXPECT_EQ(closed.get_future().wait_for(20s), std::future_status::ready);
    loop_->Stop();
  }
  void Perform(Reader& reader, size_t head_digits = 0) {
    loop_->Post([&] {
      transport_->Start({.url = server_->url() + "/x",
                         .stall_timeout = 500ms,
                         .body_hint = kBody,
                         .body_place = reader.place,
                         .head_digits = head_digits},
                        &reader);
    });
    ASSERT_EQ(reader.over.get_future().wait_for(20s), std::future_status::ready);
  }
  // Until the transport has seen what heads look like here.
  void Settle() {
    for (size_t i = 0; i < 12; ++i) {
      reply_ = {HttpText(206, {{"x-id", "0123"}}, Pattern(kBody, i))};
      Reader reader(1 + i % 4);
      Perform(reader);
      ExpectWhole(reader, Pattern(kBody, i));
    }
  }
  static void ExpectWhole(const Reader& reader, const std::string& body) {
    ASSERT_TRUE(reader.status.ok()) << reader.status.ToString();
    ASSERT_TRUE(reader.memory.substr(0, body.size()) == body);
    ASSERT_TRUE(reader.told == body);
    ASSERT_EQ(reader.memory.substr(kBody), std::string(100, '-')) << "nothing beyond its place";
  }

  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> transport_;
  std::unique_ptr<ScriptedServer> server_;
  ScriptedReply reply_;
};

TEST_F(BodyPlace, every_body_arrives_on_one_connection) {
  Settle();
  for (const SeenRequest& request : server_->seen()) EXPECT_EQ(request.connection, 1);
}

TEST_F(BodyPlace, a_head_of_another_size_moves_nothing) {
  Settle();
  for (const std::string& id : {std::string("01234"), std::string("012"), std::string(3000, 'x'),
                                std::string(), std::string("0123")}) {
    reply_ = {HttpText(206, {{"x-id", id}}, Pattern(kBody, id.size()))};
    Reader reader;
    Perform(reader);
    ExpectWhole(reader, Pattern(kBody, id.size()));
    Settle();
  }
}

// Without this every other answer's body would come in two reads, the first of a few bytes.
TEST_F(BodyPlace, heads_that_differ_by_what_they_repeat_of_their_request_are_of_one_size) {
  for (size_t i = 0; i < 40; ++i) {
    const size_t digits = 1 + i * 7 % 11;
    reply_ = {HttpText(206, {{"x-range", std::string(digits, '9')}}, Pattern(kBody, i))};
    Reader reader;
    Perform(reader, digits);
    ExpectWhole(reader, Pattern(kBody, i));
    if (i >= 12) {
      EXPECT_GT(reader.first_piece, 1024U) << i;
    }
  }
}

TEST_F(BodyPlace, heads_that_repeat_less_or_more_than_was_told_move_nothing) {
  for (size_t i = 0; i < 40; ++i) {
    const size_t digits = 5 + (i > 12 && i % 3 == 0 ? i % 9 : 4);
    reply_ = {HttpText(206, {{"x-range", std::string(digits, '9')}}, Pattern(kBody, i))};
    Reader reader;
    Perform(reader, 9);
    ExpectWhole(reader, Pattern(kBody, i));
  }
}

TEST_F(BodyPlace, an_error_answer_is_read_as_one) {
  Settle();
  const std::string page = "<Error><Code>SlowDown</Code></Error>";
  for (const size_t pad : {0, 4, 40, 4000}) {
    reply_ = {HttpText(503, {{"x-id", std::string(pad, 'x')}}, page)};
    Reader reader;
    Perform(reader);
    ASSERT_TRUE(reader.status.ok()) << reader.status.ToString();
    EXPECT_EQ(reader.status_code, 503);
    EXPECT_EQ(reader.text, page);
    Settle();
  }
}

TEST_F(BodyPlace, a_shorter_body_is_taken_and_a_cut_one_is_not) {
  Settle();
  for (const size_t size : {size_t{0}, size_t{1}, size_t{40'000}, kBody - 1}) {
    // "x-id" makes up for the digits, so that the head is of the size it was.
    const size_t digits = std::to_string(size).size();
    reply_ = {HttpText(206, {{"x-id", "0123" + std::string(6 - digits, 'y')}}, Pattern(size, 1))};
    Reader reader;
    Perform(reader);
    ExpectWhole(reader, Pattern(size, 1));
    Settle();
  }
  const std::string whole = HttpText(206, {{"x-id", "0123"}}, Pattern(kBody, 1));
  for (const size_t bytes :
       {size_t{30}, whole.size() - kBody, whole.size() - kBody + 5, whole.size() - 1}) {
    reply_ = {whole.substr(0, bytes), Then::kClose};
    Reader reader;
    Perform(reader);
    EXPECT_FALSE(reader.status.ok()) << bytes;
    Settle();
  }
}

TEST_F(BodyPlace, bytes_behind_the_body_cost_the_connection_and_nothing_else) {
  Settle();
  for (const std::string& extra : {std::string("x"), std::string(5000, 'x'),
                                   HttpText(206, {{"x-id", "0123"}}, Pattern(kBody, 9))}) {
    reply_ = {HttpText(206, {{"x-id", "0123"}}, Pattern(kBody, 2)) + extra};
    Reader reader;
    Perform(reader);
    ExpectWhole(reader, Pattern(kBody, 2));
    const int connection = server_->seen().back().connection;
    Settle();
    EXPECT_NE(server_->seen().back().connection, connection);
  }
}

TEST_F(BodyPlace, a_longer_body_than_its_place_is_refused) {
  Settle();
  reply_ = {HttpText(206, {{"x-id", "0123"}}, Pattern(kBody + 50, 2))};
  Reader reader;
  Perform(reader);
  EXPECT_EQ(reader.status.code(), Code::kDataLoss) << reader.status.ToString();
  EXPECT_EQ(reader.memory.substr(kBody), std::string(100, '-'));
}

TEST_F(BodyPlace, a_refused_head_ends_it) {
  Settle();
  Reader reader;
  reader.refuse = true;
  Perform(reader);
  EXPECT_EQ(reader.status.code(), Code::kPreconditionFailed);
  EXPECT_EQ(reader.told, "");
  Settle();
}

TEST_F(BodyPlace, an_early_hint_before_the_head_is_passed_over) {
  Settle();
  reply_ = {"HTTP/1.1 103 Early\r\n\r\n" + HttpText(206, {{"x-id", "0123"}}, Pattern(kBody, 3))};
  Reader reader;
  Perform(reader);
  ExpectWhole(reader, Pattern(kBody, 3));
}

}  // namespace
}  // namespace forebay::testing
