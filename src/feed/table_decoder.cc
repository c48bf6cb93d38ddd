// Rows of decoded columns into batches: column by column where there are no ops.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "feed/batch_layout.h"
#include "feed/byte_arena.h"
#include "feed/late_rows.h"
#include "feed/table_rows.h"

namespace forebay::feed {
namespace {

using format::TableValues;

// A row's value; `row`: of the group. `width`: 0 where they differ in size.
ByteView ValueOf(const DecodedPiece& piece, size_t leaf, uint32_t width, uint64_t row) {
  if (width > 0) return {piece.At(leaf, width, row), width};
  const DecodedColumn& column = piece.columns[leaf];
  const TableValues& values = column.values;
  const uint64_t i = row - column.first_row;
  return ByteView(values.values)
      .subspan(values.offsets[i], values.offsets[i + 1] - values.offsets[i]);
}

// A column on its way from pieces' rows to an array of one batch's block.
struct Lane {
  size_t leaf = 0;
  uint32_t width = 0;
  std::byte* to = nullptr;
};

template <size_t width>
void Gather(std::span<const std::byte* const> rows, uint32_t in_row, const uint64_t* targets,
            std::byte* to) {
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to + targets[i] * width, rows[i] + in_row, width);
  }
}

// From where rows begin to the rows of an array that `targets` names.
void GatherAny(std::span<const std::byte* const> rows, uint32_t in_row, uint32_t width,
               const uint64_t* targets, std::byte* to) {
  switch (width) {
    case 1:
      return Gather<1>(rows, in_row, targets, to);
    case 2:
      return Gather<2>(rows, in_row, targets, to);
    case 4:
      return Gather<4>(rows, in_row, targets, to);
    case 8:
      return Gather<8>(rows, in_row, targets, to);
    default:
      break;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(to + targets[i] * width, rows[i] + in_row, width);
  }
}

}  // namespace

class TableSamples::Decoder : public SampleDecoder {
 public:
  explicit Decoder(const TableSamples& samples)
      : samples_(samples),
        worker_(samples.plain_ ? nullptr : samples.chain_->MakeWorker()),
        fields_(samples.inputs_.size()) {}

  Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes,
                const RowTargets& targets, size_t* bad_row) override {
    *bad_row = 0;
    const Rows& rows = *static_cast<const Rows*>(plan.detail.get());
    if (unit < rows.alone.size()) {
      const uint32_t part = rows.alone[unit];
      FB_ASSIGN_OR_RETURN(auto piece, Open(rows.parts[part].piece, bytes));
      rows.opened->Set(part, std::move(piece));
      return {};
    }
    const size_t first = plan.units[unit].first_row;
    FB_RETURN_IF_ERROR(OpenPieces(rows, first, targets.size(), bytes, bad_row));
    const Wanted wanted{pieces_, rows.parts, std::span(rows.part_of).subspan(first, targets.size()),
                        std::span(rows.samples).subspan(first, targets.size()), rows.follow};
    if (samples_.late_) arena_ = std::make_shared<ByteArena>();
    Status status = Deliver(wanted, targets, bad_row);
    if (!status.ok()) status = samples_.OfRow(wanted.PartOf(*bad_row).piece, std::move(status));
    if (samples_.late_) {
      for (auto& piece : pieces_) targets[0].late->Keep(std::move(piece));
      targets[0].late->Keep(std::move(arena_));
    }
    pieces_.clear();  // whoever is idle holds none
    return status;
  }

 private:
  // Rows of pieces: where they lie.
  struct Wanted {
    std::span<const std::shared_ptr<const DecodedPiece>> pieces;
    std::span<const Part> parts;
    std::span<const uint32_t> part_of;
    std::span<const uint64_t> samples;
    bool follow = false;
    size_t size() const { return samples.size(); }
    const Part& PartOf(size_t i) const { return parts[part_of[i]]; }
    const DecodedPiece& PieceOf(size_t i) const { return *pieces[part_of[i]]; }
    // Of the group.
    uint64_t RowOf(size_t i) const { return samples[i] - PartOf(i).group_first; }
  };

  Result<std::shared_ptr<const DecodedPiece>> Open(size_t number, const UnitBytes& bytes) {
    const auto decode = [&](size_t leaf, std::span<DecodedColumn> out) -> Status {
      const TablePiece& of = samples_.table_[number];
      FB_ASSIGN_OR_RETURN(const ByteView stored, samples_.Gather(of, leaf, bytes, pages_));
      if (format::DecodesTogether(samples_.format_))
        return samples_.DecodeTogether(of, stored, out);
      return samples_.DecodeLeaf(of, leaf, stored, &out[0]);
    };
    const auto finish = [&](DecodedPiece* whole) {
      if (samples_.in_order_) return;
      const TablePiece& of = samples_.table_[number];
      whole->LayOutRows(of.first_row, of.rows, samples_.widths_);
    };
    return samples_.pieces_->Get(number, decode, finish);
  }

  // Sets pieces_.
  Status OpenPieces(const Rows& rows, size_t first, size_t count, const UnitBytes& bytes,
                    size_t* bad_row) {
    pieces_.clear();
    for (size_t part = 0; part < rows.parts.size(); ++part) {
      pieces_.push_back(rows.parts[part].decoded);
      if (!pieces_.back() && rows.opened) pieces_.back() = rows.opened->Get(part);
      if (pieces_.back()) continue;
      auto piece = Open(rows.parts[part].piece, bytes);
      if (piece.ok()) {
        pieces_.back() = *std::move(piece);
        continue;
      }
      const auto of_unit = std::span(rows.part_of).subspan(first, count);
      const auto bad = std::ranges::find(of_unit, static_cast<uint32_t>(part));
      if (bad == of_unit.end()) continue;  // of another unit's rows
      *bad_row = static_cast<size_t>(bad - of_unit.begin());
      pieces_.clear();
      return std::move(piece).status();
    }
    return {};
  }

  Status Deliver(const Wanted& wanted, const RowTargets& targets, size_t* bad_row) {
    FB_RETURN_IF_ERROR(CheckNulls(wanted, bad_row));
    return samples_.plain_ ? Copy(wanted, targets) : RunChain(wanted, targets, bad_row);
  }

  Status CheckNulls(const Wanted& wanted, size_t* bad_row) const {
    for (size_t leaf = 0; leaf < samples_.leaves_.size(); ++leaf) {
      if (samples_.leaves_[leaf].nulls) continue;
      const bool some = std::ranges::any_of(wanted.pieces, [&](const auto& piece) {
        return piece && !piece->columns[leaf].values.valid.empty();
      });
      for (size_t i = 0; some && i < wanted.size(); ++i) {
        const DecodedColumn& column = wanted.PieceOf(i).columns[leaf];
        const std::vector<uint8_t>& valid = column.values.valid;
        if (valid.empty() || valid[wanted.RowOf(i) - column.first_row] != 0) continue;
        *bad_row = i;
        const std::string& name = samples_.leaves_[leaf].name;
        return Status(Code::kDataLoss,
                      fmt::format("column '{}' is null; with '{}.valid' among the columns nulls "
                                  "come as zeros, and it says where they are",
                                  name, name));
      }
    }
    return {};
  }

  // What an input is in row i.
  ByteView FieldOf(const Wanted& wanted, const Input& input, size_t i) const {
    static constexpr std::byte kTrue{1};
    const DecodedPiece& piece = wanted.PieceOf(i);
    if (!input.valid) {
      return ValueOf(piece, input.leaf, samples_.widths_[input.leaf], wanted.RowOf(i));
    }
    const DecodedColumn& column = piece.columns[input.leaf];
    const std::vector<uint8_t>& valid = column.values.valid;
    if (valid.empty()) return {&kTrue, 1};
    return std::as_bytes(std::span(valid)).subspan(wanted.RowOf(i) - column.first_row, 1);
  }

  // Rows that follow one another, into rows that do: as many at once as lie in one piece.
  void CopyRuns(const Wanted& wanted, uint64_t target) const {
    for (size_t i = 0; i < wanted.size();) {
      const uint32_t part = wanted.part_of[i];
      size_t end = i + 1;
      while (end < wanted.size() && wanted.part_of[end] == part) ++end;
      const DecodedPiece& piece = *wanted.pieces[part];
      const uint64_t row = wanted.RowOf(i);
      for (const Lane& lane : lanes_) {
        const std::byte* from = piece.At(lane.leaf, lane.width, row);
        std::memcpy(lane.to + (target + i) * lane.width, from, (end - i) * lane.width);
      }
      i = end;
    }
  }

  // Nobody could have guessed where rows lie: those of a stretch are all asked for before the ones
  // of the stretch before are copied, column by column.
  void CopyLanes(const Wanted& wanted, const RowTargets& targets) {
    places_.clear();
    for (size_t part = 0; part < wanted.pieces.size(); ++part) {
      const DecodedPiece* piece = wanted.pieces[part].get();
      if (piece == nullptr) {
        places_.emplace_back();
        continue;
      }
      places_.push_back({piece->rows.data(), wanted.parts[part].group_first + piece->first_row,
                         piece->row_bytes});
    }
    size_t ready = 0;
    for (size_t first = 0; first < wanted.size(); first += kAhead) {
      const size_t count = std::min(kAhead, wanted.size() - first);
      for (size_t i = first; i < first + count; ++i) {
        const PlaceOfRows& place = places_[wanted.part_of[i]];
        const std::byte* row = place.rows + (wanted.samples[i] - place.first) * place.row_bytes;
        __builtin_prefetch(row);
        __builtin_prefetch(row + place.row_bytes - 1);
        from_[i % from_.size()] = row;
        to_[i % to_.size()] = targets.RowOf(i);
      }
      if (first > 0) CopyStretch(ready, kAhead, wanted);
      ready = first;
    }
    if (wanted.size() > 0) CopyStretch(ready, wanted.size() - ready, wanted);
  }

  void CopyStretch(size_t first, size_t count, const Wanted& wanted) const {
    const size_t at = first % from_.size();
    const DecodedPiece& any = wanted.PieceOf(first);  // rows of all pieces are alike
    for (const Lane& lane : lanes_) {
      GatherAny(std::span(from_).subspan(at, count), any.columns[lane.leaf].in_row, lane.width,
                to_.data() + at, lane.to);
    }
  }

  // Whether array `k` is copied by lanes.
  bool SetLane(size_t k, const RowTarget& target) {
    const Input& input = samples_.inputs_[k];
    const uint32_t width = samples_.widths_[input.leaf];
    if (input.valid || width == 0) return false;
    lanes_.push_back({input.leaf, width, target.block + target.layout->FirstOf(k)});
    return true;
  }

  Status Copy(const Wanted& wanted, const RowTargets& targets) {
    const RowTarget first = targets[0];
    const bool runs = wanted.follow && targets.follow();
    const bool lanes = samples_.in_order_ ? runs : targets.in_one_block();
    lanes_.clear();
    size_t ragged = 0;
    for (size_t k = 0; k < samples_.arrays_.size(); ++k) {
      const Input& input = samples_.inputs_[k];
      if (samples_.arrays_[k].ragged()) {
        for (size_t i = 0; i < targets.size(); ++i) {
          first.late->Set(targets.RowOf(i), ragged, FieldOf(wanted, input, i));
        }
        ++ragged;
        continue;
      }
      if (lanes && SetLane(k, first)) continue;
      for (size_t i = 0; i < targets.size(); ++i) {
        const ByteView from = FieldOf(wanted, input, i);
        const MutableBytes to = targets[i].array(k);
        if (from.size() != to.size()) return Status(Code::kInternal, "a column of another width");
        std::memcpy(to.data(), from.data(), from.size());
      }
    }
    if (lanes_.empty()) return {};
    if (samples_.in_order_) {
      CopyRuns(wanted, targets.RowOf(0));
    } else {
      CopyLanes(wanted, targets);
    }
    return {};
  }

  Status RunChain(const Wanted& wanted, const RowTargets& targets, size_t* bad_row) {
    for (size_t i = 0; i < targets.size(); ++i) {
      *bad_row = i;
      for (size_t k = 0; k < fields_.size(); ++k) {
        fields_[k] = FieldOf(wanted, samples_.inputs_[k], i);
      }
      const RowTarget target = targets[i];
      SetOutputs(target);
      FB_RETURN_IF_ERROR(worker_->Run(target.identity, fields_, outputs_));
      if (samples_.late_) HandLate(target);
    }
    *bad_row = 0;
    return {};
  }

  // What ops made of as many values as there are. The worker's next row takes their place.
  void HandLate(const RowTarget& target) {
    const std::vector<ops::OutputArray>& outputs = samples_.chain_->outputs();
    size_t ragged = 0;
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].late) target.late->Set(target.row, ragged, arena_->Copy(worker_->Late(k)));
      ragged += samples_.arrays_[k].ragged() ? 1 : 0;
    }
  }

  // The chain copies what it leaves alone; that is taken from where it lies instead.
  void SetOutputs(const RowTarget& target) {
    const std::vector<ops::OutputArray>& outputs = samples_.chain_->outputs();
    size_t unused = 0;
    for (const ops::OutputArray& output : outputs) {
      unused += output.raw_of < 0 ? 0 : fields_[static_cast<size_t>(output.raw_of)].size();
    }
    if (unused_.size() < unused) unused_.resize(unused);
    outputs_.clear();
    size_t at = 0;
    size_t ragged = 0;
    for (size_t k = 0; k < outputs.size(); ++k) {
      if (outputs[k].late) {
        outputs_.emplace_back();
        ++ragged;
        continue;
      }
      if (outputs[k].raw_of < 0) {
        outputs_.push_back(target.array(k));
        continue;
      }
      const ByteView field = fields_[static_cast<size_t>(outputs[k].raw_of)];
      target.late->Set(target.row, ragged++, field);
      outputs_.push_back(MutableBytes(unused_).subspan(at, field.size()));
      at += field.size();
    }
  }

  const TableSamples& samples_;
  std::unique_ptr<ops::Worker> worker_;
  std::vector<std::shared_ptr<const DecodedPiece>> pieces_;  // of the parts
  std::vector<Lane> lanes_;
  // Of CopyLanes: where rows of a part lie, and which rows come next: two stretches.
  struct PlaceOfRows {
    const std::byte* rows = nullptr;
    uint64_t first = 0;  // sample
    uint64_t row_bytes = 0;
  };
  static constexpr size_t kAhead = 64;
  std::vector<PlaceOfRows> places_;
  std::array<const std::byte*, 2 * kAhead> from_{};
  std::array<uint64_t, 2 * kAhead> to_{};
  RawBytes pages_;
  std::vector<ByteView> fields_;  // of the chain
  std::vector<MutableBytes> outputs_;
  std::vector<std::byte> unused_;
  std::shared_ptr<ByteArena> arena_;  // of the unit's late values
};

Result<std::unique_ptr<SampleDecoder>> TableSamples::MakeDecoder() const {
  return std::unique_ptr<SampleDecoder>(std::make_unique<Decoder>(*this));
}

// What was read of a column, in one.
Result<ByteView> TableSamples::Gather(const TablePiece& piece, size_t leaf, const UnitBytes& bytes,
                                      RawBytes& scratch) const {
  const format::TableRead& read = piece.reads[leaf];
  uint64_t size = 0;
  for (const ByteRange& range : read.ranges) size += range.size();
  scratch.resize(size);
  const MutableBytes all(scratch);
  uint64_t at = 0;
  for (const ByteRange& range : read.ranges) {
    const auto holds = [&](const Extent& extent) {
      return extent.object == groups_[piece.group].shard && extent.range.Contains(range);
    };
    const auto extent = std::ranges::find_if(bytes.extents, holds);
    if (extent == bytes.extents.end()) {
      return Status(Code::kInternal, "bytes of a column were not fetched");
    }
    const auto i = static_cast<size_t>(extent - bytes.extents.begin());
    bytes.buffers[i]->CopyOut(range.offset - extent->range.offset, all.subspan(at, range.size()));
    at += range.size();
  }
  return ByteView(all);
}

Status TableSamples::DecodeLeaf(const TablePiece& piece, size_t leaf, ByteView bytes,
                                DecodedColumn* out) const {
  const format::TableRead& read = piece.reads[leaf];
  out->first_row = read.first_row;
  Status status = format::DecodeTable(
      groups_[piece.group].chunks[leaf], read, bytes,
      {.shard = "", .offset = read.ranges.back().end - bytes.size()}, &out->values);
  if (status.ok() && widths_[leaf] > 0 &&
      out->values.values.size() != out->values.rows * widths_[leaf]) {
    status = Status(Code::kInternal, "values of another width");
  }
  if (status.ok()) return status;
  return Explain(piece, fmt::format("column '{}' of ", leaves_[leaf].name), std::move(status));
}

Status TableSamples::DecodeTogether(const TablePiece& piece, ByteView bytes,
                                    std::span<DecodedColumn> out) const {
  std::vector<format::TableValues*> values;
  for (DecodedColumn& column : out) values.push_back(&column.values);
  Status status =
      format::DecodeTableGroup(groups_[piece.group].chunks, piece.rows, bytes, {}, values);
  return status.ok() ? status : Explain(piece, "", std::move(status));
}

Status TableSamples::Explain(const TablePiece& piece, const std::string& what,
                             Status status) const {
  const Group& group = groups_[piece.group];
  const auto shard = catalog_->ShardAt(group.shard);
  if (!shard.ok()) return status;
  return OfShard(*shard, std::move(status))
      .WithContext(fmt::format("{}{}{}, ETag {}", what, format::GroupText(format_, group.number),
                               shard->key, shard->etag));
}

// What is wrong with a row of it, whose sample the feeder names.
Status TableSamples::OfRow(size_t piece, Status status) const {
  const auto shard = catalog_->ShardAt(groups_[table_[piece].group].shard);
  if (!shard.ok()) return status;
  return OfShard(*shard, std::move(status)).WithContext(fmt::format("ETag {}", shard->etag));
}

Status TableSamples::OfShard(const catalog::FileEntry& shard, Status status) const {
  ErrorDetail detail{};
  detail.uri = catalog_->source_uri() + shard.key;
  return std::move(status).WithDetail(detail);
}

}  // namespace forebay::feed
