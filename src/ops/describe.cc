// Ops as text, and whether their arguments make sense.
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "forebay/ops.h"

namespace forebay {
namespace {

constexpr int64_t kSideMost = 65'536;

std::string_view NameOf(ResizeFilter filter) {
  switch (filter) {
    case ResizeFilter::kBilinear:
      return "bilinear";
    case ResizeFilter::kBicubic:
      return "bicubic";
    case ResizeFilter::kLanczos:
      return "lanczos";
    case ResizeFilter::kBox:
      return "box";
    case ResizeFilter::kOpenCvBilinear:
      return "opencv_bilinear";
  }
  return "?";
}

template <class Range>
std::string List(const Range& values) {
  return fmt::format("[{}]", fmt::join(values, ", "));
}

std::string ShapeText(bool ragged, const std::vector<int64_t>& shape) {
  return ragged ? "ragged" : List(shape);
}

struct Describer {
  std::string operator()(const DecodeImageOp& op) const {
    return fmt::format(
        "decode_image(field={}, mode={}, orientation={}, pixels_max={}, cmyk={}, grey16={})",
        op.field, op.mode, op.orientation, op.pixels_max, op.cmyk, op.grey16);
  }
  std::string operator()(const ResizeOp& op) const {
    return fmt::format("resize(height={}, width={}, filter={})", op.height, op.width,
                       NameOf(op.filter));
  }
  std::string operator()(const CenterCropOp& op) const {
    return fmt::format("center_crop(height={}, width={})", op.height, op.width);
  }
  std::string operator()(const RandomResizedCropOp& op) const {
    return fmt::format("random_resized_crop(height={}, width={}, scale={}, ratio={}, filter={})",
                       op.height, op.width, List(op.scale), List(op.ratio), NameOf(op.filter));
  }
  std::string operator()(const RandomHorizontalFlipOp& op) const {
    return fmt::format("random_horizontal_flip(p={})", op.p);
  }
  std::string operator()(const ColorJitterOp& op) const {
    return fmt::format("color_jitter(brightness={}, contrast={}, saturation={}, hue={})",
                       op.brightness, op.contrast, op.saturation, op.hue);
  }
  std::string operator()(const NormalizeOp& op) const {
    return fmt::format("normalize(mean={}, std={})", List(op.mean), List(op.std));
  }
  std::string operator()(const ToChwOp&) const { return "to_chw()"; }
  std::string operator()(const ToDtypeOp& op) const {
    return fmt::format("to_dtype(dtype={}, scale={})", op.dtype, op.scale);
  }
  std::string operator()(const ParseIntOp& op) const {
    return fmt::format("parse_int(field={})", op.field);
  }
  std::string operator()(const ParseNpyOp& op) const {
    return fmt::format("parse_npy(field={}, dtype={}, shape={})", op.field, op.dtype,
                       List(op.shape));
  }
  std::string operator()(const ParseJsonOp& op) const {
    std::string fields;
    for (const JsonField& field : op.fields) {
      fields += fmt::format("{}{} -> {} ({} {})", fields.empty() ? "" : ", ", field.pointer,
                            field.name, field.dtype, ShapeText(field.ragged, field.shape));
    }
    return fmt::format("parse_json(field={}, fields=[{}])", op.field, fields);
  }
  std::string operator()(const ParseExampleOp& op) const {
    std::string features;
    for (const ExampleFeature& feature : op.features) {
      features += fmt::format(
          "{}{} -> {} ({} {}{})", features.empty() ? "" : ", ", feature.key,
          feature.name.empty() ? feature.key : feature.name, feature.dtype,
          feature.indices.empty()
              ? ShapeText(feature.ragged, feature.shape)
              : fmt::format("sparse of {} at {}", feature.size, feature.indices),
          feature.has_default || feature.pad
              ? fmt::format(", {}={}", feature.pad ? "pad" : "default", feature.default_value)
              : "");
    }
    return fmt::format("parse_example(field={}, features=[{}])", op.field, features);
  }
  std::string operator()(const ParseRecordOp& op) const {
    std::string features;
    for (const RecordFeature& feature : op.features) {
      features +=
          fmt::format("{}{} {} -> {} ({} {}{})", features.empty() ? "" : ", ",
                      feature.label ? "label" : "feature", feature.key,
                      feature.name.empty() ? feature.key : feature.name, feature.dtype,
                      feature.sparse ? "sparse " : "", ShapeText(feature.ragged, feature.shape));
    }
    return fmt::format("parse_record(field={}, features=[{}])", op.field, features);
  }
  std::string operator()(const TokensOp& op) const {
    return fmt::format("tokens(length={}, stride={}, dtype={}, vocabulary={})", op.length,
                       op.stride, op.dtype, op.vocabulary);
  }
  std::string operator()(const PackTokensOp& op) const {
    return fmt::format(
        "pack_tokens(length={}, window={}, seed={}, pad={}, dtype={}, vocabulary={})", op.length,
        op.window, op.seed, op.pad, op.dtype, op.vocabulary);
  }
  std::string operator()(const SelectOp& op) const {
    return fmt::format("select(fields={})", List(op.fields));
  }
  std::string operator()(const RenameOp& op) const {
    return fmt::format("rename(field={}, name={})", op.field, op.name);
  }
};

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

Status CheckField(std::string_view op, std::string_view field) {
  return field.empty() ? Bad(fmt::format("{}: field is empty", op)) : Status();
}

Status CheckSide(std::string_view op, std::string_view side, int64_t value, int64_t least) {
  if (value >= least && value <= kSideMost) return {};
  return Bad(
      fmt::format("{}: {} is {}, and has to be {} to {}", op, side, value, least, kSideMost));
}

template <class Op>
Status CheckSides(std::string_view name, const Op& op, int64_t narrowest = 1) {
  FB_RETURN_IF_ERROR(CheckSide(name, "height", op.height, 1));
  return CheckSide(name, "width", op.width, narrowest);
}

template <size_t N>
Status CheckChoice(std::string_view op, std::string_view argument, std::string_view value,
                   const std::string_view (&choices)[N]) {
  if (std::ranges::find(choices, value) != std::end(choices)) return {};
  return Bad(fmt::format("{}: {} is '{}', and has to be one of {}", op, argument, value,
                         fmt::join(choices, ", ")));
}

// What an array of `shape` holds has to be countable, and no more than a sample can be.
Status CheckShape(std::string_view op, const std::vector<int64_t>& shape) {
  constexpr int64_t kMost = int64_t{1} << 32;
  int64_t count = 1;
  for (const int64_t side : shape) {
    if (side < 1 || side > kMost / count) {
      return Bad(fmt::format("{}: the shape {} is none of 1 to 2^32 values", op, List(shape)));
    }
    count *= side;
  }
  return {};
}

struct Validator {
  Status operator()(const DecodeImageOp& op) const {
    constexpr std::string_view kOp = "decode_image";
    FB_RETURN_IF_ERROR(CheckField(kOp, op.field));
    FB_RETURN_IF_ERROR(CheckChoice(kOp, "mode", op.mode, {"RGB", "L", "unchanged"}));
    FB_RETURN_IF_ERROR(CheckChoice(kOp, "orientation", op.orientation, {"ignore", "apply"}));
    FB_RETURN_IF_ERROR(CheckChoice(kOp, "cmyk", op.cmyk, {"inverted", "marker"}));
    FB_RETURN_IF_ERROR(CheckChoice(kOp, "grey16", op.grey16, {"clip", "high_byte"}));
    return op.pixels_max > 0 ? Status() : Bad("decode_image: pixels_max is 0");
  }
  Status operator()(const ResizeOp& op) const { return CheckSides("resize", op, 0); }
  Status operator()(const CenterCropOp& op) const { return CheckSides("center_crop", op); }
  Status operator()(const RandomResizedCropOp& op) const {
    constexpr std::string_view kOp = "random_resized_crop";
    FB_RETURN_IF_ERROR(CheckSides(kOp, op));
    if (!(op.scale[0] > 0 && op.scale[0] <= op.scale[1] && op.scale[1] <= 1)) {
      return Bad(
          fmt::format("{}: scale is {}, and has to be 0 < low <= high <= 1", kOp, List(op.scale)));
    }
    if (!(op.ratio[0] >= 1e-3 && op.ratio[0] <= op.ratio[1] && op.ratio[1] <= 1e3)) {
      return Bad(fmt::format("{}: ratio is {}, and has to be 0.001 <= low <= high <= 1000", kOp,
                             List(op.ratio)));
    }
    return {};
  }
  Status operator()(const RandomHorizontalFlipOp& op) const {
    return op.p >= 0 && op.p <= 1
               ? Status()
               : Bad(fmt::format("random_horizontal_flip: p is {}, and has to be 0 to 1", op.p));
  }
  Status operator()(const ColorJitterOp& op) const {
    constexpr double kMost = 1000;
    for (const double amount : {op.brightness, op.contrast, op.saturation}) {
      if (!(amount >= 0 && amount <= kMost)) {
        return Bad(
            fmt::format("color_jitter: an amount is {}, and has to be 0 to {}", amount, kMost));
      }
    }
    return op.hue >= 0 && op.hue <= 0.5
               ? Status()
               : Bad(fmt::format("color_jitter: hue is {}, and has to be 0 to 0.5", op.hue));
  }
  Status operator()(const NormalizeOp& op) const {
    if (op.mean.empty() || op.mean.size() != op.std.size()) {
      return Bad(
          fmt::format("normalize: {} values of mean and {} of std, and both have to have "
                      "one for each channel",
                      op.mean.size(), op.std.size()));
    }
    for (const double value : op.mean) {
      if (!std::isfinite(value)) return Bad("normalize: mean is not finite");
    }
    for (const double value : op.std) {
      if (!std::isfinite(value) || static_cast<float>(value) == 0.0F) {
        return Bad(fmt::format("normalize: std is {}", value));
      }
    }
    return {};
  }
  Status operator()(const ToChwOp&) const { return {}; }
  Status operator()(const ToDtypeOp& op) const {
    return CheckChoice("to_dtype", "dtype", op.dtype, {"uint8", "float32", "float16", "bfloat16"});
  }
  Status operator()(const ParseIntOp& op) const { return CheckField("parse_int", op.field); }
  Status operator()(const ParseNpyOp& op) const {
    constexpr std::string_view kOp = "parse_npy";
    FB_RETURN_IF_ERROR(CheckField(kOp, op.field));
    FB_RETURN_IF_ERROR(CheckChoice(kOp, "dtype", op.dtype,
                                   {"bool", "uint8", "int8", "uint16", "int16", "uint32", "int32",
                                    "uint64", "int64", "float16", "float32", "float64"}));
    return CheckShape(kOp, op.shape);
  }
  Status operator()(const ParseJsonOp& op) const {
    constexpr std::string_view kOp = "parse_json";
    FB_RETURN_IF_ERROR(CheckField(kOp, op.field));
    if (op.fields.empty()) return Bad("parse_json: fields is empty");
    for (const JsonField& field : op.fields) {
      FB_RETURN_IF_ERROR(CheckField(kOp, field.name));
      FB_RETURN_IF_ERROR(
          CheckChoice(kOp, "dtype", field.dtype, {"int64", "float32", "float64", "bool"}));
      FB_RETURN_IF_ERROR(CheckShape(kOp, field.shape));
      if (field.ragged && !field.shape.empty()) {
        return Bad(fmt::format("parse_json: '{}' is ragged, and has no shape", field.name));
      }
      if (!field.pointer.empty() && field.pointer.front() != '/') {
        return Bad(
            fmt::format("parse_json: the pointer '{}' does not begin with /", field.pointer));
      }
    }
    return {};
  }
  Status operator()(const ParseExampleOp& op) const {
    constexpr std::string_view kOp = "parse_example";
    FB_RETURN_IF_ERROR(CheckField(kOp, op.field));
    if (op.features.empty()) return Bad("parse_example: features is empty");
    std::set<std::string_view> keys;
    for (const ExampleFeature& feature : op.features) {
      if (!keys.insert(feature.key).second) {
        return Bad(fmt::format("parse_example: the feature '{}' is named twice", feature.key));
      }
      FB_RETURN_IF_ERROR(CheckFeature(feature));
    }
    for (const ExampleFeature& feature : op.features) {
      if (!feature.indices.empty() && keys.contains(feature.indices)) {
        return Bad(fmt::format("parse_example: the feature '{}' is named twice, once as indices",
                               feature.indices));
      }
    }
    return {};
  }
  static Status CheckFeature(const ExampleFeature& feature) {
    constexpr std::string_view kOp = "parse_example";
    FB_RETURN_IF_ERROR(CheckField(kOp, feature.key));
    FB_RETURN_IF_ERROR(CheckChoice(kOp, "dtype", feature.dtype, {"int64", "float32", "bytes"}));
    FB_RETURN_IF_ERROR(CheckShape(kOp, feature.shape));
    const bool filled = feature.has_default || feature.pad;
    if (feature.dtype == "bytes" && (!feature.shape.empty() || filled)) {
      return Bad(
          fmt::format("parse_example: the feature '{}' is bytes, and has neither shape nor "
                      "default",
                      feature.key));
    }
    const bool sparse = !feature.indices.empty();
    if ((feature.ragged || sparse) &&
        (feature.dtype == "bytes" || !feature.shape.empty() || filled)) {
      return Bad(
          fmt::format("parse_example: the feature '{}' is ragged or sparse, of int64 or float32, "
                      "and has neither shape nor default",
                      feature.key));
    }
    if (sparse && feature.size < 1) {
      return Bad(fmt::format("parse_example: the size {} of '{}'", feature.size, feature.key));
    }
    const double value = feature.default_value;
    constexpr double kExact = 9007199254740992.0;  // 2^53: a double holds every integer up to here
    if (filled && feature.dtype == "int64" &&
        !(std::trunc(value) == value && std::fabs(value) <= kExact)) {
      return Bad(
          fmt::format("parse_example: the default {} of '{}' is no integer", value, feature.key));
    }
    return {};
  }
  Status operator()(const ParseRecordOp& op) const {
    constexpr std::string_view kOp = "parse_record";
    FB_RETURN_IF_ERROR(CheckField(kOp, op.field));
    if (op.features.empty()) return Bad("parse_record: features and labels are empty");
    for (const RecordFeature& feature : op.features) {
      FB_RETURN_IF_ERROR(CheckField(kOp, feature.key));
      FB_RETURN_IF_ERROR(
          CheckChoice(kOp, "dtype", feature.dtype, {"float32", "float64", "int32", "bytes"}));
      FB_RETURN_IF_ERROR(CheckShape(kOp, feature.shape));
      const bool bytes = feature.dtype == "bytes";
      if ((feature.ragged && (feature.sparse || bytes || !feature.shape.empty())) ||
          (bytes && (feature.sparse || !feature.shape.empty()))) {
        return Bad(
            fmt::format("parse_record: '{}' is ragged without a shape, or sparse, or bytes, "
                        "not several of these",
                        feature.key));
      }
    }
    return {};
  }
  // A sample of tokens: no more than a batch could hold.
  template <class TokenOp>
  static Status CheckTokens(std::string_view name, const TokenOp& op) {
    constexpr int64_t kLengthMost = int64_t{1} << 30;
    if (op.length < 1 || op.length > kLengthMost) {
      return Bad(fmt::format("{}: length is {}, and has to be 1 to 2^30", name, op.length));
    }
    FB_RETURN_IF_ERROR(CheckChoice(name, "dtype", op.dtype, {"int32", "int64"}));
    if (op.vocabulary >= 0) return {};
    return Bad(fmt::format("{}: vocabulary is {}", name, op.vocabulary));
  }
  Status operator()(const TokensOp& op) const {
    FB_RETURN_IF_ERROR(CheckTokens("tokens", op));
    return op.stride >= 0 ? Status() : Bad(fmt::format("tokens: stride is {}", op.stride));
  }
  Status operator()(const PackTokensOp& op) const {
    FB_RETURN_IF_ERROR(CheckTokens("pack_tokens", op));
    constexpr int64_t kWindowMost = 65'536;
    if (op.dtype == "int32" && op.pad != static_cast<int32_t>(op.pad)) {
      return Bad(fmt::format("pack_tokens: pad is {}, which no int32 is", op.pad));
    }
    if (op.window >= 0 && op.window <= kWindowMost) return {};
    return Bad(
        fmt::format("pack_tokens: window is {}, and has to be 0 to {}", op.window, kWindowMost));
  }
  Status operator()(const SelectOp& op) const {
    if (op.fields.empty()) return Bad("select: fields is empty");
    for (const std::string& field : op.fields) FB_RETURN_IF_ERROR(CheckField("select", field));
    return {};
  }
  Status operator()(const RenameOp& op) const {
    FB_RETURN_IF_ERROR(CheckField("rename", op.field));
    return CheckField("rename", op.name);
  }
};

}  // namespace

std::string DescribeOp(const Op& op) { return std::visit(Describer{}, op); }

Status ValidateOp(const Op& op) { return std::visit(Validator{}, op); }

}  // namespace forebay
