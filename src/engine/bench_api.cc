// include/forebay/bench.h over StoreSet.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <utility>

#include "base/random.h"
#include "engine/bench_cell.h"
#include "engine/open_catalog.h"
#include "engine/store_set.h"
#include "forebay/bench.h"
#include "store/sync_store.h"
#include "sys/fd.h"
#include "sys/thread.h"

namespace forebay {
namespace engine {
namespace {

using store::ObjectInfo;
using store::SyncStore;
using store::Uri;

constexpr uint64_t kBlockBytes = 4096;  // what direct reads are made of
constexpr uint64_t kObjectsMax = 1'000'000;
constexpr size_t kDeletesAtOnce = 32;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }  // NOLINT: aligned_alloc's
};
using AlignedBytes = std::unique_ptr<std::byte[], Free>;

// Touched, so that no page fault falls into a measurement.
AlignedBytes MakeBuffer(uint64_t bytes, uint64_t seed) {
  const uint64_t rounded = (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  AlignedBytes buffer(static_cast<std::byte*>(std::aligned_alloc(kBlockBytes, rounded)));
  if (!buffer) return buffer;
  // Noise: some stores compress, some find what they have already.
  Random random(seed);
  for (uint64_t at = 0; at < rounded; at += sizeof(uint64_t)) {
    const uint64_t word = random.Next();
    std::memcpy(buffer.get() + at, &word, sizeof word);
  }
  return buffer;
}

class StoreBenchImpl : public StoreBench {
 public:
  StoreBenchImpl(std::shared_ptr<StoreSet> set, SyncStore store, const BenchOptions& options)
      : set_(std::move(set)), store_(std::move(store)), options_(options) {}
  ~StoreBenchImpl() override { DeletePuts(); }

  const std::string& root() const override { return store_.async().root_uri(); }
  bool direct() const override { return direct_; }
  uint64_t objects() const override { return objects_.size(); }
  uint64_t bytes() const override { return bytes_; }
  uint64_t Room(uint64_t range_bytes) const override {
    if (put_) return UINT64_MAX;
    return range_bytes == 0 ? 0 : positions_->Room(range_bytes);
  }
  Result<BenchRun> Run(const BenchCell& cell,
                       const std::function<bool(const BenchProgress&)>& on_progress) override;

  Status AddObjects(const Uri& uri);
  // Whether files can be read past the page cache here.
  bool FirstReadsDirectly() const;
  void TakeObjects(StoreBenchImpl& other) {
    objects_ = std::move(other.objects_);
    bytes_ = other.bytes_;
  }
  Status Prepare(const Uri& first, bool put, bool direct);

 private:
  Status Check(const BenchCell& cell) const;
  Result<std::vector<BenchPlace>> TakePlaces(const BenchCell& cell);
  std::vector<std::string> MakeKeys(const BenchCell& cell);
  void DeletePuts();
  store::StoreCounters Counters() const;

  std::shared_ptr<StoreSet> set_;
  SyncStore store_;
  const BenchOptions options_;
  bool put_ = false;
  bool direct_ = false;
  uint64_t seed_ = 0;
  std::vector<ObjectInfo> objects_;
  uint64_t bytes_ = 0;
  std::unique_ptr<BenchPositions> positions_;
  std::string put_prefix_;
  uint64_t puts_ = 0;
};

Status StoreBenchImpl::AddObjects(const Uri& uri) {
  const auto add = [this](const ObjectInfo& object) {
    if (object.size == 0 || object.key.find(".forebay/") != object.key.npos) return true;
    objects_.push_back(object);
    bytes_ += object.size;
    return objects_.size() < kObjectsMax;
  };
  if (!uri.key.empty() && !uri.key.ends_with('/')) {
    Result<ObjectInfo> object = store_.Head(uri.key);
    if (object.ok()) {
      add(*object);
      return {};
    }
    if (object.code() != Code::kNotFound) return std::move(object).status();
  }
  return store_.ListAll(PrefixOf(uri), add);
}

Status StoreBenchImpl::Prepare(const Uri& first, bool put, bool direct) {
  put_ = put;
  direct_ = direct;
  seed_ = options_.seed;
  if (seed_ == 0) seed_ = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  if (put) {
    put_prefix_ =
        fmt::format("{}forebay-bench-{:016x}-{}/", PrefixOf(first), seed_, options_.share);
    return {};
  }
  if (bytes_ == 0) {
    return Status(Code::kNotFound, "no bytes are there to read", {.uri = first.ToString()});
  }
  std::vector<uint64_t> sizes;
  sizes.reserve(objects_.size());
  for (const ObjectInfo& object : objects_) sizes.push_back(object.size);
  positions_ = std::make_unique<BenchPositions>(sizes, seed_);
  return {};
}

Status StoreBenchImpl::Check(const BenchCell& cell) const {
  const auto bad = [](std::string why) { return Status(Code::kInvalidArgument, std::move(why)); };
  if (cell.put != put_) return bad("this benchmark was opened for the other operation");
  if (cell.range_bytes == 0 || cell.requests == 0) return bad("a range or no request is empty");
  if (cell.in_flight == 0 || cell.in_flight > options_.in_flight_limit) {
    return bad(fmt::format("in flight must be in [1, {}]", options_.in_flight_limit));
  }
  if (!put_ && cell.range_bytes > options_.buffer_bytes / cell.in_flight) {
    return bad(fmt::format("{} requests of {} in flight need more than the {} of buffers",
                           cell.in_flight, FormatSize(cell.range_bytes),
                           FormatSize(options_.buffer_bytes)));
  }
  if (put_ && cell.range_bytes > options_.buffer_bytes) return bad("the body is too large");
  if (direct_ && cell.range_bytes % kBlockBytes != 0) {
    return bad("direct reads of files need a range that is a multiple of 4 KiB");
  }
  return {};
}

Result<std::vector<BenchPlace>> StoreBenchImpl::TakePlaces(const BenchCell& cell) {
  FB_ASSIGN_OR_RETURN(const std::vector<BenchPlace> all,
                      positions_->Take(cell.requests * options_.shares, cell.range_bytes));
  std::vector<BenchPlace> mine;
  for (size_t i = options_.share; i < all.size(); i += options_.shares) mine.push_back(all[i]);
  return mine;
}

std::vector<std::string> StoreBenchImpl::MakeKeys(const BenchCell& cell) {
  std::vector<std::string> keys;
  keys.reserve(cell.requests);
  for (uint64_t i = 0; i < cell.requests; ++i) {
    // Spread over names, as data sets are; not over prefixes, which have limits of their own.
    keys.push_back(fmt::format("{}{:08}", put_prefix_, puts_++));
  }
  return keys;
}

store::StoreCounters StoreBenchImpl::Counters() const {
  const auto counters = set_->Counters();
  const auto found = counters.find(root());
  return found == counters.end() ? store::StoreCounters{} : found->second;
}

Result<BenchRun> StoreBenchImpl::Run(const BenchCell& cell,
                                     const std::function<bool(const BenchProgress&)>& on_progress) {
  FB_RETURN_IF_ERROR(Check(cell));
  BenchWork work{.cell = cell, .objects = &objects_};
  std::vector<BenchPlace> places;
  if (put_) {
    work.keys = MakeKeys(cell);
  } else {
    FB_ASSIGN_OR_RETURN(places, TakePlaces(cell));
    work.places = places;
  }
  const uint64_t size = cell.range_bytes * (put_ ? 1 : cell.in_flight);
  const AlignedBytes buffer = MakeBuffer(size, seed_ + puts_);
  if (!buffer) return Status(Code::kResourceExhausted, "no memory for the buffers");
  work.buffer = {buffer.get(), size};
  const store::VerbCounters before = Counters().of(put_ ? store::Verb::kPut : store::Verb::kRead);
  const Duration timeout = std::chrono::milliseconds(set_->options().request_timeout_ms);
  FB_ASSIGN_OR_RETURN(BenchRun run,
                      RunBenchWork(store_.async(), std::move(work), timeout, on_progress));
  // They are read in their order. What other ranks have read of theirs is not known here.
  if (!put_ && options_.shares == 1 && run.requests < places.size()) {
    positions_->GiveBack(std::span(places).subspan(run.requests), cell.range_bytes);
  }
  const store::VerbCounters after = Counters().of(put_ ? store::Verb::kPut : store::Verb::kRead);
  constexpr auto kThrottled = static_cast<size_t>(Code::kResourceExhausted);
  run.retries = after.retried() - before.retried();
  run.throttled = after.retries[kThrottled] + after.results[kThrottled] -
                  before.retries[kThrottled] - before.results[kThrottled];
  run.node_cpus = sys::CpuCount();
  return run;
}

void StoreBenchImpl::DeletePuts() {
  if (puts_ == 0) return;
  // By name: a listing may not show yet what was put just now. Best effort, as after every failure.
  const auto pool = sys::WorkPool::Make(
      {.name = "fb-delete", .threads = kDeletesAtOnce, .queue_limit = kDeletesAtOnce});
  if (!pool.ok()) return;
  for (uint64_t i = 0; i < puts_; ++i) {
    (void)(*pool)->Submit(
        [this, i] { (void)store_.Delete(fmt::format("{}{:08}", put_prefix_, i)); });
  }
  (*pool)->Stop();
}

bool StoreBenchImpl::FirstReadsDirectly() const {
  const auto file = std::ranges::find_if(
      objects_, [](const ObjectInfo& object) { return object.size >= kBlockBytes; });
  const auto root = sys::OpenDirectory("/");
  if (!root.ok() || file == objects_.end()) return false;
  const auto opened = sys::OpenAt(*root, file->key, sys::Open::kDirect, false);
  const AlignedBytes block = MakeBuffer(kBlockBytes, 0);
  return opened.ok() && block &&
         sys::ReadAt(*opened, 0, {block.get(), kBlockBytes}, file->key).ok();
}

}  // namespace
}  // namespace engine

Result<std::unique_ptr<StoreBench>> StoreBench::Open(const std::vector<std::string>& uris, bool put,
                                                     const StoreOptions& store,
                                                     const BenchOptions& options) {
  if (uris.empty() || (put && uris.size() > 1)) {
    return Status(Code::kInvalidArgument, "give objects and prefixes to read, or one to put below");
  }
  if (options.shares == 0 || options.share >= options.shares) {
    return Status(Code::kInvalidArgument, "share is not in [0, shares)");
  }
  std::vector<store::Uri> parsed;
  for (const std::string& text : uris) {
    FB_ASSIGN_OR_RETURN(store::Uri uri, store::ParseUri(text));
    if (!parsed.empty() && (uri.scheme != parsed[0].scheme || uri.bucket != parsed[0].bucket)) {
      return Status(Code::kInvalidArgument, "all must lie in one bucket, or all in files");
    }
    parsed.push_back(std::move(uri));
  }
  const auto open = [&](bool direct) -> Result<std::unique_ptr<engine::StoreBenchImpl>> {
    const engine::StoreTuning tuning{.bare = true, .disk_threads = 64, .direct_reads = direct};
    FB_ASSIGN_OR_RETURN(auto set, engine::StoreSet::Make(store, tuning));
    FB_ASSIGN_OR_RETURN(auto opened, set->StoreFor(parsed[0]));
    return std::make_unique<engine::StoreBenchImpl>(std::move(set),
                                                    store::SyncStore(std::move(opened)), options);
  };
  const bool files = !put && parsed[0].scheme == store::Uri::Scheme::kFile;
  FB_ASSIGN_OR_RETURN(auto bench, open(files));
  for (const store::Uri& uri : parsed) {
    if (!put) FB_RETURN_IF_ERROR(bench->AddObjects(uri));
  }
  const bool direct = files && bench->FirstReadsDirectly();
  if (files && !direct) {
    FB_ASSIGN_OR_RETURN(auto buffered, open(false));
    buffered->TakeObjects(*bench);
    bench = std::move(buffered);
  }
  FB_RETURN_IF_ERROR(bench->Prepare(parsed[0], put, direct));
  return std::unique_ptr<StoreBench>(std::move(bench));
}

}  // namespace forebay
