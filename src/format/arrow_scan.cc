// ScanArrow: where the columns of a file's or stream's record batches lie, by metadata alone.
#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/raw_bytes.h"
#include "format/arrow_schema.h"
#include "format/little_endian.h"

namespace forebay::format {
namespace {

constexpr std::string_view kMagic = "ARROW1";
constexpr uint64_t kHeadBytes = 8;          // the magic, padded
constexpr uint64_t kPieceBytes = 64 << 10;  // read at once
constexpr uint64_t kEndBytes = sizeof(int32_t) + kMagic.size();
constexpr uint32_t kContinues = 0xffffffff;
constexpr uint64_t kWord = sizeof(uint32_t);
constexpr uint64_t kCutBytes = 8 << 20;  // a record batch that is larger is cut
constexpr uint64_t kPartBytes = 1 << 20;
constexpr uint64_t kOffsetsBytes = 8 << 20;  // read at once
constexpr uint64_t kBlockBytes = 24;         // in the footer, of a record batch

// How a message begins.
struct MessageHead {
  uint64_t head_bytes = 0;  // 8; 4 where it is of before Arrow 0.15
  uint64_t bytes = 0;       // of the metadata; 0: the end of the stream
};

MessageHead HeadOf(ByteView bytes) {
  const auto first = Load<uint32_t>(bytes);
  if (first != kContinues) return {kWord, first};
  return {2 * kWord, Load<uint32_t>(bytes, kWord)};
}

// A shard's metadata, ahead: with the bodies between them where those are small, as a request costs
// more than what it brings.
class Pieces {
 public:
  Pieces(const Shard& shard, ScanReport* report) : shard_(shard), report_(report) {}

  uint64_t size() const { return shard_.size; }
  Place PlaceAt(uint64_t offset) const { return {shard_.name, offset}; }
  uint64_t Left(uint64_t offset) const { return offset < size() ? size() - offset : 0; }

  // Valid until the next call. Where the shard is shorter, the error says that `what` is cut.
  Result<ByteView> At(uint64_t offset, uint64_t bytes, std::string_view what) {
    return At(offset, bytes, what, ahead_);
  }
  // `ahead`: what is read at once, at most.
  Result<ByteView> At(uint64_t offset, uint64_t bytes, std::string_view what, uint64_t ahead) {
    const auto range = RangeWithin(offset, bytes, size());
    if (!range) return Truncated(PlaceAt(offset), what, bytes, Left(offset));
    if (!held_.Contains(*range)) {
      held_ = {};
      buffer_.resize(std::min(std::max(bytes, ahead), size() - offset));
      FB_RETURN_IF_ERROR(Read(offset, buffer_));
      held_ = {offset, offset + buffer_.size()};
    }
    return ByteView(buffer_).subspan(offset - held_.offset, bytes);
  }
  // Of a range within the shard.
  Status Read(uint64_t offset, MutableBytes into) {
    FB_RETURN_IF_ERROR(shard_.read({offset, offset + into.size()}, into));
    report_->bytes_read += into.size();
    return {};
  }
  // What lies behind a message: the next one's is taken to be as large.
  void PassBody(uint64_t bytes) {
    constexpr uint64_t kSmallBody = 1 << 20;
    constexpr uint64_t kManyBodies = 8 << 20;
    ahead_ = bytes <= kSmallBody ? kManyBodies : kPieceBytes;
  }

 private:
  const Shard& shard_;
  ScanReport* const report_;
  RawBytes buffer_;
  ByteRange held_;
  uint64_t ahead_ = kPieceBytes;
};

class Scan {
 public:
  Scan(const Shard& shard, const OnRecord& on_record, ScanReport* report)
      : pieces_(shard, report), on_record_(on_record), report_(report) {}

  Status Run() {
    const uint64_t head_bytes = std::min(pieces_.size(), kHeadBytes);
    FB_ASSIGN_OR_RETURN(const ByteView head, pieces_.At(0, head_bytes, "an Arrow file"));
    return AsText(head).starts_with(kMagic) ? RunFile() : RunStream();
  }

 private:
  Place At(uint64_t offset) const { return pieces_.PlaceAt(offset); }

  Status SetSchema(FlatReader& in, const FlatTable& schema, int version, uint64_t offset) {
    FB_ASSIGN_OR_RETURN(schema_, ParseArrowSchema(in, schema, version, At(offset)));
    report_->oddities += schema_->left_out - schema_->left_out_first.size();
    for (const std::string& text : schema_->left_out_first) report_->Note(offset, text);
    if (schema_->leaves.empty()) return Refused(At(offset), "no column that is read");
    return {};
  }

  // Valid until more is read.
  Result<ByteView> BytesAt(uint64_t offset, uint64_t bytes, std::string_view what) {
    if (offset >= tail_at_ && RangeWithin(offset, bytes, pieces_.size())) {
      return ByteView(tail_).subspan(offset - tail_at_, bytes);
    }
    return pieces_.At(offset, bytes, what);
  }

  Status CheckMessageBytes(uint64_t bytes, uint64_t offset) const {
    constexpr uint64_t kMost = ArrowLimits{}.message_bytes;
    if (bytes <= kMost) return {};
    return AboveLimit(At(offset), "the size of a message's metadata", bytes, kMost);
  }

  Status TakeBatch(FlatReader& in, const ArrowMessage& message, ByteRange body, uint64_t offset) {
    FB_ASSIGN_OR_RETURN(ArrowBatch batch,
                        ParseArrowBatch(in, *schema_, message.header, body, At(offset)));
    pieces_.PassBody(body.size());
    if (batch.rows == 0) return {};
    SetDictionaries(batch);
    if (body.offset < end_) {  // a catalog's records lie one behind the other
      return Damaged(At(body.offset), "a record batch behind the one before it",
                     fmt::format("one that ends at {}", end_));
    }
    end_ = body.end;
    if (body.size() > kCutBytes) FB_RETURN_IF_ERROR(SetCuts(batch));
    FoundRecord record{.range = body};
    for (size_t i = 0; i < batch.chunks.size(); ++i) {
      const ArrowChunk& chunk = batch.chunks[i];
      const ArrowLeaf& leaf = schema_->leaves[i];
      record.fields.push_back({.name = leaf.name,
                               .range = chunk.range,
                               .bytes = LayoutOf(chunk).DecodedBytes(batch.rows),
                               .dtype = leaf.dtype,
                               .shape = leaf.shape});
    }
    record.key = PackArrowBatch(batch);
    report_->records += batch.rows;
    return on_record_(std::move(record));
  }

  // Of batches that follow.
  Status TakeDictionary(FlatReader& in, const ArrowMessage& message, ByteRange body,
                        uint64_t offset) {
    const auto id = message.header.Get<int64_t>(0);
    const auto known = std::ranges::find(schema_->dictionaries, id, &ArrowDictionary::id);
    if (known == schema_->dictionaries.end()) return {};  // of a column that is left out
    if (message.header.Get<uint8_t>(2) != 0) {
      return Refused(At(offset), "a dictionary that is added to: write it anew with one of all");
    }
    const ArrowSchema schema{.leaves = {known->leaf}, .end = known->end};
    FB_ASSIGN_OR_RETURN(ArrowBatch batch,
                        ParseArrowBatch(in, schema, message.header.Table(1), body, At(offset)));
    if (dictionaries_.erase(id) > 0 && footer_at_ > 0) {
      return Damaged(At(offset), "one dictionary of each number in a file",
                     fmt::format("a second one of number {}", id));
    }
    if (batch.rows > 0) dictionaries_.emplace(id, std::move(batch.chunks[0]));
    return {};
  }

  void SetDictionaries(ArrowBatch& batch) const {
    constexpr uint64_t kBytesMost = uint64_t{1} << 48;
    for (size_t i = 0; i < batch.chunks.size(); ++i) {
      ArrowChunk& chunk = batch.chunks[i];
      if (chunk.column.kind != ArrowColumn::Kind::kIndices) continue;
      const int64_t id = schema_->leaves[i].dictionary;
      if (const auto known = dictionaries_.find(id); known != dictionaries_.end()) {
        const ArrowChunk& dictionary = known->second;
        const uint64_t each = dictionary.uncompressed / dictionary.rows + 1;
        chunk.uncompressed = std::min(Total(chunk.rows, each).value_or(kBytesMost), kBytesMost);
        chunk.dictionary.push_back(dictionary);
        continue;
      }
      // Where all are null there may be none.
      const auto* of = &*std::ranges::find(schema_->dictionaries, id, &ArrowDictionary::id);
      ArrowChunk none{.column = of->leaf.column};
      none.buffers.resize(ArrowBuffersOf(none.column.kind));
      chunk.dictionary.push_back(std::move(none));
    }
  }

  // Large batches are read in parts, about 1 MiB of the largest column each. Only offsets tell
  // where parts of bytes and lists lie.
  Status SetCuts(ArrowBatch& batch) {
    uint64_t largest = 1;
    for (const ArrowChunk& chunk : batch.chunks) largest = std::max(largest, chunk.range.size());
    const uint64_t parts = std::min(largest / kPartBytes, ArrowLimits{}.cuts / 2) + 1;
    const uint64_t step = PaddedTo(batch.rows / parts + 1, 8);
    if (step >= batch.rows) return {};
    for (ArrowChunk& chunk : batch.chunks) {
      if (chunk.codec != ArrowCodec::kNone || chunk.column.kind == ArrowColumn::Kind::kViews) {
        continue;
      }
      chunk.step = step;
      if (chunk.column.has_offsets()) FB_RETURN_IF_ERROR(ReadCuts(chunk));
    }
    return {};
  }

  Status ReadCuts(ArrowChunk& chunk) {
    const ByteRange& offsets = chunk.buffers[chunk.column.parents + 1];
    const uint64_t width = chunk.column.wide ? sizeof(int64_t) : sizeof(int32_t);
    const uint64_t most = CutsEnd(chunk);
    for (uint64_t row = 0; row < chunk.rows + chunk.step; row += chunk.step) {
      const uint64_t at = offsets.offset + std::min(row, chunk.rows) * width;
      const uint64_t ahead = std::clamp(offsets.end - at, kPieceBytes, kOffsetsBytes);
      FB_ASSIGN_OR_RETURN(const ByteView word, pieces_.At(at, width, "offsets", ahead));
      const auto cut = chunk.column.wide ? Load<int64_t>(word) : int64_t{Load<int32_t>(word)};
      const uint64_t before = chunk.cuts.empty() ? 0 : chunk.cuts.back();
      if (cut < 0 || static_cast<uint64_t>(cut) < before || static_cast<uint64_t>(cut) > most) {
        return Damaged(At(at), fmt::format("an offset from {} to {}", before, most),
                       fmt::format("{}", cut));
      }
      chunk.cuts.push_back(static_cast<uint64_t>(cut));
    }
    return {};
  }

  Result<std::vector<std::byte>> ReadFooter() {
    const uint64_t size = pieces_.size();
    if (size < kHeadBytes + kEndBytes) {
      return Truncated(At(0), "an Arrow file", kHeadBytes + kEndBytes, size);
    }
    const uint64_t tail_at = size - std::min(size, kPieceBytes);
    tail_.resize(size - tail_at);
    if (tail_at == 0) {
      FB_ASSIGN_OR_RETURN(const ByteView all, pieces_.At(0, size, "an Arrow file"));
      std::ranges::copy(all, tail_.begin());
    } else {
      FB_RETURN_IF_ERROR(pieces_.Read(tail_at, tail_));
    }
    tail_at_ = tail_at;
    const ByteView end = ByteView(tail_).last(kEndBytes);
    if (AsText(end.subspan(sizeof(int32_t))) != kMagic) {
      return Damaged(At(size - kMagic.size()), "the end of an Arrow file ('ARROW1')",
                     "other bytes: it may be cut off");
    }
    const auto length = Load<int32_t>(end);
    const uint64_t most = std::min(size - kHeadBytes - kEndBytes, ArrowLimits{}.footer_bytes);
    if (length <= 0 || static_cast<uint64_t>(length) > most) {
      return AboveLimit(At(size - kEndBytes), "the size of an Arrow footer",
                        static_cast<uint64_t>(length), most);
    }
    footer_at_ = size - kEndBytes - static_cast<uint64_t>(length);
    std::vector<std::byte> footer(static_cast<uint64_t>(length));
    if (footer_at_ >= tail_at) {
      std::ranges::copy(ByteView(tail_).subspan(footer_at_ - tail_at, footer.size()),
                        footer.begin());
    } else {
      FB_RETURN_IF_ERROR(pieces_.Read(footer_at_, footer));
    }
    return footer;
  }

  // `number`: of the footer's blocks of this kind.
  Status TakeBlock(ArrowMessage::Kind kind, const FlatVector& blocks, uint64_t number) {
    const auto offset = static_cast<uint64_t>(blocks.Member<int64_t>(number));
    const auto bytes = static_cast<uint64_t>(blocks.Member<int32_t>(number, 8));
    const auto body_bytes = static_cast<uint64_t>(blocks.Member<int64_t>(number, 16));
    const auto metadata = RangeWithin(offset, bytes, footer_at_);
    const auto body = metadata ? RangeWithin(metadata->end, body_bytes, footer_at_) : std::nullopt;
    if (!body || bytes < 2 * kWord) {  // what is negative is large
      return Damaged(At(footer_at_), "a batch inside of the file",
                     fmt::format("{} and {} bytes at {}", bytes, body_bytes, offset));
    }
    FB_RETURN_IF_ERROR(CheckMessageBytes(bytes, offset));
    FB_ASSIGN_OR_RETURN(const ByteView all, BytesAt(offset, bytes, "a record batch's metadata"));
    const MessageHead head = HeadOf(all);
    if (head.bytes > bytes - head.head_bytes) {
      return Damaged(At(offset), fmt::format("a message of {} bytes", bytes),
                     fmt::format("one of {}", head.bytes));
    }
    FlatReader in(all.subspan(head.head_bytes, head.bytes));
    FB_ASSIGN_OR_RETURN(const ArrowMessage message, ParseArrowMessage(in, At(offset)));
    if (message.kind != kind || message.body_bytes != body_bytes) {
      return Damaged(At(offset),
                     fmt::format("a message of kind {} with a body of {} bytes",
                                 static_cast<int>(kind), body_bytes),
                     fmt::format("a message of kind {} with one of {}",
                                 static_cast<int>(message.kind), message.body_bytes));
    }
    return kind == ArrowMessage::Kind::kBatch ? TakeBatch(in, message, *body, offset)
                                              : TakeDictionary(in, message, *body, offset);
  }

  Status RunFile() {
    FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadFooter());
    FlatReader in(bytes);
    const FlatTable footer = in.Root();
    const FlatVector dictionaries = footer.Structs(2, kBlockBytes);
    const FlatVector blocks = footer.Structs(3, kBlockBytes);
    if (!in.ok() || !footer.exists()) {
      return Damaged(At(footer_at_), "an Arrow footer", "other bytes: it is damaged");
    }
    FB_ASSIGN_OR_RETURN(const int version, ArrowVersionOf(footer, At(footer_at_)));
    FB_RETURN_IF_ERROR(SetSchema(in, footer.Table(1), version, footer_at_));
    for (uint64_t i = 0; i < dictionaries.size(); ++i) {
      Status status = TakeBlock(ArrowMessage::Kind::kDictionary, dictionaries, i);
      if (!status.ok()) return std::move(status).WithContext(fmt::format("dictionary {}", i));
    }
    for (uint64_t i = 0; i < blocks.size(); ++i) {
      Status status = TakeBlock(ArrowMessage::Kind::kBatch, blocks, i);
      if (!status.ok()) return std::move(status).WithContext(fmt::format("record batch {}", i));
    }
    return {};
  }

  // Sets `head`; its bytes are 0 at the stream's end.
  Status NextMessage(uint64_t offset, MessageHead* head) {
    const uint64_t left = pieces_.Left(offset);
    if (left == 0) {
      report_->Note(offset, "the stream has no end marker: it may be cut between record batches");
      return {};
    }
    std::byte words[2 * kWord] = {};
    const uint64_t least = std::clamp(left, kWord, 2 * kWord);
    FB_ASSIGN_OR_RETURN(const ByteView there, pieces_.At(offset, least, "a message"));
    std::ranges::copy(there, words);
    *head = HeadOf(words);
    if (head->head_bytes > left) return Truncated(At(offset), "a message", 2 * kWord, left);
    if (head->bytes == 0 && left > head->head_bytes) {
      report_->Note(
          offset + head->head_bytes,
          fmt::format("{} bytes behind the stream's end are left out", left - head->head_bytes));
    }
    return CheckMessageBytes(head->bytes, offset);
  }

  // `end`: where it does, with its body.
  Status TakeMessage(uint64_t offset, const MessageHead& head, uint64_t* end) {
    const uint64_t at = offset + head.head_bytes;
    FB_ASSIGN_OR_RETURN(const ByteView bytes, pieces_.At(at, head.bytes, "a message's metadata"));
    FlatReader in(bytes);
    FB_ASSIGN_OR_RETURN(const ArrowMessage message, ParseArrowMessage(in, At(offset)));
    const uint64_t body_at = at + head.bytes;
    const auto body = RangeWithin(body_at, message.body_bytes, pieces_.size());
    if (!body) {
      return Truncated(At(body_at), "the body of a message", message.body_bytes,
                       pieces_.Left(body_at));
    }
    *end = body->end;
    const bool is_schema = message.kind == ArrowMessage::Kind::kSchema;
    if (is_schema == schema_.has_value()) {
      return Damaged(At(offset), "a schema, and then record batches",
                     is_schema ? "another schema" : "no schema ahead");
    }
    if (is_schema) return SetSchema(in, message.header, message.version, offset);
    if (message.kind == ArrowMessage::Kind::kBatch) return TakeBatch(in, message, *body, offset);
    if (message.kind == ArrowMessage::Kind::kDictionary) {
      return TakeDictionary(in, message, *body, offset);
    }
    return Refused(At(offset), "a tensor between record batches");
  }

  Status RunStream() {
    for (uint64_t at = 0;;) {
      MessageHead head;
      FB_RETURN_IF_ERROR(NextMessage(at, &head));
      if (head.bytes == 0) break;
      FB_RETURN_IF_ERROR(TakeMessage(at, head, &at));
    }
    if (schema_) return {};
    return Damaged(At(0), "an Arrow stream that begins with a schema", "its end");
  }

  Pieces pieces_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  std::optional<ArrowSchema> schema_;
  uint64_t end_ = 0;                            // of the batch before
  std::map<int64_t, ArrowChunk> dictionaries_;  // as they are at the moment
  // Of a file.
  std::vector<std::byte> tail_;
  uint64_t tail_at_ = std::numeric_limits<uint64_t>::max();
  uint64_t footer_at_ = 0;
};

}  // namespace

Status ScanArrow(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  return Scan(shard, on_record, report).Run();
}

bool IsArrowStream(ByteView head, uint64_t shard_size) {
  if (head.size() < 2 * kWord) return false;
  const MessageHead start = HeadOf(head);
  // Metadata is padded, so that its body begins at a multiple of 8.
  const bool sized = start.bytes > 0 && start.bytes <= ArrowLimits{}.message_bytes &&
                     (start.head_bytes + start.bytes) % (2 * kWord) == 0 &&
                     start.head_bytes + start.bytes <= shard_size;
  if (!sized) return false;
  const ByteView there = head.subspan(start.head_bytes);
  FlatReader in(there.first(std::min<uint64_t>(there.size(), start.bytes)));
  const FlatTable root = in.Root();
  constexpr int kVersions = 5;
  const auto version = root.Get<int16_t>(0);
  const auto kind = root.Get<uint8_t>(1);
  const auto body = root.Get<int64_t>(3);
  return in.ok() && root.exists() && version >= 0 && version < kVersions && body == 0 &&
         kind == static_cast<uint8_t>(ArrowMessage::Kind::kSchema);
}

}  // namespace forebay::format
