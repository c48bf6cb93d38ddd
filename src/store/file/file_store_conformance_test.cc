#include "store/file/file_store.h"
#include "sys/event_loop.h"
#include "testing/store_conformance.h"
#include "testing/temp_folder.h"

namespace forebay::testing {
namespace {

struct FileSubject {
  TempFolder folder;
  std::unique_ptr<store::ObjectStore> store;
  std::unique_ptr<sys::EventLoop> loop;
  std::unique_ptr<sys::WorkPool> pool;  // goes first, then the loop
};

bool CanBeFile(const std::string& key) {
  if (key.find("//") != key.npos || key.ends_with('/')) return false;
  for (size_t begin = 0; begin <= key.size();) {
    const size_t end = std::min(key.find('/', begin), key.size());
    const std::string segment = key.substr(begin, end - begin);
    if (segment == "." || segment == ".." || segment.size() > 255) return false;
    begin = end + 1;
  }
  return true;
}

StoreSubject Subject(const std::string& name, bool beneath) {
  StoreSubject subject{
      .name = name, .make = [beneath] {
        auto made = std::make_shared<FileSubject>();
        made->loop = *sys::EventLoop::Make("test-file");
        made->pool = *sys::WorkPool::Make({.name = "disk", .threads = 2});
        made->store = *store::MakeFileStore(
            made->loop.get(), made->pool.get(),
            {.root = made->folder.path(), .beneath = beneath, .sync_writes = false});
        return std::shared_ptr<store::ObjectStore>(made, made->store.get());
      }};
  subject.holds_key = CanBeFile;
  subject.if_match = false;
  return subject;
}

INSTANTIATE_TEST_SUITE_P(File, StoreConformance,
                         ::testing::Values(Subject("file", false), Subject("file_beneath", true)),
                         SubjectName);

}  // namespace
}  // namespace forebay::testing
