#include "catalog/files_catalog.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "base/random.h"
#include "catalog/files_writer.h"

namespace forebay::catalog {
namespace {

std::vector<FileEntry> SomeFiles(size_t count, uint64_t seed = 1) {
  Random random(seed);
  std::vector<FileEntry> files;
  for (size_t i = 0; i < count; ++i) {
    FileEntry file;
    file.key = fmt::format("{:06}/{}", i, std::string(random.NextBelow(40), 'x'));
    file.size = random.NextBelow(3) == 0 ? 0 : random.NextBelow(uint64_t{1} << 33);
    file.etag = fmt::format("{:016x}{:016x}", random.Next(), random.Next());
    if (seed % 2 == 0 && i % 7 == 0) file.etag += "-12";
    if (seed % 3 == 0) file.version_id = fmt::format("v{}", random.NextBelow(9));
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<std::byte> Written(const std::vector<FileEntry>& files,
                               KeyOrder order = KeyOrder::kBytes) {
  FilesWriter writer("s3://bucket/prefix/", order);
  for (const FileEntry& file : files) EXPECT_TRUE(writer.Add(file).ok());
  auto bytes = writer.Finish();
  EXPECT_TRUE(bytes.ok());
  return *std::move(bytes);
}

std::shared_ptr<const FilesCatalog> Opened(std::vector<std::byte> bytes) {
  auto catalog = FilesCatalog::Open(BytesInMemory(std::move(bytes)));
  EXPECT_TRUE(catalog.ok()) << catalog.status().ToString();
  return *std::move(catalog);
}

// As a store is: only ranges, and they take a moment.
class Ranges : public CatalogBytes {
 public:
  explicit Ranges(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  ~Ranges() override {
    for (std::thread& thread : threads_) thread.join();
  }
  uint64_t size() const override { return bytes_.size(); }
  void StartRead(ByteRange range, OnRead on_read) const override {
    ++reads;
    read_bytes += range.size();
    threads_.emplace_back([this, range, on_read = std::move(on_read)]() mutable {
      const auto first = bytes_.begin() + static_cast<std::ptrdiff_t>(range.offset);
      if (fail) {
        on_read(Status(Code::kUnavailable, "planted"));
      } else {
        on_read(std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(range.size())));
      }
    });
  }
  mutable uint64_t reads = 0;
  mutable uint64_t read_bytes = 0;
  std::atomic<bool> fail = false;

 private:
  std::vector<std::byte> bytes_;
  mutable std::vector<std::thread> threads_;
};

void ExpectHolds(const FilesCatalog& catalog, const std::vector<FileEntry>& files) {
  ASSERT_EQ(catalog.count(), files.size());
  for (size_t i = 0; i < files.size(); ++i) {
    const auto entry = catalog.At(i);
    ASSERT_TRUE(entry.ok()) << entry.status().ToString();
    EXPECT_EQ(entry->key, files[i].key);
    EXPECT_EQ(entry->size, files[i].size);
    EXPECT_EQ(entry->etag, files[i].etag);
    EXPECT_EQ(entry->version_id, files[i].version_id);
    EXPECT_EQ(*catalog.SizeOf(i), files[i].size);
  }
}

TEST(FilesCatalog, gives_back_what_was_written) {
  for (const size_t count : {1U, 15U, 16U, 17U, 1023U, 1024U, 1025U, 5000U}) {
    for (const uint64_t seed : {1U, 2U, 3U, 6U}) {
      const auto files = SomeFiles(count, seed);
      const auto catalog = Opened(Written(files));
      ExpectHolds(*catalog, files);
      EXPECT_EQ(catalog->source_uri(), "s3://bucket/prefix/");
      EXPECT_EQ(catalog->key_order(), KeyOrder::kBytes);
    }
  }
}

TEST(FilesCatalog, reads_of_a_store_what_it_needs_and_keeps_it) {
  const auto files = SomeFiles(20'000);
  const auto bytes = std::make_shared<Ranges>(Written(files));
  const auto opened = FilesCatalog::Open(bytes);
  ASSERT_TRUE(opened.ok());
  EXPECT_LT(bytes->read_bytes, bytes->size() / 100);
  EXPECT_EQ(bytes->reads, 2U) << "head, index";
  EXPECT_EQ((*opened)->At(7777)->key, files[7777].key);
  EXPECT_EQ((*opened)->At(7778)->key, files[7778].key);
  EXPECT_EQ(bytes->reads, 3U) << "one block";
  const std::vector<uint64_t> soon{100, 101, 9000, 15'000};
  (*opened)->WillRead(soon);
  EXPECT_EQ(bytes->reads, 6U);
  ExpectHolds(**opened, files);
  EXPECT_EQ(bytes->reads, 2 + 20U) << "every block once";
}

TEST(FilesCatalog, a_read_that_failed_is_tried_again) {
  const auto files = SomeFiles(3000);
  const auto bytes = std::make_shared<Ranges>(Written(files));
  const auto opened = FilesCatalog::Open(bytes);
  ASSERT_TRUE(opened.ok());
  bytes->fail = true;
  EXPECT_EQ((*opened)->At(5).code(), Code::kUnavailable);
  bytes->fail = false;
  EXPECT_EQ((*opened)->At(5)->key, files[5].key);
}

TEST(FilesCatalog, appending_leaves_the_numbers_and_tells_the_past) {
  auto files = SomeFiles(3000);
  const auto first = Opened(Written({files.begin(), files.begin() + 1500}));
  FilesWriter writer("s3://bucket/prefix/", KeyOrder::kBytes);
  ASSERT_TRUE(writer.Continue(*first).ok());
  // The new ones lie anywhere among the old.
  std::vector<FileEntry> more;
  for (size_t i = 0; i < 1500; ++i) {
    more.push_back(files[1500 + i]);
    more.back().key = fmt::format("{:06}/new", i);
    ASSERT_TRUE(writer.Add(more.back()).ok());
  }
  EXPECT_EQ(writer.added(), 1500U);
  const auto second = Opened(*writer.Finish());
  std::ranges::copy(more, files.begin() + 1500);
  ExpectHolds(*second, files);
  ASSERT_EQ(second->generations().size(), 2U);
  EXPECT_EQ(second->generations()[0].samples, 1500U);
  EXPECT_EQ(second->generations()[0].content_hash, first->content_hash());
  EXPECT_NE(second->content_hash(), first->content_hash());
}

TEST(FilesCatalog, the_content_hash_is_that_of_the_objects_alone) {
  const auto files = SomeFiles(2000);
  const auto hash = [](const std::vector<FileEntry>& of, const char* uri) {
    FilesWriter writer(uri, KeyOrder::kBytes);
    for (const FileEntry& file : of) EXPECT_TRUE(writer.Add(file).ok());
    return Opened(*writer.Finish())->content_hash();
  };
  EXPECT_EQ(hash(files, "s3://a/"), hash(files, "file:///b/"));
  for (auto change : std::initializer_list<void (*)(FileEntry&)>{
           [](FileEntry& f) { f.key += "x"; }, [](FileEntry& f) { ++f.size; },
           [](FileEntry& f) { f.etag += "-2"; }, [](FileEntry& f) { f.version_id = "v"; }}) {
    auto other = files;
    change(other[1234]);
    EXPECT_NE(hash(files, "s3://a/"), hash(other, "s3://a/"));
  }
}

TEST(FilesCatalog, bounds_the_bytes_of_any_batch) {
  const auto files = SomeFiles(3000);
  std::vector<uint64_t> sizes;
  sizes.reserve(files.size());
  for (const FileEntry& file : files) sizes.push_back(file.size);
  std::ranges::sort(sizes, std::greater<>());
  const auto catalog = Opened(Written(files));
  uint64_t sum = 0;
  for (size_t count = 1; count <= sizes.size(); ++count) {
    sum += sizes[count - 1];
    const uint64_t bound = catalog->LargestBytes(count);
    EXPECT_GE(bound, sum);
    EXPECT_LE(static_cast<double>(bound), static_cast<double>(sum) * 1.2);
    if ((count & (count - 1)) == 0) {
      EXPECT_EQ(bound, sum);
    }
  }
  EXPECT_EQ(catalog->LargestBytes(1 << 20), catalog->total_bytes());
}

TEST(FilesCatalog, keys_out_of_order_are_refused_unless_listed) {
  FilesWriter sorted("s3://b/", KeyOrder::kBytes);
  ASSERT_TRUE(sorted.Add({"b", 1, "", ""}).ok());
  EXPECT_EQ(sorted.Add({"a", 1, "", ""}).code(), Code::kInvalidArgument);
  EXPECT_EQ(sorted.Add({"b", 1, "", ""}).code(), Code::kInvalidArgument);
  const auto listed = Opened(Written({{"b", 1, "", ""}, {"a", 2, "", ""}}, KeyOrder::kListed));
  EXPECT_EQ(listed->key_order(), KeyOrder::kListed);
  EXPECT_EQ(listed->At(0)->key, "b");
  FilesWriter none("s3://b/", KeyOrder::kBytes);
  EXPECT_EQ(none.Finish().code(), Code::kInvalidArgument);
}

TEST(FilesCatalog, every_flipped_byte_and_every_cut_is_found) {
  const auto bytes = Written(SomeFiles(40));
  for (size_t i = 0; i < bytes.size(); ++i) {
    auto bad = bytes;
    bad[i] ^= std::byte{0x40};
    const auto opened = FilesCatalog::Open(BytesInMemory(bad));
    const bool reserved = i >= 12 && i < 16;
    if (opened.ok()) {
      EXPECT_FALSE((*opened)->At(3).ok()) << i << " " << reserved;
    }
    EXPECT_FALSE(FilesCatalog::Open(
                     BytesInMemory({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i)}))
                     .ok());
  }
}

}  // namespace
}  // namespace forebay::catalog
