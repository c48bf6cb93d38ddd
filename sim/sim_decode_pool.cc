#include "sim/sim_decode_pool.h"

#include <utility>

#include "base/assert.h"

namespace forebay::sim {

SimDecodePool::SimDecodePool(const feed::Dataset& dataset, int threads, Executor& coordinator,
                             std::function<Duration()> duration)
    : threads_(threads), coordinator_(coordinator), duration_(std::move(duration)) {
  auto decoder = dataset.MakeDecoder();
  FB_ASSERT(decoder.ok());
  decoder_ = *std::move(decoder);
}

void SimDecodePool::Submit(uint64_t sequence, Job job, Done done) {
  queue_.emplace(std::pair(sequence, next_order_++), Queued{std::move(job), std::move(done)});
  StartNext();
}

void SimDecodePool::StartNext() {
  while (busy_ < threads_ && !queue_.empty()) {
    auto first = queue_.extract(queue_.begin());
    ++busy_;
    Status status = first.mapped().job(*decoder_);
    const Duration busy = status.code() == Code::kCancelled ? Duration{} : duration_();
    coordinator_.PostAt(
        coordinator_.Now() + busy,
        [this, busy, status = std::move(status), done = std::move(first.mapped().done)]() mutable {
          --busy_;
          done(std::move(status), busy);
          StartNext();
        });
  }
}

}  // namespace forebay::sim
