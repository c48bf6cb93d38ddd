#include "sys/usage.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace forebay::sys {
namespace {

TEST(Usage, of_the_node_is_told_also_when_no_file_can_be_opened_any_more) {
  const double before = NodeBusySeconds();
  ASSERT_GT(before, 0);
  rlimit old{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = old.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const double after = NodeBusySeconds();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &old), 0);
  EXPECT_GE(after, before);
}

}  // namespace
}  // namespace forebay::sys
