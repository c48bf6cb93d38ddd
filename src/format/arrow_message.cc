// ParseArrowBatch: what a record batch's message says of the columns.
#include <fmt/core.h>

#include <algorithm>

#include "format/arrow_schema.h"

namespace forebay::format {
namespace {

using Kind = ArrowColumn::Kind;

constexpr uint64_t kNodeBytes = 16;
constexpr uint64_t kBufferBytes = 16;
constexpr uint64_t kRowsMost = uint64_t{1} << 40;
constexpr uint64_t kUnpackedToPacked = 3;  // about: what packed text becomes is not known here

struct Node {
  uint64_t rows = 0;
  uint64_t nulls = 0;
};

class Batch {
 public:
  Batch(const ArrowSchema& schema, const FlatTable& batch, ByteRange body, const Place& place)
      : body_(body),
        place_(place),
        nodes_(batch.Structs(1, kNodeBytes)),
        buffers_(batch.Structs(2, kBufferBytes)),
        views_(batch.Structs(4, sizeof(int64_t))),
        compression_(batch.Table(3)),
        length_(batch.Get<int64_t>(0)),
        schema_(schema) {}

  Status Open() {
    if (length_ < 0 || static_cast<uint64_t>(length_) > kRowsMost) {
      return AboveLimit(place_, "the rows of a record batch", static_cast<uint64_t>(length_),
                        kRowsMost);
    }
    if (views_.size() != schema_.end.views) {
      return Count("counts of buffers of views", schema_.end.views, views_.size());
    }
    views_before_ = {0};
    for (uint64_t i = 0; i < views_.size(); ++i) {
      const auto count = views_.Member<int64_t>(i);
      if (count < 0 || static_cast<uint64_t>(count) > buffers_.size()) {
        return Count("a count of buffers", buffers_.size(), static_cast<uint64_t>(count));
      }
      views_before_.push_back(views_before_.back() + static_cast<uint64_t>(count));
    }
    if (nodes_.size() != schema_.end.node) {
      return Count("nodes", schema_.end.node, nodes_.size());
    }
    const uint64_t buffers = schema_.end.buffer + views_before_.back();
    return buffers_.size() == buffers ? SetCodec() : Count("buffers", buffers, buffers_.size());
  }

  uint64_t rows() const { return static_cast<uint64_t>(length_); }

  Result<ArrowChunk> ChunkOf(const ArrowLeaf& leaf) const {
    ArrowChunk chunk{.column = leaf.column, .codec = codec_, .rows = rows(), .entries = rows()};
    for (const ArrowPlace& parent : leaf.parents) {
      FB_ASSIGN_OR_RETURN(const ByteRange validity, ValidityOf(parent, leaf));
      if (validity.empty()) continue;
      chunk.buffers.push_back(validity);
      ++chunk.column.parents;
    }
    FB_ASSIGN_OR_RETURN(const ByteRange validity, ValidityOf(leaf.place, leaf));
    chunk.buffers.push_back(validity);
    FB_RETURN_IF_ERROR(TakeBuffers(leaf, chunk));
    chunk.range = ArrowRangeOf(chunk);
    return chunk;
  }

 private:
  Status Count(std::string_view what, uint64_t expected, uint64_t found) const {
    return Damaged(place_, fmt::format("{} {} of a record batch", expected, what),
                   fmt::format("{}", found));
  }
  Status Odd(const ArrowLeaf& leaf, std::string_view what) const {
    return Damaged(place_, fmt::format("column '{}' of {} rows", leaf.name, rows()), what);
  }

  Status SetCodec() {
    if (!compression_.exists()) return {};
    const auto codec = compression_.Get<int8_t>(0);
    const auto method = compression_.Get<int8_t>(1);
    if (codec < 0 || codec > 1 || method != 0) {
      return Refused(place_, fmt::format("a record batch that is compressed as is not known "
                                         "(codec {}, method {})",
                                         codec, method));
    }
    codec_ = codec == 0 ? ArrowCodec::kLz4Frame : ArrowCodec::kZstd;
    return {};
  }

  Node NodeAt(uint32_t i) const {
    return {static_cast<uint64_t>(nodes_.Member<int64_t>(i)),
            static_cast<uint64_t>(nodes_.Member<int64_t>(i, sizeof(int64_t)))};
  }

  // In the shard.
  Result<ByteRange> BufferAt(const ArrowPlace& place, uint64_t k) const {
    const uint64_t i = place.buffer + views_before_[place.views] + k;
    const auto offset = buffers_.Member<int64_t>(i);
    const auto bytes = buffers_.Member<int64_t>(i, sizeof(int64_t));
    const auto range = offset < 0 || bytes < 0
                           ? std::nullopt
                           : RangeWithin(static_cast<uint64_t>(offset),
                                         static_cast<uint64_t>(bytes), body_.size());
    if (!range) {
      return Damaged(place_, fmt::format("buffer {} inside of a body of {} bytes", i, body_.size()),
                     fmt::format("{} bytes at {}", bytes, offset));
    }
    return ByteRange{body_.offset + range->offset, body_.offset + range->end};
  }

  // Empty where there is no null.
  Result<ByteRange> ValidityOf(const ArrowPlace& place, const ArrowLeaf& leaf) const {
    const Node node = NodeAt(place.node);
    if (node.rows != rows() || node.nulls > rows()) {
      return Odd(leaf, fmt::format("{} rows, {} nulls", node.rows, node.nulls));
    }
    return NullsOf(node, place, leaf);
  }

  Result<ByteRange> NullsOf(const Node& node, const ArrowPlace& place,
                            const ArrowLeaf& leaf) const {
    if (node.nulls == 0) return ByteRange{};
    FB_ASSIGN_OR_RETURN(const ByteRange range, BufferAt(place, 0));
    if (range.empty()) return Odd(leaf, "nulls that nothing tells from values");
    return range;
  }

  // Those behind its own validity.
  Status TakeBuffers(const ArrowLeaf& leaf, ArrowChunk& chunk) const {
    const Kind kind = leaf.column.kind;
    const bool elements = kind == Kind::kList || kind == Kind::kArrays;
    uint64_t own = kind == Kind::kBytes ? 3 : kind == Kind::kArrays ? 1 : 2;
    if (kind == Kind::kViews) {
      own += views_before_[leaf.place.views + 1] - views_before_[leaf.place.views];
    }
    for (uint64_t k = 1; k < own; ++k) {
      FB_ASSIGN_OR_RETURN(const ByteRange range, BufferAt(leaf.place, k));
      chunk.buffers.push_back(range);
    }
    const ByteRange data = chunk.buffers.back();
    if (kind == Kind::kBytes) chunk.uncompressed = data.size();
    for (uint64_t k = 2; kind == Kind::kViews && k < own; ++k) {
      chunk.uncompressed += chunk.buffers[chunk.column.parents + k].size();
    }
    if (codec_ != ArrowCodec::kNone) chunk.uncompressed *= kUnpackedToPacked;
    return elements ? TakeElements(leaf, chunk) : Status();
  }

  Status TakeElements(const ArrowLeaf& leaf, ArrowChunk& chunk) const {
    const bool lists = leaf.column.kind == Kind::kList;
    const ArrowPlace child{leaf.place.node + 1, leaf.place.buffer + (lists ? 2 : 1),
                           leaf.place.views};
    const Node node = NodeAt(child.node);
    const uint64_t least = lists ? 0 : rows() * leaf.column.each;
    if (node.rows < least || node.rows > std::max(kRowsMost, least) || node.nulls > node.rows) {
      return Odd(leaf, fmt::format("{} elements, {} nulls", node.rows, node.nulls));
    }
    if (lists) chunk.entries = node.rows;
    FB_ASSIGN_OR_RETURN(const ByteRange validity, NullsOf(node, child, leaf));
    FB_ASSIGN_OR_RETURN(const ByteRange data, BufferAt(child, 1));
    chunk.buffers.push_back(validity);
    chunk.buffers.push_back(data);
    return {};
  }

  const ByteRange body_;
  const Place place_;
  const FlatVector nodes_, buffers_, views_;
  const FlatTable compression_;
  const int64_t length_;
  const ArrowSchema& schema_;
  std::vector<uint64_t> views_before_;  // buffers of views, ahead of so many fields of views
  ArrowCodec codec_ = ArrowCodec::kNone;
};

}  // namespace

Result<ArrowBatch> ParseArrowBatch(FlatReader& in, const ArrowSchema& schema,
                                   const FlatTable& batch, ByteRange body, const Place& place) {
  Batch parsed(schema, batch, body, place);
  FB_RETURN_IF_ERROR(parsed.Open());
  ArrowBatch found{.rows = parsed.rows()};
  for (const ArrowLeaf& leaf : schema.leaves) {
    if (found.rows == 0) break;
    FB_ASSIGN_OR_RETURN(ArrowChunk chunk, parsed.ChunkOf(leaf));
    FB_RETURN_IF_ERROR(CheckArrowChunk(chunk, leaf.name, place));
    found.chunks.push_back(std::move(chunk));
  }
  if (!in.ok()) {
    return Damaged(place, "Arrow's words on a record batch", "others: they are damaged");
  }
  return found;
}

}  // namespace forebay::format
