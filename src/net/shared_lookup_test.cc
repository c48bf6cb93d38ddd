#include "net/shared_lookup.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "testing/temp_folder.h"

namespace forebay::net {
namespace {

using Addresses = std::vector<sys::IpAddress>;
using forebay::testing::TempFolder;

sys::IpAddress Ip(const std::string& text) { return *sys::ParseIpAddress(text); }

struct Counting {
  Result<Addresses> operator()(const std::string&) {
    ++*count;
    return answer;
  }
  std::shared_ptr<int> count = std::make_shared<int>(0);
  Result<Addresses> answer = Addresses{Ip("10.0.0.1")};
};

TEST(LookUpShared, names_are_kept_apart_and_a_failure_is_everybodys_for_a_second) {
  const TempFolder folder;
  Counting ask;
  EXPECT_TRUE(LookUpShared("a", folder.path(), ask).ok());
  EXPECT_TRUE(LookUpShared("a", folder.path(), ask).ok());
  EXPECT_EQ(*ask.count, 1);
  EXPECT_TRUE(LookUpShared("b", folder.path(), ask).ok());
  EXPECT_EQ(*ask.count, 2);
  ask.answer = Status(Code::kUnavailable, "DNS is down");
  EXPECT_EQ(LookUpShared("c", folder.path(), ask).code(), Code::kUnavailable);
  const auto again = LookUpShared("c", folder.path(), ask);
  EXPECT_EQ(again.code(), Code::kUnavailable);
  EXPECT_EQ(again.status().message(), "DNS is down");
  EXPECT_EQ(*ask.count, 3);
}

TEST(LookUpShared, what_is_old_damaged_or_open_to_others_is_looked_up_again) {
  const TempFolder folder;
  Counting ask;
  EXPECT_TRUE(LookUpShared("a", folder.path(), ask).ok());
  std::string path;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "forebay")) {
    if (entry.path().extension().empty()) path = entry.path();
  }
  for (const char* text : {"", "1 5\n10.0.0.9\n", "1 99999999999999\n10.0.0.9\n", "2 x\n",
                           "1 5\nfailed: long ago\n", "nonsense"}) {
    std::ofstream(path) << text;
    const int before = *ask.count;
    EXPECT_EQ(*LookUpShared("a", folder.path(), ask), Addresses{Ip("10.0.0.1")}) << text;
    EXPECT_EQ(*ask.count, before + 1) << text;
  }
  std::filesystem::permissions(path, std::filesystem::perms::others_read,
                               std::filesystem::perm_options::add);
  const int before = *ask.count;
  EXPECT_TRUE(LookUpShared("a", folder.path(), ask).ok());
  EXPECT_EQ(*ask.count, before + 1);
}

}  // namespace
}  // namespace forebay::net
