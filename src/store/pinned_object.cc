#include "store/pinned_object.h"

#include <future>
#include <utility>

namespace forebay::store {

Status PinnedObject::ReadMany(const std::vector<ByteRange>& ranges,
                              const std::vector<MutableBytes>& into) {
  std::vector<std::future<Status>> parts;
  ObjectStore& store = store_.async();
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].empty()) continue;
    ReadRequest request;
    request.key = info_.key;
    request.etag = info_.etag;
    request.range = ranges[i];
    request.target = {into[i]};
    request.options.priority = priority_;
    auto promise = std::make_shared<std::promise<Status>>();
    parts.push_back(promise->get_future());
    requests_ += 1;
    bytes_ += ranges[i].size();
    store.executor().Post(
        [&store, timeout = timeout_, request = std::move(request), promise]() mutable {
          request.options.deadline = store.executor().Now() + timeout;
          store.StartRead(std::move(request), [promise](Result<ReadResult> done) {
            promise->set_value(done.ok() ? Status() : std::move(done).status());
          });
        });
  }
  Status status;
  for (std::future<Status>& part : parts) {
    Status one = part.get();  // every read ends by its deadline
    if (status.ok()) status = std::move(one);
  }
  return status;
}

}  // namespace forebay::store
