#include "format/beton.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "format/foreign.h"
#include "format/little_endian.h"
#include "format/window.h"

namespace forebay::format {
namespace {

constexpr uint64_t kFieldBytes = 1041;  // type, name, arguments
constexpr uint64_t kNameBytes = 16;
constexpr uint64_t kArgumentsAt = 1 + kNameBytes;
constexpr uint64_t kImageRow = 13;
constexpr uint64_t kEntryBytes = 24;  // of the list of what was allocated
constexpr uint64_t kMaxHeadBytes = kBetonHeader + kFieldBytes * kMaxBetonFields;
static_assert(kMaxHeadBytes <= Window::kBytes);

// Bytes in a row, and their alignment there.
struct Slot {
  uint64_t bytes;
  uint64_t alignment;
};
Slot SlotOf(BetonType type) {
  switch (type) {
    case BetonType::kFloat:
    case BetonType::kInt:
    case BetonType::kArray:
    case BetonType::kTensor:
      return {8, 8};
    case BetonType::kImage:
      return {kImageRow, 1};
    case BetonType::kBytes:
    case BetonType::kJson:
      return {16, 1};
  }
  return {0, 1};
}

// "<f4" -> "float32"; "": none of those that come as they are.
std::string TypeName(std::string_view text) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"|b1", "bool"},  {"|u1", "uint8"},   {"|i1", "int8"},    {"<u2", "uint16"},
      {"<i2", "int16"}, {"<u4", "uint32"},  {"<i4", "int32"},   {"<u8", "uint64"},
      {"<i8", "int64"}, {"<f2", "float16"}, {"<f4", "float32"}, {"<f8", "float64"}};
  for (const auto& [code, name] : kNames) {
    if (code == text) return std::string(name);
  }
  return "";
}

// Sets the shape that an array's arguments hold, its type, and the size of all.
Status SetArray(ByteView arguments, const Place& place, BetonField* field) {
  constexpr uint64_t kDimensions = 32;
  const uint64_t length = Load<uint64_t>(arguments, kDimensions * sizeof(uint64_t));
  constexpr uint64_t kTextAt = (kDimensions + 1) * sizeof(uint64_t);
  if (length > arguments.size() - kTextAt) {
    return Truncated(place, "an array's type", length, arguments.size() - kTextAt);
  }
  // A JSON text such as "<f4".
  std::string_view type = AsText(arguments.subspan(kTextAt, length));
  if (type.starts_with('"') && type.ends_with('"') && type.size() >= 2) {
    type = type.substr(1, type.size() - 2);
  }
  if (type.size() < 2 || type.size() > 4 || type.find('O') != std::string_view::npos) {
    return Refused(place, fmt::format("arrays of type '{}'", type.substr(0, 40)));
  }
  uint64_t item = 0;
  for (const char c : type.substr(2)) {
    if (c < '0' || c > '9') return Refused(place, fmt::format("arrays of type '{}'", type));
    item = item * 10 + static_cast<uint64_t>(c - '0');
  }
  std::optional<uint64_t> bytes = item;
  for (uint64_t i = 0; i < kDimensions; ++i) {
    const auto dimension = Load<uint64_t>(arguments, i * sizeof(uint64_t));
    if (dimension == 0) break;  // the rest is not used
    bytes = bytes ? Total(*bytes, dimension) : bytes;
    field->shape.push_back(static_cast<int64_t>(dimension));
  }
  if (!bytes) return Damaged(place, "an array of a size of 64 bits", "a larger one");
  field->array_bytes = *bytes;
  field->dtype = TypeName(type);
  if (field->dtype.empty()) field->shape.clear();
  return {};
}

Result<BetonField> FieldOf(ByteView bytes, const Place& place) {
  const auto type = Load<uint8_t>(bytes);
  if (type > static_cast<uint8_t>(BetonType::kTensor)) {
    return Refused(place, fmt::format("fields of FFCV's type {}", type));
  }
  BetonField field;
  field.type = static_cast<BetonType>(type);
  const std::string_view name = AsText(bytes.subspan(1, kNameBytes));
  field.name = name.substr(0, name.find('\0'));
  if (field.type == BetonType::kArray) {
    FB_RETURN_IF_ERROR(SetArray(bytes.subspan(kArgumentsAt), place + kArgumentsAt, &field));
  }
  return field;
}

struct Allocation {
  uint64_t offset = 0;
  uint64_t size = 0;
};

class BetonScan {
 public:
  BetonScan(const Shard& shard, const OnRecord& on_record, ScanReport* report)
      : shard_(shard), on_record_(on_record), report_(report), window_(shard, report) {}

  Status Run() {
    FB_ASSIGN_OR_RETURN(ByteView head, window_.AtLeast(0, kBetonHeader));
    FB_RETURN_IF_ERROR(RefuseForeign(head, window_.PlaceAt(0)));
    const uint64_t bytes = BetonHeadBytes(head);
    FB_ASSIGN_OR_RETURN(head, window_.At(0, std::min(bytes, kMaxHeadBytes), "a header"));
    FB_ASSIGN_OR_RETURN(layout_, ParseBeton(head, window_.size(), window_.PlaceAt(0)));
    FB_RETURN_IF_ERROR(ReadTable());
    for (uint64_t i = 0; i < layout_.samples; ++i) FB_RETURN_IF_ERROR(Deliver(i));
    return {};
  }

 private:
  // An image's size stands nowhere else.
  Status ReadTable() {
    const uint64_t end = window_.size();
    const uint64_t entries = (end - layout_.table) / kEntryBytes;
    if (entries > kMaxBetonEntries) {
      return AboveLimit(window_.PlaceAt(layout_.table), "the count of what was allocated", entries,
                        kMaxBetonEntries);
    }
    Window table(shard_, report_);
    allocated_.reserve(entries);
    for (uint64_t at = layout_.table; at < end; at += kEntryBytes) {
      FB_ASSIGN_OR_RETURN(const ByteView entry, table.At(at, kEntryBytes, "a list's entry"));
      const Allocation allocation{Load<uint64_t>(entry, 8), Load<uint64_t>(entry, 16)};
      FB_RETURN_IF_ERROR(CheckData(allocation.offset, allocation.size, window_.PlaceAt(at)));
      allocated_.push_back(allocation);
    }
    // What has no bytes may lie where another one begins, and comes first then.
    std::ranges::sort(allocated_, {},
                      [](const Allocation& one) { return std::pair(one.offset, one.size); });
    for (size_t i = 1; i < allocated_.size(); ++i) {
      const Allocation& before = allocated_[i - 1];
      if (before.offset + before.size > allocated_[i].offset && allocated_[i].size > 0) {
        return Damaged(window_.PlaceAt(layout_.table), "data that do not overlap",
                       fmt::format("{} bytes at {} and others at {}", before.size, before.offset,
                                   allocated_[i].offset));
      }
    }
    return {};
  }

  // Data lie in one page.
  Status CheckData(uint64_t offset, uint64_t size, const Place& place) const {
    const bool within = offset >= layout_.data && RangeWithin(offset, size, layout_.table);
    const uint64_t page = layout_.page_bytes;
    if (within && (size == 0 || offset / page == (offset + size - 1) / page)) return {};
    return Damaged(place,
                   fmt::format("data in one page from {} to {}", layout_.data, layout_.table),
                   fmt::format("{} bytes at {}", size, offset));
  }

  Status Deliver(uint64_t sample) {
    const uint64_t row_at = layout_.rows.offset + sample * layout_.row_bytes;
    FB_ASSIGN_OR_RETURN(const ByteView row,
                        window_.At(row_at, layout_.row_bytes, "a sample's row"));
    FoundRecord record{.range = {row_at, row_at + layout_.row_bytes}};
    for (const BetonField& field : layout_.fields) {
      FB_RETURN_IF_ERROR(
          AddField(field, row.subspan(field.offset), row_at + field.offset, &record));
    }
    for (const FoundField& field : record.fields) {
      record.range.end = std::max(record.range.end, field.range.end);
    }
    ++report_->records;
    return on_record_(std::move(record));
  }

  Status AddField(const BetonField& field, ByteView slot, uint64_t at, FoundRecord* record) {
    const Place place = window_.PlaceAt(at);
    uint64_t offset = at;
    uint64_t size = sizeof(uint64_t);
    std::string dtype = field.dtype;
    switch (field.type) {
      case BetonType::kFloat:
        dtype = "float64";
        break;
      case BetonType::kInt:
        dtype = "int64";
        break;
      case BetonType::kImage: {
        FB_ASSIGN_OR_RETURN(const BetonImage image, OpenBetonImage(slot.first(kImageRow), place));
        record->fields.push_back({.name = field.name + ".row",
                                  .range = {at, at + kImageRow},
                                  .bytes = kImageRow,
                                  .dtype = "uint8",
                                  .shape = {kImageRow}});
        offset = image.offset;
        FB_ASSIGN_OR_RETURN(size, Allocated(offset, place));
        const uint64_t pixels = uint64_t{3} * image.width * image.height;
        if (image.raw && size != pixels) {
          return Damaged(place, fmt::format("an image of {} bytes", pixels),
                         fmt::format("{}", size));
        }
        break;
      }
      case BetonType::kBytes:
      case BetonType::kJson:
        offset = Load<uint64_t>(slot);
        size = Load<uint64_t>(slot, 8);
        FB_RETURN_IF_ERROR(CheckData(offset, size, place));
        break;
      case BetonType::kArray:
      case BetonType::kTensor: {
        offset = Load<uint64_t>(slot);
        FB_ASSIGN_OR_RETURN(size, Allocated(offset, place));
        if (field.array_bytes != 0 && size != field.array_bytes) {
          return Damaged(place, fmt::format("an array of {} bytes", field.array_bytes),
                         fmt::format("{}", size));
        }
        break;
      }
    }
    record->fields.push_back({.name = field.name,
                              .range = {offset, offset + size},
                              .bytes = size,
                              .dtype = dtype,
                              .shape = field.shape});
    return {};
  }

  Result<uint64_t> Allocated(uint64_t offset, const Place& place) const {
    // Of several the last: those before it have no bytes.
    const auto found = std::ranges::upper_bound(allocated_, offset, {}, &Allocation::offset);
    if (found != allocated_.begin() && std::prev(found)->offset == offset) {
      return std::prev(found)->size;
    }
    return Damaged(place, "data in the list of what was allocated", fmt::format("{}", offset));
  }

  const Shard& shard_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  Window window_;
  BetonLayout layout_;
  std::vector<Allocation> allocated_;  // by offset
};

}  // namespace

uint64_t BetonHeadBytes(ByteView header) {
  if (header.size() < 4) return kBetonHeader;
  return kBetonHeader + kFieldBytes * Load<uint16_t>(header, 2);
}

Result<BetonLayout> ParseBeton(ByteView head, uint64_t file_size, const Place& place) {
  if (head.size() < kBetonHeader) return Truncated(place, "a header", kBetonHeader, head.size());
  const auto version = Load<uint16_t>(head);
  if (version != 2) return Refused(place, fmt::format("version {} of FFCV's format", version));
  const uint64_t fields = Load<uint16_t>(head, 2);
  BetonLayout layout;
  layout.page_bytes = Load<uint32_t>(head, 4);
  layout.samples = Load<uint64_t>(head, 8);
  layout.table = Load<uint64_t>(head, 16);
  if (fields > kMaxBetonFields)
    return AboveLimit(place, "the count of fields", fields, kMaxBetonFields);
  // Rows of no bytes: any number of them would lie in the file.
  if (fields == 0) return Damaged(place + 2, "fields, one at least", "none");
  if (layout.samples > kMaxBetonSamples) {
    return AboveLimit(place, "the count of samples", layout.samples, kMaxBetonSamples);
  }
  if (!std::has_single_bit(layout.page_bytes) || layout.page_bytes < uint64_t{1} << 21) {
    return Damaged(place + 4, "pages of a power of two from 2 MiB on",
                   fmt::format("{}", layout.page_bytes));
  }
  if (head.size() < BetonHeadBytes(head)) {
    return Truncated(place, "the description of the fields", BetonHeadBytes(head), head.size());
  }
  uint64_t alignment = 1;
  for (uint64_t i = 0; i < fields; ++i) {
    const uint64_t at = kBetonHeader + i * kFieldBytes;
    FB_ASSIGN_OR_RETURN(BetonField field, FieldOf(head.subspan(at, kFieldBytes), place + at));
    const Slot slot = SlotOf(field.type);
    field.offset = PaddedTo(layout.row_bytes, slot.alignment);
    layout.row_bytes = field.offset + slot.bytes;
    alignment = std::max(alignment, slot.alignment);
    layout.fields.push_back(std::move(field));
  }
  layout.row_bytes = PaddedTo(layout.row_bytes, alignment);
  const uint64_t start = BetonHeadBytes(head);
  const auto end = Total(layout.samples, layout.row_bytes, start);
  if (!end || *end > file_size) {
    return Truncated(place, fmt::format("the rows of {} samples", layout.samples),
                     end.value_or(UINT64_MAX), file_size);
  }
  layout.rows = {start, *end};
  layout.data = PaddedTo(*end, layout.page_bytes);
  if (layout.table > file_size || layout.table < *end ||
      (file_size - layout.table) % kEntryBytes != 0) {
    return Damaged(place + 16,
                   fmt::format("a list of entries of {} bytes up to the end", kEntryBytes),
                   fmt::format("it from {} to {}", layout.table, file_size));
  }
  return layout;
}

Result<BetonImage> OpenBetonImage(ByteView row, const Place& place) {
  if (row.size() < kImageRow) return Truncated(place, "an image's row", kImageRow, row.size());
  const auto mode = Load<uint8_t>(row);
  if (mode > 1) return Damaged(place, "an image of mode 0 or 1", fmt::format("{}", mode));
  return BetonImage{.raw = mode == 1,
                    .width = Load<uint16_t>(row, 1),
                    .height = Load<uint16_t>(row, 3),
                    .offset = Load<uint64_t>(row, 5)};
}

Status ScanBeton(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  return BetonScan(shard, on_record, report).Run();
}

}  // namespace forebay::format
