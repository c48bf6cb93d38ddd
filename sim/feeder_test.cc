#include "feed/feeder.h"

#include <gtest/gtest.h>

#include "sim/sim_job.h"
#include "store/memory/memory_store.h"

namespace forebay::sim {
namespace {

TEST(Feeder, placeholder) {}

}  // namespace
}  // namespace forebay::sim
