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

// `rows`: of `column`.
struct Gather {
  const DecodedColumn& column;
  std::span<const uint64_t> rows;
  ByteView Of(size_t i) const {
    const ParquetValues& values = column.values;
    const uint64_t row = rows[i] - column.first_row;
    if (!values.offsets.empty()) {
      return ByteView(values.values)
          .subspan(values.offsets[row], values.offsets[row + 1] - values.offsets[row]);
    }
    const uint64_t width = values.values.size() / values.rows;
    return ByteView(values.values).subspan(row * width, width);
  }
};

template <size_t width>
void CopyRows(const Gather& from, std::byte* to, std::span<const RowTarget> targets) {
  const std::byte* values = from.column.values.values.data();
  const uint64_t first = from.column.first_row;
  for (size_t i = 0; i < targets.size(); ++i) {
    std::memcpy(to + targets[i].row * width, values + (from.rows[i] - first) * width, width);
  }
}

// All rows of one batch's block, of values that have one size.
bool CopyFixed(const Gather& from, size_t array, std::span<const RowTarget> targets) {
  const BatchLayout* layout = targets[0].layout;
  std::byte* block = targets[0].block;
  for (const RowTarget& target : targets) {
    if (target.layout != layout || target.block != block) return false;
  }
  std::byte* to = block + layout->FirstOf(array);
  switch (from.column.values.values.size() / from.column.values.rows) {
    case 1:
      CopyRows<1>(from, to, targets);
      return true;
    case 2:
      CopyRows<2>(from, to, targets);
      return true;
    case 4:
      CopyRows<4>(from, to, targets);
      return true;
    case 8:
      CopyRows<8>(from, to, targets);
      return true;
    default:
      return false;
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
                std::span<const RowTarget> rows, size_t* bad_row) override {
    (void)unit;  // there is one
    *bad_row = 0;
    const Rows& wanted = *static_cast<const Rows*>(plan.detail.get());
    std::shared_ptr<const DecodedPiece> piece = wanted.decoded;
    if (!piece) {
      const auto decode = [&](size_t leaf, DecodedColumn* out) {
        return samples_.DecodeLeaf(samples_.table_[wanted.piece], leaf, bytes, out);
      };
      FB_ASSIGN_OR_RETURN(piece, samples_.pieces_->Get(wanted.piece, decode));
    }
    FB_RETURN_IF_ERROR(CheckNulls(*piece, wanted, bad_row));
    if (samples_.late_) rows[0].late->Keep(piece);
    return samples_.plain_ ? Copy(*piece, wanted, rows) : RunChain(*piece, wanted, rows, bad_row);
  }

 private:
  Status CheckNulls(const DecodedPiece& piece, const Rows& wanted, size_t* bad_row) const {
    for (size_t k = 0; k < samples_.leaves_.size(); ++k) {
      const DecodedColumn& column = piece.columns[k];
      const Leaf& leaf = samples_.leaves_[k];
      if (column.values.valid.empty() || leaf.nulls) continue;
      for (size_t i = 0; i < wanted.rows.size(); ++i) {
        if (column.values.valid[wanted.rows[i] - column.first_row] != 0) continue;
        *bad_row = i;
        return Status(Code::kDataLoss,
                      fmt::format("column '{}' is null; with '{}.valid' among the columns nulls "
                                  "come as zeros, and it says where they are",
                                  leaf.name, leaf.name));
      }
    }
    return {};
  }

  // What an input is in row i.
  ByteView FieldOf(const DecodedPiece& piece, const Input& input, const Rows& wanted,
                   size_t i) const {
    static constexpr std::byte kTrue{1};
    const DecodedColumn& column = piece.columns[input.leaf];
    if (!input.valid) return Gather{column, wanted.rows}.Of(i);
    const std::vector<uint8_t>& valid = column.values.valid;
    if (valid.empty()) return {&kTrue, 1};
    return std::as_bytes(std::span(valid)).subspan(wanted.rows[i] - column.first_row, 1);
  }

  Status Copy(const DecodedPiece& piece, const Rows& wanted,
              std::span<const RowTarget> rows) const {
    size_t ragged = 0;
    for (size_t k = 0; k < samples_.arrays_.size(); ++k) {
      const Input& input = samples_.inputs_[k];
      const DecodedColumn& column = piece.columns[input.leaf];
      if (samples_.arrays_[k].ragged()) {
        for (size_t i = 0; i < rows.size(); ++i) {
          rows[i].late->Set(rows[i].row, ragged, FieldOf(piece, input, wanted, i));
        }
        ++ragged;
        continue;
      }
      if (!input.valid && CopyFixed({column, wanted.rows}, k, rows)) continue;
      for (size_t i = 0; i < rows.size(); ++i) {
        const ByteView from = FieldOf(piece, input, wanted, i);
        const MutableBytes to = rows[i].array(k);
        if (from.size() != to.size()) return Status(Code::kInternal, "a column of another width");
        std::memcpy(to.data(), from.data(), from.size());
      }
    }
    return {};
  }

  Status RunChain(const DecodedPiece& piece, const Rows& wanted, std::span<const RowTarget> rows,
                  size_t* bad_row) {
    const std::vector<ops::OutputArray>& outputs = samples_.chain_->outputs();
    for (size_t i = 0; i < rows.size(); ++i) {
      for (size_t k = 0; k < fields_.size(); ++k) {
        fields_[k] = FieldOf(piece, samples_.inputs_[k], wanted, i);
      }
      outputs_.clear();
      size_t ragged = 0;
      size_t late_bytes = 0;
      for (const ops::OutputArray& output : outputs) {
        if (output.raw_of < 0) continue;
        late_bytes += fields_[static_cast<size_t>(output.raw_of)].size();
      }
      // The chain copies what it leaves alone; it is taken from where it lies instead.
      unused_.resize(std::max(unused_.size(), late_bytes));
      size_t at = 0;
      for (size_t k = 0; k < outputs.size(); ++k) {
        if (outputs[k].raw_of < 0) {
          outputs_.push_back(rows[i].array(k));
          continue;
        }
        const ByteView field = fields_[static_cast<size_t>(outputs[k].raw_of)];
        rows[i].late->Set(rows[i].row, ragged++, field);
        outputs_.push_back(MutableBytes(unused_).subspan(at, field.size()));
        at += field.size();
      }
      *bad_row = i;
      FB_RETURN_IF_ERROR(worker_->Run(rows[i].identity, fields_, outputs_));
    }
    *bad_row = 0;
    return {};
  }

  const TableSamples& samples_;
  std::unique_ptr<ops::Worker> worker_;
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
  if (status.ok()) return status;
  ErrorDetail detail{};
  const auto shard = catalog_->ShardAt(group.shard);
  if (shard.ok()) detail.uri = catalog_->source_uri() + shard->key;
  return std::move(status).WithDetail(detail).WithContext(
      fmt::format("column '{}' of row group {}{}", leaves_[leaf].name, group.number,
                  shard.ok() ? ", ETag " + shard->etag : ""));
}

}  // namespace forebay::feed
