#include "store/memory/memory_store.h"
#include "sys/event_loop.h"
#include "testing/store_conformance.h"

namespace forebay::testing {
namespace {

struct MemorySubject {
  std::shared_ptr<store::MemoryStore> store;
  std::unique_ptr<sys::EventLoop> loop;  // goes first: nothing runs when the store goes
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         ::testing::Values(StoreSubject{
                             .name = "memory",
                             .make =
                                 [] {
                                   auto subject = std::make_shared<MemorySubject>();
                                   subject->loop = *sys::EventLoop::Make("test-memory");
                                   subject->store =
                                       store::MemoryStore::Make(subject->loop.get(), {});
                                   return std::shared_ptr<store::ObjectStore>(subject,
                                                                              subject->store.get());
                                 }}),
                         SubjectName);

}  // namespace
}  // namespace forebay::testing
