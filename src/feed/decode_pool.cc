#include "feed/decode_pool.h"

#include <condition_variable>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "sys/thread.h"

namespace forebay::feed {
namespace {

struct Entry {
  uint64_t sequence;
  uint64_t order;  // of submission, among equals
  mutable DecodePool::Job job;
  mutable DecodePool::Done done;
  bool operator<(const Entry& other) const {
    return std::pair(sequence, order) < std::pair(other.sequence, other.order);
  }
};

class ThreadedDecodePool : public DecodePool {
 public:
  ThreadedDecodePool(const Dataset& dataset, int threads, Executor& coordinator)
      : dataset_(dataset), threads_wanted_(threads), coordinator_(coordinator) {}

  ~ThreadedDecodePool() override {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
    }
    arrived_.notify_all();
    threads_.clear();  // joins
  }

  void Submit(uint64_t sequence, Job job, Done done) override {
    if (threads_.empty() && start_status_.ok()) Start();
    if (threads_.empty()) {  // not one thread could be started
      coordinator_.Post([done = std::move(done), status = start_status_]() mutable {
        done(std::move(status), Duration{});
      });
      return;
    }
    {
      const MutexLock lock(mutex_);
      queue_.insert({sequence, next_order_++, std::move(job), std::move(done)});
    }
    arrived_.notify_one();
  }

  int threads() const override { return threads_wanted_; }

 private:
  void Start() {
    for (int i = 0; i < threads_wanted_; ++i) {
      auto thread = sys::NamedThread::Make("fb-decode", [this] { Work(); });
      if (thread.ok()) {
        threads_.push_back(*std::move(thread));
      } else if (threads_.empty()) {
        start_status_ = std::move(thread).status();
        return;
      }
    }
  }

  void Work() {
    std::unique_ptr<SampleDecoder> decoder;
    while (true) {
      Job job;
      Done done;
      {
        const MutexLock lock(mutex_);
        while (queue_.empty() && !stopped_) arrived_.wait(mutex_);
        if (queue_.empty()) return;
        const auto first = queue_.begin();
        job = std::move(first->job);
        done = std::move(first->done);
        queue_.erase(first);
      }
      const Time start = coordinator_.Now();
      Status status;
      if (decoder == nullptr) {
        Result<std::unique_ptr<SampleDecoder>> made = dataset_.MakeDecoder();
        if (made.ok()) {
          decoder = *std::move(made);
        } else {
          status = std::move(made).status();
        }
      }
      if (status.ok()) status = job(*decoder);
      job = nullptr;  // what it holds goes before the completion is seen
      coordinator_.Post(
          [done = std::move(done), status = std::move(status),
           busy = coordinator_.Now() - start]() mutable { done(std::move(status), busy); });
    }
  }

  const Dataset& dataset_;
  const int threads_wanted_;
  Executor& coordinator_;
  Status start_status_;
  Mutex mutex_;
  std::condition_variable_any arrived_;
  std::set<Entry> queue_ FB_GUARDED_BY(mutex_);
  uint64_t next_order_ FB_GUARDED_BY(mutex_) = 0;
  bool stopped_ FB_GUARDED_BY(mutex_) = false;
  std::vector<std::unique_ptr<sys::NamedThread>> threads_;  // coordinator's thread only
};

}  // namespace

std::unique_ptr<DecodePool> MakeDecodePool(const Dataset& dataset, int threads,
                                           Executor& coordinator) {
  return std::make_unique<ThreadedDecodePool>(dataset, threads, coordinator);
}

}  // namespace forebay::feed
