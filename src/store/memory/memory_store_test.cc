#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "testing/manual_executor.h"

namespace forebay::store {
namespace {

using std::chrono::milliseconds;
using testing::ManualExecutor;

struct Fixture {
  ManualExecutor executor;
  std::shared_ptr<MemoryStore> store;
  std::array<std::byte, 4> buffer{};

  explicit Fixture(std::function<Duration(const MemoryStore::Operation&)> latency = nullptr)
      : store(MemoryStore::Make(&executor, {.name = "m", .latency = std::move(latency)})) {
    store->Insert("key", AsBytes("0123456789"));
  }

  ReadRequest Request(uint64_t offset) {
    return ReadRequest{.key = "key",
                       .etag = "",
                       .range = {offset, offset + buffer.size()},
                       .target = {MutableBytes(buffer)}};
  }
};

TEST(MemoryStore, completes_after_the_injected_latency_of_virtual_time) {
  Fixture f([](const MemoryStore::Operation& operation) {
    EXPECT_EQ(operation.verb, "read");
    return milliseconds(operation.range.offset == 0 ? 300 : 100);
  });
  std::vector<int> order;
  f.store->StartRead(f.Request(0), [&](Result<ReadResult> r) {
    EXPECT_EQ(r->total, milliseconds(300));
    order.push_back(1);
  });
  f.store->StartRead(f.Request(2), [&](Result<ReadResult> r) {
    EXPECT_EQ(r->total, milliseconds(100));
    order.push_back(2);
  });
  f.executor.Advance(milliseconds(99));
  EXPECT_TRUE(order.empty());
  f.executor.Advance(milliseconds(1));
  EXPECT_EQ(order, (std::vector<int>{2}));
  EXPECT_EQ(AsText(f.buffer), "2345");
  f.executor.RunAll();
  EXPECT_EQ(order, (std::vector<int>{2, 1}));
  EXPECT_EQ(f.store->reads(), 2U);
  EXPECT_EQ(f.store->bytes_read(), 8U);
}

TEST(MemoryStore, never_completes_inside_the_call_that_starts) {
  Fixture f;
  bool done = false;
  f.store->StartRead(f.Request(0), [&](Result<ReadResult>) { done = true; });
  EXPECT_FALSE(done);
  f.executor.RunReady();
  EXPECT_TRUE(done);
}

TEST(MemoryStore, a_cancelled_read_calls_back_once_and_leaves_the_target_alone) {
  Fixture f([](const auto&) { return milliseconds(50); });
  int calls = 0;
  const auto op = f.store->StartRead(f.Request(0), [&](Result<ReadResult> r) {
    EXPECT_EQ(r.code(), Code::kCancelled);
    ++calls;
  });
  f.executor.Advance(milliseconds(10));
  f.store->Cancel(op);
  EXPECT_EQ(calls, 0);
  f.executor.RunAll();
  f.store->Cancel(op);
  f.executor.RunAll();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(f.buffer[0], std::byte{0});
  EXPECT_EQ(f.store->operations_in_flight(), 0U);
}

TEST(MemoryStore, a_latency_past_the_deadline_ends_at_the_deadline) {
  Fixture f([](const auto&) { return milliseconds(500); });
  ReadRequest request = f.Request(0);
  request.options.deadline = f.executor.Now() + milliseconds(200);
  Code code = Code::kOk;
  f.store->StartRead(std::move(request), [&](Result<ReadResult> r) { code = r.code(); });
  f.executor.Advance(milliseconds(200));
  EXPECT_EQ(code, Code::kDeadlineExceeded);
}

TEST(MemoryStore, tasks_left_in_the_executor_do_not_reach_a_store_that_is_gone) {
  Fixture f;
  bool ran = false;
  f.store->StartHead({.key = "key"}, [&](Result<ObjectInfo>) { ran = true; });
  f.store.reset();
  f.executor.RunAll();
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace forebay::store
