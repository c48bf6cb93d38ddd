// tf.train.Example: Example{1: Features{1: map<string, Feature>}}, Feature being a oneof of lists
// of bytes (1), floats (2) and integers (3). Read as protobuf reads it, but only what is wanted.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/random.h"
#include "ops/dtype.h"
#include "ops/parser.h"
#include "ops/sparse.h"
#include "ops/wire.h"

namespace forebay::ops {
namespace {

enum class Kind : uint8_t { kNone = 0, kBytes = 1, kFloats = 2, kInts = 3 };

std::string_view NameOf(Kind kind) {
  return kind == Kind::kBytes ? "bytes" : kind == Kind::kFloats ? "floats" : "integers";
}

template <class Word>
uint64_t Load(const char* at) {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// The two ends of a name, which overlap where it is short: names of up to 16 bytes are equal when
// their sizes and ends are.
struct Ends {
  static constexpr size_t kWholeMost = 16;
  uint64_t first = 0, last = 0;

  explicit Ends(std::string_view name) {
    const char* const begin = name.data();
    const char* const end = begin + name.size();
    if (name.size() >= 8) {
      first = Load<uint64_t>(begin), last = Load<uint64_t>(end - 8);
    } else if (name.size() >= 4) {
      first = Load<uint32_t>(begin), last = Load<uint32_t>(end - 4);
    } else if (name.size() >= 2) {
      first = Load<uint16_t>(begin), last = Load<uint16_t>(end - 2);
    } else if (name.size() == 1) {
      first = Load<uint8_t>(begin);
    }
  }
  bool operator==(const Ends&) const = default;
  // Cheap, and only spread by.
  uint64_t Hash(size_t size) const {
    return ((first ^ std::rotl(last, 29) ^ size) * 0x9e3779b97f4a7c15ULL) >> 32;
  }
};

// What is wanted of the record.
struct Feature {
  bool IsNamed(std::string_view name, const Ends& its_ends) const {
    return key.size() == name.size() && ends == its_ends &&
           (name.size() <= Ends::kWholeMost || key == name);
  }

  std::string key;
  Ends ends;
  std::string head = "";  // of its entries that are plain: see TakePlain. "": none is
  Ends head_ends = Ends("");
  Kind kind = Kind::kInts;
  uint64_t count = 1;       // of values
  uint64_t value_size = 8;  // bytes
  bool has_default = false;
  bool pad = false;
  double default_value = 0;
  bool ragged = false;
  size_t result = 0;
  std::vector<size_t> copies = {};  // further results that are the same: of shared indices
};

// A vector of which two ragged results are the values and their places.
struct Sparse {
  std::string key;  // of the values
  size_t values = 0, indices = 0;
  uint64_t size = 0;
  uint64_t value_size = 0;  // bytes
};

// What has been found of it so far. Set by Reset: of most records few of the places are used.
struct Found {
  Kind kind;
  uint64_t count;
};

// Fields 1 and 2 of a message, which are bytes.
constexpr char kField1 = 1 << 3 | static_cast<char>(WireType::kBytes);
constexpr char kField2 = 2 << 3 | static_cast<char>(WireType::kBytes);
constexpr size_t kShortMost = 0x7F;  // a length in one byte

constexpr uint64_t kRaggedMost = uint64_t{1} << 27;  // values of a feature: 1 GiB of integers

Status OtherKind(const Feature& feature, const Found& found) {
  return Status(Code::kDataLoss, fmt::format("the feature '{}' holds {}, not {}", feature.key,
                                             NameOf(found.kind), NameOf(feature.kind)));
}

Status Damaged() {
  return Status(Code::kDataLoss, "no tf.train.Example: its bytes are damaged or cut short");
}

class ExampleParser : public Parser {
 public:
  explicit ExampleParser(const ParseExampleOp& op);
  const std::vector<Parsed>& results() const override { return results_; }
  // An integer may be one byte; indices come once for each vector that has them.
  uint64_t ragged_each() const override {
    uint64_t most = 0;
    for (const Feature& feature : features_) {
      if (!feature.ragged) continue;
      const uint64_t each = feature.kind == Kind::kInts ? sizeof(int64_t) : 1;
      most = std::max(most, each * (1 + feature.copies.size()));
    }
    return most;
  }
  Status Parse(ByteView field, const ParserOut& out) const override;

 private:
  static constexpr size_t kNoFeature = ~size_t{0};

  struct Run {
    const ParserOut& out;
    std::span<Found> found;
    size_t last;  // the feature that came last; at first their number
    size_t next;  // the one that may come now
  };

  size_t Find(ByteView key, size_t likely) const;
  void AddIndices(const ExampleFeature& wanted, const std::string& name);
  void Reset(size_t index, const Run& run) const;
  Status ParseFeatures(ByteView message, Run& run) const;
  Status ParseEntry(ByteView message, Run& run) const;
  Status TakeEntry(ByteView key, ByteView value, Run& run) const;
  static bool TakePlain(const Feature& feature, WireReader* reader, ByteView* values);
  size_t Next(size_t after) const { return after_[after].load(std::memory_order_relaxed); }
  void Learn(size_t after, size_t index) const;
  Status ParseFeature(size_t index, ByteView message, const Run& run) const;
  Status AddMany(size_t index, ByteView bytes, const Run& run) const;
  Status AddInts(size_t index, ByteView packed, const Run& run) const;
  Status ParseList(size_t index, ByteView message, const Run& run) const;
  void AddInt(size_t index, uint64_t value, const Run& run) const;
  void AddFloats(size_t index, ByteView values, const Run& run) const;
  void AddBytes(size_t index, ByteView value, const Run& run) const;
  Status Finish(size_t index, const Run& run) const;
  Status FinishRagged(size_t index, const Run& run) const;
  // What comes after the first `done` values.
  static void Fill(const Feature& feature, uint64_t done, MutableBytes to);

  std::vector<Parsed> results_;
  std::vector<Feature> features_;
  std::vector<Sparse> sparse_;
  std::vector<size_t> ragged_;  // of features_
  // Open addressing, a power of two: 1 + the feature's index, 0 where there is none.
  std::vector<uint32_t> table_;
  // Of each feature, and at their number for the first, which one came behind it the last time: a
  // writer's records have one order. A guess, which may be wrong; of records in no order at all
  // it is learnt only so often, as threads would wait for each other.
  mutable std::vector<std::atomic<uint32_t>> after_;
  mutable std::atomic<uint32_t> learnt_ = 0;
};

ExampleParser::ExampleParser(const ParseExampleOp& op) {
  for (const ExampleFeature& wanted : op.features) {
    const Kind kind = wanted.dtype == "bytes"     ? Kind::kBytes
                      : wanted.dtype == "float32" ? Kind::kFloats
                                                  : Kind::kInts;
    Feature feature = {.key = wanted.key,
                       .ends = Ends(wanted.key),
                       .kind = kind,
                       .has_default = wanted.has_default,
                       .pad = wanted.pad,
                       .default_value = wanted.default_value,
                       .ragged = wanted.ragged || !wanted.indices.empty(),
                       .result = results_.size()};
    if (kind != Kind::kBytes) {
      feature.value_size = static_cast<uint64_t>(BytesOf(wanted.dtype));
      feature.count = BytesOf(wanted.dtype, wanted.shape) / feature.value_size;
    }
    const std::string& name = wanted.name.empty() ? wanted.key : wanted.name;
    results_.push_back({name, wanted.dtype, wanted.shape, feature.ragged});
    features_.push_back(std::move(feature));
    if (!wanted.indices.empty()) AddIndices(wanted, name);
  }
  for (size_t i = 0; i < features_.size(); ++i) {
    if (features_[i].ragged) ragged_.push_back(i);
  }
  for (Feature& feature : features_) {
    if (feature.key.size() > kShortMost) continue;
    feature.head = {kField1, static_cast<char>(feature.key.size())};
    feature.head += feature.key + kField2;
    feature.head_ends = Ends(feature.head);
  }
  after_ = std::vector<std::atomic<uint32_t>>(features_.size() + 1);
  for (size_t i = 0; i < features_.size(); ++i) after_[i] = static_cast<uint32_t>(i + 1);
  table_.resize(std::bit_ceil(2 * features_.size()));
  for (size_t i = 0; i < features_.size(); ++i) {
    size_t at = features_[i].ends.Hash(features_[i].key.size()) & (table_.size() - 1);
    while (table_[at] != 0) at = (at + 1) & (table_.size() - 1);
    table_[at] = static_cast<uint32_t>(i + 1);
  }
}

// Several vectors may have their indices in common.
void ExampleParser::AddIndices(const ExampleFeature& wanted, const std::string& name) {
  const size_t result = results_.size();
  results_.push_back({name + "_indices", "int64", {}, true});
  sparse_.push_back({wanted.key, result - 1, result, static_cast<uint64_t>(wanted.size),
                     static_cast<uint64_t>(BytesOf(wanted.dtype))});
  const auto known = std::ranges::find(features_, wanted.indices, &Feature::key);
  if (known != features_.end()) {
    known->copies.push_back(result);
    return;
  }
  features_.push_back({.key = wanted.indices,
                       .ends = Ends(wanted.indices),
                       .kind = Kind::kInts,
                       .ragged = true,
                       .result = result});
}

size_t ExampleParser::Find(ByteView key, size_t likely) const {
  const std::string_view text = AsText(key);
  const Ends ends(text);
  if (likely < features_.size() && features_[likely].IsNamed(text, ends)) return likely;
  for (size_t at = ends.Hash(text.size());; ++at) {
    const uint32_t entry = table_[at & (table_.size() - 1)];
    if (entry == 0) return kNoFeature;
    if (features_[entry - 1].IsNamed(text, ends)) return entry - 1;
  }
}

Status ExampleParser::Parse(ByteView field, const ParserOut& out) const {
  constexpr size_t kFew = 64;
  std::array<Found, kFew> few;
  std::vector<Found> many;
  Run run{.out = out, .found = {}, .last = features_.size(), .next = Next(features_.size())};
  if (features_.size() <= kFew) {
    run.found = std::span(few).first(features_.size());
  } else {
    many.resize(features_.size());
    run.found = many;
  }
  std::ranges::fill(run.found, Found{.kind = Kind::kNone, .count = 0});
  for (const size_t i : ragged_) Reset(i, run);
  WireReader reader(field);
  uint32_t number = 0;
  WireType type = {};
  while (!reader.done()) {
    if (!reader.Tag(&number, &type)) return Damaged();
    if (number != 1 || type != WireType::kBytes) {
      if (!reader.Skip(type)) return Damaged();
      continue;
    }
    ByteView features;
    if (!reader.Bytes(&features)) return Damaged();
    FB_RETURN_IF_ERROR(ParseFeatures(features, run));
  }
  for (size_t i = 0; i < features_.size(); ++i) FB_RETURN_IF_ERROR(Finish(i, run));
  for (const Sparse& sparse : sparse_) {
    auto status = OrderSparse(sparse.size, sparse.value_size, &out.ragged[sparse.indices],
                              &out.ragged[sparse.values]);
    if (status.ok()) continue;
    return std::move(status).WithContext(fmt::format("the feature '{}'", sparse.key));
  }
  return {};
}

void ExampleParser::Reset(size_t index, const Run& run) const {
  run.found[index] = {.kind = Kind::kNone, .count = 0};
  if (features_[index].ragged) run.out.ragged[features_[index].result].clear();
}

Status ExampleParser::ParseFeatures(ByteView message, Run& run) const {
  WireReader reader(message);
  uint32_t number = 0;
  WireType type = {};
  ByteView entry, values;
  while (!reader.done()) {
    if (run.next < features_.size() && TakePlain(features_[run.next], &reader, &values)) {
      const size_t index = run.next;
      run.last = index;
      run.next = Next(index);
      if (run.found[index].kind != Kind::kNone) Reset(index, run);
      run.found[index].kind = features_[index].kind;
      FB_RETURN_IF_ERROR(AddMany(index, values, run));
      continue;
    }
    if (!reader.Short(1, &entry)) {
      if (!reader.Tag(&number, &type)) return Damaged();
      if (number != 1 || type != WireType::kBytes) {
        if (!reader.Skip(type)) return Damaged();
        continue;
      }
      if (!reader.Bytes(&entry)) return Damaged();
    }
    FB_RETURN_IF_ERROR(ParseEntry(entry, run));
  }
  return {};
}

void ExampleParser::Learn(size_t after, size_t index) const {
  constexpr uint32_t kLearntMost = 1 << 16;
  if (learnt_.load(std::memory_order_relaxed) >= kLearntMost) return;
  learnt_.fetch_add(1, std::memory_order_relaxed);
  after_[after].store(static_cast<uint32_t>(index), std::memory_order_relaxed);
}

// The feature's entry as nearly all are: its key, then one list of its kind that is one value, if
// of bytes, or else packed, and each length in one byte. Their places are known beforehand:
//   field 1, length, the head (field 1, length, key, field 2), length, field of the kind, length,
//   field 1, length, values
// False: what comes is something else, and nothing was taken.
bool ExampleParser::TakePlain(const Feature& feature, WireReader* reader, ByteView* values) {
  constexpr size_t kBefore = 2, kBehind = 5;  // the head; up to the values
  const size_t head = feature.head.size();
  const size_t framing = kBefore + head + kBehind;
  if (head == 0 || reader->left() < framing) return false;
  const std::string_view text = AsText(reader->rest());
  const char* const behind = text.data() + kBefore + head;
  const auto length = [](char byte) { return static_cast<size_t>(static_cast<uint8_t>(byte)); };
  const size_t size = length(behind[4]);
  const auto kind = static_cast<char>(static_cast<char>(feature.kind) << 3 | kField1 % 8);
  const bool plain = text[0] == kField1 && length(text[1]) == size + framing - kBefore &&
                     length(text[1]) <= kShortMost && length(behind[0]) == size + 4 &&
                     behind[1] == kind && length(behind[2]) == size + 2 && behind[3] == kField1;
  if (!plain || reader->left() - framing < size) return false;
  const std::string_view its_head = text.substr(kBefore, head);
  if (Ends(its_head) != feature.head_ends) return false;
  if (head > Ends::kWholeMost && its_head != feature.head) return false;
  *values = reader->rest().subspan(framing, size);
  return reader->Advance(framing + size);
}

// A later entry of the same key replaces an earlier one.
Status ExampleParser::ParseEntry(ByteView message, Run& run) const {
  ByteView key, value;
  if (WireReader plain(message);
      plain.Short(1, &key) && plain.Short(2, &value) && plain.done()) {  // as it is written
    return TakeEntry(key, value, run);
  }
  key = value = {};
  WireReader reader(message);
  uint32_t number = 0;
  WireType type = {};
  bool has_value = false;
  while (!reader.done()) {
    if (!reader.Tag(&number, &type)) return Damaged();
    if (number > 2 || type != WireType::kBytes) {
      if (!reader.Skip(type)) return Damaged();
      continue;
    }
    ByteView bytes;
    if (!reader.Bytes(&bytes)) return Damaged();
    if (number == 1) {
      key = bytes;
    } else if (!std::exchange(has_value, true)) {
      value = bytes;
    } else {
      // Protobuf would merge them; nobody writes that.
      return Status(Code::kDataLoss, "a tf.train.Example whose entry has two values");
    }
  }
  return TakeEntry(key, value, run);
}

Status ExampleParser::TakeEntry(ByteView key, ByteView value, Run& run) const {
  const size_t index = Find(key, run.next);
  if (index == kNoFeature) return {};
  if (index != run.next) Learn(run.last, index);
  run.last = index;
  run.next = Next(index);
  Reset(index, run);
  return ParseFeature(index, value, run);
}

Status ExampleParser::ParseFeature(size_t index, ByteView message, const Run& run) const {
  WireReader reader(message);
  uint32_t number = 0;
  WireType type = {};
  Found& found = run.found[index];
  const auto wanted = static_cast<uint32_t>(features_[index].kind);
  ByteView list;
  while (!reader.done()) {
    if (reader.Short(wanted, &list)) {
      number = wanted;
    } else {
      if (!reader.Tag(&number, &type)) return Damaged();
      if (number > 3 || type != WireType::kBytes) {
        if (!reader.Skip(type)) return Damaged();
        continue;
      }
      if (!reader.Bytes(&list)) return Damaged();
    }
    const auto kind = static_cast<Kind>(number);
    // Of a oneof the last one counts; of the same one, the lists go on.
    if (found.kind != kind) {
      Reset(index, run);
      found.kind = kind;
    }
    if (kind == features_[index].kind) FB_RETURN_IF_ERROR(ParseList(index, list, run));
  }
  return {};
}

Status ExampleParser::ParseList(size_t index, ByteView message, const Run& run) const {
  WireReader reader(message);
  const Kind kind = features_[index].kind;
  const WireType single = kind == Kind::kInts     ? WireType::kVarint
                          : kind == Kind::kFloats ? WireType::kFixed32
                                                  : WireType::kBytes;
  uint32_t number = 0;
  WireType type = {};
  ByteView bytes;
  while (!reader.done()) {
    if (reader.Short(1, &bytes)) {
      FB_RETURN_IF_ERROR(AddMany(index, bytes, run));
      continue;
    }
    if (!reader.Tag(&number, &type)) return Damaged();
    if (number != 1 || (type != single && type != WireType::kBytes)) {
      if (!reader.Skip(type)) return Damaged();
      continue;
    }
    if (type == WireType::kVarint) {
      uint64_t value = 0;
      if (!reader.Varint(&value)) return Damaged();
      AddInt(index, value, run);
    } else if (type == WireType::kFixed32) {
      uint32_t value = 0;
      if (!reader.Fixed32(&value)) return Damaged();
      AddFloats(index, std::as_bytes(std::span(&value, 1)), run);
    } else {
      if (!reader.Bytes(&bytes)) return Damaged();
      FB_RETURN_IF_ERROR(AddMany(index, bytes, run));
    }
  }
  return {};
}

// One value that is bytes, or many numbers.
Status ExampleParser::AddMany(size_t index, ByteView bytes, const Run& run) const {
  const Kind kind = features_[index].kind;
  if (kind == Kind::kBytes) {
    AddBytes(index, bytes, run);
    return {};
  }
  if (kind == Kind::kFloats) {
    if (bytes.size() % sizeof(float) != 0) return Damaged();
    AddFloats(index, bytes, run);
    return {};
  }
  return AddInts(index, bytes, run);
}

Status ExampleParser::AddInts(size_t index, ByteView bytes, const Run& run) const {
  const Feature& feature = features_[index];
  Found& found = run.found[index];
  WireReader packed(bytes);
  uint64_t value = 0;
  if (feature.ragged) {
    while (!packed.done()) {
      if (!packed.Varint(&value)) return Damaged();
      AddInt(index, value, run);
    }
    return {};
  }
  const MutableBytes to = run.out.arrays[feature.result];
  const uint64_t most = to.empty() ? 0 : feature.count;
  uint64_t count = found.count;
  while (!packed.done()) {
    if (!packed.Varint(&value)) return Damaged();
    if (count < most) std::memcpy(to.data() + count * sizeof(value), &value, sizeof(value));
    ++count;
  }
  found.count = count;
  return {};
}

void ExampleParser::Fill(const Feature& feature, uint64_t done, MutableBytes to) {
  const auto integer = static_cast<int64_t>(feature.default_value);
  const auto real = static_cast<float>(feature.default_value);
  const void* value = feature.kind == Kind::kInts ? static_cast<const void*>(&integer) : &real;
  for (size_t at = done * feature.value_size; at < to.size(); at += feature.value_size) {
    std::memcpy(to.data() + at, value, feature.value_size);
  }
}

// Values beyond those that are wanted are only counted: a later entry may replace them all.
void ExampleParser::AddInt(size_t index, uint64_t value, const Run& run) const {
  Found& found = run.found[index];
  const Feature& feature = features_[index];
  if (feature.ragged) {
    if (found.count++ < kRaggedMost) {
      const auto bytes = std::as_bytes(std::span(&value, 1));
      std::vector<std::byte>& all = run.out.ragged[feature.result];
      all.insert(all.end(), bytes.begin(), bytes.end());
    }
    return;
  }
  const MutableBytes to = run.out.arrays[feature.result];
  if (found.count < feature.count && !to.empty()) {
    std::memcpy(to.data() + found.count * sizeof(value), &value, sizeof(value));
  }
  ++found.count;
}

void ExampleParser::AddFloats(size_t index, ByteView values, const Run& run) const {
  Found& found = run.found[index];
  const Feature& feature = features_[index];
  const uint64_t wanted = feature.count;
  const uint64_t count = values.size() / sizeof(float);
  if (feature.ragged) {  // no more than the record has: a bound
    std::vector<std::byte>& all = run.out.ragged[feature.result];
    all.insert(all.end(), values.begin(), values.end());
    found.count += count;
    return;
  }
  const MutableBytes to = run.out.arrays[feature.result];
  if (found.count < wanted && count > 0 && !to.empty()) {
    std::memcpy(to.data() + found.count * sizeof(float), values.data(),
                std::min(count, wanted - found.count) * sizeof(float));
  }
  found.count += count;
}

void ExampleParser::AddBytes(size_t index, ByteView value, const Run& run) const {
  if (run.found[index].count++ == 0) run.out.fields[features_[index].result] = value;
}

// A feature that is missing, or without a kind, is an empty one.
Status ExampleParser::FinishRagged(size_t index, const Run& run) const {
  const Feature& feature = features_[index];
  const Found& found = run.found[index];
  if (found.kind != Kind::kNone && found.kind != feature.kind) return OtherKind(feature, found);
  if (found.count > kRaggedMost) {
    return Status(Code::kDataLoss, fmt::format("the feature '{}' has {} values, and {} at most are "
                                               "taken",
                                               feature.key, found.count, kRaggedMost));
  }
  for (const size_t copy : feature.copies) run.out.ragged[copy] = run.out.ragged[feature.result];
  return {};
}

// Whether all of it was there; a feature without a kind is as one that is missing.
Status ExampleParser::Finish(size_t index, const Run& run) const {
  const Feature& feature = features_[index];
  const Found& found = run.found[index];
  if (feature.ragged) return FinishRagged(index, run);
  if (found.kind == feature.kind && found.count == feature.count) return {};
  const bool missing = found.kind == Kind::kNone;
  if ((missing && (feature.has_default || feature.pad)) ||
      (found.kind == feature.kind && feature.pad && found.count < feature.count)) {
    Fill(feature, found.count, run.out.arrays[feature.result]);
    return {};
  }
  if (missing) {
    return Status(Code::kDataLoss,
                  fmt::format("there is no feature '{}', and no default for it", feature.key));
  }
  if (found.kind != feature.kind) return OtherKind(feature, found);
  return Status(Code::kDataLoss, fmt::format("the feature '{}' has {} values, and {} are wanted",
                                             feature.key, found.count, feature.count));
}

}  // namespace

std::unique_ptr<const Parser> MakeExampleParser(const ParseExampleOp& op) {
  return std::make_unique<ExampleParser>(op);
}

}  // namespace forebay::ops
