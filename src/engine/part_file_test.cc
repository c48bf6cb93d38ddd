#include "engine/part_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "testing/temp_folder.h"

namespace forebay::engine {
namespace {

namespace fs = std::filesystem;

TEST(PartFile, whose_place_becomes_a_folder_meanwhile_leaves_nothing) {
  const testing::TempFolder folder;
  auto root = sys::OpenDirectory(folder.path());
  ASSERT_TRUE(root.ok()) << root.status().ToString();
  auto part = PartFile::Open(std::move(*root), "a", {"s3://bucket/a", "etag", 5}, 8 << 20);
  ASSERT_TRUE(part.ok()) << part.status().ToString();
  ASSERT_TRUE((*part)->Write(0, AsBytes("bytes")).ok());
  ASSERT_TRUE(fs::exists(folder.path() + "/a.forebay-part"));
  fs::create_directories(folder.path() + "/a/b");
  const Status status = (*part)->Commit();
  EXPECT_EQ(status.code(), Code::kInvalidArgument) << status.ToString();
  EXPECT_FALSE(fs::exists(folder.path() + "/a.forebay-part"));
  EXPECT_TRUE(fs::exists(folder.path() + "/a/b"));
}

}  // namespace
}  // namespace forebay::engine
