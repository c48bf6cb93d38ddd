// Decoding that takes virtual time: `threads` workers, each job as long as the drawn duration.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "feed/decode_pool.h"

namespace forebay::sim {

class SimDecodePool : public feed::DecodePool {
 public:
  // `duration` is asked once per job.
  SimDecodePool(const feed::Dataset& dataset, int threads, Executor& coordinator,
                std::function<Duration()> duration);

  void Submit(uint64_t sequence, Job job, Done done) override;
  int threads() const override { return threads_; }

 private:
  struct Queued {
    Job job;
    Done done;
  };
  void StartNext();

  int threads_;
  int busy_ = 0;
  Executor& coordinator_;
  std::function<Duration()> duration_;
  std::unique_ptr<feed::SampleDecoder> decoder_;
  std::map<std::pair<uint64_t, uint64_t>, Queued> queue_;  // by sequence, then order
  uint64_t next_order_ = 0;
};

}  // namespace forebay::sim
