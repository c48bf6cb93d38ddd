#include "store/file/file_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "store/sync_store.h"
#include "sys/event_loop.h"
#include "testing/temp_folder.h"

namespace forebay::store {
namespace {

namespace fs = std::filesystem;

class FileStoreTest : public ::testing::Test {
 protected:
  std::shared_ptr<SyncStore> Open(bool beneath) {
    auto store =
        *MakeFileStore(loop_.get(), pool_.get(), {.root = folder_ / "store", .beneath = beneath});
    return std::make_shared<SyncStore>(std::shared_ptr<ObjectStore>(std::move(store)));
  }
  void Write(const std::string& name, const std::string& text) {
    const std::string path = folder_ / name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  static std::vector<std::string> Keys(const SyncStore& store, const std::string& prefix = "") {
    std::vector<std::string> keys;
    EXPECT_TRUE(store
                    .ListAll(prefix,
                             [&](const ObjectInfo& object) {
                               keys.push_back(object.key);
                               return true;
                             })
                    .ok());
    return keys;
  }
  static Result<std::string> Read(const SyncStore& store, const std::string& key, uint64_t size,
                                  const std::string& etag = "") {
    std::string text(size, '\0');
    FB_RETURN_IF_ERROR(store
                           .Read({.key = key,
                                  .etag = etag,
                                  .range = {0, size},
                                  .target = {std::as_writable_bytes(std::span(text))}})
                           .status());
    return text;
  }

  testing::TempFolder folder_;
  bool made_ = fs::create_directory(folder_ / "store");
  std::unique_ptr<sys::EventLoop> loop_ = *sys::EventLoop::Make("test");
  std::unique_ptr<sys::WorkPool> pool_ = *sys::WorkPool::Make({.name = "disk", .threads = 2});
};

TEST_F(FileStoreTest, what_is_no_object_is_named_once_whatever_the_pages) {
  for (const char* name : {"store/a", "store/c", "store/e/f"}) Write(name, "x");
  fs::create_symlink("nothing", folder_ / "store/b");
  fs::create_symlink("nothing", folder_ / "store/d");
  fs::create_directory_symlink("..", folder_ / "store/e/loop");
  const auto store = Open(false);
  for (const int page_keys : {1, 2, 3, 1000}) {
    ListRequest request{.max_keys = page_keys};
    std::vector<std::string> keys, skipped;
    do {
      const Result<ListPage> page = store->List(request);
      ASSERT_TRUE(page.ok()) << page.status().ToString();
      for (const ObjectInfo& object : page->objects) keys.push_back(object.key);
      for (const ListSkip& skip : page->skipped) skipped.push_back(skip.key);
      request.continuation_token = page->next_token;
    } while (!request.continuation_token.empty());
    EXPECT_EQ(keys, (std::vector<std::string>{"a", "c", "e/f"})) << page_keys;
    EXPECT_EQ(skipped, (std::vector<std::string>{"b", "d", "e/loop"})) << page_keys;
  }
}

TEST_F(FileStoreTest, no_link_leads_out_of_a_closed_root) {
  Write("outside/secret", "secret");
  Write("store/inside/x", "inside");
  fs::create_symlink(folder_ / "outside", folder_ / "store/door");
  fs::create_symlink(folder_ / "outside/secret", folder_ / "store/window");
  fs::create_symlink("inside/x", folder_ / "store/good");
  const auto store = Open(true);
  EXPECT_EQ(Read(*store, "door/secret", 6).code(), Code::kPermissionDenied);
  EXPECT_EQ(Read(*store, "window", 6).code(), Code::kPermissionDenied);
  EXPECT_EQ(*Read(*store, "good", 6), "inside");
  EXPECT_EQ(Keys(*store), (std::vector<std::string>{"good", "inside/x"}));
  const std::string body = "evil";
  EXPECT_EQ(store->Put({.key = "door/new", .body = {AsBytes(body)}}).code(),
            Code::kPermissionDenied);
  EXPECT_FALSE(fs::exists(folder_ / "outside/new"));
  // Putting onto a link replaces the link, never what it leads to.
  EXPECT_TRUE(store->Put({.key = "window", .body = {AsBytes(body)}}).ok());
  EXPECT_EQ(fs::file_size(folder_ / "outside/secret"), 6U);
}

TEST_F(FileStoreTest, an_open_root_follows_links_but_not_in_circles) {
  Write("outside/x", "x");
  fs::create_symlink(folder_ / "outside", folder_ / "store/door");
  fs::create_symlink(folder_ / "store", folder_ / "store/circle");
  fs::create_symlink(folder_ / "nowhere", folder_ / "store/dangling");
  EXPECT_EQ(Keys(*Open(false)), (std::vector<std::string>{"door/x"}));
}

TEST_F(FileStoreTest, a_file_changed_in_place_has_another_etag) {
  Write("store/x", "0123456789");
  const auto store = Open(false);
  const std::string etag = store->Head("x")->etag;
  EXPECT_TRUE(Read(*store, "x", 10, etag).ok());
  fs::last_write_time(folder_ / "store/x",
                      fs::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_EQ(Read(*store, "x", 10, etag).code(), Code::kPreconditionFailed);
}

TEST_F(FileStoreTest, what_is_no_file_or_not_whole_is_no_object) {
  Write("store/a.forebay-part", "half");
  Write("store/.0.forebay-tmp", "half");
  fs::create_directory(folder_ / "store/empty");
  testing::MakePipe(folder_ / "store/pipe");
  Write("store/x", "x");
  const auto store = Open(false);
  EXPECT_EQ(Keys(*store), (std::vector<std::string>{"x"}));
  EXPECT_EQ(store->Head("pipe").code(), Code::kNotFound);
  EXPECT_EQ(store->Head("empty").code(), Code::kNotFound);
  EXPECT_EQ(Read(*store, "a.forebay-part", 4).code(), Code::kNotFound);
  Result<ListPage> page = store->List({.prefix = "", .delimiter = "/"});
  ASSERT_TRUE(page.ok());
  EXPECT_TRUE(page->common_prefixes.empty());
}

TEST_F(FileStoreTest, a_put_leaves_no_temporary_file_and_fails_where_a_folder_is) {
  Write("store/folder/x", "x");
  const auto store = Open(false);
  const std::string body = "body";
  EXPECT_TRUE(store->Put({.key = "a/b/c", .body = {AsBytes(body)}}).ok());
  EXPECT_EQ(store->Put({.key = "folder", .body = {AsBytes(body)}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(store->Put({.key = "folder/x/y", .body = {AsBytes(body)}}).code(),
            Code::kInvalidArgument);
  size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_.path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 2U);
}

TEST_F(FileStoreTest, an_error_names_the_file) {
  const auto store = Open(false);
  EXPECT_EQ(store->Head("a").status().detail().uri, "file://" + folder_.path() + "/store/a");
  EXPECT_EQ(MakeFileStore(loop_.get(), pool_.get(), {.root = folder_ / "none"}).code(),
            Code::kNotFound);
}

}  // namespace
}  // namespace forebay::store
