// Runs chains of ops for tests that compare with other libraries. A request a line, in JSON:
//   {"ops": [{"op": "resize", "height": 2, ...}], "fields": [{"name": "jpg", "file": PATH}],
//    "seed": 0, "epoch": 0, "sample": 0, "out": FOLDER}
// and an answer a line: {"outputs": [{"name", "dtype", "shape"}], "damaged": 0}, each output's
// bytes being in FOLDER/NAME, or {"code", "error"}.
#include <fmt/core.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/chain.h"

namespace forebay::ops {
namespace {

using nlohmann::json;

ResizeFilter FilterOf(const json& op) {
  static const std::map<std::string, ResizeFilter> filters = {
      {"bilinear", ResizeFilter::kBilinear},
      {"bicubic", ResizeFilter::kBicubic},
      {"lanczos", ResizeFilter::kLanczos},
      {"box", ResizeFilter::kBox},
      {"opencv_bilinear", ResizeFilter::kOpenCvBilinear}};
  return filters.at(op.value("filter", "bilinear"));
}

Op ImageOpOf(const std::string& name, const json& op) {
  if (name == "decode_image") {
    DecodeImageOp decode;
    decode.field = op.value("field", decode.field);
    decode.mode = op.value("mode", decode.mode);
    decode.orientation = op.value("orientation", decode.orientation);
    decode.cmyk = op.value("cmyk", decode.cmyk);
    decode.grey16 = op.value("grey16", decode.grey16);
    decode.pixels_max = op.value("pixels_max", decode.pixels_max);
    return decode;
  }
  if (name == "resize") return ResizeOp{op.at("height"), op.value("width", 0), FilterOf(op)};
  if (name == "center_crop") return CenterCropOp{op.at("height"), op.at("width")};
  if (name == "random_resized_crop") {
    RandomResizedCropOp crop{.height = op.at("height"), .width = op.at("width")};
    crop.scale = op.value("scale", crop.scale);
    crop.ratio = op.value("ratio", crop.ratio);
    crop.filter = FilterOf(op);
    return crop;
  }
  if (name == "random_horizontal_flip") return RandomHorizontalFlipOp{op.value("p", 0.5)};
  if (name == "color_jitter") {
    return ColorJitterOp{op.value("brightness", 0.0), op.value("contrast", 0.0),
                         op.value("saturation", 0.0), op.value("hue", 0.0)};
  }
  if (name == "normalize") return NormalizeOp{op.at("mean"), op.at("std")};
  if (name == "to_chw") return ToChwOp{};
  return ToDtypeOp{op.at("dtype"), op.value("scale", false)};
}

Op OpOf(const json& op) {
  const std::string name = op.at("op");
  if (name == "parse_int") return ParseIntOp{op.at("field")};
  if (name == "parse_npy") return ParseNpyOp{op.at("field"), op.at("dtype"), op.at("shape")};
  if (name == "parse_json") {
    ParseJsonOp parse{.field = op.at("field")};
    for (const json& f : op.at("fields")) {
      parse.fields.push_back({f.at("pointer"), f.at("name"), f.at("dtype"), f.at("shape")});
    }
    return parse;
  }
  if (name == "parse_example") {
    ParseExampleOp parse{.field = op.at("field")};
    for (const json& f : op.at("features")) {
      parse.features.push_back({f.at("key"), f.value("name", ""), f.at("dtype"), f.at("shape"),
                                f.contains("default"), f.value("default", 0.0),
                                f.value("pad", false)});
    }
    return parse;
  }
  if (name == "select") return SelectOp{op.at("fields")};
  if (name == "rename") return RenameOp{op.at("field"), op.at("name")};
  return ImageOpOf(name, op);
}

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

Result<json> Answer(const json& request) {
  std::vector<Op> ops;
  for (const json& op : request.at("ops")) ops.push_back(OpOf(op));
  std::vector<InputField> inputs;
  std::vector<std::string> bytes;
  for (const json& field : request.at("fields")) {
    inputs.push_back({.name = field.at("name"),
                      .dtype = field.value("dtype", ""),
                      .shape = field.value("shape", std::vector<int64_t>())});
    bytes.push_back(ReadFile(field.at("file")));
  }
  FB_ASSIGN_OR_RETURN(const auto chain, Chain::Compile(inputs, ops));
  std::vector<ByteView> views;
  views.reserve(bytes.size());
  for (const std::string& text : bytes) views.push_back(AsBytes(text));
  json answer = {{"outputs", json::array()}};
  std::vector<std::vector<std::byte>> results;
  for (const OutputArray& output : chain->outputs()) {
    results.emplace_back(output.raw_of >= 0 ? views[static_cast<size_t>(output.raw_of)].size()
                                            : output.bytes);
    answer["outputs"].push_back(
        {{"name", output.name}, {"dtype", output.dtype}, {"shape", output.shape}});
  }
  const std::vector<MutableBytes> out(results.begin(), results.end());
  const auto worker = chain->MakeWorker();
  const SampleIdentity sample = {.seed = request.value("seed", uint64_t{0}),
                                 .epoch = request.value("epoch", uint64_t{0}),
                                 .sample = request.value("sample", uint64_t{0})};
  FB_RETURN_IF_ERROR(worker->Run(sample, views, out));
  answer["damaged"] = worker->damaged_images();
  for (size_t i = 0; i < results.size(); ++i) {
    std::ofstream file(request.at("out").get<std::string>() + "/" + chain->outputs()[i].name,
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(results[i].data()),
               static_cast<std::streamsize>(results[i].size()));
  }
  return answer;
}

}  // namespace
}  // namespace forebay::ops

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    auto answer = forebay::ops::Answer(nlohmann::json::parse(line));
    if (!answer.ok()) {
      answer = nlohmann::json{{"code", forebay::CodeName(answer.code())},
                              {"error", answer.status().ToString()}};
    }
    std::cout << answer->dump() << std::endl;
  }
  return 0;
}
