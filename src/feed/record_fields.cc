#include "feed/record_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/crc32c.h"

namespace forebay::feed {
namespace {

// Formats whose fields lie in the shard as they are: the catalog says where.
class PlainFields : public RecordFields {
 public:
  explicit PlainFields(const catalog::RecordsCatalog& catalog) {
    for (const catalog::FieldInfo& field : catalog.fields()) {
      fields_.push_back({.name = field.name, .dtype = "", .shape = {}});
      everywhere_.push_back(field.records == catalog.count());
    }
  }

  const std::vector<ops::InputField>& fields() const override { return fields_; }
  bool everywhere(size_t field) const override { return everywhere_[field]; }
  std::optional<uint64_t> BytesOf(const catalog::RecordEntry& record, size_t field) const override {
    const catalog::RecordField* found = Find(record, field);
    return found == nullptr ? std::nullopt : std::optional(found->bytes);
  }
  std::vector<ByteRange> RangesOf(const catalog::RecordEntry& record,
                                  const std::vector<bool>& needed) const override {
    std::vector<ByteRange> ranges;
    for (const catalog::RecordField& field : record.fields) {
      if (needed[field.field]) ranges.push_back(field.range);
    }
    return ranges;
  }
  std::unique_ptr<RecordOpener> MakeOpener(const std::vector<bool>& needed) const override {
    return std::make_unique<Opener>(*this, needed);
  }

 private:
  class Opener : public RecordOpener {
   public:
    Opener(const PlainFields& owner, std::vector<bool> needed)
        : owner_(owner), needed_(std::move(needed)), scratch_(needed_.size()) {}

    Status Open(const catalog::RecordEntry& record, const FetchedBytes& bytes,
                std::span<ByteView> fields) override {
      for (size_t i = 0; i < needed_.size(); ++i) {
        if (!needed_[i]) continue;
        const std::string& name = owner_.fields_[i].name;
        const catalog::RecordField* field = Find(record, i);
        if (field == nullptr) {
          return Status(Code::kDataLoss, fmt::format("it has no '{}'", name));
        }
        FB_ASSIGN_OR_RETURN(fields[i], bytes.Contiguous(field->range, scratch_[i]));
        if (!field->crc32c) continue;
        const uint32_t found = Crc32c(fields[i]);
        if (found == *field->crc32c) continue;
        return Status(Code::kDataLoss,
                      fmt::format("'{}' has CRC-32C {:08x}, {:08x} when it was indexed", name,
                                  found, *field->crc32c),
                      {.offset = static_cast<int64_t>(field->range.offset),
                       .end = static_cast<int64_t>(field->range.end)});
      }
      return {};
    }

   private:
    const PlainFields& owner_;
    std::vector<bool> needed_;
    std::vector<std::vector<std::byte>> scratch_;  // of each field
  };

  static const catalog::RecordField* Find(const catalog::RecordEntry& record, size_t field) {
    const auto it = std::ranges::find(record.fields, field, &catalog::RecordField::field);
    return it == record.fields.end() ? nullptr : &*it;
  }

  std::vector<ops::InputField> fields_;
  std::vector<bool> everywhere_;
};

}  // namespace

Result<std::shared_ptr<const RecordFields>> RecordFields::Make(
    const catalog::RecordsCatalog& catalog) {
  if (catalog.format() == "tar") {
    return std::shared_ptr<const RecordFields>(std::make_shared<PlainFields>(catalog));
  }
  return Status(
      Code::kUnimplemented,
      fmt::format("a catalog of format '{}': this Forebay does not know it", catalog.format()));
}

}  // namespace forebay::feed
