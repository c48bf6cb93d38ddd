#include "feed/table_samples.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/assert.h"
#include "feed/batch_layout.h"
#include "feed/table_rows.h"
#include "ops/dtype.h"

namespace forebay::feed {
namespace {

constexpr std::string_view kValid = ".valid";
constexpr std::string_view kPath = ".path";
// Where any row may come next, not much more is read for it than the pages that it lies in.
constexpr TableCutOptions kCutForAnyRow{.aligned_bytes = 1 << 20, .unaligned_bytes = 8 << 20};

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

bool IsList(const std::vector<int64_t>& shape) { return shape.size() == 1 && shape[0] == -1; }

// A record's key says what is known of the group of rows beside the columns' places.
Result<format::TableGroup> GroupAt(const catalog::RecordsCatalog& catalog, uint64_t i,
                                   const catalog::RecordEntry& record) {
  FB_ASSIGN_OR_RETURN(const std::string key, catalog.KeyOf(i));
  std::vector<ByteRange> ranges;
  for (const catalog::RecordField& field : record.fields) ranges.push_back(field.range);
  return format::UnpackTableGroup(catalog.format(), key, ranges);
}

}  // namespace

bool IsOfTables(const catalog::RecordsCatalog& catalog) {
  return format::TableFormatOf(catalog.format()).has_value();
}

Result<uint64_t> RowsOf(const catalog::RecordsCatalog& catalog, uint64_t groups) {
  uint64_t rows = 0;
  for (uint64_t i = 0; i < groups; ++i) {
    FB_ASSIGN_OR_RETURN(const catalog::RecordEntry record, catalog.At(i));
    FB_ASSIGN_OR_RETURN(const format::TableGroup group, GroupAt(catalog, i, record));
    rows += group.rows;
  }
  return rows;
}

TableSamples::TableSamples(std::shared_ptr<const catalog::RecordsCatalog> catalog)
    : catalog_(std::move(catalog)),
      format_(format::TableFormatOf(catalog_->format()).value_or(format::TableFormat::kParquet)) {}
TableSamples::~TableSamples() = default;

Result<std::unique_ptr<TableSamples>> TableSamples::Make(
    std::shared_ptr<const catalog::RecordsCatalog> catalog, const RecordSamplesOptions& options) {
  std::unique_ptr<TableSamples> samples(new TableSamples(std::move(catalog)));
  samples->neighbours_ = options.neighbours;
  std::vector<ops::InputField> inputs;
  FB_RETURN_IF_ERROR(samples->Choose(options.columns, &inputs));
  FB_ASSIGN_OR_RETURN(samples->chain_, ops::Chain::Compile(inputs, options.ops));
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (samples->chain_->needed()[i]) continue;
    return Bad(fmt::format("columns: nothing comes of '{}': leave it out", inputs[i].name));
  }
  for (const Leaf& leaf : samples->leaves_) {
    const bool sized = !leaf.dtype.empty() && !IsList(leaf.shape);
    samples->widths_.push_back(sized ? static_cast<uint32_t>(ops::BytesOf(leaf.dtype, leaf.shape))
                                     : 0);
  }
  FB_RETURN_IF_ERROR(samples->SetArrays(options.ops.empty()));
  FB_RETURN_IF_ERROR(samples->ReadGroups());
  samples->MakeSteps();
  samples->pieces_ = std::make_unique<TablePieces>(samples->leaves_.size(),
                                                   format::DecodesTogether(samples->format_));
  return samples;
}

size_t TableSamples::LeafOf(size_t field) {
  const auto it = std::ranges::find(leaves_, field, &Leaf::field);
  if (it != leaves_.end()) return static_cast<size_t>(it - leaves_.begin());
  const catalog::FieldInfo& info = catalog_->fields()[field];
  leaves_.push_back({.field = field, .name = info.name, .dtype = info.dtype, .shape = info.shape});
  return leaves_.size() - 1;
}

Status TableSamples::AddColumn(const std::string& name, std::vector<ops::InputField>* inputs) {
  const std::vector<catalog::FieldInfo>& fields = catalog_->fields();
  const auto find = [&](std::string_view wanted) {
    return static_cast<size_t>(std::ranges::find(fields, wanted, &catalog::FieldInfo::name) -
                               fields.begin());
  };
  if (std::ranges::find(*inputs, name, &ops::InputField::name) != inputs->end()) {
    return Bad(fmt::format("columns: '{}' is named twice", name));
  }
  size_t field = find(name);
  const bool valid = field == fields.size() && name.ends_with(kValid);
  if (valid) field = find(std::string_view(name).substr(0, name.size() - kValid.size()));
  if (field == fields.size()) {
    std::vector<std::string> names;
    for (const catalog::FieldInfo& info : fields) names.push_back(info.name);
    return Bad(
        fmt::format("columns: no row has '{}'; there are: {}", name, fmt::join(names, ", ")));
  }
  const size_t leaf = LeafOf(field);
  inputs_.push_back({leaf, valid});
  if (valid) {
    leaves_[leaf].nulls = true;
    inputs->push_back({.name = name, .dtype = "bool", .shape = {}});
  } else if (IsList(leaves_[leaf].shape)) {
    inputs->push_back({.name = name, .dtype = "", .shape = {}});
  } else {
    inputs->push_back({.name = name, .dtype = leaves_[leaf].dtype, .shape = leaves_[leaf].shape});
  }
  return {};
}

Status TableSamples::Choose(const std::vector<std::string>& columns,
                            std::vector<ops::InputField>* inputs) {
  for (const std::string& column : columns) FB_RETURN_IF_ERROR(AddColumn(column, inputs));
  const std::vector<catalog::FieldInfo>& fields = catalog_->fields();
  for (const catalog::FieldInfo& field : fields) {
    if (!columns.empty()) break;
    if (field.records < catalog_->count()) continue;
    // Where a picture's or sound's bytes lie beside it, its path is a name for people, or null.
    const bool path =
        field.name.ends_with(kPath) &&
        std::ranges::find(fields,
                          std::string_view(field.name).substr(0, field.name.size() - kPath.size()),
                          &catalog::FieldInfo::name) != fields.end();
    if (!path) FB_RETURN_IF_ERROR(AddColumn(field.name, inputs));
  }
  return leaves_.empty() ? Bad("no column is in every file; name columns") : Status();
}

Status TableSamples::SetArrays(bool plain) {
  plain_ = plain;
  const std::vector<ops::OutputArray>& outputs = chain_->outputs();
  if (outputs.empty()) return Bad("the ops leave no array");
  for (const ops::OutputArray& output : outputs) {
    SampleArray array{
        .name = output.name, .dtype = output.dtype, .shape = output.shape, .bytes = output.bytes};
    if (output.late) {
      array.offsets = output.name + "_offsets";
      late_ = true;
    }
    if (output.raw_of >= 0) {
      const Leaf& leaf = leaves_[inputs_[static_cast<size_t>(output.raw_of)].leaf];
      array.dtype = leaf.dtype.empty() ? "uint8" : leaf.dtype;
      array.shape.clear();
      array.offsets = output.name + "_offsets";
      if (outputs.size() == 1 && leaf.dtype.empty()) {
        array.name = "bytes";
        array.offsets = "offsets";
      }
      late_ = true;
    }
    arrays_.push_back(std::move(array));
  }
  return {};
}

// The same type in every file, or it is told which differs.
Status TableSamples::CheckSame(const catalog::RecordEntry& record, const Leaf& leaf,
                               const format::TableLayout& layout) const {
  const uint64_t bytes = leaf.dtype.empty() ? 0
                         : layout.list      ? static_cast<uint64_t>(ops::BytesOf(leaf.dtype))
                                            : ops::BytesOf(leaf.dtype, leaf.shape);
  if (layout.list == IsList(leaf.shape) && layout.value_bytes == bytes) return {};
  FB_ASSIGN_OR_RETURN(const catalog::FileEntry shard, catalog_->ShardAt(record.shard));
  return Bad(fmt::format("columns: '{}' has not the same type in all files: see {}{}", leaf.name,
                         catalog_->source_uri(), shard.key));
}

Status TableSamples::ReadGroup(uint64_t i) {
  FB_ASSIGN_OR_RETURN(const catalog::RecordEntry record, catalog_->At(i));
  FB_ASSIGN_OR_RETURN(format::TableGroup packed, GroupAt(*catalog_, i, record));
  Group group{.record = i, .shard = record.shard};
  if (!groups_.empty() && groups_.back().shard == record.shard) {
    group.number = groups_.back().number + 1;
  }
  std::vector<format::TableColumn> columns;
  for (const Leaf& leaf : leaves_) {
    const auto it = std::ranges::find(record.fields, leaf.field, &catalog::RecordField::field);
    if (it == record.fields.end()) {
      FB_ASSIGN_OR_RETURN(const catalog::FileEntry shard, catalog_->ShardAt(record.shard));
      return Bad(
          fmt::format("columns: {}{} has no '{}'", catalog_->source_uri(), shard.key, leaf.name));
    }
    auto& column = packed.columns[static_cast<size_t>(it - record.fields.begin())];
    const format::TableLayout& layout = column.layout;
    FB_RETURN_IF_ERROR(format::TableIsReadable(column.chunk));
    FB_RETURN_IF_ERROR(CheckSame(record, leaf, layout));
    guessed_ = guessed_ || layout.guessed;
    if (layout.ragged()) {
      ragged_bytes_ += layout.DecodedBytes(packed.rows) - packed.rows * sizeof(uint64_t);
    }
    columns.push_back(std::move(column));
  }
  auto pieces = CutTable(static_cast<uint32_t>(groups_.size()), record.shard, packed.rows, columns,
                         neighbours_ ? TableCutOptions() : kCutForAnyRow);
  // Beside the values.
  const uint64_t kept =
      sizeof(DecodedPiece) + leaves_.size() * (sizeof(DecodedColumn) + sizeof(uint64_t));
  for (TablePiece& piece : pieces) {
    piece.decoded_bytes += kept;
    uint64_t raw = 0;
    for (const Extent& extent : piece.extents) raw += SlabsFor(extent.range.size()) * kSlabBytes;
    raw_bytes_max_ = std::max(raw_bytes_max_, raw);
    decoded_bytes_ += piece.decoded_bytes;
    firsts_.push_back(rows_);
    rows_ += piece.rows;
    table_.push_back(std::move(piece));
  }
  for (format::TableColumn& column : columns) group.chunks.push_back(std::move(column.chunk));
  groups_.push_back(std::move(group));
  return {};
}

Status TableSamples::ReadGroups() {
  for (uint64_t i = 0; i < catalog_->count(); ++i) {
    FB_RETURN_IF_ERROR(ReadGroup(i));
    group_ends_.push_back(rows_);
  }
  firsts_.push_back(rows_);
  ragged_bytes_ = rows_ == 0 ? 0 : ragged_bytes_ / rows_ + 1;
  return rows_ == 0 ? Bad("there is no row") : Status();
}

// Finding a row's piece must cost next to nothing: there are ten million rows a second.
void TableSamples::MakeSteps() {
  constexpr uint64_t kStepsForPiece = 4;
  step_ = std::max<uint64_t>(std::bit_floor(rows_ / (table_.size() * kStepsForPiece)), 1);
  const auto shift = static_cast<uint64_t>(std::countr_zero(step_));
  steps_.resize((rows_ >> shift) + 1);
  size_t piece = 0;
  for (size_t i = 0; i < steps_.size(); ++i) {
    while (firsts_[piece + 1] <= i << shift && piece + 1 < table_.size()) ++piece;
    steps_[i] = static_cast<uint32_t>(piece);
  }
  step_ = shift;
}

size_t TableSamples::PieceOf(uint64_t sample) const {
  FB_ASSERT(sample < rows_);
  size_t piece = steps_[sample >> step_];
  while (firsts_[piece + 1] <= sample) ++piece;
  return piece;
}

TableSamples::Part TableSamples::PartOf(size_t piece) const {
  return {piece, firsts_[piece] - table_[piece].first_row, pieces_->Find(piece)};
}

void TableSamples::LocateStretch(Rows& rows) const {
  const std::vector<uint64_t>& samples = rows.samples;
  for (size_t i = 0; i < samples.size();) {
    const size_t piece = PieceOf(samples[i]);
    const uint64_t count = std::min<uint64_t>(firsts_[piece + 1] - samples[i], samples.size() - i);
    std::fill_n(rows.part_of.begin() + static_cast<std::ptrdiff_t>(i), count,
                static_cast<uint32_t>(rows.parts.size()));
    rows.parts.push_back(PartOf(piece));
    i += count;
  }
}

TableSamples::Rows TableSamples::Locate(std::span<const uint64_t> samples) const {
  Rows rows;
  rows.samples.assign(samples.begin(), samples.end());
  rows.part_of.resize(samples.size());
  uint64_t breaks = 0;
  for (size_t i = 1; i < samples.size(); ++i) breaks += samples[i] - samples[i - 1] == 1 ? 0 : 1;
  rows.follow = breaks == 0;
  if (rows.follow) {
    LocateStretch(rows);
    return rows;
  }
  struct Met {
    size_t piece = ~size_t{0};
    uint32_t part = 0;
  };
  // Never more than half full.
  std::vector<Met> met(std::bit_ceil(2 * std::min(table_.size(), samples.size())));
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t piece = PieceOf(samples[i]);
    size_t at = piece & (met.size() - 1);
    while (met[at].piece != piece && met[at].piece != Met().piece) at = (at + 1) & (met.size() - 1);
    if (met[at].piece != piece) {
      met[at] = {piece, static_cast<uint32_t>(rows.parts.size())};
      rows.parts.push_back(PartOf(piece));
    }
    rows.part_of[i] = met[at].part;
  }
  return rows;
}

uint64_t TableSamples::RawBytesOf(const Part& part) const {
  uint64_t bytes = 0;
  if (part.decoded) return bytes;
  for (const Extent& extent : table_[part.piece].extents) {
    bytes += SlabsFor(extent.range.size()) * kSlabBytes;
  }
  return bytes;
}

// As few groups as may be: as much in one as an item may read.
std::vector<std::vector<uint32_t>> TableSamples::SortOut(const Rows& rows) const {
  std::vector<size_t> group_of;  // of each part
  size_t groups = 0;
  uint64_t bytes = 0;  // of the last group
  for (const Part& part : rows.parts) {
    const uint64_t more = RawBytesOf(part);
    if (groups == 0 || (bytes > 0 && more > 0 && bytes + more > item_bytes_)) {
      ++groups;
      bytes = 0;
    }
    bytes += more;
    group_of.push_back(groups - 1);
  }
  std::vector<std::vector<uint32_t>> sorted(groups);
  for (size_t i = 0; i < rows.part_of.size(); ++i) {
    sorted[group_of[rows.part_of[i]]].push_back(static_cast<uint32_t>(i));
  }
  return sorted;
}

std::vector<std::vector<uint32_t>> TableSamples::Together(std::span<const uint64_t> samples) const {
  return SortOut(Locate(samples));
}

Result<SamplePlan> TableSamples::PlanSample(uint64_t sample, uint64_t gap_bytes) const {
  size_t bad_row = 0;
  return PlanTogether({&sample, 1}, gap_bytes, &bad_row);
}

Result<SamplePlan> TableSamples::PlanTogether(std::span<const uint64_t> samples, uint64_t,
                                              size_t* bad_row) const {
  *bad_row = 0;
  return PlanOf(Locate(samples));
}

std::vector<Dataset::Planned> TableSamples::PlanBatch(std::span<const uint64_t> samples,
                                                      uint64_t) const {
  std::vector<Planned> all;
  Rows rows = Locate(samples);
  uint64_t bytes = 0;
  for (const Part& part : rows.parts) bytes += RawBytesOf(part);
  if (rows.parts.size() == 1 || bytes <= item_bytes_) {
    all.push_back({{}, PlanOf(std::move(rows)), {}, 0});
    return all;
  }
  for (std::vector<uint32_t>& group : SortOut(rows)) {
    std::vector<uint64_t> own;
    own.reserve(group.size());
    for (const uint32_t row : group) own.push_back(samples[row]);
    all.push_back({std::move(group), PlanOf(Locate(own)), {}, 0});
  }
  if (all.size() == 1) all.front().rows.clear();
  return all;
}

// What is not decoded yet, and the units that need it.
void TableSamples::SetReads(Rows& rows, SamplePlan& plan) const {
  constexpr size_t kUnitRows = 4096;
  plan.extents.clear();
  plan.units.clear();
  rows.alone.clear();
  uint64_t bytes = 0;
  uint64_t of_pieces = 0;
  std::vector<uint8_t> reads;  // of each part, whether it is read
  for (const Part& part : rows.parts) reads.push_back(part.decoded ? 0 : 1);
  const bool several = std::ranges::count(reads, 1) > 1;
  for (uint32_t part = 0; part < rows.parts.size(); ++part) {
    if (reads[part] == 0) continue;
    const TablePiece& piece = table_[rows.parts[part].piece];
    if (several) {
      const auto row = std::ranges::find(rows.part_of, part) - rows.part_of.begin();
      plan.units.push_back(
          {plan.extents.size(), piece.extents.size(), static_cast<size_t>(row), 0});
      rows.alone.push_back(part);
    }
    plan.extents.insert(plan.extents.end(), piece.extents.begin(), piece.extents.end());
    for (const Extent& extent : piece.extents) bytes += extent.range.size();
    of_pieces += piece.rows;
  }
  rows.opened = several ? std::make_shared<Opened>(rows.parts.size()) : nullptr;
  plan.used_bytes = 0;
  if (of_pieces > 0) {
    uint64_t count = 0;
    for (const uint32_t part : rows.part_of) count += reads[part];
    plan.used_bytes = std::max<uint64_t>(bytes / of_pieces * count, 1);
  }
  const size_t all = rows.part_of.size();
  for (size_t first = 0; first < all; first += kUnitRows) {
    plan.units.push_back({0, plan.extents.size(), first, std::min(kUnitRows, all - first)});
  }
}

// What is read for a piece is the same for all its rows, whatever a gap costs now: equal extents
// are fetched once. Of a piece that is decoded nothing is read.
SamplePlan TableSamples::PlanOf(Rows rows) const {
  SamplePlan plan;
  const auto ragged = static_cast<size_t>(std::ranges::count_if(arrays_, &SampleArray::ragged));
  plan.ragged_bytes.resize(rows.samples.size() * ragged);
  SetReads(rows, plan);
  plan.detail = std::make_shared<const Rows>(std::move(rows));
  return plan;
}

// By the time that an item's turn comes some of its pieces may have been decoded for another.
bool TableSamples::Shorten(SamplePlan* plan) const {
  if (plan->extents.empty()) return false;
  const auto& was = *static_cast<const Rows*>(plan->detail.get());
  std::vector<Part> parts = was.parts;
  size_t found = 0;
  for (Part& part : parts) {
    if (part.decoded) continue;
    part.decoded = pieces_->Find(part.piece);
    found += part.decoded ? 1 : 0;
  }
  if (found == 0) return false;
  auto rows = std::make_shared<Rows>(was);
  rows->parts = std::move(parts);
  SetReads(*rows, *plan);
  plan->detail = std::move(rows);
  return true;
}

std::string TableSamples::DescribeSample(uint64_t sample) const {
  const TablePiece& piece = table_[PieceOf(sample)];
  const Group& group = groups_[piece.group];
  const uint64_t row = piece.first_row + sample - firsts_[PieceOf(sample)];
  const auto shard = catalog_->ShardAt(group.shard);
  return fmt::format("row {} of {}{}", row, format::GroupText(format_, group.number),
                     shard.ok() ? shard->key : fmt::format("file {}", group.shard));
}

order::BlockTable TableSamples::BlocksOf(uint64_t samples) const {
  std::vector<uint64_t> blocks;
  for (size_t i = 0; i < table_.size() && firsts_[i] < samples; ++i) {
    blocks.push_back(std::min(samples - firsts_[i], table_[i].rows));
  }
  return order::BlockTable::Ragged(blocks);
}

uint64_t TableSamples::raw_bytes_max() const { return raw_bytes_max_; }

uint64_t TableSamples::OutputBytesMax(uint64_t rows) const {
  uint64_t bytes = 0;
  for (const SampleArray& array : arrays_) bytes += array.bytes * rows + BatchLayout::kAlign;
  return bytes + (late_ ? LateBytes(rows) : 0);
}

uint64_t TableSamples::LateBytes(uint64_t rows) const { return ragged_bytes_ * rows; }

uint64_t TableSamples::DecodedBytes(uint64_t pieces) const {
  uint64_t largest = 0;
  for (const TablePiece& piece : table_) largest = std::max(largest, piece.decoded_bytes);
  return pieces > decoded_bytes_ / std::max<uint64_t>(largest, 1) ? decoded_bytes_
                                                                  : pieces * largest;
}

uint64_t TableSamples::RowsOfGroups(uint64_t groups) const {
  return groups == 0 ? 0 : group_ends_[groups - 1];
}

}  // namespace forebay::feed
