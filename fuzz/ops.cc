#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/assert.h"
#include "base/random.h"
#include "fuzz/targets.h"
#include "ops/decode_image.h"
#include "ops/parser.h"

namespace forebay::fuzz {
namespace {

using ops::ImageView;
using ops::Rect;

std::string Copy(const ImageView& view) {
  std::string bytes;
  for (int64_t y = 0; y < view.height; ++y) {
    bytes.append(reinterpret_cast<const char*>(view.Row(y)), view.row_bytes());
  }
  return bytes;
}

// Places for a parser's arrays, each of its size exactly.
void Parse(const ops::Parser& parser, const std::vector<size_t>& sizes, ByteView input) {
  std::vector<std::vector<std::byte>> memory;
  for (const size_t size : sizes) memory.emplace_back(size);
  const std::vector<MutableBytes> arrays(memory.begin(), memory.end());
  std::vector<ByteView> fields(sizes.size());
  std::vector<std::vector<std::byte>> ragged(sizes.size());
  if (!parser.Parse(input, {arrays, fields, ragged}).ok()) return;
  for (const ByteView field : fields) {
    FB_ASSERT(field.empty() || (field.data() >= input.data() &&
                                field.data() + field.size() <= input.data() + input.size()));
  }
  // Nothing of it depends on who wants the results.
  const std::vector<MutableBytes> nowhere(sizes.size());
  size_t all = 0;
  for (const auto& values : ragged) all += values.size();
  FB_ASSERT(all <= parser.ragged_each() * input.size());
  const std::vector<std::vector<std::byte>> first = ragged;
  FB_ASSERT(parser.Parse(input, {nowhere, fields, ragged}).ok());
  FB_ASSERT(ragged == first);
}

}  // namespace

// Whatever decodes whole, decodes in part, to the same pixels.
void Image(ByteView input) {
  constexpr uint64_t kPixelsMost = 1 << 18;
  ops::ImageDecoder decoder;
  for (const char* mode : {"RGB", "L", "unchanged"}) {
    const DecodeImageOp op{.mode = mode, .orientation = "apply", .pixels_max = kPixelsMost};
    const auto size = decoder.Open(input, op);
    if (!size.ok()) continue;
    const auto whole = decoder.Decode({0, 0, size->width, size->height});
    if (!whole.ok()) continue;
    FB_ASSERT(whole->size() == *size);
    const bool damaged = decoder.damaged();
    Random random(input.size());
    const auto below = [&](int64_t n) {
      return static_cast<int64_t>(random.NextBelow(static_cast<uint64_t>(n)));
    };
    Rect region = {below(size->width), below(size->height), 0, 0};
    region.width = 1 + below(size->width - region.x);
    region.height = 1 + below(size->height - region.y);
    const std::string cut = Copy(whole->Cropped(region));
    FB_ASSERT(decoder.Open(input, op).ok());
    const auto part = decoder.Decode(region);
    FB_ASSERT(part.ok());
    FB_ASSERT(damaged || Copy(*part) == cut);
  }
}

void Exif(ByteView input) {
  (void)ops::OrientationOf(input);
  const ByteView found = ops::ExifOfJpeg(input);
  FB_ASSERT(found.size() <= input.size());
}

void Npy(ByteView input) {
  Parse(*ops::MakeNpyParser({"npy", "int16", {2, 3}}), {12}, input);
  Parse(*ops::MakeNpyParser({"npy", "float32", {4}}), {16}, input);
  Parse(*ops::MakeNpyParser({"npy", "bool", {}}), {1}, input);
}

void JsonFields(ByteView input) {
  static const auto* parser = ops::MakeJsonParser({"json",
                                                   {{"/a", "a", "int64", {}},
                                                    {"/b/0", "b", "float32", {}},
                                                    {"/c", "c", "bool", {2}},
                                                    {"/d~1e", "d", "float64", {2, 2}}}})
                                  .release();
  Parse(*parser, {8, 4, 2, 32}, input);
}

void Example(ByteView input) {
  static const auto* parser = ops::MakeExampleParser({"data",
                                                      {{"label", "", "int64", {}},
                                                       {"box", "", "float32", {3}},
                                                       {"image/encoded", "", "bytes", {}},
                                                       {"weight", "", "float32", {}, true, 0.5},
                                                       {"ids", "", "int64", {2}, true, 1}}})
                                  .release();
  Parse(*parser, {8, 12, 0, 4, 16}, input);
  static const auto* several =
      ops::MakeExampleParser(
          {"data",
           {{.key = "ids", .ragged = true},
            {.key = "box", .dtype = "float32", .ragged = true},
            {.key = "weight", .name = "v", .dtype = "float32", .indices = "label", .size = 40},
            {.key = "more", .indices = "label", .size = 1000}}})
          .release();
  Parse(*several, {0, 0, 0, 0, 0, 0}, input);
}

void SageMakerTensors(ByteView input) {
  static const auto* parser =
      ops::MakeRecordParser({"data",
                             {{.key = "values", .shape = {3}},
                              {.key = "values", .label = true, .name = "label"},
                              {.key = "a", .name = "flat", .dtype = "float64", .ragged = true},
                              {.key = "b", .dtype = "int32", .sparse = true},
                              {.key = "c", .dtype = "bytes"}}})
          .release();
  Parse(*parser, {12, 4, 0, 0, 0, 0}, input);
  static const auto* only =
      ops::MakeRecordParser({"data", {{.key = "values", .sparse = true}}}).release();
  Parse(*only, {0, 0}, input);
}

void IntText(ByteView input) { Parse(*ops::MakeIntParser({"cls"}), {8}, input); }

}  // namespace forebay::fuzz
