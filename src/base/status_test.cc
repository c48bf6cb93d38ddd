#include "forebay/status.h"

#include <gtest/gtest.h>

#include <memory>

namespace forebay {
namespace {

static_assert(!std::is_convertible_v<Result<std::unique_ptr<int>>, Result<bool>>);
static_assert(!std::is_constructible_v<Result<bool>, Result<std::unique_ptr<int>>>);

TEST(Status, ok_is_a_null_pointer) {
  const Status status;
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.ToString(), "ok");
  EXPECT_EQ(sizeof(Status), sizeof(void*));
}

TEST(Status, contexts_stand_outermost_first_and_the_detail_last) {
  Status status(Code::kDataLoss, "4 of 9 bytes", {.uri = "s3://b/k", .offset = 0, .end = 9});
  status = std::move(status).WithContext("GET").WithContext("sample 7");
  status = std::move(status).WithDetail({.uri = "other", .attempt = 2, .request_id = "R1"});
  EXPECT_EQ(status.ToString(),
            "data_loss: sample 7: GET: 4 of 9 bytes [uri=s3://b/k range=[0,9) attempt=2 "
            "request_id=R1]");
  const Status copy = status;
  EXPECT_EQ(copy.ToString(), status.ToString());
}

Result<std::unique_ptr<int>> Make(bool good) {
  if (!good) return Status(Code::kNotFound, "none");
  return std::make_unique<int>(3);
}

Result<int> Use(bool good) {
  FB_ASSIGN_OR_RETURN(const auto value, Make(good));
  return *value;
}

TEST(Result, a_move_only_value_passes_through_the_macro) {
  ASSERT_TRUE(Use(true).ok());
  EXPECT_EQ(*Use(true), 3);
  EXPECT_EQ(Use(false).code(), Code::kNotFound);
}

}  // namespace
}  // namespace forebay
