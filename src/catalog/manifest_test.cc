#include "catalog/manifest.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "catalog/files_share.h"
#include "catalog/files_writer.h"

namespace forebay::catalog {
namespace {

using Uris = std::vector<std::string>;

std::string ErrorOf(DataType type, std::string_view text) {
  const auto uris = ReadManifest(type, text);
  return uris.ok() ? "" : uris.status().message();
}

TEST(Manifest, its_prefix_goes_before_each_key_as_it_is) {
  const auto uris = ReadManifest(DataType::kManifest,
                                 "[{\"prefix\": \"s3://b/some/pre\"}, \"fix/1\", \"2 %20\"]\n");
  ASSERT_TRUE(uris.ok()) << uris.status().ToString();
  EXPECT_EQ(*uris, (Uris{"s3://b/some/prefix/1", "s3://b/some/pre2 %20"}));
}

TEST(Manifest, one_that_is_none_says_what_is_wrong) {
  const DataType list = DataType::kManifest;
  EXPECT_NE(ErrorOf(list, "{").find("no JSON"), std::string::npos);
  EXPECT_NE(ErrorOf(list, "[\"a\"]").find("prefix"), std::string::npos);
  EXPECT_NE(ErrorOf(list, "[{\"prefix\": 3}, \"a\"]").find("prefix"), std::string::npos);
  EXPECT_NE(ErrorOf(list, "[{\"prefix\": \"s3://b/\"}, \"a\", 7]").find("entry 2"),
            std::string::npos);
  EXPECT_NE(ErrorOf(list, "[{\"prefix\": \"s3://b/\"}]").find("no object"), std::string::npos);
}

TEST(Manifest, an_augmented_one_names_an_object_a_line) {
  const auto uris = ReadManifest(DataType::kAugmentedManifest,
                                 "{\"source-ref\": \"s3://b/1\", \"class\": 0}\r\n\n"
                                 "{\"class\": 1, \"source-ref\": \"s3://b/1\"}");
  ASSERT_TRUE(uris.ok()) << uris.status().ToString();
  EXPECT_EQ(*uris, (Uris{"s3://b/1", "s3://b/1"}));
  const DataType lines = DataType::kAugmentedManifest;
  EXPECT_NE(ErrorOf(lines, "{\"source-ref\": \"s3://b/1\"}\n[]").find("line 2"), std::string::npos);
  EXPECT_NE(ErrorOf(lines, "{\"source\": \"text\"}").find("text in \"source\""), std::string::npos);
}

TEST(Manifest, data_types_have_sagemakers_names) {
  EXPECT_EQ(*ParseDataType("S3Prefix"), DataType::kPrefix);
  EXPECT_EQ(*ParseDataType(""), DataType::kFolder);
  EXPECT_FALSE(ParseDataType("s3prefix").ok());
}

std::shared_ptr<const FilesCatalog> CatalogOf(uint64_t count, uint64_t appended) {
  FilesWriter writer("file:///data/", KeyOrder::kBytes);
  for (uint64_t i = 0; i < count; ++i) {
    EXPECT_TRUE(writer.Add({fmt::format("{:05}", i), i, "etag", ""}).ok());
  }
  auto catalog = FilesCatalog::Open(BytesInMemory(*writer.Finish()));
  if (appended == 0) return *catalog;
  FilesWriter more("file:///data/", KeyOrder::kBytes);
  EXPECT_TRUE(more.Continue(**catalog).ok());
  for (uint64_t i = 0; i < appended; ++i) {
    EXPECT_TRUE(more.Add({fmt::format("{:05}", count + i), i, "etag", ""}).ok());
  }
  return *FilesCatalog::Open(BytesInMemory(*more.Finish()));
}

TEST(FilesShare, hosts_take_the_objects_in_turn_and_each_exactly_once) {
  const auto all = CatalogOf(1030, 5);
  for (const uint64_t hosts : {1, 2, 3, 7}) {
    std::vector<int> taken(all->count());
    for (uint64_t host = 0; host < hosts; ++host) {
      const auto share = ShareOf(all, host, hosts);
      ASSERT_TRUE(share.ok());
      uint64_t bytes = 0;
      for (uint64_t i = 0; i < (*share)->count(); ++i) {
        const auto entry = (*share)->At(i);
        ASSERT_TRUE(entry.ok());
        EXPECT_EQ(entry->key, fmt::format("{:05}", host + i * hosts));
        EXPECT_EQ(*(*share)->SizeOf(i), entry->size);
        ++taken[host + i * hosts];
        bytes += entry->size;
      }
      EXPECT_LE(bytes, (*share)->LargestBytes((*share)->count()));
      ASSERT_EQ((*share)->generations().size(), 2U);
      EXPECT_EQ((*share)->generations()[0].samples, (1030 - host + hosts - 1) / hosts);
      EXPECT_NE((*share)->content_hash(), all->content_hash());
    }
    for (const int times : taken) EXPECT_EQ(times, 1);
  }
}

TEST(FilesShare, is_another_data_set_on_each_host_and_among_other_many) {
  const auto all = CatalogOf(10, 0);
  EXPECT_NE((*ShareOf(all, 0, 2))->content_hash(), (*ShareOf(all, 1, 2))->content_hash());
  EXPECT_NE((*ShareOf(all, 0, 2))->content_hash(), (*ShareOf(all, 0, 3))->content_hash());
}

TEST(FilesShare, a_host_without_any_object_is_an_error) {
  const auto all = CatalogOf(2, 0);
  EXPECT_TRUE(ShareOf(all, 1, 3).ok());
  EXPECT_EQ(ShareOf(all, 2, 3).code(), Code::kInvalidArgument);
  EXPECT_EQ(ShareOf(all, 3, 3).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::catalog
