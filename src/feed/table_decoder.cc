// Rows of decoded columns into batches: column by column where there are no ops.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "feed/batch_layout.h"
#include "feed/late_rows.h"
#include "feed/table_rows.h"

namespace forebay::feed {
namespace {

using format::ParquetValues;

// A row's value; `row`: of the row group. `width`: 0 where they differ in size.
ByteView ValueOf(const DecodedPiece& piece, size_t leaf, uint32_t width, uint64_t row) {
  const DecodedColumn& column = piece.columns[leaf];
  if (width > 0) {
    const uint64_t at = (row - piece.first_row) * piece.row_bytes + column.in_row;
    return ByteView(piece.rows).subspan(at, width);
  }
  const ParquetValues& values = column.values;
  const uint64_t i = row - column.first_row;
  return ByteView(values.values)
      .subspan(values.offsets[i], values.offsets[i + 1] - values.offsets[i]);
}

// Rows of pieces: where they lie.
struct Wanted {
  std::span<const std::shared_ptr<const DecodedPiece>> pieces;
  std::span<const uint32_t> piece_of;
  std::span<const uint64_t> rows;
  const DecodedColumn& ColumnOf(size_t i, size_t leaf) const {
    return pieces[piece_of[i]]->columns[leaf];
  }
};

// A column on its way from pieces' rows to an array of one batch's block.
struct Lane {
  uint32_t in_row = 0;
  uint32_t width = 0;
  std::byte* to = nullptr;
};

void CopyValue(const Lane& lane, const std::byte* row, uint64_t target) {
  std::byte* to = lane.to + target * lane.width;
  const std::byte* from = row + lane.in_row;
  switch (lane.width) {
    case 1:
      *to = *from;
      return;
    case 2:
      std::memcpy(to, from, 2);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 8:
      std::memcpy(to, from, 8);
      return;
    default:
      std::memcpy(to, from, lane.width);
  }
}

// Whether all go into one batch's block.
bool OneBlock(std::span<const RowTarget> targets) {
  return std::ranges::all_of(targets, [&](const RowTarget& target) {
    return target.layout == targets[0].layout && target.block == targets[0].block;
  });
}

}  // namespace

class TableSamples::Decoder : public SampleDecoder {
 public:
  explicit Decoder(const TableSamples& samples)
      : samples_(samples),
        worker_(samples.plain_ ? nullptr : samples.chain_->MakeWorker()),
        fields_(samples.inputs_.size()) {}

  Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes,
                std::span<const RowTarget> targets, size_t* bad_row) override {
    *bad_row = 0;
    const Rows& rows = *static_cast<const Rows*>(plan.detail.get());
    const size_t first = plan.units[unit].first_row;
    FB_RETURN_IF_ERROR(OpenPieces(rows, first, targets.size(), bytes, bad_row));
    const Wanted wanted{pieces_, std::span(rows.part_of).subspan(first, targets.size()),
                        std::span(rows.rows).subspan(first, targets.size())};
    Status status = Deliver(wanted, targets, bad_row);
    if (samples_.late_) {
      for (auto& piece : pieces_) targets[0].late->Keep(std::move(piece));
    }
    pieces_.clear();  // whoever is idle holds none
    return status;
  }

 private:
  // Sets pieces_.
  Status OpenPieces(const Rows& rows, size_t first, size_t count, const UnitBytes& bytes,
                    size_t* bad_row) {
    pieces_.clear();
    for (size_t part = 0; part < rows.parts.size(); ++part) {
      pieces_.push_back(rows.parts[part].decoded);
      if (pieces_.back()) continue;
      const size_t number = rows.parts[part].piece;
      const auto decode = [&](size_t leaf, DecodedColumn* out) {
        return samples_.DecodeLeaf(samples_.table_[number], leaf, bytes, out);
      };
      const auto finish = [&](DecodedPiece* whole) {
        const TablePiece& of = samples_.table_[number];
        whole->LayOutRows(of.first_row, of.rows, samples_.widths_);
      };
      auto piece = samples_.pieces_->Get(number, decode, finish);
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

  Status Deliver(const Wanted& wanted, std::span<const RowTarget> targets, size_t* bad_row) {
    FB_RETURN_IF_ERROR(CheckNulls(wanted, bad_row));
    return samples_.plain_ ? Copy(wanted, targets) : RunChain(wanted, targets, bad_row);
  }

  Status CheckNulls(const Wanted& wanted, size_t* bad_row) const {
    for (size_t leaf = 0; leaf < samples_.leaves_.size(); ++leaf) {
      if (samples_.leaves_[leaf].nulls) continue;
      const bool some = std::ranges::any_of(wanted.pieces, [&](const auto& piece) {
        return piece && !piece->columns[leaf].values.valid.empty();
      });
      for (size_t i = 0; some && i < wanted.rows.size(); ++i) {
        const DecodedColumn& column = wanted.ColumnOf(i, leaf);
        const std::vector<uint8_t>& valid = column.values.valid;
        if (valid.empty() || valid[wanted.rows[i] - column.first_row] != 0) continue;
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
    const DecodedColumn& column = wanted.ColumnOf(i, input.leaf);
    if (!input.valid) {
      return ValueOf(*wanted.pieces[wanted.piece_of[i]], input.leaf, samples_.widths_[input.leaf],
                     wanted.rows[i]);
    }
    const std::vector<uint8_t>& valid = column.values.valid;
    if (valid.empty()) return {&kTrue, 1};
    return std::as_bytes(std::span(valid)).subspan(wanted.rows[i] - column.first_row, 1);
  }

  // All rows of one batch's block, row by row: of the values that have one size. Far enough ahead
  // of its turn a row is asked for, as nobody could have guessed where it lies.
  void CopyLanes(const Wanted& wanted, std::span<const RowTarget> targets) const {
    constexpr size_t kAhead = 16;
    const auto row = [&](size_t i) {
      const DecodedPiece& piece = *wanted.pieces[wanted.piece_of[i]];
      return piece.rows.data() + (wanted.rows[i] - piece.first_row) * piece.row_bytes;
    };
    for (size_t i = 0; i < targets.size(); ++i) {
      if (i + kAhead < targets.size()) __builtin_prefetch(row(i + kAhead));
      const std::byte* from = row(i);
      for (const Lane& lane : lanes_) CopyValue(lane, from, targets[i].row);
    }
  }

  // Whether array `k` is copied by lanes.
  bool SetLane(const Wanted& wanted, size_t k, const RowTarget& target) {
    const Input& input = samples_.inputs_[k];
    const uint32_t width = samples_.widths_[input.leaf];
    if (input.valid || width == 0) return false;
    const auto there =
        std::ranges::find_if(wanted.pieces, [](const auto& p) { return p != nullptr; });
    lanes_.push_back(
        {(*there)->columns[input.leaf].in_row, width, target.block + target.layout->FirstOf(k)});
    return true;
  }

  Status Copy(const Wanted& wanted, std::span<const RowTarget> targets) {
    const bool one_block = OneBlock(targets);
    lanes_.clear();
    size_t ragged = 0;
    for (size_t k = 0; k < samples_.arrays_.size(); ++k) {
      const Input& input = samples_.inputs_[k];
      if (samples_.arrays_[k].ragged()) {
        for (size_t i = 0; i < targets.size(); ++i) {
          targets[i].late->Set(targets[i].row, ragged, FieldOf(wanted, input, i));
        }
        ++ragged;
        continue;
      }
      if (one_block && SetLane(wanted, k, targets[0])) continue;
      for (size_t i = 0; i < targets.size(); ++i) {
        const ByteView from = FieldOf(wanted, input, i);
        const MutableBytes to = targets[i].array(k);
        if (from.size() != to.size()) return Status(Code::kInternal, "a column of another width");
        std::memcpy(to.data(), from.data(), from.size());
      }
    }
    if (!lanes_.empty()) CopyLanes(wanted, targets);
    return {};
  }

  Status RunChain(const Wanted& wanted, std::span<const RowTarget> targets, size_t* bad_row) {
    for (size_t i = 0; i < targets.size(); ++i) {
      *bad_row = i;
      for (size_t k = 0; k < fields_.size(); ++k) {
        fields_[k] = FieldOf(wanted, samples_.inputs_[k], i);
      }
      SetOutputs(targets[i]);
      FB_RETURN_IF_ERROR(worker_->Run(targets[i].identity, fields_, outputs_));
    }
    *bad_row = 0;
    return {};
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
  std::vector<ByteView> fields_;  // of the chain
  std::vector<MutableBytes> outputs_;
  std::vector<std::byte> unused_;
};

Result<std::unique_ptr<SampleDecoder>> TableSamples::MakeDecoder() const {
  return std::unique_ptr<SampleDecoder>(std::make_unique<Decoder>(*this));
}

Status TableSamples::DecodeLeaf(const TablePiece& piece, size_t leaf, const UnitBytes& bytes,
                                DecodedColumn* out) const {
  const TableRead& read = piece.reads[leaf];
  const Group& group = groups_[piece.group];
  uint64_t size = 0;
  for (const ByteRange& range : read.ranges) size += range.size();
  std::vector<std::byte> pages(size);
  uint64_t at = 0;
  for (const ByteRange& range : read.ranges) {
    const auto holds = [&](const Extent& extent) {
      return extent.object == group.shard && extent.range.Contains(range);
    };
    const auto extent = std::ranges::find_if(bytes.extents, holds);
    if (extent == bytes.extents.end()) {
      return Status(Code::kInternal, "pages of a column were not fetched");
    }
    const auto i = static_cast<size_t>(extent - bytes.extents.begin());
    bytes.buffers[i]->CopyOut(range.offset - extent->range.offset,
                              MutableBytes(pages).subspan(at, range.size()));
    at += range.size();
  }
  out->first_row = read.first_row;
  Status status =
      format::DecodeParquet(group.chunks[leaf], read.rows, pages,
                            {.shard = "", .offset = read.ranges.back().end - size}, &out->values);
  if (status.ok() && widths_[leaf] > 0 &&
      out->values.values.size() != out->values.rows * widths_[leaf]) {
    status = Status(Code::kInternal, "values of another width");
  }
  if (status.ok()) return status;
  ErrorDetail detail{};
  const auto shard = catalog_->ShardAt(group.shard);
  if (shard.ok()) detail.uri = catalog_->source_uri() + shard->key;
  return std::move(status).WithDetail(detail).WithContext(
      fmt::format("column '{}' of row group {}{}", leaves_[leaf].name, group.number,
                  shard.ok() ? ", ETag " + shard->etag : ""));
}

}  // namespace forebay::feed
