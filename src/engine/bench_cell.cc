#include "engine/bench_cell.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <set>
#include <utility>

#include "sys/usage.h"

namespace forebay::engine {
namespace {

constexpr auto kProgressInterval = std::chrono::milliseconds(50);
constexpr auto kSampleInterval = std::chrono::milliseconds(10);
constexpr size_t kFailuresKept = 10;
// So many failures from the start on, and not one success: there is nothing to measure.
constexpr uint64_t kHopeless = 100;

float Seconds(Duration time) { return std::chrono::duration<float>(time).count(); }

// Lives on the store's executor from Go to the end, but for what is atomic.
class Driver {
 public:
  Driver(store::ObjectStore& store, BenchWork work, Duration timeout)
      : store_(store),
        work_(std::move(work)),
        timeout_(timeout),
        reads_(work_.cell.in_flight),
        writes_(work_.cell.in_flight) {
    const size_t requests = std::max(work_.places.size(), work_.keys.size());
    run_.first_byte_s.reserve(requests);
    run_.total_s.reserve(requests);
    run_.ended_s.reserve(requests);
  }

  std::future<void> Go() {
    auto finished = finished_->get_future();
    store_.executor().Post([this] {
      started_ = store_.executor().Now();
      latest_ = work_.cell.seconds > 0
                    ? started_ + std::chrono::duration_cast<Duration>(
                                     std::chrono::duration<double>(work_.cell.seconds))
                    : kNever;
      for (uint32_t slot = 0; slot < work_.cell.in_flight; ++slot) {
        ++running_;
        Next(slot);
      }
    });
    return finished;
  }

  void Stop() {
    store_.executor().Post([this] {
      stopped_ = true;
      for (const store::ObjectStore::OpId op : ops_) store_.Cancel(op);
    });
  }

  BenchProgress progress() const { return {requests_done_, bytes_done_}; }
  // Once it has finished.
  BenchRun TakeRun() { return std::move(run_); }
  bool hopeless() const { return run_.errors >= kHopeless && run_.errors == run_.requests; }

 private:
  size_t count() const { return std::max(work_.places.size(), work_.keys.size()); }

  // The slot's next request, or its end.
  void Next(uint32_t slot) {
    const Time now = store_.executor().Now();
    if (stopped_ || hopeless() || next_ == count() || now >= latest_) {
      if (running_ == work_.cell.in_flight) Sample(now);  // fully loaded until now
      if (--running_ > 0) return;
      run_.wall_s = Seconds(now - started_);
      run_.steady_bytes_per_s = SteadyRate(samples_, run_.bytes, run_.wall_s);
      const auto finished = finished_;  // this object may be gone before set_value returns
      finished->set_value();
      return;
    }
    if (now - sampled_ >= kSampleInterval && running_ == work_.cell.in_flight) Sample(now);
    const size_t index = next_++;
    run_.issue_s = Seconds(now - started_);
    // A callback never runs inside its start, so `ops_` has the entry before it is removed.
    const auto op = std::make_shared<store::ObjectStore::OpId>(0);
    *op = work_.cell.put ? Put(index, slot, now, op) : Get(index, slot, now, op);
    ops_.insert(*op);
  }

  void Sample(Time now) {
    sampled_ = now;
    uint64_t bytes = run_.bytes;
    for (const store::ReadProgress& read : reads_) bytes += read.bytes;
    for (const store::WriteProgress& write : writes_) bytes += write.bytes;
    samples_.push_back({std::chrono::duration<double>(now - started_).count(), bytes});
  }

  using OpPtr = std::shared_ptr<store::ObjectStore::OpId>;

  store::ObjectStore::OpId Get(size_t index, uint32_t slot, Time now, OpPtr op) {
    const BenchPlace& place = work_.places[index];
    const store::ObjectInfo& object = (*work_.objects)[place.object];
    const uint64_t length = work_.cell.range_bytes;
    store::ReadRequest request;
    request.key = object.key;
    request.etag = object.etag;
    request.range = {place.offset, place.offset + length};
    request.target = {work_.buffer.subspan(slot * length, length)};
    request.progress = &reads_[slot];
    request.options = {.deadline = now + timeout_, .priority = store::Priority::kDemand};
    return store_.StartRead(std::move(request), [this, slot, now, op = std::move(op)](
                                                    Result<store::ReadResult> result) {
      const Duration first_byte = result.ok() ? result->first_byte : Duration{};
      const Duration total = store_.executor().Now() - now;
      Ended(*op, std::move(result).status(), first_byte, total, slot);
    });
  }

  store::ObjectStore::OpId Put(size_t index, uint32_t slot, Time now, OpPtr op) {
    store::PutRequest request;
    request.key = work_.keys[index];
    request.body = {work_.buffer};
    request.progress = &writes_[slot];
    request.options = {.deadline = now + timeout_, .priority = store::Priority::kDemand};
    return store_.StartPut(std::move(request),
                           [this, slot, now, op = std::move(op)](Result<store::PutResult> result) {
                             const Duration total = store_.executor().Now() - now;
                             Ended(*op, std::move(result).status(), total, total, slot);
                           });
  }

  void Ended(store::ObjectStore::OpId op, Status status, Duration first_byte, Duration total,
             uint32_t slot) {
    ops_.erase(op);
    reads_[slot] = {};
    writes_[slot] = {};
    ++run_.requests;
    if (status.ok()) {
      run_.bytes += work_.cell.range_bytes;
      run_.first_byte_s.push_back(Seconds(first_byte));
      run_.total_s.push_back(Seconds(total));
      run_.ended_s.push_back(
          std::chrono::duration<double>(store_.executor().Now() - started_).count());
    } else {
      ++run_.errors;
      if (run_.failures.size() < kFailuresKept) run_.failures.push_back(std::move(status));
    }
    requests_done_ = run_.requests;
    bytes_done_ = run_.bytes;
    Next(slot);
  }

  store::ObjectStore& store_;
  const BenchWork work_;
  const Duration timeout_;
  Time started_{};
  Time latest_ = kNever;
  bool stopped_ = false;
  size_t next_ = 0;
  size_t running_ = 0;
  std::set<store::ObjectStore::OpId> ops_;
  std::vector<store::ReadProgress> reads_;    // by slot
  std::vector<store::WriteProgress> writes_;  // by slot
  std::vector<BytesAt> samples_;              // while all slots have a request
  Time sampled_{};
  BenchRun run_;
  const std::shared_ptr<std::promise<void>> finished_ = std::make_shared<std::promise<void>>();
  std::atomic<uint64_t> requests_done_ = 0;
  std::atomic<uint64_t> bytes_done_ = 0;
};

}  // namespace

double SteadyRate(std::span<const BytesAt> samples, uint64_t bytes, double wall_s) {
  if (!samples.empty()) {
    const BytesAt& last = samples.back();
    const auto first = std::ranges::lower_bound(samples, last.at_s / 10, {}, &BytesAt::at_s);
    const double seconds = last.at_s - first->at_s;
    if (seconds > 0 && last.bytes > first->bytes) {
      return static_cast<double>(last.bytes - first->bytes) / seconds;
    }
  }
  return wall_s > 0 ? static_cast<double>(bytes) / wall_s : 0;
}

Result<BenchRun> RunBenchWork(store::ObjectStore& store, BenchWork work, Duration timeout,
                              const std::function<bool(const BenchProgress&)>& on_progress) {
  Driver driver(store, std::move(work), timeout);
  const sys::ProcessUsage before = sys::UsageOfProcess();
  const double busy = sys::NodeBusySeconds();
  const std::future<void> finished = driver.Go();
  bool stopped = false;
  while (finished.wait_for(kProgressInterval) != std::future_status::ready) {
    if (stopped || !on_progress || on_progress(driver.progress())) continue;
    stopped = true;
    driver.Stop();
  }
  const sys::ProcessUsage after = sys::UsageOfProcess();
  const bool hopeless = driver.hopeless();
  BenchRun run = driver.TakeRun();
  const double busy_after = sys::NodeBusySeconds();
  run.node_busy_s = busy_after > 0 ? busy_after - busy : 0;
  run.user_s = after.user_s - before.user_s;
  run.sys_s = after.system_s - before.system_s;
  run.maxrss_kib = after.maxrss_kib;
  if (stopped) return Status(Code::kCancelled, "the measurement was stopped");
  if (hopeless) return std::move(run.failures.front());
  return run;
}

}  // namespace forebay::engine
