#include "feed/record_samples.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "feed/batch_layout.h"
#include "feed/record_chunks.h"
#include "feed/record_decoder.h"

namespace forebay::feed {
namespace {

constexpr uint64_t kUnitBytes = 128 << 10;  // of a decode job, about
constexpr size_t kUnitRows = 256;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

}  // namespace

RecordSamples::RecordSamples(std::shared_ptr<const catalog::RecordsCatalog> catalog)
    : catalog_(std::move(catalog)), kept_(std::make_unique<KeptSamples>()) {}
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
  if (options.neighbours && RecordChunk::SamplesOf(*samples->catalog_) > 1) {
    samples->chunks_ =
        std::make_unique<RecordChunks>(*samples->catalog_, *samples->fields_, samples->needed_);
  }
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
    ragged_ = ragged_ || array.ragged();
    arrays_.push_back(std::move(array));
  }
  if (arrays_.empty()) return Bad("the ops leave no array");
  // Of a record with a picture the picture is most of it.
  late_each_ = chain_->decodes_images() ? 1 : std::max<uint64_t>(chain_->late_each(), 1);
  return {};
}

// `ranges` of one record, neighbouring ones as one.
std::vector<Extent> RecordSamples::ExtentsOf(const catalog::RecordView& record,
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

// Where only decoding tells some of them, the batch is laid out afterwards: in no more memory than
// what the fields that are read may become.
Status RecordSamples::AddRaggedBytes(const catalog::RecordView& record, SamplePlan& plan) const {
  for (size_t field = 0; late_ && field < needed_.size(); ++field) {
    if (needed_[field]) plan.late_bytes += late_each_ * fields_->BytesOf(record, field).value_or(0);
  }
  for (const ops::OutputArray& output : chain_->outputs()) {
    if (output.raw_of < 0 && !output.late) continue;
    uint64_t bytes = 0;
    if (!late_) {
      const size_t field = columns_[static_cast<size_t>(output.raw_of)];
      FB_ASSIGN_OR_RETURN(bytes, SizeOf(*fields_, record, field));
    }
    plan.ragged_bytes.push_back(bytes);
  }
  return {};
}

Result<SamplePlan> RecordSamples::PlanSample(uint64_t sample, uint64_t gap_bytes) const {
  SamplePlan plan;
  auto rows = std::make_shared<RecordRows>();
  FB_ASSIGN_OR_RETURN(const catalog::RecordEntry record, catalog_->At(sample));
  rows->own.Append(record);
  rows->rows.push_back({sample, &rows->own, 0});
  rows->kept.push_back(kept_->Find(sample));
  if (!rows->kept[0]) {
    std::vector<ByteRange> ranges;
    fields_->RangesOf(record, needed_, ranges);
    for (const ByteRange& range : ranges) plan.used_bytes += range.size();
    plan.extents = ExtentsOf(record, std::move(ranges), gap_bytes);
  }
  plan.units.push_back({0, plan.extents.size(), 0, 1});
  FB_RETURN_IF_ERROR(AddRaggedBytes(record, plan));
  plan.detail = std::move(rows);
  return plan;
}

std::vector<std::vector<uint32_t>> RecordSamples::Together(
    std::span<const uint64_t> samples) const {
  if (!chunks_) return Dataset::Together(samples);
  std::unordered_map<uint64_t, size_t> group_of;  // by chunk and extent
  std::vector<std::vector<uint32_t>> groups;
  std::shared_ptr<const RecordChunk> chunk;
  uint64_t last_key = std::numeric_limits<uint64_t>::max();
  size_t last_group = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    size_t group = groups.size();
    if (chunk == nullptr || !chunk->Holds(samples[i])) {
      auto found = chunks_->Of(samples[i]);
      chunk = found.ok() ? *std::move(found) : nullptr;  // planning it says why there is none
    }
    if (chunk != nullptr) {
      const size_t extent = chunk->ExtentOf(samples[i]);
      const uint64_t key = samples[i] / chunks_->each() * chunks_->each() + extent;
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
  if (!chunks_) return Dataset::PlanTogether(samples, gap_bytes, bad_row);
  return PlanOfChunks(samples, bad_row);
}

// The place of `extent` among the plan's.
size_t RecordSamples::PlaceOf(const Extent& extent, SamplePlan& plan) {
  const auto found = std::ranges::find(plan.extents, extent);
  const auto index = static_cast<size_t>(found - plan.extents.begin());
  if (found == plan.extents.end()) plan.extents.push_back(extent);
  return index;
}

Result<SamplePlan> RecordSamples::PlanOfChunks(std::span<const uint64_t> samples,
                                               size_t* bad_row) const {
  SamplePlan plan;
  auto rows = std::make_shared<RecordRows>();
  rows->rows.resize(samples.size());
  const bool any_kept = kept_->used_bytes() > 0;
  uint64_t unit_bytes = kUnitBytes;  // so that the first row opens a unit
  const Extent* last = nullptr;      // of the row before, `last_place` among the plan's
  size_t last_place = 0;
  for (size_t i = 0; i < samples.size(); ++i) {
    *bad_row = i;
    if (rows->chunks.empty() || !rows->chunks.back()->Holds(samples[i])) {
      FB_ASSIGN_OR_RETURN(auto found, chunks_->Of(samples[i]));
      rows->chunks.push_back(std::move(found));
    }
    const RecordChunk& chunk = *rows->chunks.back();
    RecordRows::Row row{samples[i], &chunk.records,
                        static_cast<uint32_t>(samples[i] - chunk.first)};
    if (chunk.records.empty()) {
      row = {samples[i], &rows->own, static_cast<uint32_t>(rows->own.size())};
      FB_RETURN_IF_ERROR(catalog_->Read(samples[i], samples[i] + 1, rows->own));
    }
    KeptSamples::Value kept = any_kept ? kept_->Find(samples[i]) : nullptr;
    DecodeUnit wanted{0, 0, i, 0};
    uint64_t used = 0;
    if (!kept) {
      const Extent* const extent = &chunk.extents[chunk.ExtentOf(samples[i])];
      if (extent != last) last_place = PlaceOf(*extent, plan);
      last = extent;
      wanted = {last_place, 1, i, 0};
      used = chunk.records.empty() ? chunks_->UsedOf(row.record()) : chunk.used_bytes[row.index];
      plan.used_bytes += used;
    }
    DecodeUnit* unit = plan.units.empty() ? nullptr : &plan.units.back();
    if (unit == nullptr || unit->first_extent != wanted.first_extent ||
        unit->extent_count != wanted.extent_count || unit_bytes >= kUnitBytes ||
        unit->row_count == kUnitRows) {
      plan.units.push_back(wanted);
      unit = &plan.units.back();
      unit_bytes = 0;
    }
    ++unit->row_count;
    unit_bytes += used;
    if (ragged_) FB_RETURN_IF_ERROR(AddRaggedBytes(row.record(), plan));
    rows->rows[i] = row;
    if (any_kept) rows->kept.push_back(std::move(kept));
  }
  *bad_row = 0;
  plan.detail = std::move(rows);
  return plan;
}

Result<std::unique_ptr<SampleDecoder>> RecordSamples::MakeDecoder() const {
  return MakeRecordDecoder({.catalog = *catalog_,
                            .fields = *fields_,
                            .columns = columns_,
                            .needed = needed_,
                            .chain = *chain_,
                            .arrays = arrays_,
                            .late = late_,
                            .kept = *kept_});
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
  return order::BlockTable::Uniform(samples, RecordChunk::SamplesOf(*catalog_));
}

uint64_t RecordSamples::chunk_bytes() const {
  if (!chunks_) return 0;
  const uint64_t mean = catalog_->total_bytes() / catalog_->count() + 1;
  return std::min(RecordChunk::kExtentMost, mean * chunks_->each() * 5 / 4 + kSlabBytes);
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
  const uint64_t parts = chunks_ ? 1 : fields_->ranges_most();
  const uint64_t most =
      chunks_ ? std::max(catalog_->range_max(), RecordChunk::kExtentMost) : catalog_->range_max();
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
