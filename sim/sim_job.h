// A training job in virtual time: one reader's whole path (sampler, planner, fetcher, feeder) over
// any ObjectStore, and a consumer that computes for a step and then comes for the next batch.
// Checks as it goes: every sample exactly once and in order, every byte right, reservations within
// the budget, nothing after close.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "feed/feeder.h"
#include "fetch/store_tier.h"
#include "sim/sim_decode_pool.h"
#include "sim/sim_world.h"

namespace forebay::sim {

// Objects whose byte at offset i is a function of (object, i), and samples of one extent in each
// of `cameras` objects. Ragged: the extents of a sample have the same size, between nothing and
// `extent_bytes`, and its bytes are delivered too, in an array of their own.
class PatternDataset : public feed::Dataset {
 public:
  struct Options {
    uint64_t samples = 1000;
    uint32_t cameras = 7;
    uint32_t extent_bytes = 512;
    std::string etag = "";  // pinned in every read
    bool one_unit = false;  // the whole sample is one decode job, else one per camera
    bool ragged = false;
    // > 0: so many neighbouring samples are read together, and share what was read.
    uint64_t chunk = 0;
    std::set<uint64_t> undecodable = {};  // samples whose bytes come, and are no sample's
  };
  explicit PatternDataset(const Options& options);

  static std::byte ByteAt(uint32_t object, uint64_t offset) {
    return static_cast<std::byte>((object * 131 + offset * 7 + (offset >> 8)) & 0xff);
  }
  static std::string KeyOf(uint32_t camera);
  // Of each of the sample's extents.
  uint64_t ExtentBytes(uint64_t sample) const;
  bool ragged() const { return options_.ragged; }
  uint64_t OffsetOf(uint64_t sample) const { return sample * options_.extent_bytes; }
  uint64_t object_bytes() const { return options_.samples * options_.extent_bytes; }
  std::shared_ptr<const ObjectTable> objects() const { return objects_; }

  uint64_t sample_count() const override { return options_.samples; }
  const std::vector<feed::SampleArray>& arrays() const override { return arrays_; }
  Result<feed::SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const override;
  bool plans_together() const override { return options_.chunk > 0; }
  bool shares_extents() const override { return options_.chunk > 0; }
  std::vector<std::vector<uint32_t>> Together(std::span<const uint64_t> samples) const override;
  Result<feed::SamplePlan> PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                        size_t* bad_row) const override;
  Result<std::unique_ptr<feed::SampleDecoder>> MakeDecoder() const override;
  std::string DescribeSample(uint64_t sample) const override;
  uint64_t OutputBytesMax(uint64_t rows) const override;
  uint64_t raw_bytes_max() const override {
    const uint64_t samples = std::max<uint64_t>(options_.chunk, 1);
    return options_.cameras * SlabsFor(samples * options_.extent_bytes) * kSlabBytes;
  }
  bool undecodable(uint64_t sample) const { return options_.undecodable.contains(sample); }

 private:
  Options options_;
  std::vector<feed::SampleArray> arrays_;
  std::shared_ptr<const ObjectTable> objects_;
};

struct JobOptions {
  uint64_t seed = 1;
  uint64_t batch_size = 1;  // per rank
  uint64_t world_size = 1;
  uint64_t rank = 0;
  double runway_s = -1;
  uint64_t memory_bytes = 256ULL << 20;
  Duration step = std::chrono::milliseconds(300);
  double step_jitter = 0.02;                         // relative, uniform +-
  Duration decode = std::chrono::milliseconds(230);  // of a sample, all units together
  double decode_jitter = 0.15;
  int decode_threads = 1;
  int64_t epochs = -1;
  int64_t skip_max = 0;
  uint64_t memory_tier_bytes = 0;
};

class Job {
 public:
  Job(World& world, const PatternDataset& dataset, std::shared_ptr<store::ObjectStore> store,
      const JobOptions& options);
  ~Job();

  void Start();  // the consumer comes for its first batch
  uint64_t steps() const { return waits_.size(); }
  // Seconds the consumer waited before each batch; the first is the cold start.
  const std::vector<double>& waits() const { return waits_; }
  const std::vector<Status>& errors() const { return errors_; }
  const std::vector<std::string>& violations() const { return violations_; }
  feed::Feeder& feeder() { return *feeder_; }
  fetch::Fetcher& fetcher() { return *fetcher_; }
  plan::Planner& planner() { return *planner_; }
  // Goes on from another position: what was ready is gone.
  void Restart(uint64_t epoch, uint64_t position);
  // Runs the world until everything is closed; a violation when it does not come to that.
  void Close();
  // The samples in the order delivered.
  const std::vector<int64_t>& delivered() const { return delivered_; }

 private:
  void Come();
  void Take();
  void Check(const feed::ReadyGroup& group);
  void CheckRow(const feed::ReadyGroup& group, uint64_t row);

  World& world_;
  const PatternDataset& dataset_;
  JobOptions options_;
  Random random_;
  SimExecutor& coordinator_;
  std::shared_ptr<SlabPool> slabs_;
  std::unique_ptr<fetch::MemoryTier> memory_tier_;
  std::unique_ptr<fetch::StoreTier> tier_;
  std::unique_ptr<feed::Sampler> sampler_;
  std::unique_ptr<plan::Planner> planner_;
  std::unique_ptr<SimDecodePool> decode_;
  std::unique_ptr<feed::Feeder> feeder_;
  std::unique_ptr<fetch::Fetcher> fetcher_;
  std::deque<feed::ReadyGroup> ready_;
  bool waiting_ = false;
  bool closed_ = false;
  Time came_{};
  Time left_{};
  uint64_t generation_ = 0;
  uint64_t position_ = 0;
  uint64_t epoch_ = 0;
  std::vector<double> waits_;
  std::vector<Status> errors_;
  std::vector<std::string> violations_;
  std::vector<int64_t> delivered_;
};

}  // namespace forebay::sim
