// Ranged GETs through the store that Forebay's users get, for bench/s3_peers.py.
//
//   s3_bench JSON      JSON: the Workload of bench/peers/workload.py
//
// Prints one line of JSON: CPU seconds of this process, wall time, bytes. Buffers are used again,
// as the engine's slabs are; credentials come from the AWS_* variables.
#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <future>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "engine/store_set.h"
#include "store/uri.h"

namespace forebay {
namespace {

[[noreturn]] void Die(const std::string& why) {
  fmt::print(stderr, "s3_bench: {}\n", why);
  std::exit(1);
}

struct Usage {
  double user_s = 0, system_s = 0;
  uint64_t peak_rss_bytes = 0;

  static Usage Now() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    return {seconds(usage.ru_utime), seconds(usage.ru_stime),
            static_cast<uint64_t>(usage.ru_maxrss) * 1024};
  }
};

struct Workload {
  std::string key;
  uint64_t object_bytes = 0, range_bytes = 0, seed = 0;
  size_t in_flight = 1, requests = 1;
};

// Offsets in a random order, none twice while there are others.
std::vector<uint64_t> Offsets(const Workload& work, size_t count) {
  std::vector<uint64_t> places(work.object_bytes / work.range_bytes);
  std::iota(places.begin(), places.end(), 0);
  Random random(work.seed);
  std::vector<uint64_t> offsets;
  while (offsets.size() < count) {
    for (size_t i = places.size() - 1; i > 0; --i) {
      std::swap(places[i], places[random.NextBelow(i + 1)]);
    }
    for (size_t i = 0; i < places.size() && offsets.size() < count; ++i) {
      offsets.push_back(places[i] * work.range_bytes);
    }
  }
  return offsets;
}

// So many reads in flight until all are done. Lives on the executor's thread after Start.
class Run {
 public:
  Run(store::ObjectStore& store, const Workload& work, std::vector<uint64_t> offsets,
      std::vector<std::vector<std::byte>>& buffers)
      : store_(store), work_(work), offsets_(std::move(offsets)), buffers_(buffers) {}

  void Go() {
    auto done = done_.get_future();
    store_.executor().Post([this] {
      const size_t first = std::min(work_.in_flight, offsets_.size());
      for (size_t i = 0; i < first; ++i) Next(i);
    });
    if (done.wait_for(std::chrono::seconds(300)) != std::future_status::ready) Die("no end");
  }

 private:
  void Next(size_t slot) {
    if (next_ == offsets_.size()) return;
    const uint64_t offset = offsets_[next_++];
    store::ReadRequest request;
    request.key = work_.key;
    request.range = {offset, offset + work_.range_bytes};
    request.target = {buffers_[slot]};
    store_.StartRead(std::move(request), [this, slot](Result<store::ReadResult> result) {
      if (!result.ok()) Die(result.status().ToString());
      if (++finished_ == offsets_.size()) {
        done_.set_value();
      } else {
        Next(slot);
      }
    });
  }

  store::ObjectStore& store_;
  const Workload& work_;
  const std::vector<uint64_t> offsets_;
  std::vector<std::vector<std::byte>>& buffers_;
  size_t next_ = 0, finished_ = 0;
  std::promise<void> done_;
};

int Main(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (json.is_discarded()) Die("usage: s3_bench JSON");
  const Workload work{.key = json.at("key"),
                      .object_bytes = json.at("object_bytes"),
                      .range_bytes = json.at("range_bytes"),
                      .seed = json.at("seed"),
                      .in_flight = json.at("in_flight"),
                      .requests = json.at("requests")};
  StoreOptions options;
  options.endpoint_url = json.at("endpoint");
  auto set = engine::StoreSet::Make(options);
  if (!set.ok()) Die(set.status().ToString());
  const std::string bucket = json.at("bucket");
  const auto uri = store::ParseUri("s3://" + bucket + "/" + work.key);
  if (!uri.ok()) Die(uri.status().ToString());
  auto store = (*set)->StoreFor(*uri);
  if (!store.ok()) Die(store.status().ToString());
  std::vector<std::vector<std::byte>> buffers(work.in_flight);
  for (auto& buffer : buffers) buffer.resize(work.range_bytes);

  Run(**store, work, Offsets(work, std::min(2 * work.in_flight, work.requests)), buffers).Go();
  const Usage before = Usage::Now();
  const auto started = std::chrono::steady_clock::now();
  Run(**store, work, Offsets(work, work.requests), buffers).Go();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  const Usage after = Usage::Now();
  fmt::print(
      "{{\"version\": \"forebay {}\", \"seconds\": {}, \"bytes\": {}, \"requests\": {}, "
      "\"user_s\": {}, \"system_s\": {}, \"peak_rss_bytes\": {}}}\n",
      FOREBAY_VERSION, seconds, work.requests * work.range_bytes, work.requests,
      after.user_s - before.user_s, after.system_s - before.system_s, after.peak_rss_bytes);
  return 0;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) { return argc == 2 ? forebay::Main(argv[1]) : forebay::Main(""); }
