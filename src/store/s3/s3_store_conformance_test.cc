// The whole S3 stack (meter, retry, limit, S3, libcurl) against SeaweedFS.
#include <cstdio>
#include <cstdlib>

#include "net/curl_transport.h"
#include "store/s3/s3_store.h"
#include "sys/event_loop.h"
#include "testing/s3_server.h"
#include "testing/store_conformance.h"

namespace forebay::testing {
namespace {

constexpr char kBucket[] = "conformance";

// One server for the whole suite.
const S3Server& Server() {
  static const std::unique_ptr<S3Server> server = [] {
    auto started = S3Server::Start(kBucket);
    if (!started.ok()) {
      std::fprintf(stderr, "%s\n", started.status().ToString().c_str());
      std::abort();
    }
    return *std::move(started);
  }();
  return *server;
}

struct S3Subject {
  ~S3Subject() { loop->Stop(); }  // nothing runs when the others go
  std::unique_ptr<sys::EventLoop> loop;
  std::unique_ptr<net::HttpTransport> transport;
  std::shared_ptr<store::MeterStore> store;
};

std::shared_ptr<store::ObjectStore> MakeSubject() {
  auto subject = std::make_shared<S3Subject>();
  subject->loop = *sys::EventLoop::Make("test-s3");
  subject->transport = *net::MakeCurlTransport(*subject->loop, {});
  subject->store =
      *store::s3::MakeS3Stack({}, Server().Options(kBucket).config, kBucket, *subject->transport);
  return {subject, subject->store.get()};
}

// SeaweedFS keeps a tree of files. It refuses "." and ".." segments and names that no file may
// have; it makes one slash of two and of a backslash, and a folder of a key that ends in a slash.
bool SeaweedHolds(const std::string& key) {
  return key.find("/./") == key.npos && key.find("/../") == key.npos &&
         key.size() - key.rfind('/') - 1 <= 255;
}
bool SeaweedMangles(const std::string& key) {
  return key.find("//") != key.npos || key.find('\\') != key.npos || key.ends_with('/');
}

INSTANTIATE_TEST_SUITE_P(SeaweedFS, StoreConformance,
                         ::testing::Values(StoreSubject{.name = "s3",
                                                        .make = MakeSubject,
                                                        .holds_key = SeaweedHolds,
                                                        .mangles_key = SeaweedMangles,
                                                        .lists_in_byte_order = false,
                                                        .start_after_by_bytes = false,
                                                        .least_part_bytes = 5 << 20}),
                         SubjectName);

}  // namespace
}  // namespace forebay::testing
