#include "feed/record_samples.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <list>
#include <unordered_map>
#include <utility>

#include "base/assert.h"
#include "base/stream_copy.h"
#include "feed/batch_layout.h"
#include "feed/byte_arena.h"
#include "feed/late_rows.h"

namespace forebay::feed {
namespace {

constexpr uint64_t kChunkBytes = 4ULL << 20;        // of neighbours, about
constexpr uint64_t kChunkExtentBytes = 8ULL << 20;  // one GET's worth
constexpr uint64_t kChunkSamplesMost = 1024;
constexpr uint64_t kChunkGapBytes = 256 << 10;  // read through; equal for all that share it
constexpr size_t kChunksKept = 256;             // their records' places
constexpr uint64_t kUnitBytes = 128 << 10;      // of a decode job, about
constexpr size_t kUnitRows = 256;

// It decides the blocks of a block shuffle: a function of the catalog alone, whatever is appended.
uint64_t ChunkSamples(const catalog::RecordsCatalog& catalog) {
  const uint64_t mean = std::max<uint64_t>(catalog.mean_bytes(), 1);
  return std::bit_floor(std::clamp<uint64_t>(kChunkBytes / mean, 1, kChunkSamplesMost));
}

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

}  // namespace

// What a row is made of.
struct RecordSamples::RowRecord {
  uint64_t sample = 0;
  KeptSamples::Value kept;  // not null: nothing is read
  const catalog::RecordEntry* record = nullptr;
};

// The rows of a plan, and what their records lie in.
struct RecordSamples::Rows {
  std::vector<RowRecord> rows;
  catalog::RecordEntry own;  // where there is one row
  std::vector<std::shared_ptr<const Chunk>> chunks;
};

// Neighbouring records, and what is read for them: each lies in one extent.
struct RecordSamples::Chunk {
  uint64_t first = 0;
  std::vector<catalog::RecordEntry> records;
  std::vector<uint32_t> extent_of;
  std::vector<uint64_t> used_bytes;  // of each, what is needed
  std::vector<Extent> extents;
  bool Holds(uint64_t sample) const { return sample - first < records.size(); }
};

// The chunks used last.
class RecordSamples::Chunks {
 public:
  std::shared_ptr<const Chunk> Find(uint64_t number) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto it = kept_.find(number);
    if (it == kept_.end()) return nullptr;
    by_use_.splice(by_use_.begin(), by_use_, it->second.place);
    return it->second.chunk;
  }
  void Keep(uint64_t number, std::shared_ptr<const Chunk> chunk) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (kept_.contains(number)) return;
    if (kept_.size() == kChunksKept) {
      kept_.erase(by_use_.back());
      by_use_.pop_back();
    }
    by_use_.push_front(number);
    kept_[number] = {std::move(chunk), by_use_.begin()};
  }

 private:
  struct Kept {
    std::shared_ptr<const Chunk> chunk;
    std::list<uint64_t>::iterator place;
  };
  Mutex mutex_;
  std::unordered_map<uint64_t, Kept> kept_ FB_GUARDED_BY(mutex_);
  std::list<uint64_t> by_use_ FB_GUARDED_BY(mutex_);  // the latest first
};

// Runs the chain over rows. Scratch of one worker.
class RecordSamples::Decoder : public SampleDecoder {
 public:
  explicit Decoder(const RecordSamples& samples)
      : samples_(samples),
        opener_(samples.fields_->MakeOpener(samples.needed_)),
        worker_(samples.chain_->MakeWorker()),
        fields_(samples.fields_->fields().size()),
        inputs_(samples.columns_.size()) {}

  Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes, const RowTargets& rows,
                size_t* bad_row) override {
    const auto& records = static_cast<const Rows*>(plan.detail.get())->rows;
    const size_t first = plan.units[unit].first_row;
    if (samples_.late_) {
      arena_ = std::make_shared<ByteArena>();
      rows[0].late->Keep(arena_);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const RowRecord& record = records[first + i];
      const Status status = DecodeRow(record, bytes, rows[i]);
      if (status.ok()) continue;
      *bad_row = i;
      return Explain(*record.record, status);
    }
    return {};
  }

 private:
  // Bytes of the shard, by what was fetched for the unit.
  class Fetched : public FetchedBytes {
   public:
    Fetched(const UnitBytes& bytes, uint32_t shard) : bytes_(bytes), shard_(shard) {}
    Result<ByteView> Contiguous(ByteRange range, std::vector<std::byte>& scratch) const override {
      if (range.empty()) return ByteView();
      FB_ASSIGN_OR_RETURN(const Place place, Find(range));
      return place.buffer->Contiguous(place.offset, range.size(), scratch);
    }

    Status CopyTo(ByteRange range, MutableBytes into, uint32_t* crc32c) const override {
      if (crc32c != nullptr) *crc32c = 0;
      if (range.empty()) return {};
      FB_ASSIGN_OR_RETURN(const Place place, Find(range));
      std::vector<std::byte> unused;  // what lies in one slab is not copied
      for (uint64_t done = 0; done < range.size();) {
        const uint64_t from = place.offset + done;
        const uint64_t bytes = std::min(range.size() - done, kSlabBytes - from % kSlabBytes);
        const ByteView piece = place.buffer->Contiguous(from, bytes, unused);
        std::byte* const to = into.data() + done;
        if (crc32c != nullptr) {
          *crc32c = StreamCopyCrc32c(*crc32c, piece, to);
        } else {
          StreamCopy(piece, to);
        }
        done += bytes;
      }
      return {};
    }

   private:
    struct Place {
      const SlabBuffer* buffer = nullptr;
      uint64_t offset = 0;
    };
    Result<Place> Find(ByteRange range) const {
      for (size_t i = 0; i < bytes_.extents.size(); ++i) {
        const Extent& extent = bytes_.extents[i];
        if (extent.object != shard_ || !extent.range.Contains(range)) continue;
        return Place{bytes_.buffers[i].get(), range.offset - extent.range.offset};
      }
      return Status(
          Code::kDataLoss, "bytes of the record were not fetched",
          {.offset = static_cast<int64_t>(range.offset), .end = static_cast<int64_t>(range.end)});
    }

    const UnitBytes& bytes_;
    uint32_t shard_;
  };

  Status DecodeRow(const RowRecord& of_row, const UnitBytes& bytes, const RowTarget& row) {
    FB_RETURN_IF_ERROR(SetOutputs(*of_row.record, row));
    FB_RETURN_IF_ERROR(RunRow(of_row, bytes, row));
    if (samples_.late_) HandLate(row);
    return {};
  }

  // Where the arrays go. What differs in size goes into the arena where the batch has no place for
  // it yet: raw fields, whose sizes are known, at once.
  Status SetOutputs(const catalog::RecordEntry& record, const RowTarget& row) {
    const std::vector<ops::OutputArray>& arrays = samples_.chain_->outputs();
    outputs_.clear();
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (!samples_.late_ || !samples_.arrays_[i].ragged()) {
        outputs_.push_back(row.array(i));
      } else if (arrays[i].raw_of < 0) {
        outputs_.emplace_back();
      } else {
        FB_ASSIGN_OR_RETURN(const uint64_t size, samples_.RawBytesOf(record, arrays[i]));
        outputs_.push_back(arena_->Take(size));
      }
    }
    return {};
  }

  void HandLate(const RowTarget& row) {
    for (size_t i = 0, ragged = 0; i < outputs_.size(); ++i) {
      if (!samples_.arrays_[i].ragged()) continue;
      ByteView value = outputs_[i];
      if (samples_.chain_->outputs()[i].late) value = arena_->Copy(worker_->Late(i));
      row.late->Set(row.row, ragged++, value);
    }
  }

  Status RunRow(const RowRecord& of_row, const UnitBytes& bytes, const RowTarget& row) {
    // It may be there by now though it was not when the row was planned.
    const auto kept = of_row.kept ? of_row.kept : samples_.kept_->Find(of_row.sample);
    if (kept) return worker_->RunKept(row.identity, *kept, outputs_);
    const bool keeps = samples_.kept_->open();
    FB_RETURN_IF_ERROR(Open(*of_row.record, bytes, keeps));
    if (!keeps) return worker_->Run(row.identity, inputs_, outputs_);
    FB_RETURN_IF_ERROR(worker_->Keep(inputs_, &kept_));
    FB_RETURN_IF_ERROR(worker_->RunKept(row.identity, kept_, outputs_));
    samples_.kept_->Offer(of_row.sample, kept_);
    return {};
  }

  // Sets `inputs_`; those that come as they are have the size that the batch has for them, and lie
  // there, unless they are kept first.
  Status Open(const catalog::RecordEntry& record, const UnitBytes& bytes, bool keeps) {
    places_.assign(fields_.size(), {});
    for (size_t i = 0; i < outputs_.size() && !keeps; ++i) {
      const int64_t raw = samples_.chain_->outputs()[i].raw_of;
      if (raw >= 0) places_[samples_.columns_[static_cast<size_t>(raw)]] = outputs_[i];
    }
    FB_RETURN_IF_ERROR(opener_->Open(record, Fetched(bytes, record.shard), places_, fields_));
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = fields_[samples_.columns_[i]];
    const std::vector<ops::OutputArray>& arrays = samples_.chain_->outputs();
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].raw_of < 0) continue;
      const ByteView field = inputs_[static_cast<size_t>(arrays[i].raw_of)];
      if (field.size() != outputs_[i].size()) {
        return Status(Code::kDataLoss,
                      fmt::format("field '{}' has {} bytes, the catalog says {}", arrays[i].name,
                                  field.size(), outputs_[i].size()));
      }
    }
    return {};
  }

  Status Explain(const catalog::RecordEntry& record, Status status) const {
    ErrorDetail detail{.offset = static_cast<int64_t>(record.range.offset),
                       .end = static_cast<int64_t>(record.range.end)};
    const auto shard = samples_.catalog_->ShardAt(record.shard);
    if (!shard.ok()) return std::move(status).WithDetail(detail);
    detail.uri = samples_.catalog_->source_uri() + shard->key;
    return std::move(status).WithDetail(detail).WithContext(fmt::format("ETag {}", shard->etag));
  }

  const RecordSamples& samples_;
  std::unique_ptr<RecordOpener> opener_;
  std::unique_ptr<ops::Worker> worker_;
  std::vector<ByteView> fields_;  // of fields_->fields()
  std::vector<ByteView> inputs_;  // of the chain
  std::vector<MutableBytes> outputs_;
  std::vector<MutableBytes> places_;  // of fields_->fields(): the output that each is, if any
  std::vector<std::byte> kept_;
  std::shared_ptr<ByteArena> arena_;  // of the unit's late values
};

RecordSamples::RecordSamples(std::shared_ptr<const catalog::RecordsCatalog> catalog)
    : catalog_(std::move(catalog)),
      chunks_(std::make_unique<Chunks>()),
      kept_(std::make_unique<KeptSamples>()) {}
RecordSamples::~RecordSamples() = default;

Result<std::unique_ptr<RecordSamples>> RecordSamples::Make(
    std::shared_ptr<const catalog::RecordsCatalog> catalog, const RecordSamplesOptions& options) {
  std::unique_ptr<RecordSamples> samples(new RecordSamples(std::move(catalog)));
  FB_ASSIGN_OR_RETURN(samples->fields_, RecordFields::Make(*samples->catalog_));
  FB_RETURN_IF_ERROR(samples->Choose(options.columns));
  std::vector<ops::InputField> inputs;
  for (const size_t field : samples->columns_) inputs.push_back(samples->fields_->fields()[field]);
  FB_ASSIGN_OR_RETURN(samples->chain_, ops::Chain::Compile(inputs, options.ops));
  samples->needed_.resize(samples->fields_->fields().size());
  for (size_t i = 0; i < samples->columns_.size(); ++i) {
    if (samples->chain_->needed()[i]) samples->needed_[samples->columns_[i]] = true;
  }
  FB_RETURN_IF_ERROR(samples->SetArrays());
  if (options.neighbours) samples->chunk_samples_ = ChunkSamples(*samples->catalog_);
  return samples;
}

Status RecordSamples::Choose(const std::vector<std::string>& columns) {
  const std::vector<ops::InputField>& all = fields_->fields();
  const auto names = [&] {
    std::vector<std::string> list;
    for (const ops::InputField& field : all) list.push_back(field.name);
    return fmt::format("{}", fmt::join(list, ", "));
  };
  for (const std::string& column : columns) {
    const auto it = std::ranges::find(all, column, &ops::InputField::name);
    if (it == all.end()) {
      return Bad(fmt::format("columns: no record has '{}'; there are: {}", column, names()));
    }
    const auto field = static_cast<size_t>(it - all.begin());
    if (std::ranges::find(columns_, field) != columns_.end()) {
      return Bad(fmt::format("columns: '{}' is named twice", column));
    }
    columns_.push_back(field);
  }
  for (size_t field = 0; field < all.size() && columns.empty(); ++field) {
    if (fields_->everywhere(field)) {
      columns_.push_back(field);
    } else {
      left_out_.push_back(all[field].name);
    }
  }
  if (columns_.empty()) return Bad("no field is in every record; name columns: " + names());
  return {};
}

Status RecordSamples::SetArrays() {
  const std::vector<ops::OutputArray>& outputs = chain_->outputs();
  for (const ops::OutputArray& output : outputs) {
    SampleArray array{
        .name = output.name, .dtype = output.dtype, .shape = output.shape, .bytes = output.bytes};
    if (output.late) {
      array.offsets = output.name + "_offsets";
      late_ = true;
    }
    if (output.raw_of >= 0) {
      array.dtype = "uint8";
      array.offsets = output.name + "_offsets";
      if (outputs.size() == 1) {
        array.name = "bytes";
        array.offsets = "offsets";
      }
    }
    arrays_.push_back(std::move(array));
  }
  if (arrays_.empty()) return Bad("the ops leave no array");
  // Of a record with a picture the picture is most of it.
  late_each_ = chain_->decodes_images() ? 1 : std::max<uint64_t>(chain_->late_each(), 1);
  return {};
}

// `ranges` of one record, neighbouring ones as one.
std::vector<Extent> RecordSamples::ExtentsOf(const catalog::RecordEntry& record,
                                             std::vector<ByteRange> ranges, uint64_t gap_bytes) {
  std::ranges::sort(ranges);
  std::vector<Extent> extents;
  for (const ByteRange& range : ranges) {
    if (range.empty()) continue;
    if (!extents.empty() && range.offset <= extents.back().range.end + gap_bytes) {
      extents.back().range.end = std::max(extents.back().range.end, range.end);
    } else {
      extents.push_back({record.shard, range});
    }
  }
  return extents;
}

// A row's raw fields have the sizes that the catalog says.
Result<uint64_t> RecordSamples::RawBytesOf(const catalog::RecordEntry& record,
                                           const ops::OutputArray& output) const {
  const size_t field = columns_[static_cast<size_t>(output.raw_of)];
  const auto bytes = fields_->BytesOf(record, field);
  if (bytes) return *bytes;
  return Status(Code::kDataLoss, fmt::format("it has no '{}'", fields_->fields()[field].name));
}

// Where only decoding tells some of them, the batch is laid out afterwards: in no more memory than
// what the fields that are read may become.
Status RecordSamples::AddRaggedBytes(const catalog::RecordEntry& record, SamplePlan& plan) const {
  for (size_t field = 0; late_ && field < needed_.size(); ++field) {
    if (needed_[field]) plan.late_bytes += late_each_ * fields_->BytesOf(record, field).value_or(0);
  }
  for (const ops::OutputArray& output : chain_->outputs()) {
    if (output.raw_of < 0 && !output.late) continue;
    uint64_t bytes = 0;
    if (!late_) {
      FB_ASSIGN_OR_RETURN(bytes, RawBytesOf(record, output));
    }
    plan.ragged_bytes.push_back(bytes);
  }
  return {};
}

Result<SamplePlan> RecordSamples::PlanSample(uint64_t sample, uint64_t gap_bytes) const {
  SamplePlan plan;
  auto rows = std::make_shared<Rows>();
  FB_ASSIGN_OR_RETURN(rows->own, catalog_->At(sample));
  rows->rows.push_back({.sample = sample, .kept = kept_->Find(sample), .record = &rows->own});
  if (!rows->rows[0].kept) {
    std::vector<ByteRange> ranges;
    fields_->RangesOf(rows->own, needed_, ranges);
    for (const ByteRange& range : ranges) plan.used_bytes += range.size();
    plan.extents = ExtentsOf(rows->own, std::move(ranges), gap_bytes);
  }
  plan.units.push_back({0, plan.extents.size(), 0, 1});
  FB_RETURN_IF_ERROR(AddRaggedBytes(rows->own, plan));
  plan.detail = std::move(rows);
  return plan;
}

Result<std::shared_ptr<const RecordSamples::Chunk>> RecordSamples::ChunkOf(uint64_t sample) const {
  const uint64_t number = sample / chunk_samples_;
  if (auto known = chunks_->Find(number)) return known;
  auto chunk = std::make_shared<Chunk>();
  chunk->first = number * chunk_samples_;
  const uint64_t end = std::min(catalog_->count(), chunk->first + chunk_samples_);
  chunk->records.reserve(end - chunk->first);
  FB_RETURN_IF_ERROR(catalog_->Read(chunk->first, end, chunk->records));
  std::vector<ByteRange> ranges;
  for (const catalog::RecordEntry& record : chunk->records) {
    fields_->RangesOf(record, needed_, ranges);
    ByteRange span = record.range;  // of what is needed
    uint64_t used = 0;
    bool any = false;
    for (const ByteRange& range : ranges) {
      if (range.empty()) continue;
      span = any ? ByteRange{std::min(span.offset, range.offset), std::max(span.end, range.end)}
                 : range;
      any = true;
      used += range.size();
    }
    chunk->used_bytes.push_back(used);
    std::vector<Extent>& extents = chunk->extents;
    // Rows of packed documents may begin before the one that came before them.
    ByteRange both = span;
    if (!extents.empty()) {
      both = {std::min(span.offset, extents.back().range.offset),
              std::max(span.end, extents.back().range.end)};
    }
    const bool joins = !extents.empty() && extents.back().object == record.shard &&
                       span.offset <= extents.back().range.end + kChunkGapBytes &&
                       extents.back().range.offset <= span.end + kChunkGapBytes &&
                       both.size() <= kChunkExtentBytes;
    if (joins) {
      extents.back().range = both;
    } else {
      extents.push_back({record.shard, span});
    }
    chunk->extent_of.push_back(static_cast<uint32_t>(extents.size() - 1));
  }
  chunks_->Keep(number, chunk);
  return std::shared_ptr<const Chunk>(std::move(chunk));
}

std::vector<std::vector<uint32_t>> RecordSamples::Together(
    std::span<const uint64_t> samples) const {
  if (chunk_samples_ == 1) return Dataset::Together(samples);
  std::unordered_map<uint64_t, size_t> group_of;  // by chunk and extent
  std::vector<std::vector<uint32_t>> groups;
  std::shared_ptr<const Chunk> chunk;
  uint64_t last_key = std::numeric_limits<uint64_t>::max();
  size_t last_group = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    size_t group = groups.size();
    if (chunk == nullptr || !chunk->Holds(samples[i])) {
      auto found = ChunkOf(samples[i]);
      chunk = found.ok() ? *std::move(found) : nullptr;  // planning it says why there is none
    }
    if (chunk != nullptr) {
      const uint32_t extent = chunk->extent_of[samples[i] - chunk->first];
      const uint64_t key = samples[i] / chunk_samples_ * kChunkSamplesMost + extent;
      // Most rows belong where the one before them does.
      if (key != last_key) {
        last_group = group_of.try_emplace(key, group).first->second;
        last_key = key;
      }
      group = last_group;
    }
    if (group == groups.size()) groups.emplace_back();
    groups[group].push_back(static_cast<uint32_t>(i));
  }
  return groups;
}

Result<SamplePlan> RecordSamples::PlanTogether(std::span<const uint64_t> samples,
                                               uint64_t gap_bytes, size_t* bad_row) const {
  *bad_row = 0;
  if (chunk_samples_ == 1) return Dataset::PlanTogether(samples, gap_bytes, bad_row);
  return PlanOfChunks(samples, bad_row);
}

// One for a row to begin, which needs `extent`.
DecodeUnit RecordSamples::UnitOf(const Extent& extent, size_t number, SamplePlan& plan) {
  const auto found = std::ranges::find(plan.extents, extent);
  const auto index = static_cast<size_t>(found - plan.extents.begin());
  if (found == plan.extents.end()) plan.extents.push_back(extent);
  return {index, 1, number, 0};
}

Result<SamplePlan> RecordSamples::PlanOfChunks(std::span<const uint64_t> samples,
                                               size_t* bad_row) const {
  SamplePlan plan;
  auto rows = std::make_shared<Rows>();
  rows->rows.reserve(samples.size());
  uint64_t unit_bytes = kUnitBytes;  // so that the first row opens a unit
  for (size_t i = 0; i < samples.size(); ++i) {
    *bad_row = i;
    if (rows->chunks.empty() || !rows->chunks.back()->Holds(samples[i])) {
      FB_ASSIGN_OR_RETURN(auto chunk, ChunkOf(samples[i]));
      rows->chunks.push_back(std::move(chunk));
    }
    const Chunk& chunk = *rows->chunks.back();
    const size_t in_chunk = samples[i] - chunk.first;
    RowRecord row{
        .sample = samples[i], .kept = kept_->Find(samples[i]), .record = &chunk.records[in_chunk]};
    const DecodeUnit wanted = row.kept ? DecodeUnit{0, 0, i, 0}
                                       : UnitOf(chunk.extents[chunk.extent_of[in_chunk]], i, plan);
    DecodeUnit* unit = plan.units.empty() ? nullptr : &plan.units.back();
    if (unit == nullptr || unit->first_extent != wanted.first_extent ||
        unit->extent_count != wanted.extent_count || unit_bytes >= kUnitBytes ||
        unit->row_count == kUnitRows) {
      plan.units.push_back(wanted);
      unit = &plan.units.back();
      unit_bytes = 0;
    }
    ++unit->row_count;
    FB_RETURN_IF_ERROR(AddRaggedBytes(*row.record, plan));
    if (!row.kept) {
      plan.used_bytes += chunk.used_bytes[in_chunk];
      unit_bytes += chunk.used_bytes[in_chunk];
    }
    rows->rows.push_back(std::move(row));
  }
  *bad_row = 0;
  plan.detail = std::move(rows);
  return plan;
}

Result<std::unique_ptr<SampleDecoder>> RecordSamples::MakeDecoder() const {
  return std::unique_ptr<SampleDecoder>(std::make_unique<Decoder>(*this));
}

std::string RecordSamples::DescribeSample(uint64_t sample) const {
  const auto record = catalog_->At(sample);
  const auto key = catalog_->KeyOf(sample);
  if (!record.ok() || !key.ok()) return fmt::format("record {} of the catalog", sample);
  const auto shard = catalog_->ShardAt(record->shard);
  const std::string where = shard.ok() ? shard->key : fmt::format("shard {}", record->shard);
  return key->empty() ? fmt::format("{} at {}", where, record->range.offset)
                      : fmt::format("{} in {}", *key, where);
}

order::BlockTable RecordSamples::BlocksOf(uint64_t samples) const {
  return order::BlockTable::Uniform(samples, ChunkSamples(*catalog_));
}

uint64_t RecordSamples::chunk_bytes() const {
  if (chunk_samples_ == 1) return 0;
  const uint64_t mean = catalog_->total_bytes() / catalog_->count() + 1;
  return std::min(kChunkExtentBytes, mean * chunk_samples_ * 5 / 4 + kSlabBytes);
}

uint64_t RecordSamples::prepared_bytes() const {
  constexpr uint64_t kPixelsOfBytes = 6;  // of a photograph's, about
  constexpr uint64_t kBeside = 256;       // of each sample: its place, the sizes of its arrays
  uint64_t bytes = kBeside * catalog_->count();
  if (chain_->decodes_images()) {
    return bytes + (kPixelsOfBytes + (late_ ? sizeof(int64_t) : 0)) * catalog_->total_bytes();
  }
  bool as_they_are = false;
  for (const ops::OutputArray& output : chain_->outputs()) {
    bytes += output.bytes * catalog_->count();
    as_they_are = as_they_are || output.raw_of >= 0;
  }
  if (late_) return bytes + late_each_ * catalog_->total_bytes();
  return bytes + (as_they_are ? catalog_->total_bytes() : 0);
}

// Each extent takes whole slabs; a record has one for each of its fields at most, or pieces.
uint64_t RecordSamples::raw_bytes_max() const {
  const uint64_t parts = chunk_samples_ > 1 ? 1 : fields_->ranges_most();
  const uint64_t most = chunk_samples_ > 1 ? std::max(catalog_->range_max(), kChunkExtentBytes)
                                           : catalog_->range_max();
  return (SlabsFor(most) + parts) * kSlabBytes;
}

uint64_t RecordSamples::OutputBytesMax(uint64_t rows) const {
  uint64_t bytes = 0;
  bool ragged = false;
  for (const SampleArray& array : arrays_) {
    bytes += array.bytes * rows + BatchLayout::kAlign;
    ragged = ragged || array.ragged();
  }
  if (late_) return bytes + late_each_ * catalog_->LargestBytes(rows);
  return bytes + (ragged ? catalog_->LargestBytes(rows) : 0);
}

}  // namespace forebay::feed
