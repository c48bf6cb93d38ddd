#include "feed/record_decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/stream_copy.h"
#include "feed/batch_layout.h"
#include "feed/byte_arena.h"
#include "feed/late_rows.h"

namespace forebay::feed {
namespace {

// Bytes of the shard, by what was fetched for the unit.
class Fetched final : public FetchedBytes {
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

// Where a batch's arrays go, row by row. Of the rows of one unit.
class Outputs {
 public:
  Outputs(const RecordDecoding& of, size_t count) : of_(of), places_(count), arrays_(count) {}

  void Begin() { placed_ = false; }
  // What differs in size goes into `arena` where the batch has no place for it yet: raw fields,
  // whose sizes are known, at once.
  Status Set(const catalog::RecordView& record, const RowTarget& row, ByteArena* arena) {
    if (!placed_ || row.block != block_ || row.layout != layout_) SetPlaces(row);
    const std::vector<ops::OutputArray>& outputs = of_.chain.outputs();
    for (size_t i = 0; i < arrays_.size(); ++i) {
      const Place& place = places_[i];
      if (!place.ragged) {
        arrays_[i] = {place.first + row.row * place.bytes, place.bytes};
      } else if (!of_.late) {
        arrays_[i] = row.array(i);
      } else if (outputs[i].raw_of < 0) {
        arrays_[i] = {};
      } else {
        const size_t field = of_.columns[static_cast<size_t>(outputs[i].raw_of)];
        FB_ASSIGN_OR_RETURN(const uint64_t size, SizeOf(of_.fields, record, field));
        arrays_[i] = arena->Take(size);
      }
    }
    return {};
  }
  std::span<const MutableBytes> arrays() const { return arrays_; }

 private:
  struct Place {
    std::byte* first = nullptr;  // of row 0
    size_t bytes = 0;
    bool ragged = false;
  };

  // Arrays of equal rows lie at equal distances: that is found once for a unit, not for each row.
  void SetPlaces(const RowTarget& row) {
    placed_ = true;
    block_ = row.block;
    layout_ = row.layout;
    for (size_t i = 0; i < places_.size(); ++i) {
      places_[i].ragged = of_.arrays[i].ragged();
      if (places_[i].ragged) continue;
      const MutableBytes first = layout_->RowOf(block_, i, 0);
      places_[i].first = first.data();
      places_[i].bytes = first.size();
    }
  }

  const RecordDecoding& of_;
  bool placed_ = false;
  std::byte* block_ = nullptr;  // of places_
  const BatchLayout* layout_ = nullptr;
  std::vector<Place> places_;
  std::vector<MutableBytes> arrays_;
};

// Runs the chain over rows. Scratch of one worker.
class RecordDecoder : public SampleDecoder {
 public:
  explicit RecordDecoder(const RecordDecoding& of)
      : of_(of),
        opener_(of.fields.MakeOpener(of.needed)),
        worker_(of.chain.MakeWorker()),
        fields_(of.fields.fields().size()),
        inputs_(of.columns.size()),
        outputs_(of_, of.chain.outputs().size()) {
    const std::vector<ops::OutputArray>& arrays = of.chain.outputs();
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].raw_of >= 0) raws_.push_back({i, static_cast<size_t>(arrays[i].raw_of)});
    }
  }

  Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes, const RowTargets& rows,
                size_t* bad_row) override {
    const auto& of_plan = *static_cast<const RecordRows*>(plan.detail.get());
    const size_t first = plan.units[unit].first_row;
    if (of_.late) {
      arena_ = std::make_shared<ByteArena>();
      rows[0].late->Keep(arena_);
    }
    outputs_.Begin();
    const bool any_kept = of_.kept.used_bytes() > 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const RecordRows::Row& row = of_plan.rows[first + i];
      const catalog::RecordView record = row.record();
      KeptSamples::Value kept = of_plan.kept.empty() ? nullptr : of_plan.kept[first + i];
      // It may be there by now though it was not when the row was planned.
      if (any_kept && !kept) kept = of_.kept.Find(row.sample);
      const Status status = DecodeRow({row.sample, record, kept.get()}, bytes, rows[i]);
      if (status.ok()) continue;
      *bad_row = i;
      return Explain(record, status);
    }
    return {};
  }

 private:
  struct Sample {
    uint64_t number = 0;
    const catalog::RecordView& record;
    const std::vector<std::byte>* kept = nullptr;  // what was kept of it, if anything
  };
  struct Raw {
    size_t output = 0;
    size_t input = 0;  // of the chain
  };

  Status DecodeRow(const Sample& sample, const UnitBytes& bytes, const RowTarget& row) {
    FB_RETURN_IF_ERROR(outputs_.Set(sample.record, row, arena_.get()));
    FB_RETURN_IF_ERROR(RunRow(sample, bytes, row));
    if (of_.late) HandLate(row);
    return {};
  }

  void HandLate(const RowTarget& row) {
    for (size_t i = 0, ragged = 0; i < outputs_.arrays().size(); ++i) {
      if (!of_.arrays[i].ragged()) continue;
      ByteView value = outputs_.arrays()[i];
      if (of_.chain.outputs()[i].late) value = arena_->Copy(worker_->Late(i));
      row.late->Set(row.row, ragged++, value);
    }
  }

  Status RunRow(const Sample& sample, const UnitBytes& bytes, const RowTarget& row) {
    const std::span<const MutableBytes> arrays = outputs_.arrays();
    if (sample.kept != nullptr) return worker_->RunKept(row.identity, *sample.kept, arrays);
    const bool keeps = of_.kept.open();
    FB_RETURN_IF_ERROR(Open(sample.record, bytes, keeps));
    if (!keeps) return worker_->Run(row.identity, inputs_, arrays);
    FB_RETURN_IF_ERROR(worker_->Keep(inputs_, &kept_));
    FB_RETURN_IF_ERROR(worker_->RunKept(row.identity, kept_, arrays));
    of_.kept.Offer(sample.number, kept_);
    return {};
  }

  // Sets `inputs_`; those that come as they are have the size that the batch has for them, and lie
  // there, unless they are kept first.
  Status Open(const catalog::RecordView& record, const UnitBytes& bytes, bool keeps) {
    const std::span<const MutableBytes> arrays = outputs_.arrays();
    if (!raws_.empty()) places_.assign(fields_.size(), {});
    for (const Raw& raw : raws_) {
      if (!keeps) places_[of_.columns[raw.input]] = arrays[raw.output];
    }
    FB_RETURN_IF_ERROR(opener_->Open(record, Fetched(bytes, record.shard), places_, fields_));
    for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i] = fields_[of_.columns[i]];
    for (const Raw& raw : raws_) {
      const ByteView field = inputs_[raw.input];
      if (field.size() == arrays[raw.output].size()) continue;
      return Status(Code::kDataLoss, fmt::format("field '{}' has {} bytes, the catalog says {}",
                                                 of_.chain.outputs()[raw.output].name, field.size(),
                                                 arrays[raw.output].size()));
    }
    return {};
  }

  Status Explain(const catalog::RecordView& record, Status status) const {
    ErrorDetail detail{.offset = static_cast<int64_t>(record.range.offset),
                       .end = static_cast<int64_t>(record.range.end)};
    const auto shard = of_.catalog.ShardAt(record.shard);
    if (!shard.ok()) return std::move(status).WithDetail(detail);
    detail.uri = of_.catalog.source_uri() + shard->key;
    return std::move(status).WithDetail(detail).WithContext(fmt::format("ETag {}", shard->etag));
  }

  const RecordDecoding of_;
  std::unique_ptr<RecordOpener> opener_;
  std::unique_ptr<ops::Worker> worker_;
  std::vector<ByteView> fields_;  // of the records
  std::vector<ByteView> inputs_;  // of the chain
  Outputs outputs_;
  std::vector<Raw> raws_;             // what comes as it is
  std::vector<MutableBytes> places_;  // of fields_: the output that each is, if any; empty: none is
  std::vector<std::byte> kept_;
  std::shared_ptr<ByteArena> arena_;  // of the unit's late values
};

}  // namespace

std::unique_ptr<SampleDecoder> MakeRecordDecoder(const RecordDecoding& of) {
  return std::make_unique<RecordDecoder>(of);
}

Result<uint64_t> SizeOf(const RecordFields& fields, const catalog::RecordView& record,
                        size_t field) {
  const auto bytes = fields.BytesOf(record, field);
  if (bytes) return *bytes;
  return Status(Code::kDataLoss, fmt::format("it has no '{}'", fields.fields()[field].name));
}

}  // namespace forebay::feed
