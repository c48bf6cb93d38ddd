#include "feed/token_catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/mutex.h"
#include "format/tokens.h"
#include "order/packing.h"

namespace forebay::feed {
namespace {

using catalog::FileEntry;
using catalog::Generation;
using catalog::RecordEntry;
using catalog::RecordsCatalog;

constexpr uint64_t kPackedBytes = 4ULL << 20;  // of documents that are packed together, about
constexpr uint64_t kWindowLeast = 16;
constexpr uint64_t kWindowMost = 1024;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

// A file of the catalog: where its records and tokens lie, and which samples are made of them.
struct Shard {
  uint64_t number = 0;
  uint64_t first_record = 0, records = 0;
  uint64_t first_sample = 0, samples = 0;
  ByteRange tokens;     // from the first document to the end of the last one
  uint64_t window = 1;  // of packed rows: documents packed together
};

// The first record at or behind `from` whose shard is not before `shard`.
Result<uint64_t> FirstRecordOf(const RecordsCatalog& catalog, uint64_t shard, uint64_t from) {
  uint64_t low = from;
  uint64_t high = catalog.count();
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    FB_ASSIGN_OR_RETURN(const RecordEntry record, catalog.At(middle));
    if (record.shard < shard) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

Result<std::vector<Shard>> ShardsOf(const RecordsCatalog& catalog) {
  std::vector<Shard> shards;
  uint64_t record = 0;
  for (uint64_t number = 0; number < catalog.shard_count(); ++number) {
    Shard shard{.number = number, .first_record = record};
    FB_ASSIGN_OR_RETURN(record, FirstRecordOf(catalog, number + 1, record));
    shard.records = record - shard.first_record;
    if (shard.records > 0) {
      FB_ASSIGN_OR_RETURN(const RecordEntry first, catalog.At(shard.first_record));
      FB_ASSIGN_OR_RETURN(const RecordEntry last, catalog.At(record - 1));
      shard.tokens = {first.range.offset, last.range.end};
    }
    shards.push_back(shard);
  }
  return shards;
}

// Samples of tokens, all of one size, instead of documents.
class TokenSamples : public RecordsCatalog {
 public:
  TokenSamples(std::shared_ptr<const RecordsCatalog> documents, uint64_t item, uint64_t length)
      : documents_(std::move(documents)),
        fields_(documents_->fields()),
        item_(item),
        length_(length) {
    fields_[0].bytes_max = length_ * item_;
  }

  const std::string& source_uri() const override { return documents_->source_uri(); }
  const std::string& format_options() const override { return documents_->format_options(); }
  const std::vector<Generation>& generations() const override { return generations_; }
  uint64_t shard_count() const override { return documents_->shard_count(); }
  uint64_t ShardsOf(size_t generation) const override { return documents_->ShardsOf(generation); }
  const std::vector<catalog::FieldInfo>& fields() const override { return fields_; }
  uint64_t total_bytes() const override { return count() * length_ * item_; }
  uint64_t mean_bytes() const override { return length_ * item_; }
  uint64_t LargestBytes(uint64_t count) const override {
    return std::min(count, this->count()) * length_ * item_;
  }
  Result<std::string> KeyOf(uint64_t i) const override {
    const Shard& shard = ShardOfSample(i);
    return fmt::format("sample {} of the file", i - shard.first_sample);
  }
  Result<FileEntry> ShardAt(uint64_t shard) const override { return documents_->ShardAt(shard); }
  void Rest() const override { documents_->Rest(); }

 protected:
  const RecordsCatalog& documents() const { return *documents_; }
  uint64_t item() const { return item_; }
  uint64_t length() const { return length_; }
  const Shard& ShardOfSample(uint64_t i) const {
    return *std::prev(std::ranges::upper_bound(shards_, i, {}, &Shard::first_sample));
  }
  // Of shards whose `samples` are set: those that have some.
  Status Number(std::vector<Shard> shards) {
    uint64_t samples = 0;
    size_t generation = 0;
    const std::vector<Generation>& was = documents_->generations();
    for (uint64_t number = 0; number <= shards.size(); ++number) {
      while (generation < was.size() && documents_->ShardsOf(generation) == number) {
        generations_.push_back({samples, was[generation++].content_hash});
      }
      if (number == shards.size()) break;
      Shard& shard = shards[number];
      shard.first_sample = samples;
      samples += shard.samples;
      if (shard.samples > 0) shards_.push_back(shard);
    }
    fields_[0].records = samples;
    if (samples > 0 && generation == was.size()) return {};
    return Bad(fmt::format("no file has {} tokens for one sample", length_));
  }

 private:
  const std::shared_ptr<const RecordsCatalog> documents_;
  std::vector<catalog::FieldInfo> fields_;
  const uint64_t item_;  // bytes of a token
  const uint64_t length_;
  std::vector<Generation> generations_;
  std::vector<Shard> shards_;  // ascending, each with samples
};

class Windows : public TokenSamples {
 public:
  Windows(std::shared_ptr<const RecordsCatalog> documents, uint64_t item, const TokensOp& op)
      : TokenSamples(std::move(documents), item, static_cast<uint64_t>(op.length)),
        stride_(static_cast<uint64_t>(op.stride == 0 ? op.length : op.stride)) {}
  Status Make() {
    FB_ASSIGN_OR_RETURN(std::vector<Shard> shards, feed::ShardsOf(documents()));
    for (Shard& shard : shards) {
      shard.samples = order::TokenWindows(shard.tokens.size() / item(), length(), stride_).count();
    }
    return Number(std::move(shards));
  }

  const std::string& format() const override { return documents().format(); }
  uint64_t range_max() const override { return length() * item(); }
  Result<RecordEntry> At(uint64_t i) const override {
    const Shard& shard = ShardOfSample(i);
    const uint64_t first = shard.tokens.offset + (i - shard.first_sample) * stride_ * item();
    const ByteRange range{first, first + length() * item()};
    return RecordEntry{.shard = static_cast<uint32_t>(shard.number),
                       .range = range,
                       .fields = {{.field = 0, .range = range, .bytes = range.size()}}};
  }
  bool reads() const override { return false; }
  void WillRead(std::span<const uint64_t>) const override {}

 private:
  const uint64_t stride_;
};

// What a callback that has no way to fail could not do.
class FirstFailure {
 public:
  void Set(Status status) FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (status_.ok()) status_ = std::move(status);
  }
  Status Take() FB_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::exchange(status_, Status());
  }

 private:
  Mutex mutex_;
  Status status_ FB_GUARDED_BY(mutex_);
};

class PackedRows : public TokenSamples {
 public:
  PackedRows(std::shared_ptr<const RecordsCatalog> documents, uint64_t item, const PackTokensOp& op)
      : TokenSamples(std::move(documents), item, static_cast<uint64_t>(op.length)),
        window_(static_cast<uint64_t>(op.window)),
        seed_(op.seed) {}
  Status Make() {
    FB_ASSIGN_OR_RETURN(std::vector<Shard> shards, feed::ShardsOf(documents()));
    const MutexLock lock(mutex_);
    for (Shard& shard : shards) {
      shard.window = WindowOf(shard);
      const order::PackingSpec spec{length(), shard.window, seed_};
      // Documents of one file: a row is read from one object.
      FB_ASSIGN_OR_RETURN(
          order::PackedEpoch packed,
          order::PackedEpoch::Make(spec, shard.number, shard.records,
                                   [this, first = shard.first_record](uint64_t document) {
                                     return TokensOf(first + document);
                                   }));
      FB_RETURN_IF_ERROR(failure_.Take());
      shard.samples = packed.rows();
      pieces_most_ = std::max(pieces_most_, packed.pieces_most());
      packed_.push_back(std::move(packed));
    }
    FB_RETURN_IF_ERROR(FindSpans(shards));
    return Number(std::move(shards));
  }

  const std::string& format() const override {
    static const std::string name = kPackedTokensFormat;
    return name;
  }
  uint64_t range_max() const override { return range_max_; }
  Result<RecordEntry> At(uint64_t i) const override FB_EXCLUDES(mutex_) {
    const Shard& shard = ShardOfSample(i);
    order::PackedRow row;
    {
      const MutexLock lock(mutex_);
      order::PackedEpoch& packed = packed_[shard.number];
      row = packed.Row(i - shard.first_sample);
      Status failure = failure_.Take();
      if (!failure.ok()) {
        packed.Forget();
        return failure;
      }
    }
    RecordEntry entry{.shard = static_cast<uint32_t>(shard.number)};
    for (const order::PackedPiece& piece : row) {
      FB_ASSIGN_OR_RETURN(const RecordEntry document,
                          documents().At(shard.first_record + piece.document));
      const uint64_t first = document.range.offset + piece.offset * item();
      const ByteRange range{first, first + piece.tokens * item()};
      entry.fields.push_back({.field = 0, .range = range, .bytes = range.size()});
    }
    FB_ASSIGN_OR_RETURN(entry.range, SpanOf(shard, row.front().document / shard.window));
    return entry;
  }
  bool reads() const override { return documents().reads(); }
  // The lengths of all that are packed with it.
  void WillRead(std::span<const uint64_t> samples) const override FB_EXCLUDES(mutex_) {
    std::vector<uint64_t> records;
    {
      const MutexLock lock(mutex_);
      for (const uint64_t i : samples) {
        const Shard& shard = ShardOfSample(i);
        const uint64_t first = packed_[shard.number].CursorAt(i - shard.first_sample).document;
        const uint64_t end = std::min(shard.records, first + shard.window);
        for (uint64_t d = first; d < end; d += catalog::kRecordsPerBlock) {
          records.push_back(shard.first_record + d);
        }
        records.push_back(shard.first_record + end - 1);
      }
    }
    documents().WillRead(records);
  }
  uint64_t pieces_most() const { return pieces_most_; }

 private:
  // By this file alone: files that are appended change nothing of the rows that there are.
  uint64_t WindowOf(const Shard& shard) const {
    if (window_ > 0) return window_;
    const uint64_t mean = shard.tokens.size() / std::max<uint64_t>(shard.records, 1);
    return std::clamp(kPackedBytes / std::max<uint64_t>(mean, 1), kWindowLeast, kWindowMost);
  }
  uint64_t TokensOf(uint64_t record) const {
    const Result<RecordEntry> document = documents().At(record);
    if (document.ok()) return document->range.size() / item();
    failure_.Set(document.status());
    return 0;
  }
  Result<ByteRange> SpanOf(const Shard& shard, uint64_t window) const {
    const uint64_t first = window * shard.window;
    const uint64_t end = std::min(shard.records, first + shard.window);
    FB_ASSIGN_OR_RETURN(const RecordEntry begin, documents().At(shard.first_record + first));
    FB_ASSIGN_OR_RETURN(const RecordEntry last, documents().At(shard.first_record + end - 1));
    return ByteRange{begin.range.offset, last.range.end};
  }
  Status FindSpans(const std::vector<Shard>& shards) {
    for (const Shard& shard : shards) {
      for (uint64_t first = 0; first < shard.records; first += shard.window) {
        FB_ASSIGN_OR_RETURN(const ByteRange span, SpanOf(shard, first / shard.window));
        range_max_ = std::max(range_max_, span.size());
      }
    }
    return {};
  }

  const uint64_t window_;  // as the op says; 0: by the documents' mean length
  const uint64_t seed_;
  uint64_t range_max_ = 0;
  uint64_t pieces_most_ = 0;
  mutable Mutex mutex_;
  mutable std::vector<order::PackedEpoch> packed_ FB_GUARDED_BY(mutex_);  // of each shard
  mutable FirstFailure failure_;  // of a length that was asked for
};

Result<uint64_t> ItemBytes(const RecordsCatalog& catalog) {
  if (!catalog.fields().empty()) {
    const auto type = format::ParseTokenType(catalog.fields()[0].dtype);
    if (type) return format::TokenBytes(*type);
  }
  return Bad("its files have tokens of different types: index each type by itself");
}

template <class View, class TokenOp>
Result<std::shared_ptr<const RecordsCatalog>> See(std::shared_ptr<const RecordsCatalog> catalog,
                                                  const TokenOp& op) {
  FB_RETURN_IF_ERROR(ValidateOp(op));
  FB_ASSIGN_OR_RETURN(const uint64_t item, ItemBytes(*catalog));
  auto view = std::make_shared<View>(std::move(catalog), item, op);
  FB_RETURN_IF_ERROR(view->Make());
  return std::shared_ptr<const RecordsCatalog>(std::move(view));
}

}  // namespace

uint64_t PiecesMost(const RecordsCatalog& packed) {
  const auto* rows = dynamic_cast<const PackedRows*>(&packed);
  return rows == nullptr ? 0 : rows->pieces_most();
}

const Op* TokenOpOf(const std::vector<Op>& ops) {
  const auto it = std::ranges::find_if(ops, [](const Op& op) {
    return std::holds_alternative<TokensOp>(op) || std::holds_alternative<PackTokensOp>(op);
  });
  return it == ops.end() ? nullptr : &*it;
}

Result<std::shared_ptr<const RecordsCatalog>> BySamples(
    std::shared_ptr<const RecordsCatalog> catalog, const std::vector<Op>& ops) {
  const Op* op = TokenOpOf(ops);
  if (op == nullptr) return catalog;
  if (catalog->format() != kTokensFormat || op != &ops.front()) {
    return Bad(fmt::format("{}: it is of token files, and of those it has to be the first op",
                           DescribeOp(*op)));
  }
  if (const auto* windows = std::get_if<TokensOp>(op)) return See<Windows>(catalog, *windows);
  return See<PackedRows>(catalog, std::get<PackTokensOp>(*op));
}

}  // namespace forebay::feed
