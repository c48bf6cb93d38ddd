#include "testing/s3_conformance.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <utility>

#include "net/routed_transport.h"
#include "store/s3/s3_store.h"
#include "sys/event_loop.h"

namespace forebay::testing {
namespace {

constexpr char kBucket[] = "conformance";

const TestServer& ServerOf(const S3Subject& subject) {
  static std::map<std::string, std::unique_ptr<TestServer>> servers;
  std::unique_ptr<TestServer>& server = servers[subject.name];
  if (!server) {
    auto started = subject.start(kBucket);
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
      std::abort();
    }
    server = *std::move(started);
  }
  return *server;
}

// A store with what it needs.
struct Stack {
  ~Stack() { loop->Stop(); }  // nothing runs when the others go
  std::unique_ptr<sys::EventLoop> loop;
  std::unique_ptr<net::HttpTransport> transport;
  std::shared_ptr<store::ObjectStore> store;
};

std::shared_ptr<store::ObjectStore> Open(const store::s3::S3StoreOptions& options) {
  auto stack = std::make_shared<Stack>();
  stack->loop = *sys::EventLoop::Make("test-s3");
  stack->transport = *net::MakeTransport(*stack->loop, {});
  stack->store = *store::s3::MakeS3Stack({.request_payer = options.request_payer}, options.config,
                                         options.bucket, *stack->transport);
  return {stack, stack->store.get()};
}

store::SyncStore OpenSync(const store::s3::S3StoreOptions& options) {
  return store::SyncStore(Open(options));
}

Result<std::string> ReadText(const store::SyncStore& store, const std::string& key, uint64_t size,
                             const std::string& etag = "", const std::string& version = "") {
  std::string text(size, '#');
  auto read = store.Read({.key = key,
                          .etag = etag,
                          .version_id = version,
                          .range = {0, size},
                          .target = {std::as_writable_bytes(std::span(text))}});
  if (!read.ok()) return read.status();
  return text;
}

#define ASSERT_OK(result) ASSERT_TRUE((result).ok()) << (result).status().ToString()

}  // namespace

StoreSubject StoreOn(const S3Subject& subject) {
  StoreSubject store = subject.store;
  store.name = subject.name;
  store.make = [subject] { return Open(ServerOf(subject).Options(kBucket)); };
  return store;
}

TEST_P(S3Conformance, keys_that_begin_oddly_make_the_round_trip_or_are_refused) {
  const store::SyncStore store = OpenSync(ServerOf(GetParam()).Options(kBucket));
  std::string long_key = "long/";
  while (long_key.size() < 1024) long_key += long_key.size() % 200 == 0 ? '/' : 'k';
  for (const std::string& key :
       {std::string("/x"), std::string("//x"), std::string("./x"), std::string("../x"),
        std::string("a/../b"), std::string("."), std::string("~"), std::string("a,b:c@d$e"),
        std::string("%"), std::string("ends in space "), std::string(" "), long_key}) {
    if (GetParam().store.mangles_key(key)) continue;
    const Result<store::PutResult> put = store.Put({.key = key, .body = {AsBytes("body")}});
    if (!GetParam().store.holds_key(key)) {
      EXPECT_FALSE(put.ok()) << key;
      continue;
    }
    ASSERT_TRUE(put.ok()) << key << ": " << put.status().ToString();
    EXPECT_EQ(store.Head(key).code(), Code::kOk) << key;
    const auto text = ReadText(store, key, 4, put->etag);
    EXPECT_TRUE(text.ok() && *text == "body") << key;
    const auto page = store.List({.prefix = key});
    ASSERT_OK(page);
    ASSERT_FALSE(page->objects.empty()) << key;
    EXPECT_EQ(page->objects[0].key, key);
    EXPECT_TRUE(store.Delete(key).ok()) << key;
    EXPECT_EQ(store.Head(key).code(), Code::kNotFound) << key;
  }
}

TEST_P(S3Conformance, wrong_credentials_are_permission_denied_and_never_shown) {
  if (!GetParam().checks_signatures) return;
  store::s3::S3StoreOptions options = ServerOf(GetParam()).Options(kBucket);
  options.config.credentials.secret_access_key = "not-the-secret";
  const store::SyncStore wrong = OpenSync(options);
  EXPECT_EQ(wrong.Head("ready").code(), Code::kPermissionDenied);
  const auto put = wrong.Put({.key = "x", .body = {AsBytes("x")}});
  EXPECT_EQ(put.code(), Code::kPermissionDenied) << put.status().ToString();
  EXPECT_EQ(put.status().ToString().find("not-the-secret"), std::string::npos);
  options.config.credentials = {.anonymous = true};
  EXPECT_EQ(OpenSync(options).Head("ready").code(), Code::kPermissionDenied);
}

TEST_P(S3Conformance, virtual_host_style_reaches_the_same_bucket) {
  if (!GetParam().virtual_endpoint) return;
  store::s3::S3StoreOptions options = ServerOf(GetParam()).Options(kBucket);
  ASSERT_TRUE(OpenSync(options).Put({.key = "by path", .body = {AsBytes("x")}}).ok());
  options.config.endpoint_url = GetParam().virtual_endpoint(ServerOf(GetParam()));
  options.config.addressing_style = "virtual";
  const store::SyncStore store = OpenSync(options);
  EXPECT_EQ(store.Head("by path").code(), Code::kOk);
  const auto page = store.List({.prefix = "by path"});
  ASSERT_OK(page);
  EXPECT_EQ(page->objects.size(), 1U);
}

TEST_P(S3Conformance, an_older_version_stays_readable_by_its_id) {
  if (!GetParam().versions) return;
  const TestServer& server = ServerOf(GetParam());
  ASSERT_TRUE(server.MakeBucket("versions").ok());
  const Result<int> enabled =
      SendRaw(server.Options("versions"),
              {.method = "PUT",
               .query = "versioning=",
               .body = "<VersioningConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                       "<Status>Enabled</Status></VersioningConfiguration>"});
  ASSERT_TRUE(enabled.ok() && *enabled == 200) << *enabled;
  const store::SyncStore store = OpenSync(server.Options("versions"));
  const auto old_one = store.Put({.key = "k", .body = {AsBytes("old")}});
  const auto new_one = store.Put({.key = "k", .body = {AsBytes("new!")}});
  ASSERT_OK(old_one);
  ASSERT_OK(new_one);
  ASSERT_FALSE(old_one->version_id.empty());
  EXPECT_NE(old_one->version_id, new_one->version_id);
  EXPECT_EQ(store.Head("k")->version_id, new_one->version_id);
  EXPECT_EQ(ReadText(store, "k", 3, old_one->etag).code(), Code::kPreconditionFailed);
  const auto text = ReadText(store, "k", 3, old_one->etag, old_one->version_id);
  ASSERT_OK(text);
  EXPECT_EQ(*text, "old");
  ASSERT_TRUE(store.Delete("k").ok());
  EXPECT_EQ(store.Head("k").code(), Code::kNotFound);
  EXPECT_TRUE(ReadText(store, "k", 3, old_one->etag, old_one->version_id).ok());
}

TEST_P(S3Conformance, a_checksum_sent_along_leaves_the_object_as_it_is) {
  store::s3::S3StoreOptions options = ServerOf(GetParam()).Options(kBucket);
  options.config.request_checksum = "when_supported";
  const store::SyncStore store = OpenSync(options);
  const std::string body = TestBytes(70'000);
  const auto put = store.Put({.key = "with checksum", .body = {AsBytes(body)}});
  ASSERT_OK(put);
  EXPECT_EQ(store.Head("with checksum")->size, body.size());
  EXPECT_EQ(*ReadText(store, "with checksum", body.size(), put->etag), body);
  const auto large = store.PutLarge({.key = "large", .body = {AsBytes(body)}}, 5 << 20);
  EXPECT_TRUE(large.ok()) << large.status().ToString();
  const Result<int> wrong =
      SendRaw(options, {.method = "PUT",
                        .key = "with checksum",
                        .headers = {{"x-amz-checksum-crc64nvme", "AAAAAAAAAAA="}},
                        .body = body});
  ASSERT_OK(wrong);
  EXPECT_EQ(*wrong == 400, GetParam().checks_checksums) << *wrong;
}

TEST_P(S3Conformance, a_read_that_asks_for_the_checksum_gets_the_object_all_the_same) {
  store::s3::S3StoreOptions options = ServerOf(GetParam()).Options(kBucket);
  options.config.response_checksum = "when_supported";
  const store::SyncStore store = OpenSync(options);
  struct Sum {
    const char* header;
    const char* right;
    const char* wrong;
  };
  for (const Sum& sum : {Sum{"x-amz-checksum-crc64nvme", "rosUhgp5mIg=", "AAAAAAAAAAA="},
                         Sum{"x-amz-checksum-crc32c", "4waSgw==", "AAAAAA=="}}) {
    const auto put = [&](const char* text) {
      return SendRaw(
          options,
          {.method = "PUT", .key = "summed", .headers = {{sum.header, text}}, .body = "123456789"});
    };
    const Result<int> right = put(sum.right);
    ASSERT_TRUE(right.ok() && *right == 200) << sum.header;
    const auto text = ReadText(store, "summed", 9);
    ASSERT_OK(text);
    EXPECT_EQ(*text, "123456789");
    const Result<int> wrong = put(sum.wrong);
    ASSERT_OK(wrong);
    EXPECT_EQ(*wrong == 400, GetParam().checks_checksums) << sum.header << " " << *wrong;
  }
}

TEST_P(S3Conformance, an_object_stored_as_gzip_comes_back_as_stored) {
  const store::s3::S3StoreOptions options = ServerOf(GetParam()).Options(kBucket);
  const std::string body = "\x1f\x8b these bytes are no gzip, and nobody looks";
  const Result<int> put = SendRaw(
      options,
      {.method = "PUT", .key = "zipped", .headers = {{"content-encoding", "gzip"}}, .body = body});
  ASSERT_TRUE(put.ok() && *put == 200);
  const store::SyncStore store = OpenSync(options);
  const auto text = ReadText(store, "zipped", body.size());
  ASSERT_OK(text);
  EXPECT_EQ(*text, body);
}

TEST_P(S3Conformance, completing_an_upload_again_finds_it_completed) {
  const store::SyncStore store = OpenSync(ServerOf(GetParam()).Options(kBucket));
  store::UploadRequest upload{.key = "completed twice"};
  const auto id = store.CreateUpload(upload);
  ASSERT_OK(id);
  upload.upload_id = *id;
  const auto part = store.PutPart({.key = upload.key,
                                   .upload_id = upload.upload_id,
                                   .part_number = 1,
                                   .body = {AsBytes("the only part")}});
  ASSERT_OK(part);
  upload.part_etags = {part->etag};
  const auto first = store.CompleteUpload(upload);
  ASSERT_OK(first);
  const auto again = store.CompleteUpload(upload);
  ASSERT_OK(again);
  EXPECT_EQ(again->etag, first->etag);
  if (!GetParam().completes_once) return;
  // Another upload's content is no proof.
  ASSERT_TRUE(store.Put({.key = upload.key, .body = {AsBytes("something else")}}).ok());
  EXPECT_FALSE(store.CompleteUpload(upload).ok());
}

TEST_P(S3Conformance, a_payer_may_be_named) {
  store::s3::S3StoreOptions options = ServerOf(GetParam()).Options(kBucket);
  options.request_payer = true;
  const store::SyncStore store = OpenSync(options);
  ASSERT_TRUE(store.Put({.key = "paid", .body = {AsBytes("x")}}).ok());
  EXPECT_EQ(*ReadText(store, "paid", 1), "x");
  EXPECT_TRUE(store.List({.prefix = "paid"}).ok());
}

}  // namespace forebay::testing
