// Packing by several threads and machines; what is written is compared with the formats' own
// readers in python/tests/test_pack_reference.py.
#include "forebay/pack.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "base/random.h"
#include "forebay/video.h"
#include "testing/temp_folder.h"

namespace forebay {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class PackTest : public ::testing::Test {
 protected:
  PackTest() {
    Random random(3);
    for (int i = 0; i < 300; ++i) {
      std::string data(random.NextBelow(4000), '\0');
      for (char& c : data) c = static_cast<char>(random.Next());
      Write(fmt::format("source/{}/{:03}.bin", i % 3, i), data);
      Write(fmt::format("source/{}/{:03}.cls", i % 3, i), std::to_string(i % 10));
    }
  }

  void Write(const std::string& name, const std::string& data) {
    fs::create_directories(fs::path(folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << data;
  }
  // Every file below; what is Forebay's own only when asked for.
  std::map<std::string, std::string> Content(const std::string& name, bool own = false) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / name)) {
      const std::string path = entry.path().lexically_relative(folder_ / name);
      if (!entry.is_regular_file() || (!own && path.starts_with(".forebay"))) continue;
      std::ifstream in(entry.path(), std::ios::binary);
      files[path] = {std::istreambuf_iterator<char>(in), {}};
    }
    return files;
  }
  Result<PackReport> Run(const std::string& to, PackOptions options) {
    if (options.to.empty()) options.to = "tar";
    options.shard_bytes = 50'000;
    return Pack(folder_ / "source", folder_ / to, {}, options);
  }

  const testing::TempFolder folder_;
};

TEST_F(PackTest, makes_the_same_of_any_number_of_threads_and_machines) {
  const auto alone = Run("alone", {.memory = 100 << 20});  // a shard at a time
  ASSERT_TRUE(alone.ok()) << alone.status().ToString();
  EXPECT_EQ(alone->samples, 300U);
  EXPECT_GT(alone->shards, 10U);
  ASSERT_TRUE(Run("many", {.memory = 2ULL << 30}).ok());
  EXPECT_TRUE(Content("alone") == Content("many"));
  // Both at once: whichever ends last writes the catalog, or both do.
  Result<PackReport> first = Status(Code::kInternal, "not run"), second = first.status();
  {
    const std::jthread one([&] { first = Run("shared", {.share = 0, .shares = 2}); });
    second = Run("shared", {.share = 1, .shares = 2});
  }
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(first->shards_written + second->shards_written, alone->shards);
  EXPECT_TRUE(first->shards_missing == 0 || second->shards_missing == 0);
  EXPECT_TRUE(Content("alone") == Content("shared"));
  EXPECT_TRUE(Content("shared", true).contains(".forebay/pack.json"));
}

TEST_F(PackTest, leaves_the_catalog_that_an_index_makes_of_every_format) {
  for (const std::string& to : PackFormats()) {
    PackOptions options{.to = to};
    if (to == "recordio-image") options.columns = {"image=bin", "label=cls"};
    if (to == "recordio") options.columns = {"bin"};
    const auto report = Run(to, options);
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    const std::string written = Content(to, true).at(".forebay/catalog.fbc");
    const auto index = BuildIndex(folder_ / to, {}, {.format = to});
    ASSERT_TRUE(index.ok()) << index.status().ToString();
    EXPECT_EQ(index->content_hash, report->content_hash);
    EXPECT_TRUE(Content(to, true).at(".forebay/catalog.fbc") == written) << to;
  }
}

TEST_F(PackTest, that_was_stopped_goes_on_to_the_same_end) {
  ASSERT_TRUE(Run("whole", {}).ok());
  const auto whole = Content("whole");
  int looks = 0;
  const auto stopped = Run("stopped", {.on_progress = [&](const PackProgress& at) {
                             EXPECT_LE(at.shards_done, at.shards_total);
                             return ++looks > 1;
                           }});
  // It may be through before it is asked.
  EXPECT_TRUE(stopped.ok() || stopped.code() == Code::kCancelled);
  if (fs::exists(folder_ / "stopped")) {
    for (const auto& [name, data] : Content("stopped")) EXPECT_TRUE(whole.at(name) == data) << name;
  }
  const auto again = Run("stopped", {});
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->shards_there + again->shards_written, again->shards);
  EXPECT_TRUE(Content("stopped") == whole);
}

TEST_F(PackTest, makes_shards_anew_that_somebody_has_changed) {
  ASSERT_TRUE(Run("out", {}).ok());
  const auto before = Content("out");
  Write("out/shard-000003.tar", "something else");
  const auto mended = Run("out", {});
  ASSERT_TRUE(mended.ok()) << mended.status().ToString();
  EXPECT_EQ(mended->shards_written, 1U);
  EXPECT_TRUE(Content("out") == before);
}

TEST_F(PackTest, takes_no_sample_that_does_not_fit_the_memory) {
  Write("source/0/large.bin", std::string(5 << 20, 'x'));
  const auto report = Run("out", {.memory = 100 << 20});
  EXPECT_EQ(report.code(), Code::kResourceExhausted);
  EXPECT_THAT(report.status().ToString(), HasSubstr("'0/large'"));
  EXPECT_FALSE(fs::exists(folder_ / "out"));
}

TEST_F(PackTest, numbers_samples_that_have_no_keys) {
  fs::remove_all(folder_ / "source");
  Write("source/x.json", "{}\n{}\n");
  ASSERT_TRUE(Run("lines", {}).ok());
  EXPECT_THAT(Content("lines").at("shard-000000.tar"), HasSubstr("000000001.json"));
  const auto named = Run("named", {.keys = "source"});
  EXPECT_THAT(named.status().ToString(), HasSubstr("it has no key"));
}

}  // namespace
}  // namespace forebay
