#include "engine/remote_bytes.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "catalog/files_writer.h"
#include "sys/thread.h"
#include "testing/temp_folder.h"

namespace forebay::engine {
namespace {

using catalog::CatalogBytes;

size_t ThreadsOfProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// Over a file store: ranges, versions and threads are as with any other.
class RemoteBytesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    catalog::FilesWriter writer("s3://b/", catalog::KeyOrder::kBytes);
    for (int i = 0; i < 5000; ++i) {
      ASSERT_TRUE(writer.Add({fmt::format("{:05}", i), 7, fmt::format("{:032x}", i), ""}).ok());
    }
    bytes_ = *writer.Finish();
    Write(bytes_);
    uri_ = *store::ParseUri(folder_.path() + "/catalog.fbc");
  }
  void Write(const std::vector<std::byte>& bytes) {
    std::ofstream file(folder_.path() + "/catalog.fbc", std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  std::shared_ptr<const CatalogBytes> Open(uint64_t whole_bytes) {
    const auto stores = *StoreSet::Make({});
    auto opened = RemoteBytes::Open(*stores, uri_, whole_bytes);
    EXPECT_TRUE(opened.ok()) << opened.status().ToString();
    return *std::move(opened);
  }
  static Result<std::vector<std::byte>> Read(const CatalogBytes& bytes, ByteRange range) {
    std::promise<Result<std::vector<std::byte>>> promise;
    bytes.StartRead(
        range, [&](Result<std::vector<std::byte>> read) { promise.set_value(std::move(read)); });
    return promise.get_future().get();
  }

  testing::TempFolder folder_;
  std::vector<std::byte> bytes_;
  store::Uri uri_;
};

TEST_F(RemoteBytesTest, a_small_one_is_read_whole_and_a_large_one_in_ranges) {
  const auto whole = Open(1 << 20);
  ASSERT_TRUE(whole->view().has_value());
  EXPECT_TRUE(std::ranges::equal(*whole->view(), bytes_));
  const auto paged = Open(0);
  EXPECT_FALSE(paged->view().has_value());
  EXPECT_EQ(paged->size(), bytes_.size());
  const uint64_t size = bytes_.size();
  for (const ByteRange range :
       {ByteRange{0, 64}, ByteRange{100, 70'000}, ByteRange{size - 9, size}}) {
    const auto read = Read(*paged, range);
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_TRUE(std::ranges::equal(*read, std::span(bytes_).subspan(range.offset, range.size())));
  }
}

TEST_F(RemoteBytesTest, at_rest_it_has_no_thread_and_the_next_read_works) {
  const size_t before = ThreadsOfProcess();
  const auto paged = Open(0);
  const auto catalog = catalog::FilesCatalog::Open(paged);
  ASSERT_TRUE(catalog.ok());
  EXPECT_GT(ThreadsOfProcess(), before);
  (*catalog)->Rest();
  EXPECT_EQ(ThreadsOfProcess(), before);
  EXPECT_EQ((*catalog)->At(3210)->key, "03210");
  EXPECT_GT(ThreadsOfProcess(), before);
}

TEST_F(RemoteBytesTest, one_that_is_replaced_meanwhile_is_an_error) {
  const auto paged = Open(0);
  const auto catalog = catalog::FilesCatalog::Open(paged);
  ASSERT_TRUE(catalog.ok());
  Write({bytes_.begin(), bytes_.end() - 1});
  EXPECT_EQ((*catalog)->At(4900).code(), Code::kPreconditionFailed);
}

TEST_F(RemoteBytesTest, going_away_ends_what_is_in_flight) {
  for (int i = 0; i < 20; ++i) {
    auto paged = Open(0);
    auto done = std::make_shared<std::promise<void>>();
    auto ended = done->get_future();
    paged->StartRead({70'000, bytes_.size()}, [done](const auto&) { done->set_value(); });
    paged.reset();
    EXPECT_EQ(ended.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  }
}

}  // namespace
}  // namespace forebay::engine
