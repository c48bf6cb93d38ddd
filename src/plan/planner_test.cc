#include "plan/planner.h"

#include <gtest/gtest.h>

namespace forebay::plan {
namespace {

// Groups of `rows` items, `groups` of them.
class CountingSource : public ScheduleSource {
 public:
  CountingSource(uint64_t groups, uint64_t rows) : left_(groups * rows), rows_(rows) {}
  Result<std::optional<WorkItem>> Next() override {
    if (left_ == 0) return std::optional<WorkItem>();
    --left_;
    WorkItem item;
    item.starts_group = given_ % rows_ == 0;
    item.ends_group = given_ % rows_ == rows_ - 1;
    ++given_;
    return std::optional(std::move(item));
  }
  void Seek() { given_ = 0; }

 private:
  uint64_t left_;
  uint64_t rows_;
  uint64_t given_ = 0;
};

std::vector<PlanItem> Pull(Planner& planner, Time now = Time{}) {
  std::vector<PlanItem> items;
  while (true) {
    const auto next = planner.Peek(now);
    EXPECT_TRUE(next.ok());
    if (*next == nullptr) return items;
    items.push_back(planner.Pop());
  }
}

TEST(Planner, gives_items_in_sequence_up_to_the_runway) {
  CountingSource source(100, 3);
  Planner planner(source, {.fixed_s = 1.0, .depth_max = 2});
  const auto items = Pull(planner);
  ASSERT_EQ(items.size(), 6u);
  for (size_t i = 0; i < items.size(); ++i) {
    EXPECT_EQ(items[i].sequence, i);
    EXPECT_EQ(items[i].item.group, i / 3);
  }
  planner.OnTaken(Time{}, Duration{}, Duration{});
  EXPECT_EQ(Pull(planner).size(), 3u);
}

TEST(Planner, refills_several_groups_at_a_time_where_steps_are_short) {
  CountingSource source(100, 1);
  Planner planner(source, {.fixed_s = 1.0, .depth_max = 16});
  const auto take = [&](Duration step) {
    planner.OnTaken(Time{}, step, Duration{});
    return Pull(planner).size();
  };
  size_t all = Pull(planner).size();
  size_t taken = 2;  // the first step is none
  for (int i = 0; i < 2; ++i) all += take(std::chrono::microseconds(20));
  EXPECT_EQ(all, taken + 16) << "full";
  std::vector<size_t> came;
  for (int i = 0; i < 8; ++i) came.push_back(take(std::chrono::microseconds(20)));
  EXPECT_EQ(came, (std::vector<size_t>{0, 0, 0, 4, 0, 0, 0, 4}));
  EXPECT_EQ(take(std::chrono::milliseconds(100)), 1u) << "steps are long now";
}

TEST(Planner, off_gives_the_head_alone_and_only_when_it_is_waited_for) {
  CountingSource source(100, 2);
  Planner planner(source, {.fixed_s = 0});
  EXPECT_TRUE(Pull(planner).empty());
  EXPECT_TRUE(planner.HeadWaiting());
  EXPECT_FALSE(planner.HeadWaiting()) << "no news";
  const auto items = Pull(planner);
  ASSERT_EQ(items.size(), 2u);
  EXPECT_EQ(items[0].urgency, Urgency::kDemand);
  planner.OnTaken(Time{}, Duration{}, Duration{});
  EXPECT_TRUE(Pull(planner).empty());
}

TEST(Planner, what_is_due_later_is_less_urgent) {
  CountingSource source(100, 1);
  Planner planner(source, {.fixed_s = 10, .depth_max = 4});
  const Time now = Time{} + std::chrono::seconds(5);
  planner.HeadWaiting();
  const auto items = Pull(planner, now);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0].urgency, Urgency::kDemand);
  EXPECT_EQ(items[1].urgency, Urgency::kSoon);
  EXPECT_EQ(items[3].urgency, Urgency::kFar);
  EXPECT_EQ(items[0].due, now);
  EXPECT_LT(items[1].due, items[3].due);
}

TEST(Planner, numbers_go_on_after_a_restart) {
  CountingSource source(100, 2);
  Planner planner(source, {.fixed_s = 1, .depth_max = 2});
  EXPECT_EQ(Pull(planner).size(), 4u);
  planner.OnTaken(Time{}, Duration{}, Duration{});
  source.Seek();
  planner.Restart();
  const auto items = Pull(planner);
  ASSERT_EQ(items.size(), 4u);
  EXPECT_GE(items[0].sequence, 4u);
  EXPECT_EQ(items[0].item.group, 1u) << "the head's number";
}

TEST(Planner, ends_with_its_source) {
  CountingSource source(1, 2);
  Planner planner(source, {.fixed_s = 1, .depth_max = 4});
  EXPECT_EQ(Pull(planner).size(), 2u);
  EXPECT_TRUE(planner.ended());
}

}  // namespace
}  // namespace forebay::plan
