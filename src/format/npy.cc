#include "format/npy.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/crc32.h"
#include "base/crc32c.h"
#include "format/foreign.h"
#include "format/inflate.h"
#include "format/little_endian.h"
#include "format/window.h"
#include "format/zip.h"

namespace forebay::format {
namespace {

using std::string_view_literals::operator""sv;

constexpr int kMaxDepth = 8;
constexpr size_t kMaxDimensions = 64;

struct Type {
  std::string name;
  uint64_t bytes = 0;
  bool big_endian = false;
};

// The literals of Python that describe an array: texts, True and False, numbers, tuples, lists.
class Literals {
 public:
  Literals(std::string_view text, const Place& place) : text_(text), place_(place) {}

  Status Damage(std::string_view expected) const {
    return Damaged(place_ + at_, expected, "another text");
  }
  Place place() const { return place_ + at_; }

  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Take(std::string_view word) {
    SkipSpace();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  bool At(char c) {
    SkipSpace();
    return at_ < text_.size() && text_[at_] == c;
  }

  // No escapes: what needs them is no name of a type or a field that we know.
  Result<std::string> Text() {
    SkipSpace();
    if (at_ >= text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return Damage("a text");
    const size_t end = text_.find(text_[at_], at_ + 1);
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    if (end == std::string_view::npos || inner.find('\\') != std::string_view::npos) {
      return Damage("a text in quotes, without escapes");
    }
    at_ = end + 1;
    return std::string(inner);
  }

  // 10L is one of Python 2.
  Result<uint64_t> Number() {
    SkipSpace();
    std::optional<uint64_t> value;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      const auto more = Total(value.value_or(0), 10, static_cast<uint64_t>(text_[at_] - '0'));
      if (!more) return Damage("a number of 64 bits");
      value = more;
    }
    if (!value) return Damage("a number");
    (void)Take('L');
    return *value;
  }

  Result<std::vector<uint64_t>> Tuple() {
    std::vector<uint64_t> numbers;
    if (!Take('(')) return Damage("a tuple of numbers");
    while (!Take(')')) {
      FB_ASSIGN_OR_RETURN(const uint64_t number, Number());
      numbers.push_back(number);
      if (numbers.size() > kMaxDimensions) return Damage("at most 64 dimensions");
      if (!Take(',') && !At(')')) return Damage("a comma");
    }
    return numbers;
  }

  std::string_view Since(size_t start) const { return text_.substr(start, at_ - start); }
  size_t at() const { return at_; }

 private:
  const std::string_view text_;
  const Place place_;
  size_t at_ = 0;
};

// "<f4", "|S12", "<M8[ns]".
Result<Type> PlainType(std::string_view text, const Place& place) {
  const std::string_view whole = text;
  Type type;
  if (!text.empty() && "<>|="sv.find(text[0]) != std::string_view::npos) {
    type.big_endian = text[0] == '>';
    text.remove_prefix(1);
  }
  const auto refuse = [&] {
    return Refused(place, fmt::format("arrays of type '{}'", whole.substr(0, 40)));
  };
  if (text.empty()) return refuse();
  const char kind = text[0];
  if (kind == 'O') return Refused(place, "arrays of objects are pickled, and never opened");
  const size_t digits = std::min(text.find_first_not_of("0123456789", 1), text.size());
  const std::string_view unit = text.substr(digits);
  uint64_t bytes = 0;
  for (const char c : text.substr(1, digits - 1)) {
    const auto more = Total(bytes, 10, static_cast<uint64_t>(c - '0'));
    if (!more || *more > UINT32_MAX) return refuse();
    bytes = *more;
  }
  struct Known {
    std::string_view code;
    std::string_view name;
  };
  constexpr Known kKnown[] = {
      {"b1", "bool"},      {"i1", "int8"},        {"i2", "int16"},      {"i4", "int32"},
      {"i8", "int64"},     {"u1", "uint8"},       {"u2", "uint16"},     {"u4", "uint32"},
      {"u8", "uint64"},    {"f2", "float16"},     {"f4", "float32"},    {"f8", "float64"},
      {"c8", "complex64"}, {"c16", "complex128"}, {"M8", "datetime64"}, {"m8", "timedelta64"}};
  type.bytes = bytes;
  const auto* known = std::ranges::find(kKnown, text.substr(0, digits), &Known::code);
  const bool is_time = kind == 'M' || kind == 'm';
  if (known != std::end(kKnown)) {
    if (!unit.empty() && !is_time) return refuse();
    type.name = std::string(known->name) + std::string(unit);
    return type;
  }
  if (!unit.empty() || digits < 2) return refuse();
  if (kind == 'V') type.name = fmt::format("void{}", bytes);
  if (kind == 'S' || kind == 'a') type.name = fmt::format("S{}", bytes);
  if (kind == 'U') {
    type.name = fmt::format("U{}", bytes);
    type.bytes = bytes * 4;  // UTF-32; of at most 32 bits before
  }
  if (type.name.empty()) return refuse();
  return type;
}

// A text, or a list of (name, type[, shape]).
Result<Type> AnyType(Literals* literals, int depth) {
  const Place place = literals->place();
  if (!literals->At('[')) {
    FB_ASSIGN_OR_RETURN(const std::string text, literals->Text());
    return PlainType(text, place);
  }
  if (depth >= kMaxDepth) return Refused(place, "types nested so deep");
  (void)literals->Take('[');
  Type whole;
  while (!literals->Take(']')) {
    if (!literals->Take('(')) return literals->Damage("a field as (name, type)");
    FB_RETURN_IF_ERROR(literals->Text().status());  // its name
    if (!literals->Take(',')) return literals->Damage("a comma");
    FB_ASSIGN_OR_RETURN(const Type field, AnyType(literals, depth + 1));
    std::optional<uint64_t> bytes = field.bytes;
    if (literals->Take(',') && literals->At('(')) {
      FB_ASSIGN_OR_RETURN(const std::vector<uint64_t> shape, literals->Tuple());
      for (const uint64_t dimension : shape) bytes = bytes ? Total(*bytes, dimension) : bytes;
      (void)literals->Take(',');
    }
    if (!literals->Take(')')) return literals->Damage("the end of a field");
    const auto sum = bytes ? Total(*bytes, 1, whole.bytes) : std::nullopt;
    if (!sum) return literals->Damage("fields of a size of 64 bits");
    whole.bytes = *sum;
    whole.big_endian = whole.big_endian || field.big_endian;
    if (!literals->Take(',') && !literals->At(']')) return literals->Damage("a comma");
  }
  whole.name = fmt::format("void{}", whole.bytes);
  return whole;
}

Status ParseDictionary(std::string_view text, const Place& place, NpyHeader* header) {
  Literals literals(text, place);
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  if (!literals.Take('{')) return literals.Damage("a dictionary of an array");
  while (!literals.Take('}')) {
    FB_ASSIGN_OR_RETURN(const std::string key, literals.Text());
    if (!literals.Take(':')) return literals.Damage("a colon");
    if (key == "descr" && !has_descr) {
      has_descr = true;
      literals.SkipSpace();
      const size_t start = literals.at();
      FB_ASSIGN_OR_RETURN(Type type, AnyType(&literals, 0));
      header->descr = literals.Since(start);
      if (header->descr.front() != '[')
        header->descr = header->descr.substr(1, header->descr.size() - 2);
      header->dtype = std::move(type.name);
      header->item_bytes = type.bytes;
      header->big_endian = type.big_endian;
    } else if (key == "fortran_order" && !has_order) {
      has_order = true;
      header->fortran_order = literals.Take("True"sv);
      if (!header->fortran_order && !literals.Take("False"sv))
        return literals.Damage("True or False");
    } else if (key == "shape" && !has_shape) {
      has_shape = true;
      FB_ASSIGN_OR_RETURN(header->shape, literals.Tuple());
    } else {
      return literals.Damage("'descr', 'fortran_order' and 'shape', each once");
    }
    if (!literals.Take(',') && !literals.At('}')) return literals.Damage("a comma");
  }
  if (!literals.AtEnd()) return literals.Damage("the end of the header");
  if (has_descr && has_order && has_shape) return {};
  return literals.Damage("'descr', 'fortran_order' and 'shape'");
}

}  // namespace

Result<NpyHeader> ParseNpyHeader(ByteView head, const Place& place) {
  constexpr uint64_t kMagic = 8;  // with the version
  const std::string_view text = AsText(head);
  if (head.size() < kMagic + 4) {
    return Truncated(place, "an array's header", kMagic + 4, head.size());
  }
  if (!text.starts_with("\x93NUMPY"sv)) return Damaged(place, "NumPy's magic", "another text");
  const auto major = Load<uint8_t>(head, 6);
  const auto minor = Load<uint8_t>(head, 7);
  if (major < 1 || major > 3 || minor != 0) {
    return Refused(place, fmt::format("version {}.{} of NumPy's format", major, minor));
  }
  const uint64_t length = major == 1 ? Load<uint16_t>(head, kMagic) : Load<uint32_t>(head, kMagic);
  NpyHeader header;
  const uint64_t start = kMagic + (major == 1 ? 2 : 4);
  header.data_offset = start + length;
  if (header.data_offset > kMaxNpyHeadBytes) {
    return AboveLimit(place, "an array's header", header.data_offset, kMaxNpyHeadBytes);
  }
  if (header.data_offset > head.size()) {
    return Truncated(place, "an array's header", header.data_offset, head.size());
  }
  FB_RETURN_IF_ERROR(ParseDictionary(text.substr(start, length), place + start, &header));
  std::optional<uint64_t> bytes = header.item_bytes;
  for (const uint64_t dimension : header.shape) bytes = bytes ? Total(*bytes, dimension) : bytes;
  if (!bytes) return Damaged(place, "an array of a size of 64 bits", "a larger one");
  header.data_bytes = *bytes;
  return header;
}

Status ScanNpy(const Shard& shard, const NpyOptions& options, const OnRecord& on_record,
               ScanReport* report) {
  Window window(shard, report);
  FB_ASSIGN_OR_RETURN(ByteView head, window.AtLeast(0, kMaxNpyHeadBytes));
  FB_RETURN_IF_ERROR(RefuseForeign(head, window.PlaceAt(0)));
  FB_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(head, window.PlaceAt(0)));
  const Place place = window.PlaceAt(header.data_offset);
  const uint64_t rows = header.shape.empty() ? 1 : header.shape[0];
  if (rows == 0) return {};
  const uint64_t row = header.data_bytes / rows;
  if (row == 0) return Refused(place, "an array whose rows have no bytes");
  if (header.fortran_order && header.shape.size() > 1) {
    return Refused(place, "an array with columns first: save it with order='C'");
  }
  const uint64_t left = window.Left(header.data_offset);
  uint64_t whole = rows;
  if (header.data_bytes > left) {
    FB_RETURN_IF_ERROR(
        CutTail(options.drop_tail, place, "an array", header.data_bytes, left, report));
    whole = left / row;
  } else if (header.data_bytes < left) {
    report->Note(header.data_offset + header.data_bytes, "bytes behind the array are left out");
  }
  for (uint64_t i = 0; i < whole; ++i) {
    const uint64_t at = header.data_offset + i * row;
    const ByteRange range{at, at + row};
    ++report->records;
    FB_RETURN_IF_ERROR(on_record({.range = range, .fields = {{"array", range, row}}}));
  }
  return {};
}

namespace {

constexpr uint16_t kStored = 0;
constexpr uint16_t kDeflated = 8;

// The checksum that the zip holds is verified, where the bytes are read; ours is returned.
Result<std::optional<uint32_t>> Checksums(Window* window, const ZipMember& member) {
  if (member.data.size() > Window::kBytes) return std::optional<uint32_t>();
  uint32_t crc32 = 0;
  uint32_t crc32c = 0;
  FB_RETURN_IF_ERROR(window->ForEach(member.data, [&](ByteView bytes) {
    crc32 = ExtendCrc32(crc32, bytes);
    crc32c = ExtendCrc32c(crc32c, bytes);
  }));
  if (crc32 == member.crc32) return std::optional<uint32_t>(crc32c);
  return Damaged(window->PlaceAt(member.data.offset),
                 fmt::format("data with the checksum {:08x}", member.crc32),
                 fmt::format("{:08x}", crc32));
}

// The array must be all there is in the member.
Status CheckArray(ByteView head, uint64_t size, const Place& place) {
  FB_ASSIGN_OR_RETURN(const NpyHeader header, ParseNpyHeader(head, place));
  if (header.data_offset + header.data_bytes == size) return {};
  return Damaged(place, fmt::format("an array of {} bytes", header.data_bytes),
                 fmt::format("{}", size - header.data_offset));
}

Result<FoundField> StoredArray(Window* window, const ZipMember& member) {
  FB_ASSIGN_OR_RETURN(ByteView head, window->AtLeast(member.data.offset, kMaxNpyHeadBytes));
  head = head.first(std::min<uint64_t>(head.size(), member.data.size()));
  FB_RETURN_IF_ERROR(CheckArray(head, member.data.size(), window->PlaceAt(member.data.offset)));
  FB_ASSIGN_OR_RETURN(const auto crc, Checksums(window, member));
  return FoundField{.name = "", .range = member.data, .bytes = member.data.size(), .crc32c = crc};
}

// All of it is unpacked once, a piece at a time. Its range begins with its header, by which it is
// known for what it is.
Result<FoundField> DeflatedArray(Window* window, const ZipMember& member) {
  const Place place = window->PlaceAt(member.data.offset);
  FB_ASSIGN_OR_RETURN(Inflater inflater, Inflater::Make(member.data.size(), member.size, place));
  FoundField field{.range = {member.header, member.data.end}, .bytes = member.size};
  std::vector<std::byte> head;
  uint32_t crc32 = 0;
  uint32_t crc32c = 0;
  const auto take = [&](ByteView bytes) {
    crc32 = ExtendCrc32(crc32, bytes);
    const size_t more = std::min<size_t>(bytes.size(), kMaxNpyHeadBytes - head.size());
    head.insert(head.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(more));
  };
  uint64_t at = field.range.offset;
  Status status;
  FB_RETURN_IF_ERROR(window->ForEach(field.range, [&](ByteView bytes) {
    crc32c = ExtendCrc32c(crc32c, bytes);
    const uint64_t in_header = member.data.offset - std::min(member.data.offset, at);
    at += bytes.size();
    const ByteView packed = bytes.subspan(std::min<uint64_t>(in_header, bytes.size()));
    if (status.ok()) status = inflater.Take(packed, take);
  }));
  FB_RETURN_IF_ERROR(status);
  FB_RETURN_IF_ERROR(inflater.End());
  if (crc32 != member.crc32) {
    return Damaged(place, fmt::format("data with the checksum {:08x}", member.crc32),
                   fmt::format("{:08x}", crc32));
  }
  if (field.range.size() <= Window::kBytes) field.crc32c = crc32c;
  FB_RETURN_IF_ERROR(CheckArray(head, member.size, place));
  return field;
}

}  // namespace

Status ScanNpz(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const std::vector<ZipMember> members, ReadZip(shard, report));
  Window window(shard, report);
  FoundRecord record;
  for (const ZipMember& member : members) {
    const Place place = window.PlaceAt(member.data.offset);
    std::string_view name = member.name;
    if (!name.ends_with(".npy")) {
      report->Note(member.data.offset, "a member that is no array is left out");
      continue;
    }
    name.remove_suffix(4);
    if (member.method != kStored && member.method != kDeflated) {
      return Refused(place, fmt::format("an array compressed by method {}", member.method));
    }
    for (const FoundField& other : record.fields) {
      if (other.name == name) return Damaged(place, "each array once", "a name twice");
    }
    FB_ASSIGN_OR_RETURN(FoundField field, member.method == kStored
                                              ? StoredArray(&window, member)
                                              : DeflatedArray(&window, member));
    field.name = name;
    record.fields.push_back(std::move(field));
  }
  if (record.fields.empty()) {
    report->Note(0, "there are no arrays");
    return {};
  }
  record.range = {record.fields.front().range.offset, record.fields.back().range.end};
  ++report->records;
  return on_record(std::move(record));
}

}  // namespace forebay::format
