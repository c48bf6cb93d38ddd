#include "testing/faults/directory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "testing/faults/raw_client.h"
#include "testing/faults/server.h"
#include "testing/faults/temp_folder.h"

namespace forebay::faults {
namespace {

RangeAnswer Part(uint64_t offset, uint64_t end) { return {RangeAnswer::Kind::kPart, offset, end}; }
void ExpectRange(std::string_view header, uint64_t size, const RangeAnswer& expected) {
  const RangeAnswer got = ReadRange(header, size);
  EXPECT_EQ(got.kind, expected.kind) << header;
  EXPECT_EQ(got.offset, expected.offset) << header;
  EXPECT_EQ(got.end, expected.end) << header;
}

TEST(ReadRange, follows_s3) {
  const RangeAnswer whole{};
  const RangeAnswer none{RangeAnswer::Kind::kUnsatisfiable};
  ExpectRange("bytes=0-0", 10, Part(0, 1));
  ExpectRange("bytes=2-", 10, Part(2, 10));
  ExpectRange("bytes=2-99", 10, Part(2, 10));
  ExpectRange("bytes=-3", 10, Part(7, 10));
  ExpectRange("bytes=-30", 10, Part(0, 10));
  ExpectRange("bytes=9-9", 10, Part(9, 10));
  ExpectRange("bytes=10-", 10, none);
  ExpectRange("bytes=0-", 0, none);
  ExpectRange("bytes=-0", 10, none);
  for (const char* broken : {"bytes=", "bytes=5-4", "bytes=a-b", "bytes=0-1,3-4", "items=0-1",
                             "bytes=-", "bytes=99999999999999999999-"}) {
    ExpectRange(broken, 10, whole);
  }
  ExpectRange("bytes=0-18446744073709551615", 10, Part(0, 10));
}

class Listing : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name :
         {"b/a/1", "b/a/b/3", "b/a-x", "b/a.txt", "b/ab", "b/z/y/x", "b/\xc3\xa9"}) {
      folder_.Write(name, "12345");
    }
    ::mkdir((folder_.path() + "/b/empty").c_str(), 0755);
    directory_ = *Directory::Open(folder_.path());
  }
  // Keys, and prefixes with a star, over all pages of `limit`.
  std::vector<std::string> All(Directory::ListQuery query) {
    std::vector<std::string> keys;
    for (int page = 0; page < 100; ++page) {
      const auto result = directory_->List("b", query);
      EXPECT_TRUE(result.ok());
      if (!result.ok()) break;
      for (const auto& entry : result->entries) {
        keys.push_back(entry.key + (entry.is_prefix ? "*" : ""));
        query.after = entry.key;
      }
      if (!result->truncated) return keys;
      EXPECT_EQ(result->entries.size(), query.limit);
    }
    ADD_FAILURE() << "no end";
    return keys;
  }

  TempFolder folder_;
  std::unique_ptr<Directory> directory_;
};

using Keys = std::vector<std::string>;

TEST_F(Listing, is_in_the_order_of_bytes_in_pages_of_any_size) {
  const Keys expected = {"a-x", "a.txt", "a/1", "a/b/3", "ab", "z/y/x", "\xc3\xa9"};
  for (const size_t limit : {1, 2, 3, 7, 8}) EXPECT_EQ(All({.limit = limit}), expected) << limit;
}

TEST_F(Listing, rolls_up_at_the_delimiter) {
  const Keys expected = {"a-x", "a.txt", "a/*", "ab", "z/*", "\xc3\xa9"};
  for (const size_t limit : {1, 2, 6, 7}) {
    EXPECT_EQ(All({.delimiter = "/", .limit = limit}), expected) << limit;
  }
  EXPECT_EQ(All({.prefix = "a/", .delimiter = "/"}), (Keys{"a/1", "a/b/*"}));
  EXPECT_EQ(All({.prefix = "a", .delimiter = "-"}), (Keys{"a-*", "a.txt", "a/1", "a/b/3", "ab"}));
}

TEST_F(Listing, starts_after_any_key_and_keeps_to_the_prefix) {
  EXPECT_EQ(All({.after = "a/1"}), (Keys{"a/b/3", "ab", "z/y/x", "\xc3\xa9"}));
  EXPECT_EQ(All({.after = "a/0"}), (Keys{"a/1", "a/b/3", "ab", "z/y/x", "\xc3\xa9"}));
  EXPECT_EQ(All({.prefix = "z/y"}), (Keys{"z/y/x"}));
  EXPECT_EQ(All({.prefix = "no"}), Keys{});
  EXPECT_EQ(directory_->List("other", {}).code(), Code::kNotFound);
}

TEST_F(Listing, links_out_of_the_root_are_not_followed) {
  std::filesystem::create_symlink("/etc/passwd", folder_.path() + "/b/link");
  std::filesystem::create_directory_symlink("/etc", folder_.path() + "/b/etc");
  const auto status = [&](const std::string& target) {
    RequestHead request;
    request.method = "GET";
    request.target = target;
    return directory_->Serve(request, 1, false).head.status;
  };
  EXPECT_EQ(status("/b/link"), 403);
  EXPECT_EQ(status("/b/etc/passwd"), 403);
  for (const char* target : {"/b/../b/ab", "/b/%2e%2e/%2e%2e/etc/passwd", "/b//ab", "/b/a/", "/b/a",
                             "/b/no", "/no/ab", "/b/a%00b"}) {
    EXPECT_EQ(status(target), 404) << target;
  }
  EXPECT_EQ(status("/../b/ab"), 400);
  EXPECT_EQ(status("/b/ab"), 200);
}

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("b/k", "0123456789");
    folder_.Write("b/empty", "");
    folder_.Write("b/sp ace&<\xc3\xa9>", "x");
    ServerOptions options;
    options.root = folder_.path();
    auto server = Server::Start(options);
    ASSERT_TRUE(server.ok());
    server_ = *std::move(server);
    client_ = std::make_unique<RawClient>(server_->address());
  }
  TempFolder folder_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RawClient> client_;
};

TEST_F(Folder, answers_ranges_and_conditions_as_s3_does) {
  const RawReply whole = client_->Get("/b/k");
  const std::string etag = whole.Value("ETag");
  EXPECT_EQ(client_->Get("/b/k", "Range: bytes=-2\r\n").body, "89");
  const RawReply beyond = client_->Get("/b/k", "Range: bytes=10-\r\n");
  EXPECT_EQ(beyond.head.status, 416);
  EXPECT_EQ(beyond.Value("Content-Range"), "bytes */10");
  EXPECT_NE(beyond.body.find("<Code>InvalidRange</Code>"), std::string::npos);
  EXPECT_EQ(client_->Get("/b/empty", "Range: bytes=0-\r\n").head.status, 416);
  EXPECT_EQ(client_->Get("/b/empty").head.status, 200);
  EXPECT_EQ(client_->Get("/b/k", "If-Match: " + etag + "\r\n").head.status, 200);
  EXPECT_EQ(client_->Get("/b/k", "If-Match: \"other\"\r\n").head.status, 412);
  EXPECT_EQ(client_->Get("/b/k", "If-None-Match: " + etag + "\r\n").head.status, 304);
  EXPECT_EQ(client_->Get("/b/none").head.status, 404);
  client_->Write("HEAD /b/k HTTP/1.1\r\nHost: h\r\n\r\n");
  const RawReply head = client_->Read("HEAD");
  EXPECT_EQ(head.Value("Content-Length"), "10");
  EXPECT_EQ(head.Value("ETag"), etag);
  client_->Write("DELETE /b/k HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client_->Read("DELETE").head.status, 405);
}

TEST_F(Folder, a_changed_file_has_another_etag) {
  const std::string before = client_->Get("/b/k").Value("ETag");
  folder_.Write("b/k", "012345678X!");
  EXPECT_NE(client_->Get("/b/k").Value("ETag"), before);
}

TEST_F(Folder, lists_as_xml_page_by_page) {
  const RawReply first = client_->Get("/b?list-type=2&max-keys=2&encoding-type=url");
  EXPECT_EQ(first.head.status, 200);
  EXPECT_NE(first.body.find("<Key>empty</Key>"), std::string::npos);
  EXPECT_NE(first.body.find("<IsTruncated>true</IsTruncated>"), std::string::npos);
  const std::string open = "<NextContinuationToken>";
  const size_t at = first.body.find(open) + open.size();
  const std::string token = first.body.substr(at, first.body.find('<', at) - at);
  const RawReply second =
      client_->Get("/b?list-type=2&max-keys=2&encoding-type=url&continuation-token=" + token);
  EXPECT_NE(second.body.find("<Key>sp%20ace%26%3C%C3%A9%3E</Key>"), std::string::npos)
      << second.body;
  EXPECT_NE(second.body.find("<IsTruncated>false</IsTruncated>"), std::string::npos);
  const RawReply plain = client_->Get("/b/?list-type=2&prefix=sp%20");
  EXPECT_NE(plain.body.find("<Key>sp ace&amp;&lt;\xc3\xa9&gt;</Key>"), std::string::npos);
  EXPECT_EQ(client_->Get("/b?list-type=2&max-keys=x").head.status, 400);
  EXPECT_EQ(client_->Get("/b?list-type=2&continuation-token=zz").head.status, 400);
  EXPECT_EQ(client_->Get("/none?list-type=2").head.status, 404);
}

}  // namespace
}  // namespace forebay::faults
