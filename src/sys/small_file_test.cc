#include "sys/small_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "testing/temp_folder.h"

namespace forebay::sys {
namespace {

TEST(ReadSmallFile, reads_files_and_nothing_else) {
  const testing::TempFolder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file, std::ios::binary) << "some text";
  EXPECT_EQ(*ReadSmallFile(file, 9), "some text");
  EXPECT_EQ(ReadSmallFile(file, 8).status().code(), Code::kResourceExhausted);
  EXPECT_EQ(*ReadSmallFile(folder.path() + "/none", 9), std::nullopt);
  EXPECT_EQ(*ReadSmallFile(file + "/none", 9), std::nullopt);
  EXPECT_EQ(ReadSmallFile(folder.path(), 9).status().code(), Code::kInvalidArgument);
  const std::string pipe = folder.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(ReadSmallFile(pipe, 9).status().code(), Code::kInvalidArgument) << "at once";
  EXPECT_EQ(*ReadSmallFile("/dev/null", 9), "");
  EXPECT_EQ(ReadSmallFile("/dev/zero", 9).status().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::sys
