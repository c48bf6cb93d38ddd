// Each fault, as a client on a raw socket sees it: from the server's own folder, and through the
// proxy in front of another server.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/random.h"
#include "testing/faults/raw_client.h"
#include "testing/faults/server.h"
#include "testing/faults/temp_folder.h"

namespace forebay::faults {
namespace {

using End = RawReply::End;
using namespace std::chrono_literals;

constexpr size_t kObjectBytes = 3'000'000;
constexpr size_t kSmallBytes = 10'000;

std::string RandomBytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(DeriveKey(1, i));
  return bytes;
}

enum class Mode : uint8_t { kFolder, kProxy };

class Faults : public ::testing::TestWithParam<Mode> {
 protected:
  void SetUp() override {
    folder_.Write("b/large", large_);
    folder_.Write("b/small", small_);
  }

  // `actions`: JSON of a rule's actions. Every request meets them.
  void Start(const std::string& actions) {
    StartWithRules(R"({"rules":[{"actions":[)" + actions + "]}]}");
  }
  void StartWithRules(const std::string& json) {
    ServerOptions options;
    options.root = folder_.path();
    if (GetParam() == Mode::kProxy) {
      auto origin = Server::Start(options);
      ASSERT_TRUE(origin.ok());
      origin_ = *std::move(origin);
      options.root.clear();
      options.upstream = "http://" + origin_->address().ToString();
    }
    const Status rules = ApplyRulesJson(json, options.plan);
    ASSERT_TRUE(rules.ok()) << rules.ToString();
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok()) << server.status().ToString();
    server_ = *std::move(server);
    client_ = std::make_unique<RawClient>(server_->address());
  }
  RawReply Get(const std::string& name, const std::string& range = "") {
    return client_->Get("/b/" + name, range.empty() ? "" : "Range: bytes=" + range + "\r\n");
  }
  // Afterwards the connection still serves.
  void ExpectAlive() {
    client_->Write("HEAD /b/small HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(client_->Read("HEAD").head.status, 200);
  }

  const std::string large_ = RandomBytes(kObjectBytes);
  const std::string small_ = RandomBytes(kSmallBytes);
  TempFolder folder_;
  std::unique_ptr<Server> origin_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RawClient> client_;
};

TEST_P(Faults, without_any_every_byte_and_header_arrives) {
  StartWithRules("{}");
  const RawReply whole = Get("large");
  EXPECT_EQ(whole.head.status, 200);
  EXPECT_EQ(whole.end, End::kComplete);
  EXPECT_TRUE(whole.body == large_);
  const RawReply part = Get("large", "70000-2500000");
  EXPECT_EQ(part.head.status, 206);
  EXPECT_TRUE(part.body == large_.substr(70'000, 2'430'001));
  EXPECT_EQ(part.Value("Content-Range"), "bytes 70000-2500000/3000000");
  EXPECT_EQ(part.Value("ETag"), whole.Value("ETag"));
  EXPECT_EQ(part.Value("Connection"), "(none)");
  ExpectAlive();
}

TEST_P(Faults, latency_holds_the_first_byte_of_a_get_whatever_its_size) {
  StartWithRules(R"({"latency":"constant:80ms"})");
  for (const char* name : {"small", "large"}) {
    const RawReply reply = Get(name);
    EXPECT_GE(reply.first_byte_s, 0.078) << name;
    EXPECT_EQ(reply.end, End::kComplete);
  }
  const auto stats = server_->Control("GET", "/_faults/log", "").json;
  EXPECT_NE(stats.find("\"drawn_ms\":80.0,"), std::string::npos) << stats;
}

// Where the body stood at a receive tells of the server's pauses, unless this process was held up
// for longer than they last: then it looks again.
template <class Seen>
bool SeenInFiveTries(const Seen& seen) {
  for (int i = 0; i < 5; ++i) {
    if (seen()) return true;
  }
  return false;
}

bool Has(const std::vector<size_t>& marks, size_t mark) {
  return std::find(marks.begin(), marks.end(), mark) != marks.end();
}

TEST_P(Faults, stall_pauses_right_after_byte_n) {
  Start(R"({"do":"stall","at":1000,"for":"300ms"})");
  EXPECT_TRUE(SeenInFiveTries([&] {
    const RawReply reply = Get("small");
    EXPECT_EQ(reply.end, End::kComplete);
    EXPECT_TRUE(reply.body == small_);
    EXPECT_GE(reply.total_s, 0.298);
    return Has(reply.body_marks, 1000);
  }));
}

TEST_P(Faults, stall_in_the_middle_of_a_large_body_keeps_every_byte) {
  Start(R"({"do":"stall","at":1500001,"for":"100ms"},{"do":"stall","at":1500001,"for":"50ms"})");
  EXPECT_TRUE(SeenInFiveTries([&] {
    const RawReply reply = Get("large");
    EXPECT_TRUE(reply.body == large_);
    EXPECT_GE(reply.total_s, 0.148);
    return Has(reply.body_marks, 1'500'001);
  }));
}

TEST_P(Faults, drip_sends_at_its_pace) {
  Start(R"({"do":"drip","bytes_per_s":50000})");
  EXPECT_TRUE(SeenInFiveTries([&] {
    const RawReply reply = Get("small");
    EXPECT_EQ(reply.end, End::kComplete);
    EXPECT_TRUE(reply.body == small_);
    EXPECT_GE(reply.total_s, 0.19);
    return reply.body_marks.size() >= 4;
  }));
}

TEST_P(Faults, slow_down_is_a_503_with_s3_xml_and_the_connection_goes_on) {
  StartWithRules(R"({"rules":[{"match":{"method":"GET"},"actions":[{"do":"slow_down"}]}]})");
  const RawReply reply = Get("small");
  EXPECT_EQ(reply.head.status, 503);
  EXPECT_EQ(reply.Value("Content-Type"), "application/xml");
  EXPECT_NE(reply.body.find("<Code>SlowDown</Code>"), std::string::npos) << reply.body;
  ExpectAlive();
}

TEST_P(Faults, errors_wait_for_the_drawn_latency_too) {
  StartWithRules(R"({"latency":"constant:80ms","rules":[{"actions":[{"do":"internal_error"}]}]})");
  const RawReply reply = Get("small");
  EXPECT_EQ(reply.head.status, 500);
  EXPECT_NE(reply.body.find("<Code>InternalError</Code>"), std::string::npos);
  EXPECT_GE(reply.first_byte_s, 0.078);
}

TEST_P(Faults, any_status_and_code_can_be_given) {
  Start(R"({"do":"status","status":403,"code":"RequestTimeTooSkewed"})");
  const RawReply reply = Get("small");
  EXPECT_EQ(reply.head.status, 403);
  EXPECT_NE(reply.body.find("<Code>RequestTimeTooSkewed</Code>"), std::string::npos);
}

TEST_P(Faults, reset_comes_after_exactly_n_bytes) {
  for (const size_t at : {size_t{0}, size_t{1}, size_t{5000}, size_t{2'000'000}}) {
    Start(fmt::format(R"({{"do":"reset","at":{}}})", at));
    const RawReply reply = Get("large");
    EXPECT_EQ(reply.end, End::kReset) << at;
    EXPECT_EQ(reply.Value("Content-Length"), "3000000");
    EXPECT_TRUE(reply.body == large_.substr(0, at)) << at << " " << reply.body.size();
  }
}

TEST_P(Faults, short_body_ends_with_fin_after_n_bytes) {
  for (const size_t at : {size_t{0}, size_t{9999}, size_t{2'999'999}}) {
    Start(fmt::format(R"({{"do":"short_body","at":{}}})", at));
    const RawReply reply = Get("large");
    EXPECT_EQ(reply.end, End::kFin) << at;
    EXPECT_EQ(reply.Value("Content-Length"), "3000000");
    EXPECT_TRUE(reply.body == large_.substr(0, at)) << at << " " << reply.body.size();
  }
}

TEST_P(Faults, an_offset_behind_the_body_never_comes) {
  Start(R"({"do":"reset","at":10001},{"do":"flip_byte","at":10000})");
  EXPECT_TRUE(Get("small").body == small_);
  ExpectAlive();
}

TEST_P(Faults, wrong_content_range_is_shifted_and_the_bytes_are_right) {
  Start(R"({"do":"wrong_content_range","shift":-10})");
  const RawReply reply = Get("small", "100-199");
  EXPECT_EQ(reply.head.status, 206);
  EXPECT_EQ(reply.Value("Content-Range"), "bytes 90-189/10000");
  EXPECT_TRUE(reply.body == small_.substr(100, 100));
}

TEST_P(Faults, flip_changes_one_bit_of_exactly_that_byte) {
  for (const size_t at : {size_t{0}, size_t{70'000}, size_t{2'999'999}}) {
    Start(fmt::format(R"({{"do":"flip_byte","at":{}}})", at));
    const RawReply reply = Get("large");
    EXPECT_EQ(reply.end, End::kComplete);
    std::string expected = large_;
    expected[at] = static_cast<char>(expected[at] ^ 1);
    EXPECT_TRUE(reply.body == expected) << at;
    ExpectAlive();
  }
}

TEST_P(Faults, changed_etag_is_another_one_each_time) {
  Start(R"({"do":"change_etag"})");
  const std::string first = Get("small").Value("ETag");
  const std::string second = Get("small").Value("ETag");
  EXPECT_NE(first, second);
  EXPECT_TRUE(first.starts_with('"') && first.ends_with('"') && first.size() == 34) << first;
}

TEST_P(Faults, ignored_range_gives_200_and_the_whole_object) {
  Start(R"({"do":"ignore_range"})");
  const RawReply reply = Get("small", "100-199");
  EXPECT_EQ(reply.head.status, 200);
  EXPECT_EQ(reply.Value("Content-Range"), "(none)");
  EXPECT_TRUE(reply.body == small_);
}

TEST_P(Faults, gzip_header_lies_about_plain_bytes) {
  Start(R"({"do":"gzip_header"},{"do":"header","name":"Date","value":"never"})");
  const RawReply reply = Get("small");
  EXPECT_EQ(reply.Value("Content-Encoding"), "gzip");
  EXPECT_EQ(reply.Value("Date"), "never");
  EXPECT_TRUE(reply.body == small_);
}

TEST_P(Faults, error_in_200_is_xml_under_a_good_status) {
  Start(R"({"do":"error_in_200","code":"SlowDown"})");
  const RawReply reply = Get("small");
  EXPECT_EQ(reply.head.status, 200);
  EXPECT_NE(reply.body.find("<Error><Code>SlowDown</Code>"), std::string::npos);
}

TEST_P(Faults, close_after_the_response_is_unannounced_unless_asked) {
  Start(R"({"do":"close"})");
  RawReply reply = Get("small");
  EXPECT_EQ(reply.end, End::kComplete);
  EXPECT_EQ(reply.Value("Connection"), "(none)");
  EXPECT_EQ(client_->Next(), End::kFin);
  Start(R"({"do":"close","announce":true})");
  reply = Get("small");
  EXPECT_EQ(reply.Value("Connection"), "close");
  EXPECT_EQ(client_->Next(), End::kFin);
}

TEST_P(Faults, refused_connection_is_reset_before_anything_is_said) {
  StartWithRules(R"({"rules":[{"match":{"nth":2},"actions":[{"do":"refuse_connection"}]}]})");
  EXPECT_EQ(Get("small").head.status, 200);
  RawClient second(server_->address());
  EXPECT_EQ(second.Next(), End::kReset);
  RawClient third(server_->address());
  EXPECT_EQ(third.Get("/b/small").head.status, 200);
}

TEST_P(Faults, duplicate_headers_come_twice) {
  Start(R"({"do":"duplicate_headers","names":["ETag","Content-Length"]})");
  const RawReply reply = Get("small");
  const auto count = [&](std::string_view name) {
    return std::count_if(reply.head.fields.begin(), reply.head.fields.end(),
                         [&](const Field& field) { return SameName(field.name, name); });
  };
  EXPECT_EQ(count("ETag"), 2);
  EXPECT_EQ(count("Content-Length"), 2);
  EXPECT_TRUE(reply.body == small_);
}

TEST_P(Faults, the_log_names_what_happened_to_each_request) {
  Start(R"({"do":"short_body","at":10})");
  Get("small", "0-99");
  const std::string log = server_->Control("GET", "/_faults/log", "").json;
  for (const char* part :
       {R"("number":1)", R"("target":"/b/small")", R"("range":"bytes=0-99")", R"("status":206)",
        R"("body_bytes":10)", R"("outcome":"fault")", R"("faults":["short_body"])"}) {
    EXPECT_NE(log.find(part), std::string::npos) << part << " in " << log;
  }
}

INSTANTIATE_TEST_SUITE_P(Both, Faults, ::testing::Values(Mode::kFolder, Mode::kProxy),
                         [](const auto& mode) {
                           return mode.param == Mode::kFolder ? "folder" : "proxy";
                         });

}  // namespace
}  // namespace forebay::faults
