#include "format/arrow_schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/ascii.h"

namespace forebay::format {
namespace {

constexpr size_t kNameBytes = 1024;
constexpr uint32_t kValueBytesMost = 1 << 20;
constexpr int kV4 = 3;  // since Arrow 0.8
constexpr int kV5 = 4;  // since Arrow 1.0

enum class Type : uint8_t {  // numbered as in the format
  kNone,
  kNull,
  kInt,
  kFloatingPoint,
  kBinary,
  kUtf8,
  kBool,
  kDecimal,
  kDate,
  kTime,
  kTimestamp,
  kInterval,
  kList,
  kStruct,
  kUnion,
  kFixedSizeBinary,
  kFixedSizeList,
  kMap,
  kDuration,
  kLargeBinary,
  kLargeUtf8,
  kLargeList,
  kRunEndEncoded,
  kBinaryView,
  kUtf8View,
  kListView,
  kLargeListView,
};

// Values of one size.
struct Plain {
  uint32_t bits = 0;
  std::string dtype;
  std::vector<int64_t> shape = {};
};

// What a field's table says of its type.
struct Field {
  explicit Field(const FlatTable& table)
      : type(static_cast<Type>(table.Get<uint8_t>(2))),
        name(table.Text(0)),
        details(table.Table(3)),
        dictionary(table.Table(4)),
        children(table.Tables(5)) {}
  Type type;
  std::string_view name;
  FlatTable details;
  FlatTable dictionary;  // where there is one, values are numbers of values that lie elsewhere
  FlatVector children;
};

Plain Signed(uint32_t bits) { return {bits, fmt::format("int{}", bits)}; }

std::optional<Plain> Bytes(int64_t size) {
  if (size < 1 || size > kValueBytesMost) return std::nullopt;
  return Plain{static_cast<uint32_t>(size) * 8, "uint8", {size}};
}

std::optional<Plain> DecimalOf(const FlatTable& details) {
  constexpr int kBits = 128;  // unless it says
  const auto bits = details.Get<int32_t>(2, kBits);
  if (bits == 32 || bits == 64) return Signed(static_cast<uint32_t>(bits));
  return bits == 128 || bits == 256 ? Bytes(bits / 8) : std::nullopt;
}

// nullopt: its values are of other kinds.
std::optional<Plain> PlainOf(const Field& field) {
  const FlatTable& details = field.details;
  switch (field.type) {
    case Type::kBool:
      return Plain{1, "bool"};
    case Type::kInt: {
      const auto bits = details.Get<int32_t>(0);
      if (bits != 8 && bits != 16 && bits != 32 && bits != 64) return std::nullopt;
      const std::string_view sign = details.Get<uint8_t>(1) != 0 ? "" : "u";
      return Plain{static_cast<uint32_t>(bits), fmt::format("{}int{}", sign, bits)};
    }
    case Type::kFloatingPoint: {
      const auto precision = details.Get<int16_t>(0);
      if (precision < 0 || precision > 2) return std::nullopt;
      const uint32_t bits = 16U << static_cast<uint32_t>(precision);
      return Plain{bits, fmt::format("float{}", bits)};
    }
    case Type::kDecimal:
      return DecimalOf(details);
    case Type::kDate:
      return Signed(details.Get<int16_t>(0, 1) == 0 ? 32 : 64);
    case Type::kTime: {
      const auto bits = details.Get<int32_t>(1, 32);
      return bits == 32 || bits == 64 ? std::optional(Signed(static_cast<uint32_t>(bits)))
                                      : std::nullopt;
    }
    case Type::kTimestamp:
    case Type::kDuration:
      return Signed(64);
    case Type::kFixedSizeBinary:
      return Bytes(details.Get<int32_t>(0));
    default:
      return std::nullopt;
  }
}

// Of a field itself, without its children's; of views without what each batch counts. nullopt: the
// type is not known.
std::optional<uint32_t> BuffersOf(const Field& field, int version) {
  switch (field.type) {
    case Type::kNull:
    case Type::kRunEndEncoded:
      return 0;
    case Type::kStruct:
    case Type::kFixedSizeList:
      return 1;
    case Type::kUnion: {
      const bool dense = field.details.Get<int16_t>(0) != 0;
      return 1 + (dense ? 1 : 0) + (version < kV5 ? 1 : 0);
    }
    case Type::kBinary:
    case Type::kUtf8:
    case Type::kLargeBinary:
    case Type::kLargeUtf8:
    case Type::kListView:
    case Type::kLargeListView:
      return 3;
    case Type::kNone:
      return std::nullopt;
    default:
      return field.type <= Type::kLargeListView ? std::optional<uint32_t>(2) : std::nullopt;
  }
}

bool IsView(Type type) { return type == Type::kBinaryView || type == Type::kUtf8View; }

std::optional<uint64_t> ChildrenOf(Type type) {
  switch (type) {
    case Type::kStruct:
    case Type::kUnion:
      return std::nullopt;  // any number
    case Type::kList:
    case Type::kLargeList:
    case Type::kFixedSizeList:
    case Type::kMap:
    case Type::kListView:
    case Type::kLargeListView:
      return 1;
    case Type::kRunEndEncoded:
      return 2;
    default:
      return 0;
  }
}

// As the data sets of Hugging Face hold pictures and sounds: {bytes, path}.
bool IsBytesAndPath(const FlatVector& children) {
  if (children.size() != 2) return false;
  const std::string_view first = children.Table(0).Text(0);
  const std::string_view second = children.Table(1).Text(0);
  return (first == "bytes" && second == "path") || (first == "path" && second == "bytes");
}

// The elements are numbers, or it is none that is exposed.
bool SetElements(const Field& field, ArrowLeaf& leaf) {
  const Field child(field.children.Table(0));
  const auto plain = child.dictionary.exists() ? std::nullopt : PlainOf(child);
  if (!plain || !plain->shape.empty()) return false;
  leaf.column.bits = plain->bits;
  leaf.dtype = plain->dtype;
  leaf.shape = {-1};
  leaf.column.kind = ArrowColumn::Kind::kList;
  leaf.column.wide = field.type == Type::kLargeList;
  if (field.type != Type::kFixedSizeList) return true;
  const auto each = field.details.Get<int32_t>(0);
  leaf.column.kind = ArrowColumn::Kind::kArrays;
  if (each < 1 || each > static_cast<int64_t>(kValueBytesMost / leaf.column.value_bytes())) {
    return false;
  }
  leaf.column.each = static_cast<uint32_t>(each);
  leaf.shape = {each};
  return true;
}

// Whether its values have a type that comes out.
bool SetType(const Field& field, ArrowLeaf& leaf) {
  using Kind = ArrowColumn::Kind;
  switch (field.type) {
    case Type::kList:
    case Type::kLargeList:
    case Type::kFixedSizeList:
      return SetElements(field, leaf);
    case Type::kBinary:
    case Type::kUtf8:
    case Type::kLargeBinary:
    case Type::kLargeUtf8:
      leaf.column.kind = Kind::kBytes;
      leaf.column.wide = field.type == Type::kLargeBinary || field.type == Type::kLargeUtf8;
      return true;
    case Type::kBinaryView:
    case Type::kUtf8View:
      leaf.column.kind = Kind::kViews;
      return true;
    default:
      break;
  }
  const auto plain = PlainOf(field);
  if (!plain) return false;
  leaf.column.kind = Kind::kValues;
  leaf.column.bits = plain->bits;
  leaf.dtype = plain->dtype;
  leaf.shape = plain->shape;
  return true;
}

// A schema's fields, each before its children, as a batch has their nodes and buffers.
class Walk {
 public:
  Walk(int version, const Place& place) : version_(version), place_(place) {}

  // What is around a field.
  struct Above {
    std::string name;
    std::vector<ArrowPlace> parents;
    bool exposed = true;  // else its fields are only counted
    bool bytes_and_path = false;
  };

  Status Take(const FlatTable& table, const Above& above, int depth) {
    const Field field(table);
    if (++fields_ > ArrowLimits{}.fields) {
      return AboveLimit(place_, "the number of a schema's fields", fields_, ArrowLimits{}.fields);
    }
    if (depth > ArrowLimits{}.depth) {
      return AboveLimit(place_, "the depth of a schema", static_cast<uint64_t>(depth),
                        static_cast<uint64_t>(ArrowLimits{}.depth));
    }
    const ArrowPlace here = schema_.end;
    if (field.dictionary.exists()) return TakeIndices(field, above, here);
    const auto buffers = BuffersOf(field, version_);
    const auto children = ChildrenOf(field.type);
    if (!buffers) {
      return Refused(place_, fmt::format("a column of a type that is not known (number {})",
                                         static_cast<int>(field.type)));
    }
    if (children && *children != field.children.size()) {
      return Damaged(place_,
                     fmt::format("{} children of a column of type {}", *children,
                                 static_cast<int>(field.type)),
                     fmt::format("{}", field.children.size()));
    }
    Pass(*buffers);
    if (IsView(field.type)) ++schema_.end.views;
    return field.type == Type::kStruct ? TakeStruct(field, above, here, depth)
                                       : TakeLeaf(field, above, here, depth);
  }

  // Of columns of one name none is the one that is meant.
  ArrowSchema Finish() {
    std::erase_if(schema_.leaves,
                  [&](const ArrowLeaf& leaf) { return names_.find(leaf.name)->second > 1; });
    for (const auto& [name, columns] : names_) {
      if (columns > 1)
        Note(fmt::format("{} columns are named '{}': they are left out", columns, name));
    }
    return std::move(schema_);
  }

 private:
  void Pass(uint32_t buffers) {
    ++schema_.end.node;
    schema_.end.buffer += buffers;
  }

  static std::string NameOf(const Field& field, const Above& above) {
    if (above.bytes_and_path && field.name == "bytes" && field.type != Type::kStruct) {
      return above.name;
    }
    // Longer ones are cut and so none that is exposed.
    std::string name(field.name.substr(0, kNameBytes + 1));
    return above.name.empty() ? name : above.name + "." + name;
  }

  void LeaveOut(const Field& field, const Above& above) {
    if (!above.exposed) return;
    Note(fmt::format("column '{}' is left out: its type is none of those that come as arrays",
                     Printable(NameOf(field, above), kNameBytes)));
  }

  void Note(std::string text) {
    if (++schema_.left_out > ScanReport::kOdditiesKept) return;
    schema_.left_out_first.push_back(std::move(text));
  }

  void Expose(ArrowLeaf leaf) {
    ++names_[leaf.name];
    schema_.leaves.push_back(std::move(leaf));
  }

  static bool IsNamed(const Field& field, const ArrowLeaf& leaf) {
    return !field.name.empty() && Printable(leaf.name, kNameBytes) == leaf.name;
  }

  // The field's type is that of the dictionary's values.
  Status TakeIndices(const Field& field, const Above& above, const ArrowPlace& here) {
    Pass(2);
    if (!above.exposed) return {};
    ArrowDictionary dictionary{.id = field.dictionary.Get<int64_t>(0)};
    ArrowLeaf leaf{.name = NameOf(field, above), .place = here, .parents = above.parents};
    const FlatTable index = field.dictionary.Table(1);
    const auto bits = index.exists() ? index.Get<int32_t>(0) : 32;
    const bool indices = bits == 8 || bits == 16 || bits == 32 || bits == 64;
    ArrowLeaf& values = dictionary.leaf;
    const bool read = IsNamed(field, leaf) && indices && SetType(field, values) &&
                      values.column.kind <= ArrowColumn::Kind::kViews;
    const auto buffers = BuffersOf(field, version_);
    if (!read || !buffers) {
      LeaveOut(field, above);
      return {};
    }
    leaf.column = {.kind = ArrowColumn::Kind::kIndices,
                   .wide = !index.exists() || index.Get<uint8_t>(1) != 0,
                   .bits = static_cast<uint32_t>(bits),
                   .indexed_bytes = values.column.value_bytes()};
    values.name = leaf.name;
    leaf.dtype = values.dtype;
    leaf.shape = values.shape;
    leaf.dictionary = dictionary.id;
    dictionary.end = {1, *buffers, IsView(field.type) ? 1U : 0U};
    const auto known = std::ranges::find(schema_.dictionaries, dictionary.id, &ArrowDictionary::id);
    if (known == schema_.dictionaries.end()) {
      schema_.dictionaries.push_back(std::move(dictionary));
    } else if (known->leaf.column != values.column) {
      return Refused(place_,
                     fmt::format("column '{}' shares a dictionary of another type", leaf.name));
    }
    Expose(std::move(leaf));
    return {};
  }

  Status TakeStruct(const Field& field, const Above& above, const ArrowPlace& here, int depth) {
    Above inside{.name = NameOf(field, above), .parents = above.parents, .exposed = above.exposed};
    inside.parents.push_back(here);
    inside.bytes_and_path = IsBytesAndPath(field.children);
    if (inside.exposed && (field.children.size() == 0 || inside.name.size() > kNameBytes)) {
      LeaveOut(field, above);
      inside.exposed = false;
    }
    return TakeChildren(field, inside, depth);
  }

  Status TakeChildren(const Field& field, const Above& inside, int depth) {
    for (uint64_t i = 0; i < field.children.size(); ++i) {
      FB_RETURN_IF_ERROR(Take(field.children.Table(i), inside, depth + 1));
    }
    return {};
  }

  Status TakeLeaf(const Field& field, const Above& above, const ArrowPlace& here, int depth) {
    if (above.exposed) {
      ArrowLeaf leaf{.name = NameOf(field, above), .place = here, .parents = above.parents};
      if (IsNamed(field, leaf) && SetType(field, leaf)) {
        Expose(std::move(leaf));
      } else {
        LeaveOut(field, above);
      }
    }
    return TakeChildren(field, {.exposed = false}, depth);
  }

  const int version_;
  const Place place_;
  ArrowSchema schema_;
  std::map<std::string, uint64_t> names_;  // and how many columns have it
  uint64_t fields_ = 0;
};

Status Odd(const Place& place, std::string_view what) {
  return Damaged(place, fmt::format("Arrow's words on {}", what), "others: they are damaged");
}

}  // namespace

Result<int> ArrowVersionOf(const FlatTable& table, const Place& place) {
  const int version = table.Get<int16_t>(0);
  if (version == kV4 || version == kV5) return version;
  return Refused(place,
                 fmt::format("Arrow's metadata of version V{}: V4 and V5 are read", version + 1));
}

Result<ArrowMessage> ParseArrowMessage(FlatReader& in, const Place& place) {
  const FlatTable root = in.Root();
  ArrowMessage message{.header = root.Table(2)};
  const auto kind = root.Get<uint8_t>(1);
  const auto body = root.Get<int64_t>(3);
  if (!in.ok() || !message.header.exists() || kind == 0 ||
      kind > static_cast<uint8_t>(ArrowMessage::Kind::kSparseTensor) || body < 0) {
    return Odd(place, "a message");
  }
  message.kind = static_cast<ArrowMessage::Kind>(kind);
  message.body_bytes = static_cast<uint64_t>(body);
  FB_ASSIGN_OR_RETURN(message.version, ArrowVersionOf(root, place));
  return message;
}

Result<ArrowSchema> ParseArrowSchema(FlatReader& in, const FlatTable& schema, int version,
                                     const Place& place) {
  if (schema.Get<int16_t>(0) != 0) {
    return Refused(place, "big-endian Arrow data: write it anew on a machine of today");
  }
  Walk walk(version, place);
  const FlatVector fields = schema.Tables(1);
  for (uint64_t i = 0; i < fields.size() && in.ok(); ++i) {
    FB_RETURN_IF_ERROR(walk.Take(fields.Table(i), {}, 1));
  }
  if (!in.ok() || !schema.exists()) return Odd(place, "a schema");
  return walk.Finish();
}

}  // namespace forebay::format
