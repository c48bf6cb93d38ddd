#include "engine/doctor.h"

#include <gtest/gtest.h>

namespace forebay::engine {
namespace {

using Level = Finding::Level;

TEST(Doctor, a_clock_is_judged_by_what_the_server_would_do) {
  EXPECT_EQ(JudgeClock(0.4).level, Level::kOk);
  EXPECT_EQ(JudgeClock(-3).level, Level::kOk);
  EXPECT_EQ(JudgeClock(60).level, Level::kWarning);
  const Finding off = JudgeClock(-4000);
  EXPECT_EQ(off.level, Level::kFailure);
  EXPECT_EQ(off.text, "4000 s behind the server's");
  EXPECT_FALSE(off.fix.empty());
}

TEST(Doctor, few_open_files_come_with_the_command_that_helps) {
  EXPECT_EQ(JudgeOpenFiles({.soft = 65'536, .hard = 65'536}).level, Level::kOk);
  const Finding few = JudgeOpenFiles({.soft = 1024, .hard = 1'048'576});
  EXPECT_EQ(few.level, Level::kWarning);
  EXPECT_NE(few.fix.find("ulimit -n 65536"), std::string::npos);
}

TEST(Doctor, a_bucket_in_another_region_is_named) {
  EXPECT_EQ(JudgeRegion("eu-west-1", "eu-west-1").level, Level::kOk);
  EXPECT_EQ(JudgeRegion("eu-west-1", "").level, Level::kOk);
  const Finding other = JudgeRegion("us-east-1", "eu-west-1");
  EXPECT_EQ(other.level, Level::kWarning);
  EXPECT_NE(other.fix.find("AWS_REGION=eu-west-1"), std::string::npos);
}

TEST(Doctor, first_bytes_are_told_cold_and_warm) {
  const Finding good = JudgeFirstBytes(0.250, {0.030, 0.010, 0.020}, false);
  EXPECT_EQ(good.level, Level::kOk);
  EXPECT_EQ(good.text,
            "250.0 ms the first time, then 20.0 ms at the median, 30.0 ms the slowest of 3");
  EXPECT_EQ(JudgeFirstBytes(1, {0.5, 0.5}, false).level, Level::kWarning);
  EXPECT_EQ(JudgeFirstBytes(1, {0.2, 0.2}, true).level, Level::kWarning);
  EXPECT_EQ(JudgeFirstBytes(0.1, {}, false).level, Level::kOk);
}

TEST(Doctor, every_code_has_a_fix) {
  for (int code = 1; code <= static_cast<int>(Code::kInternal); ++code) {
    EXPECT_FALSE(FixFor(Status(static_cast<Code>(code), "x")).empty()) << code;
  }
}

TEST(Doctor, a_fix_is_for_what_the_store_said) {
  const auto fix = [](Code code, const std::string& text, const std::string& uri, int http) {
    return FixFor(Status(code, text, {.uri = uri, .attempt = 1, .http_status = http}));
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string s3 = "s3://b/x";
  EXPECT_TRUE(has(fix(Code::kPermissionDenied, "403 SignatureDoesNotMatch: words", s3, 403),
                  "AWS_SECRET_ACCESS_KEY"));
  EXPECT_TRUE(
      has(fix(Code::kPermissionDenied, "403 RequestTimeTooSkewed: words", s3, 403), "clock"));
  EXPECT_TRUE(
      has(fix(Code::kPermissionDenied, "403 AccessDenied: words", s3, 403), "s3:GetObject"));
  EXPECT_TRUE(has(fix(Code::kUnavailable, "503 ServiceUnavailable", s3, 503), "try again"));
  EXPECT_TRUE(has(fix(Code::kUnavailable, "connecting", s3, 0), "--endpoint-url"));
  EXPECT_EQ(fix(Code::kNotFound, "opening x", "file:///x", 0), "check the path");
}

}  // namespace
}  // namespace forebay::engine
