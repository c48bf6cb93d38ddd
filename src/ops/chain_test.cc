#include "ops/chain.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "testing/ops_images.h"

namespace forebay::ops {
namespace {

using testing::EncodeJpeg;
using testing::MakePicture;

const std::vector<Op> kTraining = {
    DecodeImageOp{},
    RandomResizedCropOp{.height = 24, .width = 32},
    RandomHorizontalFlipOp{},
    NormalizeOp{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}},
    ToChwOp{},
    ParseIntOp{}};

using Arrays = std::map<std::string, std::string>;

std::vector<ByteView> Views(const std::vector<std::string>& fields) {
  std::vector<ByteView> views;
  views.reserve(fields.size());
  for (const std::string& field : fields) views.push_back(AsBytes(field));
  return views;
}

// Room for every output, by name.
std::vector<MutableBytes> PlacesOf(const Chain& chain, const std::vector<ByteView>& fields,
                                   Arrays* arrays) {
  std::vector<MutableBytes> places;
  for (const OutputArray& output : chain.outputs()) {
    std::string& bytes = (*arrays)[output.name];
    bytes.resize(output.raw_of >= 0 ? fields[static_cast<size_t>(output.raw_of)].size()
                                    : output.bytes);
    places.emplace_back(reinterpret_cast<std::byte*>(bytes.data()), bytes.size());
  }
  return places;
}

Result<Arrays> RunWith(const Chain& chain, Worker* worker, const std::vector<std::string>& fields,
                       const SampleIdentity& sample) {
  const auto views = Views(fields);
  Arrays arrays;
  const auto out = PlacesOf(chain, views, &arrays);
  FB_RETURN_IF_ERROR(worker->Run(sample, views, out));
  return arrays;
}

Result<Arrays> RunOnce(const Chain& chain, const std::vector<std::string>& fields,
                       const SampleIdentity& sample = {}) {
  return RunWith(chain, chain.MakeWorker().get(), fields, sample);
}

template <class T>
std::vector<T> ValuesOf(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::string> NamesOf(const Chain& chain) {
  std::vector<std::string> names;
  for (const OutputArray& output : chain.outputs()) names.push_back(output.name);
  return names;
}

TEST(Chain, says_what_comes_out) {
  const auto chain = Chain::Compile({{"jpg"}, {"cls"}, {"txt"}}, kTraining);
  ASSERT_TRUE(chain.ok()) << chain.status().ToString();
  const auto& outputs = (*chain)->outputs();
  ASSERT_EQ(outputs.size(), 3U);
  EXPECT_EQ(outputs[0].name, "jpg");
  EXPECT_EQ(outputs[0].dtype, "float32");
  EXPECT_EQ(outputs[0].shape, (std::vector<int64_t>{3, 24, 32}));
  EXPECT_EQ(outputs[0].bytes, 3U * 24 * 32 * 4);
  EXPECT_EQ(outputs[0].raw_of, -1);
  EXPECT_EQ(outputs[1].dtype, "int64");
  EXPECT_EQ(outputs[1].bytes, 8U);
  EXPECT_EQ(outputs[2].name, "txt");
  EXPECT_EQ(outputs[2].raw_of, 2);
  EXPECT_EQ((*chain)->needed(), (std::vector<bool>{true, true, true}));
}

TEST(Chain, makes_arrays_of_a_record) {
  const auto chain = Chain::Compile({{"jpg"}, {"cls"}, {"txt"}}, kTraining);
  ASSERT_TRUE(chain.ok());
  const auto arrays = RunOnce(**chain, {EncodeJpeg(MakePicture(90, 70, 3, 1)), "17\n", "a text"});
  ASSERT_TRUE(arrays.ok()) << arrays.status().ToString();
  EXPECT_EQ(ValuesOf<int64_t>(arrays->at("cls")), (std::vector<int64_t>{17}));
  EXPECT_EQ(arrays->at("txt"), "a text");
  for (const float value : ValuesOf<float>(arrays->at("jpg"))) {
    EXPECT_GE(value, -2.2F);
    EXPECT_LE(value, 2.7F);
  }
}

TEST(Chain, gives_the_same_on_any_worker_and_other_crops_to_other_samples) {
  const auto chain = Chain::Compile({{"jpg"}, {"cls"}}, kTraining);
  ASSERT_TRUE(chain.ok());
  const std::vector<std::string> fields = {EncodeJpeg(MakePicture(90, 70, 3, 1)), "1"};
  const auto worker = (*chain)->MakeWorker();
  const SampleIdentity one = {.seed = 7, .epoch = 1, .sample = 2};
  const auto first = RunWith(**chain, worker.get(), fields, one);
  for (const SampleIdentity& other : {SampleIdentity{8, 1, 2}, SampleIdentity{7, 2, 2},
                                      SampleIdentity{7, 1, 3}, SampleIdentity{7, 1, 2, 1}}) {
    EXPECT_NE(*RunWith(**chain, worker.get(), fields, other), *first);
  }
  EXPECT_EQ(*RunOnce(**chain, fields, one), *first);
  EXPECT_EQ(*RunWith(**chain, worker.get(), fields, one), *first);
}

TEST(Chain, a_mirrored_image_is_the_other_read_backwards) {
  const std::vector<std::string> fields = {EncodeJpeg(MakePicture(40, 30, 3, 1))};
  const auto flipped = [&](double p) {
    const auto chain = Chain::Compile(
        {{"jpg"}}, {DecodeImageOp{}, CenterCropOp{20, 20}, RandomHorizontalFlipOp{p}, ToChwOp{}});
    return (*RunOnce(**chain, fields))["jpg"];
  };
  const std::string plain = flipped(0);
  std::string mirrored = flipped(1);
  ASSERT_EQ(mirrored.size(), plain.size());
  for (size_t row = 0; row < mirrored.size(); row += 20) {
    std::reverse(mirrored.begin() + static_cast<std::ptrdiff_t>(row),
                 mirrored.begin() + static_cast<std::ptrdiff_t>(row) + 20);
  }
  EXPECT_EQ(mirrored, plain);
}

// Images of different sizes, with fixed ops before the random ones, beside text and numbers.
TEST(Chain, what_was_kept_of_a_sample_gives_the_same_in_every_epoch) {
  const std::vector<std::vector<Op>> chains = {
      kTraining,
      {DecodeImageOp{}, ResizeOp{.height = 40}, RandomResizedCropOp{.height = 9, .width = 8},
       ColorJitterOp{0.4, 0.4, 0.4, 0.1}, ParseIntOp{}},
      {DecodeImageOp{}, ResizeOp{.height = 40}, CenterCropOp{32, 30}, RandomHorizontalFlipOp{},
       ToDtypeOp{"float16", true}},
      {DecodeImageOp{.mode = "L"}, CenterCropOp{80, 95}, RandomHorizontalFlipOp{}},
      {ParseIntOp{}, SelectOp{{"cls", "txt"}}}};
  for (const auto& ops : chains) {
    const auto chain = Chain::Compile({{"jpg"}, {"cls"}, {"txt"}}, ops);
    ASSERT_TRUE(chain.ok()) << chain.status().ToString();
    const auto worker = (*chain)->MakeWorker();
    const auto other = (*chain)->MakeWorker();
    for (const int width : {90, 61}) {
      const std::vector<std::string> fields = {EncodeJpeg(MakePicture(width, 70, 3, 1)), "17",
                                               std::string(static_cast<size_t>(width), 't')};
      std::vector<std::byte> kept = {std::byte{1}};
      ASSERT_TRUE(worker->Keep(Views(fields), &kept).ok());
      for (uint64_t epoch = 0; epoch < 4; ++epoch) {
        const SampleIdentity sample = {.seed = 3, .epoch = epoch, .sample = 9};
        Arrays arrays;
        const auto out = PlacesOf(**chain, Views(fields), &arrays);
        ASSERT_TRUE(other->RunKept(sample, kept, out).ok());
        EXPECT_EQ(arrays, *RunOnce(**chain, fields, sample));
      }
      Arrays arrays;
      const auto out = PlacesOf(**chain, Views(fields), &arrays);
      for (size_t size = 0; size < kept.size(); size += 1 + size / 8) {
        EXPECT_EQ(other->RunKept({}, ByteView(kept).first(size), out).code(), Code::kDataLoss);
      }
      kept.push_back({});
      EXPECT_EQ(other->RunKept({}, kept, out).code(), Code::kDataLoss);
    }
  }
}

// Their sizes are the sample's own, so that only a run tells them.
TEST(Chain, late_arrays_are_the_same_when_they_were_kept) {
  const auto chain = Chain::Compile(
      {{"jpg"}, {"json"}, {"txt"}},
      {DecodeImageOp{}, CenterCropOp{8, 8}, RandomHorizontalFlipOp{},
       ParseJsonOp{"json",
                   {{.pointer = "/a", .name = "a", .ragged = true},
                    {.pointer = "/n", .name = "n", .dtype = "float32"},
                    {.pointer = "/b", .name = "b", .dtype = "bool", .ragged = true}}},
       SelectOp{{"b", "jpg", "n", "a", "txt"}}});
  ASSERT_TRUE(chain.ok()) << chain.status().ToString();
  std::vector<bool> late;
  for (const OutputArray& output : (*chain)->outputs()) late.push_back(output.late);
  EXPECT_EQ(late, (std::vector<bool>{true, false, false, true, false}));
  const auto worker = (*chain)->MakeWorker();
  const auto other = (*chain)->MakeWorker();
  for (const std::string a : {"1, 2, 3", "", "4"}) {
    const std::vector<std::string> fields = {EncodeJpeg(MakePicture(20, 10, 3, 1)),
                                             R"({"n": 2, "b": [true, false], "a": [)" + a + "]}",
                                             "text"};
    Arrays arrays;
    const auto out = PlacesOf(**chain, Views(fields), &arrays);
    ASSERT_TRUE(worker->Run({.sample = 9}, Views(fields), out).ok());
    const Arrays once = arrays;
    const std::string of_a(AsText(worker->Late(3))), of_b(AsText(worker->Late(0)));
    EXPECT_EQ(of_a.size(), a.empty() ? 0U : a.size() / 3 * 8 + 8);
    EXPECT_EQ(of_b, std::string("\1\0", 2));
    std::vector<std::byte> kept;
    ASSERT_TRUE(worker->Keep(Views(fields), &kept).ok());
    for (auto& [name, array] : arrays) array.assign(array.size(), '?');
    ASSERT_TRUE(other->RunKept({.sample = 9}, kept, out).ok());
    EXPECT_EQ(arrays, once);
    EXPECT_EQ(AsText(other->Late(3)), of_a);
    EXPECT_EQ(AsText(other->Late(0)), of_b);
    for (size_t size = 0; size < kept.size(); ++size) {
      EXPECT_EQ(other->RunKept({}, ByteView(kept).first(size), out).code(), Code::kDataLoss);
    }
  }
}

TEST(Chain, only_what_changes_the_kept_value_changes_its_signature) {
  const auto signature = [](const std::vector<Op>& ops) {
    return (*Chain::Compile({{"jpg"}, {"cls"}}, ops))->kept_as();
  };
  const ResizeOp resize{.height = 40};
  const std::string one = signature({DecodeImageOp{}, resize, RandomResizedCropOp{8, 8}});
  EXPECT_EQ(one, signature({DecodeImageOp{}, resize, RandomResizedCropOp{9, 9}, ToChwOp{},
                            ToDtypeOp{"float16"}}));
  EXPECT_NE(one, signature({DecodeImageOp{}, RandomResizedCropOp{8, 8}}));
  EXPECT_NE(one, signature({DecodeImageOp{}, ResizeOp{.height = 41}, RandomResizedCropOp{8, 8}}));
  EXPECT_NE(one, signature({DecodeImageOp{.mode = "L"}, resize, RandomResizedCropOp{8, 8}}));
  EXPECT_NE(one, signature({DecodeImageOp{}, resize, RandomResizedCropOp{8, 8}, ParseIntOp{}}));
}

TEST(Chain, reads_only_the_fields_that_are_wanted) {
  const auto chain = Chain::Compile({{"jpg"}, {"cls"}, {"txt"}},
                                    {ParseIntOp{}, RenameOp{"cls", "label"}, SelectOp{{"label"}}});
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ((*chain)->needed(), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(NamesOf(**chain), (std::vector<std::string>{"label"}));
}

TEST(Chain, passes_arrays_of_the_container_on) {
  const auto chain = Chain::Compile({{"label", "float32", {2}}}, {});
  ASSERT_TRUE(chain.ok());
  EXPECT_EQ((*chain)->outputs()[0].bytes, 8U);
  EXPECT_EQ((*chain)->outputs()[0].raw_of, -1);
  EXPECT_EQ((*RunOnce(**chain, {"12345678"}))["label"], "12345678");
  EXPECT_EQ(RunOnce(**chain, {"1234567"}).code(), Code::kDataLoss);
}

TEST(Chain, refuses_what_has_no_meaning) {
  const std::vector<std::pair<std::vector<Op>, std::string>> cases = {
      {{DecodeImageOp{"png"}}, "there is no field 'png'"},
      {{ParseIntOp{"jpg"}, DecodeImageOp{}, ToChwOp{}}, "no bytes any more"},
      {{ResizeOp{8, 8}}, "no image has been decoded"},
      {{DecodeImageOp{}}, "differ in size"},
      {{DecodeImageOp{}, ResizeOp{8, 0}}, "differ in size"},
      {{DecodeImageOp{}, ToDtypeOp{}, ResizeOp{8, 8}}, "come before"},
      {{DecodeImageOp{}, ResizeOp{8, 8}, NormalizeOp{{0.5}, {0.5}}}, "3 channels"},
      {{DecodeImageOp{}, ResizeOp{8, 8}, ToChwOp{}, ToChwOp{}}, "CHW already"},
      {{DecodeImageOp{.mode = "unchanged"}, ResizeOp{8, 8}}, "differ in channels"},
      {{RenameOp{"cls", "jpg"}}, "two fields named 'jpg'"},
      {{ResizeOp{0, 8}}, "resize: height is 0"},
      {{SelectOp{{"cls", "cls"}}}, "named twice"}};
  for (const auto& [ops, text] : cases) {
    const auto chain = Chain::Compile({{"jpg"}, {"cls"}}, ops);
    EXPECT_EQ(chain.code(), Code::kInvalidArgument) << text;
    EXPECT_NE(chain.status().ToString().find(text), std::string::npos) << chain.status().ToString();
  }
}

TEST(Chain, damaged_bytes_are_an_error_that_names_the_field) {
  const auto chain = Chain::Compile({{"jpg"}, {"cls"}}, kTraining);
  ASSERT_TRUE(chain.ok());
  const std::string image = EncodeJpeg(MakePicture(60, 50, 3, 1));
  for (const std::string& bad :
       {std::string(), std::string("<?xml version"), image.substr(0, image.size() - 2)}) {
    const auto arrays = RunOnce(**chain, {bad, "1"});
    EXPECT_EQ(arrays.code(), Code::kDataLoss);
    EXPECT_NE(arrays.status().ToString().find("field 'jpg'"), std::string::npos);
  }
  for (const char* bad : {"", "x", "1.5", "1 2", "9223372036854775808", "+-1", "--1", "0x1"}) {
    EXPECT_EQ(RunOnce(**chain, {image, bad}).code(), Code::kDataLoss) << bad;
  }
  EXPECT_EQ(ValuesOf<int64_t>((*RunOnce(**chain, {image, " -9223372036854775808\n"}))["cls"])[0],
            INT64_MIN);
  EXPECT_EQ(ValuesOf<int64_t>((*RunOnce(**chain, {image, "+7"}))["cls"])[0], 7);
}

}  // namespace
}  // namespace forebay::ops
