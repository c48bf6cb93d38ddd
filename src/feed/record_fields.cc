#include "feed/record_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/crc32c.h"
#include "base/slab_pool.h"
#include "feed/file_fields.h"
#include "feed/token_catalog.h"
#include "format/recordio.h"
#include "format/tfrecord.h"
#include "format/tokens.h"
#include "format/zip.h"

namespace forebay::feed {
namespace {

struct Scratch {
  std::vector<std::byte> fetched, joined;
};

// A field of a record, and where it may be put.
struct Wanted {
  const catalog::RecordView& record;
  const catalog::RecordField& field;
  const std::string& name;
  const FetchedBytes& bytes;
  MutableBytes into;
  Scratch& scratch;
};

// The field, what is around it taken off.
using Unframe = Result<ByteView> (*)(const Wanted& wanted);

// `found` is the checksum of its range.
Status CheckSum(const Wanted& wanted, uint32_t found) {
  const catalog::RecordField& field = wanted.field;
  if (!field.crc32c || found == *field.crc32c) return {};
  return Status(Code::kDataLoss,
                fmt::format("'{}' has CRC-32C {:08x}, {:08x} when it was indexed", wanted.name,
                            found, *field.crc32c),
                {.offset = static_cast<int64_t>(field.range.offset),
                 .end = static_cast<int64_t>(field.range.end)});
}

// Not copied, but for scratch where it lies in several slabs.
Result<ByteView> WhereItLies(const Wanted& wanted) {
  FB_ASSIGN_OR_RETURN(const ByteView range,
                      wanted.bytes.Contiguous(wanted.field.range, wanted.scratch.fetched));
  if (wanted.field.crc32c) FB_RETURN_IF_ERROR(CheckSum(wanted, Crc32c(range)));
  return range;
}

Result<ByteView> AsItIs(const Wanted& wanted) {
  const catalog::RecordField& field = wanted.field;
  if (wanted.into.empty() || wanted.into.size() != field.range.size()) return WhereItLies(wanted);
  uint32_t crc = 0;
  FB_RETURN_IF_ERROR(wanted.bytes.CopyTo(field.range, wanted.into, field.crc32c ? &crc : nullptr));
  FB_RETURN_IF_ERROR(CheckSum(wanted, crc));
  return ByteView(wanted.into);
}

Result<ByteView> OfTfRecord(const Wanted& wanted) {
  const ByteRange range = wanted.field.range;
  const format::Place place{.shard = "", .offset = range.offset};
  const bool in_parts = !wanted.into.empty() && wanted.into.size() == wanted.field.bytes &&
                        range.size() == wanted.field.bytes + format::kTfRecordFraming;
  if (!in_parts) {
    FB_ASSIGN_OR_RETURN(const ByteView frame, WhereItLies(wanted));
    return format::OpenTfRecord(frame, place);
  }
  const ByteRange data{range.offset + format::kTfRecordHead, range.end - format::kTfRecordTail};
  FB_ASSIGN_OR_RETURN(const ByteView head,
                      wanted.bytes.Contiguous({range.offset, data.offset}, wanted.scratch.fetched));
  uint32_t crc = 0;
  FB_RETURN_IF_ERROR(wanted.bytes.CopyTo(data, wanted.into, &crc));
  FB_ASSIGN_OR_RETURN(const ByteView tail,
                      wanted.bytes.Contiguous({data.end, range.end}, wanted.scratch.joined));
  FB_RETURN_IF_ERROR(format::CheckTfRecord(head, {data.size(), crc}, tail, place));
  return ByteView(wanted.into);
}

// A compressed array of an .npz.
Result<ByteView> OfNpz(const Wanted& wanted) {
  FB_ASSIGN_OR_RETURN(const ByteView member, WhereItLies(wanted));
  return format::OpenZipMember(member, wanted.field.bytes, &wanted.scratch.joined,
                               {.shard = "", .offset = wanted.field.range.offset});
}

// The fields of a record of one part are ranges of their own.
template <format::RecordIoOptions::Multipart multipart>
Result<ByteView> OfRecordIo(const Wanted& wanted) {
  if (wanted.field.range != wanted.record.range) return AsItIs(wanted);
  const format::Place place{.shard = "", .offset = wanted.record.range.offset};
  FB_ASSIGN_OR_RETURN(const ByteView frame, WhereItLies(wanted));
  FB_ASSIGN_OR_RETURN(const ByteView payload,
                      format::OpenRecordIo(frame, multipart, &wanted.scratch.joined, place));
  if (wanted.name == "data") return payload;
  FB_ASSIGN_OR_RETURN(const format::ImageRecord image, format::OpenImageRecord(payload, place));
  if (wanted.name == "image") return image.image;
  if (wanted.name == "label") return image.labels;
  constexpr size_t kIdAt = 8;  // behind flag and label
  return payload.subspan(kIdAt, sizeof(image.id));
}

// Formats whose fields are ranges of the shard, which the catalog says, maybe framed.
class PlainFields : public RecordFields {
 public:
  PlainFields(const catalog::RecordsCatalog& catalog, Unframe unframe) : unframe_(unframe) {
    const bool tokens = catalog.format() == kTokensFormat;  // as many as a document has
    for (const catalog::FieldInfo& field : catalog.fields()) {
      fields_.push_back({.name = field.name, .dtype = field.dtype, .shape = field.shape});
      if (tokens) fields_.back() = {.name = field.name, .elements = field.dtype};
      everywhere_.push_back(field.records == catalog.count());
    }
  }

  const std::vector<ops::InputField>& fields() const override { return fields_; }
  bool everywhere(size_t field) const override { return everywhere_[field]; }
  std::optional<uint64_t> BytesOf(const catalog::RecordView& record, size_t field) const override {
    const catalog::RecordField* found = Find(record, field);
    return found == nullptr ? std::nullopt : std::optional(found->bytes);
  }
  void RangesOf(const catalog::RecordView& record, const std::vector<bool>& needed,
                std::vector<ByteRange>& ranges) const override {
    ranges.clear();
    for (const catalog::RecordField& field : record.fields) {
      if (needed[field.field]) ranges.push_back(field.range);
    }
  }
  std::unique_ptr<RecordOpener> MakeOpener(const std::vector<bool>& needed) const override {
    return std::make_unique<Opener>(*this, needed);
  }

 private:
  class Opener : public RecordOpener {
   public:
    Opener(const PlainFields& owner, std::vector<bool> needed)
        : owner_(owner), needed_(std::move(needed)), scratch_(needed_.size()) {}

    Status Open(const catalog::RecordView& record, const FetchedBytes& bytes,
                std::span<const MutableBytes> places, std::span<ByteView> fields) override {
      for (size_t i = 0; i < needed_.size(); ++i) {
        if (!needed_[i]) continue;
        const std::string& name = owner_.fields_[i].name;
        const catalog::RecordField* field = Find(record, i);
        if (field == nullptr) {
          return Status(Code::kDataLoss, fmt::format("it has no '{}'", name));
        }
        const MutableBytes into = places.empty() ? MutableBytes() : places[i];
        FB_ASSIGN_OR_RETURN(fields[i],
                            owner_.unframe_({record, *field, name, bytes, into, scratch_[i]}));
        if (fields[i].size() != field->bytes) {
          return Status(Code::kDataLoss, fmt::format("'{}' has {} bytes, {} when it was indexed",
                                                     name, fields[i].size(), field->bytes));
        }
      }
      return {};
    }

   private:
    const PlainFields& owner_;
    std::vector<bool> needed_;
    std::vector<Scratch> scratch_;  // of each field
  };

  static const catalog::RecordField* Find(const catalog::RecordView& record, size_t field) {
    const auto it = std::ranges::find(record.fields, field, &catalog::RecordField::field);
    return it == record.fields.end() ? nullptr : &*it;
  }

  Unframe unframe_;
  std::vector<ops::InputField> fields_;
  std::vector<bool> everywhere_;
};

// Rows of a few documents' pieces, which come as one field (see ops/parser.h).
class PackedFields : public RecordFields {
 public:
  explicit PackedFields(const catalog::RecordsCatalog& catalog)
      : item_(ItemBytes(catalog)),
        ranges_most_(PiecesMost(catalog)),
        fields_{{.name = catalog.fields()[0].name, .elements = catalog.fields()[0].dtype}} {}

  const std::vector<ops::InputField>& fields() const override { return fields_; }
  bool everywhere(size_t) const override { return true; }
  std::optional<uint64_t> BytesOf(const catalog::RecordView& record, size_t) const override {
    uint64_t bytes = HeadBytes(record);
    for (const catalog::RecordField& piece : record.fields) bytes += piece.bytes;
    return bytes;
  }
  void RangesOf(const catalog::RecordView& record, const std::vector<bool>&,
                std::vector<ByteRange>& ranges) const override {
    ranges.clear();
    for (const catalog::RecordField& piece : record.fields) ranges.push_back(piece.range);
  }
  uint64_t ranges_most() const override { return ranges_most_; }
  std::unique_ptr<RecordOpener> MakeOpener(const std::vector<bool>&) const override {
    return std::make_unique<Opener>(item_);
  }

 private:
  class Opener : public RecordOpener {
   public:
    explicit Opener(uint64_t item) : item_(item) {}
    Status Open(const catalog::RecordView& record, const FetchedBytes& bytes,
                std::span<const MutableBytes>, std::span<ByteView> fields) override {
      row_.clear();
      Append(record.fields.size());
      for (const catalog::RecordField& piece : record.fields) Append(piece.bytes / item_);
      for (const catalog::RecordField& piece : record.fields) {
        FB_ASSIGN_OR_RETURN(const ByteView tokens, bytes.Contiguous(piece.range, scratch_));
        row_.insert(row_.end(), tokens.begin(), tokens.end());
      }
      fields[0] = row_;
      return {};
    }

   private:
    void Append(uint64_t number) {
      const auto word = static_cast<uint32_t>(number);
      const auto bytes = std::as_bytes(std::span(&word, 1));
      row_.insert(row_.end(), bytes.begin(), bytes.end());
    }
    uint64_t item_;
    std::vector<std::byte> row_, scratch_;
  };

  static uint64_t HeadBytes(const catalog::RecordView& record) {
    return sizeof(uint32_t) * (1 + record.fields.size());
  }
  static uint64_t ItemBytes(const catalog::RecordsCatalog& catalog) {
    const auto type = format::ParseTokenType(catalog.fields()[0].dtype);
    FB_ASSERT(type);  // whoever made the rows knew it
    return format::TokenBytes(*type);
  }

  uint64_t item_;
  uint64_t ranges_most_;
  std::vector<ops::InputField> fields_;
};

struct Known {
  std::string_view format, options;
  Unframe unframe;
};

using Multipart = format::RecordIoOptions::Multipart;
constexpr Known kKnown[] = {
    {"tar", "", AsItIs},
    {"tfrecord", "", OfTfRecord},
    {"recordio", "multipart=mxnet", OfRecordIo<Multipart::kMxnet>},
    {"recordio-image", "multipart=mxnet", OfRecordIo<Multipart::kMxnet>},
    {"recordio-protobuf", "multipart=sagemaker", OfRecordIo<Multipart::kSageMaker>},
    {"mds", "", AsItIs},
    {"jsonl", "", AsItIs},
    {"csv", "", AsItIs},
    {"csv", "header=none", AsItIs},
    {"libsvm", "", AsItIs},
    {"npy", "", AsItIs},
    {"npz", "", OfNpz},
    {"litdata", "", AsItIs},
    {kTokensFormat, "", AsItIs},
};

}  // namespace

Result<std::shared_ptr<const RecordFields>> RecordFields::Make(
    const catalog::RecordsCatalog& catalog) {
  if (auto fields = FieldsOfFiles(catalog)) return fields;
  if (catalog.format() == kPackedTokensFormat) {
    return std::shared_ptr<const RecordFields>(std::make_shared<PackedFields>(catalog));
  }
  for (const Known& known : kKnown) {
    if (known.format != catalog.format() || known.options != catalog.format_options()) continue;
    return std::shared_ptr<const RecordFields>(
        std::make_shared<PlainFields>(catalog, known.unframe));
  }
  return Status(Code::kUnimplemented,
                fmt::format("a catalog of format '{}' {}: this Forebay does not know it",
                            catalog.format(), catalog.format_options()));
}

}  // namespace forebay::feed
