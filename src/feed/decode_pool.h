// Where decoding happens: asynchronous to the coordinator, in order of sequence. sim/ has a twin
// that takes virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/executor.h"
#include "feed/dataset.h"

namespace forebay::feed {

class DecodePool {
 public:
  // Runs on a worker with its decoder.
  using Job = std::move_only_function<Status(SampleDecoder&)>;
  // Runs on the coordinator's thread.
  using Done = std::move_only_function<void(Status, Duration busy)>;

  virtual ~DecodePool() = default;
  // Coordinator's thread. Of the queued jobs the lowest sequence runs first. Every `done` runs
  // once.
  virtual void Submit(uint64_t sequence, Job job, Done done) = 0;
  virtual int threads() const = 0;
};

// `threads` workers, each with a decoder of its own, made on first use. Destroyed after the last
// `done` has run.
std::unique_ptr<DecodePool> MakeDecodePool(const Dataset& dataset, int threads,
                                           Executor& coordinator);

}  // namespace forebay::feed
