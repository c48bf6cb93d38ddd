// The floor of records_bench.py: the bare loop over the records of a folder's shards.
//
// usage: records_floor FOLDER [LAPS [example]]
//
// One thread; places are known. Each record is opened as its container says, its CRC-32C verified
// (TFRecord's own; of others that of the first scan), and its bytes copied into a batch of 64, one
// of four. Twice: from shards that lie in memory, and read in pieces of 4 MiB into one buffer.
// Prints the payload's GB per CPU second, median of the laps. `example`: the records are
// tf.train.Example of f0 to f4, integers, and f5 to f8, pairs of floats, which are parsed into
// batches of 4,096 instead of copied; prints millions of records.
#include <fcntl.h>
#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "forebay/ops.h"
#include "format/container.h"
#include "ops/chain.h"

namespace {

using namespace forebay;          // NOLINT: a program
using namespace forebay::format;  // NOLINT

constexpr size_t kBatch = 64;
constexpr size_t kBatches = 4;
constexpr uint64_t kPiece = 4ULL << 20;

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "records_floor: %s\n", why.c_str());
  std::exit(1);
}

struct Field {
  std::string name;
  ByteRange range;
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of `range`
};

struct Opened {
  int file = -1;
  Kind kind = Kind::kUnknown;
  std::vector<std::byte> bytes;
  std::vector<Field> fields;
};

void ReadAll(int file, uint64_t offset, MutableBytes into) {
  while (!into.empty()) {
    const ssize_t n = pread(file, into.data(), into.size(), static_cast<off_t>(offset));
    if (n <= 0) Die("a shard cannot be read");
    into = into.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
}

Opened Open(const std::filesystem::path& path) {
  Opened shard;
  shard.file = open(path.c_str(), O_RDONLY);
  if (shard.file < 0) Die(path.string() + " cannot be opened");
  shard.bytes.resize(std::filesystem::file_size(path));
  ReadAll(shard.file, 0, shard.bytes);
  const Shard of_memory{.name = path.filename(),
                        .size = shard.bytes.size(),
                        .read = [&shard](ByteRange range, MutableBytes into) {
                          std::memcpy(into.data(), shard.bytes.data() + range.offset, range.size());
                          return Status();
                        }};
  const auto kind = SniffShard(of_memory);
  if (!kind.ok()) Die(kind.status().ToString());
  shard.kind = *kind;
  if (std::ranges::find(Containers(), shard.kind) == Containers().end()) return shard;  // an index
  ScanReport report;
  const Status scanned = ScanContainer(
      shard.kind, of_memory, {},
      [&shard](FoundRecord record) {
        for (const FoundField& field : record.fields) {
          const auto range = ByteView(shard.bytes).subspan(field.range.offset, field.range.size());
          shard.fields.push_back({field.name, field.range, field.bytes, Crc32c(range)});
        }
        return Status();
      },
      &report);
  if (!scanned.ok()) Die(scanned.ToString());
  return shard;
}

// Where records end up.
class Batches {
 public:
  virtual ~Batches() = default;
  // What it counts of it.
  virtual uint64_t Add(ByteView record) = 0;
};

class Copied : public Batches {
 public:
  explicit Copied(uint64_t record_most)
      : bytes_(kBatch * kBatches * record_most), record_most_(record_most) {}
  uint64_t Add(ByteView record) override {
    std::memcpy(bytes_.data() + next_ * record_most_, record.data(), record.size());
    next_ = (next_ + 1) % (kBatch * kBatches);
    return record.size();
  }

 private:
  std::vector<std::byte> bytes_;
  uint64_t record_most_;
  size_t next_ = 0;
};

class Parsed : public Batches {
 public:
  Parsed() {
    ParseExampleOp op;
    for (int k = 0; k < kIntegers; ++k) op.features.push_back({.key = fmt::format("f{}", k)});
    for (int k = kIntegers; k < kFeatures; ++k) {
      op.features.push_back({.key = fmt::format("f{}", k), .dtype = "float32", .shape = {2}});
    }
    const auto chain = ops::Chain::Compile({{.name = "data"}}, {Op(op)});
    if (!chain.ok()) Die(chain.status().ToString());
    chain_ = *chain;
    worker_ = chain_->MakeWorker();
    for (const ops::OutputArray& array : chain_->outputs())
      arrays_.emplace_back(kRows * array.bytes);
    row_.resize(arrays_.size());
  }
  uint64_t Add(ByteView record) override {
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const uint64_t bytes = chain_->outputs()[i].bytes;
      row_[i] = MutableBytes(arrays_[i]).subspan(next_ * bytes, bytes);
    }
    const Status status = worker_->Run({}, std::span(&record, 1), row_);
    if (!status.ok()) Die(status.ToString());
    next_ = (next_ + 1) % kRows;
    return kAsMillion;
  }

 private:
  static constexpr int kIntegers = 5, kFeatures = 9;
  static constexpr size_t kRows = 4096;
  static constexpr uint64_t kAsMillion = 1000;  // what is counted is divided by 1e9
  std::shared_ptr<const ops::Chain> chain_;
  std::unique_ptr<ops::Worker> worker_;
  std::vector<std::vector<std::byte>> arrays_;
  std::vector<MutableBytes> row_;
  size_t next_ = 0;
};

// `range` holds the field's bytes.
uint64_t Take(const Opened& shard, const Field& field, ByteView range, Batches& batches) {
  static std::vector<std::byte> scratch;
  if (shard.kind != Kind::kTfRecord && Crc32c(range) != field.crc32c) Die("a wrong checksum");
  const auto opened = OpenField(shard.kind, {}, field.name, range, field.bytes, &scratch);
  if (!opened.ok()) Die(opened.status().ToString());
  return batches.Add(*opened);
}

uint64_t LapOfMemory(const Opened& shard, Batches& batches) {
  uint64_t payload = 0;
  for (const Field& field : shard.fields) {
    const auto range = ByteView(shard.bytes).subspan(field.range.offset, field.range.size());
    payload += Take(shard, field, range, batches);
  }
  return payload;
}

uint64_t LapOfFile(const Opened& shard, Batches& batches) {
  static std::vector<std::byte> piece;
  uint64_t payload = 0;
  for (size_t first = 0; first < shard.fields.size();) {
    const uint64_t begin = shard.fields[first].range.offset;
    size_t end = first + 1;
    while (end < shard.fields.size() && shard.fields[end].range.end - begin <= kPiece) ++end;
    piece.resize(shard.fields[end - 1].range.end - begin);
    ReadAll(shard.file, begin, piece);
    for (; first < end; ++first) {
      const Field& field = shard.fields[first];
      const auto range = ByteView(piece).subspan(field.range.offset - begin, field.range.size());
      payload += Take(shard, field, range, batches);
    }
  }
  return payload;
}

double Measure(const std::vector<Opened>& shards, int laps, Batches& batches,
               uint64_t (*lap)(const Opened&, Batches&)) {
  std::vector<double> found;
  for (int i = 0; i <= laps; ++i) {
    const double start = CpuSeconds();
    uint64_t payload = 0;
    for (const Opened& shard : shards) payload += lap(shard, batches);
    if (i > 0) found.push_back(static_cast<double>(payload) / (CpuSeconds() - start) / 1e9);
  }
  std::ranges::sort(found);
  return found[found.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("usage: records_floor FOLDER [LAPS [example]]");
  const int laps = argc > 2 ? std::atoi(argv[2]) : 9;
  std::vector<Opened> shards;
  uint64_t most = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    if (!entry.is_regular_file()) continue;
    shards.push_back(Open(entry.path()));
    for (const Field& field : shards.back().fields) most = std::max(most, field.bytes);
  }
  if (most == 0 || laps < 1) Die("no records, or no laps");
  std::unique_ptr<Batches> batches = std::make_unique<Copied>(most);
  if (argc > 3 && std::string_view(argv[3]) == "example") batches = std::make_unique<Parsed>();
  const double memory = Measure(shards, laps, *batches, LapOfMemory);
  const double files = Measure(shards, laps, *batches, LapOfFile);
  fmt::print("{{\"memory\": {:.3f}, \"files\": {:.3f}}}\n", memory, files);
}
