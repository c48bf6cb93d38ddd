// Processes that really are some.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "net/shared_lookup.h"
#include "testing/temp_folder.h"

namespace forebay::net {
namespace {

using Addresses = std::vector<sys::IpAddress>;
using forebay::testing::TempFolder;

sys::IpAddress Ip(const std::string& text) { return *sys::ParseIpAddress(text); }

// Each child does nothing but look up.
TEST(LookUpShared, of_256_processes_that_start_together_one_looks_up) {
  const TempFolder folder;
  const std::string log = folder / "lookups";
  const auto look_up = [&log](const std::string&) -> Result<Addresses> {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::ofstream(log, std::ios::app) << "x";
    return Addresses{Ip("10.0.0.1"), Ip("fd00::1")};
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 256; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto answer = LookUpShared("host", folder.path(), look_up);
      const bool right = answer.ok() && *answer == Addresses{Ip("10.0.0.1"), Ip("fd00::1")};
      ::_exit(right ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(std::filesystem::file_size(log), 1U);
}

}  // namespace
}  // namespace forebay::net
