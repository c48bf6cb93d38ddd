#include "sys/shared_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_folder.h"

namespace forebay::sys {
namespace {

namespace fs = std::filesystem;
using forebay::testing::TempFolder;

TEST(SharedFile, what_one_writes_under_the_lock_all_read) {
  const TempFolder folder;
  const SharedFile one = *SharedFile::Open(folder.path(), "note");
  const SharedFile other = *SharedFile::Open(folder.path(), "note");
  EXPECT_EQ(other.Read().code(), Code::kNotFound);
  {
    const auto lock = *one.TryLock();
    ASSERT_TRUE(lock.has_value());
    EXPECT_FALSE((*other.TryLock()).has_value());
    ASSERT_TRUE(one.Write(*lock, "long first text").ok());
    ASSERT_TRUE(one.Write(*lock, "text").ok());
  }
  EXPECT_EQ(*other.Read(), "text");
  EXPECT_TRUE((*other.TryLock()).has_value());
}

TEST(SharedFile, is_closed_to_other_users) {
  const TempFolder folder;
  const SharedFile file = *SharedFile::Open(folder.path(), "note");
  ASSERT_TRUE(file.Write(**file.TryLock(), "text").ok());
  struct stat info{};
  ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((folder / "forebay").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0700U);
}

TEST(SharedFile, a_folder_that_is_open_a_link_or_a_file_is_not_used) {
  const TempFolder folder;
  const std::string path = folder / "forebay";
  fs::create_directory(path);
  ASSERT_EQ(::chmod(path.c_str(), 0750), 0);
  EXPECT_EQ(SharedFile::Open(folder.path(), "note").code(), Code::kPermissionDenied);
  fs::remove(path);
  fs::create_directory(folder / "elsewhere");
  ASSERT_EQ(::chmod((folder / "elsewhere").c_str(), 0700), 0);
  fs::create_directory_symlink(folder / "elsewhere", path);
  EXPECT_EQ(SharedFile::Open(folder.path(), "note").code(), Code::kPermissionDenied);
  fs::remove(path);
  std::ofstream(path) << "x";
  EXPECT_EQ(SharedFile::Open(folder.path(), "note").code(), Code::kPermissionDenied);
}

TEST(SharedFile, without_a_runtime_folder_the_users_own_one_is_used) {
  const TempFolder folder;
  const SharedFile file = *SharedFile::Open(folder / "missing", "forebay-test-note");
  EXPECT_TRUE(file.path().starts_with("/dev/shm/forebay-") ||
              file.path().starts_with("/tmp/forebay-"))
      << file.path();
}

TEST(ReplacePrivateFile, leaves_one_whole_file_closed_to_others) {
  const TempFolder folder;
  std::ofstream(folder / "f") << "a long old text";
  ASSERT_EQ(::chmod((folder / "f").c_str(), 0644), 0);
  ASSERT_TRUE(ReplacePrivateFile(folder / "f", "new").ok());
  struct stat info{};
  ASSERT_EQ(::stat((folder / "f").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_EQ(info.st_size, 3);
  EXPECT_FALSE(ReplacePrivateFile(folder / "no/f", "new").ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 1);
}

TEST(SharedFile, a_file_that_is_open_a_link_or_huge_is_not_read) {
  const TempFolder folder;
  const SharedFile file = *SharedFile::Open(folder.path(), "note");
  ASSERT_TRUE(file.Write(**file.TryLock(), "text").ok());
  ASSERT_EQ(::chmod(file.path().c_str(), 0640), 0);
  EXPECT_EQ(file.Read().code(), Code::kPermissionDenied);
  ASSERT_EQ(::chmod((file.path() + ".lock").c_str(), 0644), 0);
  EXPECT_EQ(file.TryLock().code(), Code::kPermissionDenied);
  fs::rename(file.path(), folder / "target");
  ASSERT_EQ(::chmod((folder / "target").c_str(), 0600), 0);
  fs::create_symlink(folder / "target", file.path());
  EXPECT_EQ(file.Read().code(), Code::kPermissionDenied);
  fs::remove(file.path());
  fs::create_hard_link(folder / "target", file.path());
  EXPECT_EQ(file.Read().code(), Code::kPermissionDenied);
  fs::remove(folder / "target");
  fs::resize_file(file.path(), 1 << 20);
  EXPECT_EQ(file.Read().code(), Code::kDataLoss);
}

TEST(SharedFile, a_file_of_another_user_is_refused) {
  const TempFolder folder;
  if (::geteuid() != 0) return;  // only root can make one
  fs::create_directory(folder / "forebay");
  ASSERT_EQ(::chmod((folder / "forebay").c_str(), 0700), 0);
  ASSERT_EQ(::chown((folder / "forebay").c_str(), 12345, 12345), 0);
  EXPECT_EQ(SharedFile::Open(folder.path(), "note").code(), Code::kPermissionDenied);
}

TEST(SharedFile, the_lock_of_a_process_that_dies_is_free_again) {
  const TempFolder folder;
  const SharedFile file = *SharedFile::Open(folder.path(), "note");
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = *file.TryLock();
    ::_exit(lock.has_value() ? 7 : 1);  // without letting go
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE((*file.TryLock()).has_value());
}

TEST(SharedFile, a_child_forked_under_the_lock_does_not_keep_it) {
  const TempFolder folder;
  const SharedFile file = *SharedFile::Open(folder.path(), "note");
  auto lock = *file.TryLock();
  int fds[2];
  ASSERT_EQ(::pipe(fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    ::close(fds[1]);
    (void)!::read(fds[0], &byte, 1);  // lives until the parent has looked
    ::_exit(0);
  }
  lock.reset();
  EXPECT_TRUE((*file.TryLock()).has_value());
  ::close(fds[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(fds[0]);
}

}  // namespace
}  // namespace forebay::sys
