#include <fmt/core.h>

#include <algorithm>
#include <charconv>

#include "format/little_endian.h"
#include "format/mds.h"

namespace forebay::format {
namespace {

using Kind = MdsValue::Kind;

constexpr uint64_t kWord = sizeof(uint32_t);

struct ArrayType {
  uint8_t code;
  std::string_view name;
  uint64_t bytes;
};
constexpr ArrayType kArrayTypes[] = {
    {8, "uint8", 1},    {9, "int8", 1},    {16, "uint16", 2},  {17, "int16", 2},
    {18, "float16", 2}, {32, "uint32", 4}, {33, "int32", 4},   {34, "float32", 4},
    {64, "uint64", 8},  {65, "int64", 8},  {66, "float64", 8},
};

const ArrayType* TypeNamed(std::string_view name) {
  const auto* found = std::ranges::find(kArrayTypes, name, &ArrayType::name);
  return found == std::end(kArrayTypes) ? nullptr : found;
}

const ArrayType* TypeOf(uint8_t code) {
  const auto* found = std::ranges::find(kArrayTypes, code, &ArrayType::code);
  return found == std::end(kArrayTypes) ? nullptr : found;
}

// Bytes taken from the front.
class Front {
 public:
  Front(ByteView bytes, const Place& place) : bytes_(bytes), place_(place) {}

  Result<ByteView> Take(uint64_t size, std::string_view what) {
    if (size > bytes_.size()) return Truncated(place_, what, size, bytes_.size());
    const ByteView taken = bytes_.first(size);
    bytes_ = bytes_.subspan(size);
    place_.offset += size;
    return taken;
  }
  ByteView rest() const { return bytes_; }
  const Place& place() const { return place_; }

 private:
  ByteView bytes_;
  Place place_;
};

// Little-endian, of one, two, four or eight bytes.
uint64_t LoadSized(ByteView bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

Status TakeShape(Front* front, std::vector<uint64_t>* shape) {
  FB_ASSIGN_OR_RETURN(const ByteView head, front->Take(1, "an array's count of dimensions"));
  const auto byte = std::to_integer<uint8_t>(head[0]);
  const uint64_t width = uint64_t{1} << (byte & 3);
  const uint64_t dimensions = byte >> 2;
  FB_ASSIGN_OR_RETURN(const ByteView sizes, front->Take(width * dimensions, "an array's shape"));
  for (uint64_t i = 0; i < dimensions; ++i) {
    shape->push_back(LoadSized(sizes.subspan(i * width, width)));
  }
  return {};
}

Status ParseShape(std::string_view text, const Place& place, std::vector<uint64_t>* shape) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(','), text.size());
    uint64_t dimension = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + end, dimension);
    if (error != std::errc() || stop != text.data() + end) {
      return Damaged(place, "an encoding with an array's shape", "another text");
    }
    shape->push_back(dimension);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

// "", "uint8" or "uint8:3,4": what the encoding leaves open, the value says.
Status OpenArray(ByteView bytes, std::string_view rest, MdsValue* value, const Place& place) {
  Front front(bytes, place);
  const size_t colon = std::min(rest.find(':'), rest.size());
  const std::string_view named = rest.substr(0, colon);
  const ArrayType* type = TypeNamed(named);
  if (named.empty()) {
    FB_ASSIGN_OR_RETURN(const ByteView code, front.Take(1, "an array's type"));
    type = TypeOf(std::to_integer<uint8_t>(code[0]));
    if (type == nullptr) {
      return Damaged(place, "an array's type",
                     fmt::format("code {}", std::to_integer<int>(code[0])));
    }
  }
  if (type == nullptr) return Refused(place, fmt::format("arrays of '{}'", named));
  if (colon < rest.size()) {
    FB_RETURN_IF_ERROR(ParseShape(rest.substr(colon + 1), place, &value->shape));
  } else {
    FB_RETURN_IF_ERROR(TakeShape(&front, &value->shape));
  }
  std::optional<uint64_t> size = type->bytes;
  for (const uint64_t dimension : value->shape) size = size ? Total(*size, dimension) : size;
  if (size != front.rest().size()) {
    return Damaged(front.place(), "as many bytes as an array's shape has",
                   fmt::format("{}", front.rest().size()));
  }
  value->kind = Kind::kArray;
  value->dtype = type->name;
  value->data = front.rest();
  return {};
}

Status OpenRawImage(ByteView bytes, MdsValue* value, const Place& place) {
  Front front(bytes, place);
  FB_ASSIGN_OR_RETURN(const ByteView head, front.Take(3 * kWord, "an image's size and mode"));
  const uint64_t width = Load<uint32_t>(head);
  const uint64_t height = Load<uint32_t>(head, kWord);
  FB_ASSIGN_OR_RETURN(const ByteView mode,
                      front.Take(Load<uint32_t>(head, 2 * kWord), "an image's mode"));
  struct Mode {
    std::string_view name;
    uint64_t bytes;
  };
  constexpr Mode kModes[] = {{"L", 1},  {"P", 1},     {"RGB", 3}, {"RGBA", 4}, {"CMYK", 4},
                             {"LA", 2}, {"YCbCr", 3}, {"LAB", 3}, {"HSV", 3},  {"I", 4},
                             {"F", 4},  {"I;16", 2},  {"1", 0}};
  const auto* known = std::ranges::find(kModes, AsText(mode), &Mode::name);
  if (known == std::end(kModes)) {
    return Refused(place, fmt::format("a raw image of mode '{}'", AsText(mode).substr(0, 16)));
  }
  const uint64_t row = known->bytes == 0 ? (width + 7) / 8 : width * known->bytes;
  const auto size = Total(row, height);
  if (size != front.rest().size()) {
    return Damaged(front.place(), fmt::format("the pixels of {} x {}", width, height),
                   fmt::format("{} bytes", front.rest().size()));
  }
  value->kind = Kind::kRawImage;
  value->mode = AsText(mode);
  value->shape = {height, width};
  value->data = front.rest();
  return {};
}

Status OpenImages(ByteView bytes, bool marked, MdsValue* value, const Place& place) {
  Front front(bytes, place);
  if (marked) {
    FB_ASSIGN_OR_RETURN(const ByteView mark, front.Take(kWord, "a list's mark"));
    if (Load<uint32_t>(mark) != 0) {
      return Damaged(place, "a list's mark of 0", fmt::format("{}", Load<uint32_t>(mark)));
    }
  }
  FB_ASSIGN_OR_RETURN(const ByteView head, front.Take(kWord, "a list's count"));
  const uint64_t count = Load<uint32_t>(head);
  FB_ASSIGN_OR_RETURN(const ByteView sizes, front.Take(kWord * count, "a list's sizes"));
  for (uint64_t i = 0; i < count; ++i) {
    FB_ASSIGN_OR_RETURN(const ByteView item,
                        front.Take(Load<uint32_t>(sizes, i * kWord), "a list's item"));
    value->items.push_back(item);
  }
  if (!front.rest().empty()) {
    return Damaged(front.place(), "the end of a list",
                   fmt::format("{} more bytes", front.rest().size()));
  }
  value->kind = Kind::kImages;
  return {};
}

template <class T>
Status ParseText(std::string_view text, std::string_view what, const Place& place, T* number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error == std::errc() && end == text.data() + text.size()) return {};
  return Damaged(place, what, fmt::format("'{}'", text.substr(0, 40)));
}

Status OpenNumber(ByteView bytes, const ArrayType& type, MdsValue* value, const Place& place) {
  if (bytes.size() != type.bytes) {
    return Damaged(place, fmt::format("{} bytes of {}", type.bytes, type.name),
                   fmt::format("{}", bytes.size()));
  }
  value->kind = Kind::kArray;
  value->dtype = type.name;
  return {};
}

void Clear(MdsValue* value) {
  value->kind = Kind::kBytes;
  value->dtype = value->mode = {};
  value->shape.clear();
  value->items.clear();
  value->integer = 0;
  value->number = 0;
}

}  // namespace

Status OpenMdsValue(ByteView bytes, std::string_view encoding, MdsValue* value,
                    const Place& place) {
  Clear(value);
  value->data = bytes;
  if (encoding == "bytes") return {};
  const std::pair<std::string_view, Kind> as_they_are[] = {
      {"str", Kind::kText}, {"json", Kind::kJson}, {"jpeg", Kind::kImage}, {"png", Kind::kImage}};
  for (const auto& [name, kind] : as_they_are) {
    if (encoding != name) continue;
    value->kind = kind;
    return {};
  }
  if (encoding == "int") encoding = "int64";
  if (const ArrayType* type = TypeNamed(encoding); type != nullptr) {
    return OpenNumber(bytes, *type, value, place);
  }
  if (encoding == "str_int") {
    value->kind = Kind::kInteger;
    return ParseText(AsText(bytes), "an integer of 64 bits as text", place, &value->integer);
  }
  if (encoding == "str_float" || encoding == "str_decimal") {
    value->kind = Kind::kFloat;
    return ParseText(AsText(bytes), "a number as text", place, &value->number);
  }
  if (encoding == "ndarray") return OpenArray(bytes, "", value, place);
  constexpr std::string_view kArray = "ndarray:";
  if (encoding.starts_with(kArray)) {
    return OpenArray(bytes, encoding.substr(kArray.size()), value, place);
  }
  if (encoding == "pil") return OpenRawImage(bytes, value, place);
  if (encoding == "jpeg_array" || encoding == "jpegarray") {
    return OpenImages(bytes, false, value, place);
  }
  if (encoding == "list[jpeg]" || encoding == "list[png]" || encoding == "list[pil]") {
    return OpenImages(bytes, true, value, place);
  }
  if (encoding == "pkl") {
    return Refused(place, "pickled values are never opened: opening one can run any code");
  }
  return Refused(place, fmt::format("values of encoding '{}'", encoding.substr(0, 40)));
}

}  // namespace forebay::format
