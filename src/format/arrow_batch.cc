// What a catalog says of a record batch, and what of that can be.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "format/arrow_schema.h"
#include "format/packed_numbers.h"

namespace forebay::format {
namespace {

using Kind = ArrowColumn::Kind;

constexpr uint64_t kPackedVersion = 1;
constexpr uint64_t kCountMost = uint64_t{1} << 40;
constexpr uint64_t kBytesMost = uint64_t{1} << 50;
constexpr uint64_t kViewBytes = 16;

uint64_t BytesOfBits(uint64_t bits) { return bits / 8 + (bits % 8 == 0 ? 0 : 1); }

// That buffer `i` of its own has at least, unpacked.
uint64_t LeastBytes(const ArrowChunk& chunk, size_t i) {
  const ArrowColumn& column = chunk.column;
  const uint64_t rows = chunk.rows;
  const uint64_t offsets = (rows + 1) * (column.wide ? sizeof(int64_t) : sizeof(int32_t));
  const uint64_t elements = column.kind == Kind::kList ? chunk.entries : rows * column.each;
  if (i == 0) return BytesOfBits(rows);
  switch (column.kind) {
    case Kind::kValues:
    case Kind::kIndices:
      return BytesOfBits(rows * column.bits);
    case Kind::kBytes:
      return i == 1 ? offsets : 0;
    case Kind::kViews:
      return i == 1 ? rows * kViewBytes : 0;
    case Kind::kList:
      if (i == 1) return offsets;
      return BytesOfBits(i == 2 ? elements : elements * column.bits);
    case Kind::kArrays:
      return BytesOfBits(i == 1 ? elements : elements * column.bits);
  }
  return 0;
}

// Validity may be left out.
bool IsValidity(const ArrowColumn& column, size_t i) {
  return i == 0 || (column.kind == Kind::kList && i == 2) ||
         (column.kind == Kind::kArrays && i == 1);
}

uint64_t MostBytes(const ArrowChunk& chunk, uint64_t stored) {
  constexpr ArrowLimits kLimits;
  if (chunk.codec == ArrowCodec::kNone || stored == 0) return stored;
  const uint64_t unpacked = std::max(kLimits.free_ratio_bytes, kLimits.ratio * stored);
  return std::max(stored, std::min(unpacked, kLimits.buffer_bytes));
}

uint64_t StoredBytes(const ArrowChunk& chunk) {
  uint64_t bytes = 0;
  for (const ByteRange& buffer : chunk.buffers) bytes += buffer.size();
  return bytes;
}

// `base`: from where on places are counted.
void PackChunk(const ArrowChunk& chunk, uint64_t base, NumberPacker& out) {
  const ArrowColumn& column = chunk.column;
  out.Varint(static_cast<uint64_t>(column.kind));
  out.Varint(column.wide ? 1 : 0);
  out.Varint(column.bits);
  out.Varint(column.each);
  out.Varint(column.parents);
  out.Varint(static_cast<uint64_t>(chunk.codec));
  out.Varint(chunk.entries);
  out.Varint(chunk.uncompressed);
  out.Varint(chunk.buffers.size());
  for (const ByteRange& buffer : chunk.buffers) {
    out.Varint(buffer.size());
    if (!buffer.empty()) out.Zigzag(static_cast<int64_t>(buffer.offset - base));
  }
  for (const ArrowChunk& dictionary : chunk.dictionary) {
    out.Varint(dictionary.rows);
    PackChunk(dictionary, base, out);
  }
  out.Varint(chunk.step);
  uint64_t before = 0;
  for (const uint64_t cut : chunk.cuts) out.Varint(cut - std::exchange(before, cut));
}

bool UnpackBuffer(NumberUnpacker& in, uint64_t base, ByteRange& buffer) {
  const uint64_t bytes = in.Varint(kBytesMost);
  if (bytes == 0) return in.ok();
  const uint64_t offset = base + static_cast<uint64_t>(in.Zigzag());
  if (!in.ok() || offset > kBytesMost) return false;
  buffer = {offset, offset + bytes};
  return true;
}

bool CanBe(const ArrowColumn& column) {
  constexpr uint32_t kBitsMost = 8 << 20;
  const uint32_t bits = column.bits;
  const bool number = bits == 1 || bits == 8 || bits == 16 || bits == 32 || bits == 64;
  switch (column.kind) {
    case Kind::kValues:
      return number || (bits > 0 && bits % 8 == 0 && bits <= kBitsMost);
    case Kind::kBytes:
    case Kind::kViews:
      return bits == 0;
    case Kind::kList:
      return number;
    case Kind::kArrays:
      return number && column.each > 0 &&
             uint64_t{column.each} * std::max<uint32_t>(bits, 8) <= kBitsMost;
    case Kind::kIndices:
      return number && bits > 1;
  }
  return false;
}

// Whether it can be cut where it says.
bool UnpackCuts(NumberUnpacker& in, ArrowChunk& chunk) {
  chunk.step = in.Varint(kCountMost);
  if (chunk.step == 0) return in.ok();
  const ArrowColumn& column = chunk.column;
  if (!in.ok() || chunk.step % 8 != 0 || chunk.codec != ArrowCodec::kNone ||
      column.kind == Kind::kViews || chunk.rows / chunk.step >= ArrowLimits{}.cuts) {
    return false;
  }
  if (!column.has_offsets()) return true;
  const uint64_t most = CutsEnd(chunk);
  uint64_t before = 0;
  for (uint64_t row = 0; row < chunk.rows + chunk.step && in.ok(); row += chunk.step) {
    before += in.Varint(most - before);
    chunk.cuts.push_back(before);
  }
  return in.ok();
}

// All but a dictionary and cuts.
bool UnpackParts(NumberUnpacker& in, uint64_t base, ArrowChunk& chunk) {
  constexpr uint64_t kU32Most = UINT32_MAX;
  ArrowColumn& column = chunk.column;
  column.kind = static_cast<Kind>(in.Varint(static_cast<uint64_t>(Kind::kIndices)));
  column.wide = in.Varint(1) != 0;
  column.bits = static_cast<uint32_t>(in.Varint(kU32Most));
  column.each = static_cast<uint32_t>(in.Varint(kU32Most));
  column.parents = static_cast<uint32_t>(in.Count());
  chunk.codec = static_cast<ArrowCodec>(in.Varint(static_cast<uint64_t>(ArrowCodec::kZstd)));
  chunk.entries = in.Varint(kCountMost);
  chunk.uncompressed = in.Varint(kBytesMost);
  if (!in.ok() || !CanBe(column) || (column.kind != Kind::kArrays && column.each != 1)) {
    return false;
  }
  chunk.buffers.resize(in.Count());
  const uint64_t own = ArrowBuffersOf(column.kind);
  if (chunk.buffers.size() < column.parents + own ||
      (column.kind != Kind::kViews && chunk.buffers.size() != column.parents + own)) {
    return false;
  }
  for (ByteRange& buffer : chunk.buffers) {
    if (!UnpackBuffer(in, base, buffer)) return false;
  }
  return column.kind == Kind::kList || chunk.entries == chunk.rows;
}

bool UnpackDictionary(NumberUnpacker& in, ArrowChunk& chunk) {
  if (chunk.column.kind != Kind::kIndices) return true;
  ArrowChunk dictionary{.rows = in.Varint(kCountMost)};
  if (!in.ok() || !UnpackParts(in, chunk.range.offset, dictionary) || in.Varint() != 0) {
    return false;
  }
  const Kind kind = dictionary.column.kind;
  if (dictionary.column.parents > 0 ||
      (kind != Kind::kValues && kind != Kind::kBytes && kind != Kind::kViews)) {
    return false;
  }
  dictionary.range = ArrowRangeOf(dictionary);
  chunk.column.indexed_bytes = dictionary.column.value_bytes();
  chunk.dictionary.push_back(std::move(dictionary));
  return in.ok();
}

// `range`: where its own buffers lie.
bool UnpackChunk(NumberUnpacker& in, const ByteRange& range, ArrowChunk& chunk) {
  chunk.range = range;
  if (!UnpackParts(in, range.offset, chunk) || !UnpackDictionary(in, chunk)) return false;
  const ByteRange own = ArrowRangeOf(chunk);
  return (own.empty() || range.Contains(own)) && CheckArrowChunk(chunk, "", {}).ok() &&
         UnpackCuts(in, chunk);
}

}  // namespace

size_t ArrowBuffersOf(Kind kind) {
  constexpr size_t kOwn[] = {2, 3, 2, 4, 3, 2};
  return kOwn[static_cast<size_t>(kind)];
}

ByteRange ArrowRangeOf(const ArrowChunk& chunk) {
  ByteRange all{std::numeric_limits<uint64_t>::max(), 0};
  for (size_t i = chunk.column.parents; i < chunk.buffers.size(); ++i) {
    const ByteRange& range = chunk.buffers[i];
    if (range.empty()) continue;
    all = {std::min(all.offset, range.offset), std::max(all.end, range.end)};
  }
  return all.end == 0 ? ByteRange{} : all;
}

uint64_t CutsEnd(const ArrowChunk& chunk) {
  return chunk.column.kind == Kind::kList ? chunk.entries : chunk.buffers.back().size();
}

Status CheckArrowChunk(const ArrowChunk& chunk, std::string_view name, const Place& place) {
  if (chunk.rows == 0) return {};
  for (const ArrowChunk& dictionary : chunk.dictionary) {
    FB_RETURN_IF_ERROR(CheckArrowChunk(dictionary, name, place));
  }
  // A bit becomes a byte.
  const ArrowColumn& column = chunk.column;
  const uint64_t values = (column.kind == Kind::kList ? chunk.entries : chunk.rows) *
                          std::max<uint64_t>(column.value_bytes(), 1);
  const uint64_t most =
      std::max(ArrowLimits{}.buffer_bytes, ArrowLimits{}.ratio * StoredBytes(chunk));
  if (values > most) {
    return AboveLimit(place, fmt::format("the size of the values of column '{}'", name), values,
                      most);
  }
  for (size_t i = 0; i < chunk.buffers.size(); ++i) {
    const bool parent = i < chunk.column.parents;
    const size_t own = parent ? 0 : i - chunk.column.parents;
    const uint64_t bytes = chunk.buffers[i].size();
    if (!parent && bytes == 0 && IsValidity(chunk.column, own)) continue;
    const uint64_t least = LeastBytes(chunk, own);
    if (least <= MostBytes(chunk, bytes)) continue;
    return Damaged(place,
                   fmt::format("column '{}' of {} rows, of which buffer {} becomes {} bytes", name,
                               chunk.rows, own, least),
                   fmt::format("{} bytes", bytes));
  }
  return {};
}

std::string PackArrowBatch(const ArrowBatch& batch) {
  NumberPacker out;
  out.Varint(kPackedVersion);
  out.Varint(batch.rows);
  out.Varint(batch.chunks.size());
  for (const ArrowChunk& chunk : batch.chunks) PackChunk(chunk, chunk.range.offset, out);
  return out.Take();
}

Result<ArrowBatch> UnpackArrowBatch(std::string_view packed, const std::vector<ByteRange>& fields) {
  const auto damaged = [] {
    return Status(Code::kDataLoss, "the catalog's words on a record batch are damaged");
  };
  NumberUnpacker in(packed);
  if (in.Varint() != kPackedVersion) {
    return Status(Code::kUnimplemented,
                  "the catalog describes record batches as another version does");
  }
  ArrowBatch batch{.rows = in.Varint(kCountMost)};
  if (in.Count() != fields.size() || !in.ok() || batch.rows == 0) return damaged();
  for (const ByteRange& range : fields) {
    if (range.end > kBytesMost) return damaged();
    ArrowChunk chunk{.rows = batch.rows};
    if (!UnpackChunk(in, range, chunk)) return damaged();
    batch.chunks.push_back(std::move(chunk));
  }
  if (!in.done()) return damaged();
  return batch;
}

ArrowChunk SliceOf(const ArrowChunk& chunk, uint64_t first, uint64_t rows) {
  const ArrowColumn& column = chunk.column;
  const uint64_t end = first + rows;
  ArrowChunk slice{.column = column,
                   .rows = rows,
                   .entries = rows,
                   .range = chunk.range,
                   .dictionary = chunk.dictionary};
  // Bits of the buffer that come next, from a multiple of 8 on.
  const auto take = [&](uint64_t from, uint64_t to) {
    const ByteRange& whole = chunk.buffers[slice.buffers.size()];
    slice.buffers.push_back({});
    if (whole.empty()) return;
    slice.buffers.back() = {whole.offset + from / 8, whole.offset + BytesOfBits(to)};
  };
  for (size_t i = 0; i <= column.parents; ++i) take(first, end);
  if (!column.has_offsets()) {
    if (column.kind == Kind::kArrays) take(first * column.each, end * column.each);
    take(first * column.each * column.bits, end * column.each * column.bits);
    return slice;
  }
  const uint64_t offset_bits = column.wide ? 64 : 32;
  take(first * offset_bits, (end + 1) * offset_bits);
  const uint64_t from = chunk.cuts[first / chunk.step];
  const uint64_t to = chunk.cuts[end / chunk.step + (end % chunk.step == 0 ? 0 : 1)];
  slice.skipped = from;
  if (column.kind == Kind::kBytes) {
    take(from * 8, to * 8);
    return slice;
  }
  slice.skipped -= from % 8;  // elements may be bits
  slice.entries = to - slice.skipped;
  take(slice.skipped, to);
  take(slice.skipped * column.bits, to * column.bits);
  return slice;
}

std::vector<ByteRange> ReadsOf(const ArrowChunk& chunk) {
  constexpr uint64_t kPadding = 64;
  std::vector<ByteRange> ranges = chunk.buffers;
  for (const ArrowChunk& dictionary : chunk.dictionary) {
    ranges.insert(ranges.end(), dictionary.buffers.begin(), dictionary.buffers.end());
  }
  std::erase_if(ranges, [](const ByteRange& range) { return range.empty(); });
  std::ranges::sort(ranges);
  std::vector<ByteRange> reads;
  for (const ByteRange& range : ranges) {
    if (reads.empty() || range.offset > reads.back().end + kPadding) {
      reads.push_back(range);
    } else {
      reads.back().end = std::max(reads.back().end, range.end);
    }
  }
  return reads;
}

TableLayout LayoutOf(const ArrowChunk& chunk) {
  TableLayout layout{.value_bytes = chunk.column.value_bytes(),
                     .list = chunk.column.kind == Kind::kList,
                     .entries = chunk.entries,
                     .uncompressed = chunk.uncompressed,
                     .guessed = chunk.codec != ArrowCodec::kNone && chunk.column.value_bytes() == 0,
                     .ranges = ReadsOf(chunk)};
  for (uint64_t row = 0; chunk.step > 0 && row < chunk.rows; row += chunk.step) {
    layout.starts.push_back(row);
  }
  return layout;
}

}  // namespace forebay::format
