// The S3 client as users get it (meter, retries, limit, hedges) on a network that misbehaves, in
// virtual time: every byte right, nothing fails, little is asked for twice, and waits stay short.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "sim/sim_transport.h"
#include "sim/sim_world.h"
#include "store/s3/s3_store.h"
#include "store/stack.h"

namespace forebay::sim {
namespace {

using namespace std::chrono_literals;
using store::Priority;

constexpr uint64_t kObjectBytes = 1 << 24;
constexpr uint64_t kReadBytes = 512;

std::byte ByteAt(uint64_t offset) {
  return static_cast<std::byte>((offset * 7 + (offset >> 8) * 13) & 0xff);
}

// One process: so many workers, each of which asks for one range after the other.
class Readers {
 public:
  explicit Readers(uint64_t seed, store::StackOptions stack = {})
      : world_(seed), io_(world_.NewExecutor()), random_(DeriveKey(seed, 1)) {
    transport_ = std::make_unique<SimTransport>(
        io_, SimTransport::Options{
                 .seed = DeriveKey(seed, 2),
                 .object_bytes = kObjectBytes,
                 .byte_at = [](const std::string&, uint64_t offset) { return ByteAt(offset); }});
    store::s3::S3StoreOptions options;
    options.bucket = "sim";
    options.config.credentials.access_key_id = "SIMULATED";
    options.config.credentials.secret_access_key = "simulated";
    options.config.endpoint_url = "http://127.0.0.1:1";
    options.unix_time_s = [] { return 1'700'000'000; };
    auto s3 = store::s3::MakeS3Store(std::move(options), *transport_);
    EXPECT_TRUE(s3.ok());
    stack.retry.seed = seed;
    stack.retry.tokens = std::make_shared<store::RetryTokens>();
    store_ = store::MakeStack(*std::move(s3), std::move(stack));
  }

  // So many workers begin; they end when `reads` are done.
  void Start(size_t workers, uint64_t reads) {
    left_ = reads;
    workers_.resize(workers);
    for (size_t i = 0; i < workers; ++i) {
      workers_[i].bytes.resize(kReadBytes);
      io_.Post([this, i] { Next(i); });
    }
    running_ = workers;
  }
  void Run(Duration time = std::chrono::hours(24)) {
    world_.RunUntil([this] { return running_ == 0; }, world_.now() + time);
  }

  double Quantile(double q) {
    std::ranges::sort(times_s_);
    return times_s_.at(static_cast<size_t>(q * static_cast<double>(times_s_.size() - 1)));
  }
  void Forget() {
    times_s_.clear();
    failures_.clear();
  }
  size_t done() const { return times_s_.size(); }
  const std::vector<std::string>& failures() const { return failures_; }
  SimTransport& transport() { return *transport_; }
  const store::StoreCounters& counters() const { return store_->counters(); }
  World& world() { return world_; }

 private:
  struct Worker {
    std::vector<std::byte> bytes;
    uint64_t offset = 0;
    Time asked{};
  };

  void Next(size_t i) {
    if (left_ == 0) {
      --running_;
      return;
    }
    --left_;
    Worker& worker = workers_[i];
    worker.offset = random_.NextBelow(kObjectBytes - kReadBytes);
    worker.asked = world_.now();
    std::ranges::fill(worker.bytes, std::byte{0xee});
    store_->StartRead({.key = "object",
                       .etag = "sim",
                       .range = {worker.offset, worker.offset + kReadBytes},
                       .target = {worker.bytes},
                       .options = {.priority = Priority::kSoon}},
                      [this, i](Result<store::ReadResult> result) {
                        Check(i, result);
                        Next(i);
                      });
  }

  void Check(size_t i, const Result<store::ReadResult>& result) {
    const Worker& worker = workers_[i];
    times_s_.push_back(std::chrono::duration<double>(world_.now() - worker.asked).count());
    if (!result.ok()) {
      failures_.push_back(result.status().ToString());
      return;
    }
    for (uint64_t at = 0; at < kReadBytes; ++at) {
      if (worker.bytes[at] == ByteAt(worker.offset + at)) continue;
      failures_.push_back(fmt::format("byte {} is wrong", worker.offset + at));
      return;
    }
  }

  World world_;
  SimExecutor& io_;
  Random random_;
  std::unique_ptr<SimTransport> transport_;
  std::shared_ptr<store::MeterStore> store_;
  std::vector<Worker> workers_;
  uint64_t left_ = 0;
  size_t running_ = 0;
  std::vector<double> times_s_;
  std::vector<std::string> failures_;
};

constexpr uint64_t kReads = 100'000;

TEST(Faults, a_hundred_thousand_reads_are_right_and_hardly_slower_whatever_the_network_does) {
  Readers calm(1);
  calm.Start(64, kReads);
  calm.Run();
  EXPECT_TRUE(calm.failures().empty());
  EXPECT_LT(static_cast<double>(calm.transport().requests()), 1.031 * kReads);

  Readers hit(1);
  hit.transport().set_faults({.reset = 0.01,
                              .slow_down = 0.01,
                              .wrong_range = 0.01,
                              .whole = 0.01,
                              .short_body = 0.01,
                              .other_etag = 0.01,
                              .hang = 0.005});
  hit.Start(64, kReads);
  hit.Run();
  EXPECT_EQ(hit.done(), kReads);
  for (const std::string& failure : hit.failures()) ADD_FAILURE() << failure;
  EXPECT_GT(hit.transport().faults(), kReads * 6 / 100);
  // Beyond one for each read and one for each answer that was a fault.
  const uint64_t extra = hit.transport().requests() - kReads - hit.transport().faults();
  EXPECT_LT(static_cast<double>(extra), 0.05 * kReads);
  fmt::print(
      "p99.9 {:.0f} ms without faults, {:.0f} ms with; p50 {:.0f} and {:.0f} ms; {} extra "
      "requests; hedges {} won {} refused {} and {} won {} refused {}\n",
      calm.Quantile(0.999) * 1e3, hit.Quantile(0.999) * 1e3, calm.Quantile(0.5) * 1e3,
      hit.Quantile(0.5) * 1e3, extra, calm.counters().hedges.started, calm.counters().hedges.won,
      calm.counters().hedges.refused, hit.counters().hedges.started, hit.counters().hedges.won,
      hit.counters().hedges.refused);
  EXPECT_LE(hit.Quantile(0.999), 2 * calm.Quantile(0.999));
}

TEST(Faults, under_a_fixed_rate_nearly_all_of_it_is_used_and_little_is_refused) {
  for (const double rate : {50.0, 200.0, 1000.0}) {
    Readers readers(3);
    readers.transport().set_request_limit(rate);
    readers.Start(1000, ~uint64_t{0});
    readers.Run(60s);
    const uint64_t before = readers.transport().requests();
    const uint64_t refused_before = readers.transport().throttled();
    readers.Forget();
    readers.Run(60s);
    const auto sent = static_cast<double>(readers.transport().requests() - before);
    const auto refused = static_cast<double>(readers.transport().throttled() - refused_before);
    fmt::print("{} a second: {:.1f} served, {:.2f}% refused; in the first minute {} refused\n",
               rate, (sent - refused) / 60, 100 * refused / sent, refused_before);
    EXPECT_GE((sent - refused) / 60, 0.9 * rate);
    EXPECT_LT(refused / sent, 0.01);
    EXPECT_TRUE(readers.failures().empty()) << readers.failures().front();
  }
}

}  // namespace
}  // namespace forebay::sim
