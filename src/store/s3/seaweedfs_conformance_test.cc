// SeaweedFS, and where it deviates.
#include "testing/s3_conformance.h"
#include "testing/s3_server.h"

namespace forebay::testing {
namespace {

bool HasDots(const std::string& key) {
  const std::string padded = "/" + key + "/";
  return padded.find("/./") != padded.npos || padded.find("/../") != padded.npos;
}

S3Subject Subject() {
  S3Subject subject{.name = "SeaweedFS", .start = StartServer<S3Server>};
  // It keeps a tree of files: "." and ".." segments and names that no file may have are refused,
  // one slash is made of two and of a backslash, and a folder of a key that ends in a slash.
  subject.store.holds_key = [](const std::string& key) {
    for (size_t begin = 0; begin <= key.size();) {
      const size_t end = std::min(key.find('/', begin), key.size());
      if (end - begin > 255) return false;
      begin = end + 1;
    }
    return !HasDots(key);
  };
  subject.store.mangles_key = [](const std::string& key) {
    return key.find("//") != key.npos || key.starts_with('/') || key.ends_with('/') ||
           key.find('\\') != key.npos;
  };
  // In the order of the tree: a/1, a/b/3, a-x.
  subject.store.lists_in_byte_order = false;
  subject.store.start_after_by_bytes = false;
  subject.store.least_part_bytes = 5 << 20;
  subject.virtual_endpoint = [](const TestServer& server) {
    return static_cast<const S3Server&>(server).virtual_endpoint();
  };
  return subject;
}

INSTANTIATE_S3_CONFORMANCE(SeaweedFS, Subject());

}  // namespace
}  // namespace forebay::testing
