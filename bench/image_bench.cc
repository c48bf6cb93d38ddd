// Images per CPU second: the op chain beside a plain libjpeg-turbo loop that decodes only the crop.
//
// usage: image_bench [FOLDER [ROUNDS]]
//
// JPEGs of 500x375 and about 100 KB, decoded, random-resized-cropped to 224, flipped, normalised,
// to float32 CHW; those of FOLDER, else 64 that are made of noise in octaves. The floor decodes the
// same crops with the one pixel of margin that keeps pixels exact, keeps its decoder, resizes by
// two plain loops of the same fixed-point weights, computed once for each crop, and writes each
// value once. One thread, from memory; rounds alternate, the median of their ratios counts.
// Target: 0.90. Also: tf.Examples of 9 features, records per CPU second; target 2 M.
#include <fmt/core.h>
#include <time.h>

#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "ops/chain.h"
#include "ops/geometry.h"
#include "testing/ops_images.h"

namespace {

using namespace forebay;       // NOLINT: a program
using namespace forebay::ops;  // NOLINT

constexpr int kSide = 224;
constexpr float kMean[] = {0.485F, 0.456F, 0.406F}, kStd[] = {0.229F, 0.224F, 0.225F};

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "image_bench: %s\n", why.c_str());
  std::exit(1);
}

// Value noise of several octaves: about as hard to code as a photograph.
testing::Picture Noise(int width, int height, uint64_t seed) {
  testing::Picture picture{width, height, 3, {}};
  std::vector<float> sum(static_cast<size_t>(width * height * 3), 128);
  Random random(seed);
  float strength = 60;
  for (int step = 64; step >= 1; step /= 2, strength *= 0.75F) {
    const int columns = width / step + 2, rows = height / step + 2;
    std::vector<float> grid;
    for (int i = 0; i < columns * rows * 3; ++i) {
      grid.push_back(static_cast<float>(random.NextDouble() * 2 - 1) * strength);
    }
    for (int y = 0; y < height; ++y) {
      const float v = static_cast<float>(y % step) / static_cast<float>(step);
      for (int x = 0; x < width; ++x) {
        const float u = static_cast<float>(x % step) / static_cast<float>(step);
        for (int c = 0; c < 3; ++c) {
          const auto at = [&](int i, int j) {
            return grid[static_cast<size_t>(((y / step + j) * columns + x / step + i) * 3 + c)];
          };
          const float above = at(0, 0) * (1 - u) + at(1, 0) * u;
          const float below = at(0, 1) * (1 - u) + at(1, 1) * u;
          sum[static_cast<size_t>((y * width + x) * 3 + c)] += above * (1 - v) + below * v;
        }
      }
    }
  }
  for (const float value : sum) {
    picture.pixels.push_back(static_cast<uint8_t>(std::clamp(value, 0.0F, 255.0F)));
  }
  return picture;
}

std::vector<std::string> Files(const char* folder) {
  std::vector<std::string> files;
  if (folder == nullptr) {
    for (uint64_t i = 0; i < 64; ++i) {
      files.push_back(testing::EncodeJpeg(Noise(500, 375, i), {.quality = 94}));
    }
    return files;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  if (files.empty()) Die("no files there");
  return files;
}

// The floor.

struct Taps {
  int first, count;
  const int32_t* weights;
};

// Pillow's bilinear weights.
std::vector<Taps> TapsOf(int in, std::vector<int32_t>* weights) {
  std::vector<Taps> taps;
  const double scale = static_cast<double>(in) / kSide, wide = std::max(scale, 1.0);
  const auto most = static_cast<size_t>(std::ceil(wide)) * 2 + 1;
  weights->assign(most * kSide, 0);
  for (int i = 0; i < kSide; ++i) {
    const double center = (i + 0.5) * scale;
    const int first = std::max(static_cast<int>(center - wide + 0.5), 0);
    const int end = std::min(static_cast<int>(center + wide + 0.5), in);
    double sum = 0;
    const auto weight = [&](int x) {
      return std::max(0.0, 1 - std::fabs((x - center + 0.5) / wide));
    };
    for (int x = first; x < end; ++x) sum += weight(x);
    int32_t* to = weights->data() + static_cast<size_t>(i) * most;
    for (int x = first; x < end; ++x) {
      to[x - first] = static_cast<int32_t>(0.5 + weight(x) / sum * (1 << 22));
    }
    taps.push_back({first, end - first, to});
  }
  return taps;
}

class Floor {
 public:
  Floor() {
    jpeg_.err = jpeg_std_error(&errors_);  // a damaged file ends the program
    jpeg_create_decompress(&jpeg_);
    for (int c = 0; c < 3; ++c) {
      for (int i = 0; i < 256; ++i) {
        table_[c][i] = (static_cast<float>(i) / 255.0F - kMean[c]) / kStd[c];
      }
    }
  }
  ~Floor() { jpeg_destroy_decompress(&jpeg_); }

  void Run(const std::string& file, uint64_t sample, float* to) {
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&jpeg_, TRUE);
    KeyedRandom random({.op = "random_resized_crop", .sample = sample});
    const Rect crop = DrawCrop({.height = kSide, .width = kSide},
                               {jpeg_.image_width, jpeg_.image_height}, &random);
    KeyedRandom coin({.op = "random_horizontal_flip", .sample = sample});
    const bool mirrored = coin.NextDouble() < 0.5;
    jpeg_start_decompress(&jpeg_);
    const auto left = static_cast<JDIMENSION>(std::max<int64_t>(crop.x - 1, 0));
    JDIMENSION x = left;
    JDIMENSION width =
        std::min(static_cast<JDIMENSION>(crop.x + crop.width + 1), jpeg_.image_width) - left;
    jpeg_crop_scanline(&jpeg_, &x, &width);
    if (crop.y > 0) jpeg_skip_scanlines(&jpeg_, static_cast<JDIMENSION>(crop.y));
    const size_t stride = size_t{3} * width;
    pixels_.resize(stride * static_cast<size_t>(crop.height));
    for (int64_t y = 0; y < crop.height;) {
      JSAMPROW row = pixels_.data() + stride * static_cast<size_t>(y);
      y += jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_abort_decompress(&jpeg_);
    const uint8_t* first = pixels_.data() + 3 * (static_cast<size_t>(crop.x) - x);
    Resize(first, stride, static_cast<int>(crop.width), static_cast<int>(crop.height), mirrored,
           to);
  }

 private:
  static uint8_t Clip(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> 22, 0, 255)); }

  void Resize(const uint8_t* from, size_t stride, int width, int height, bool mirrored, float* to) {
    const auto columns = TapsOf(width, &column_weights_), rows = TapsOf(height, &row_weights_);
    between_.resize(static_cast<size_t>(height) * kSide * 3);
    uint8_t* at = between_.data();
    for (int y = 0; y < height; ++y, from += stride) {
      for (const Taps& taps : columns) {
        int32_t r = 1 << 21, g = r, b = r;
        const uint8_t* pixel = from + 3 * taps.first;
        for (int k = 0; k < taps.count; ++k, pixel += 3) {
          r += pixel[0] * taps.weights[k];
          g += pixel[1] * taps.weights[k];
          b += pixel[2] * taps.weights[k];
        }
        *at++ = Clip(r), *at++ = Clip(g), *at++ = Clip(b);
      }
    }
    constexpr size_t kRow = size_t{3} * kSide;
    std::vector<int32_t> sums(kRow);
    for (size_t y = 0; y < kSide; ++y) {
      std::ranges::fill(sums, 1 << 21);
      for (int k = 0; k < rows[y].count; ++k) {
        const uint8_t* row = between_.data() + static_cast<size_t>(rows[y].first + k) * kRow;
        const int32_t weight = rows[y].weights[k];
        for (size_t i = 0; i < kRow; ++i) sums[i] += row[i] * weight;
      }
      for (size_t x = 0; x < kSide; ++x) {
        const size_t column = mirrored ? kSide - 1 - x : x;
        for (size_t c = 0; c < 3; ++c) {
          to[(c * kSide + y) * kSide + x] = table_[c][Clip(sums[3 * column + c])];
        }
      }
    }
  }

  jpeg_decompress_struct jpeg_ = {};
  jpeg_error_mgr errors_ = {};
  float table_[3][256];
  std::vector<uint8_t> pixels_, between_;
  std::vector<int32_t> column_weights_, row_weights_;
};

constexpr size_t kValues = size_t{3} * kSide * kSide;

std::shared_ptr<const Chain> TrainingChain() {
  auto chain = Chain::Compile(
      {{"jpg"}}, {DecodeImageOp{}, RandomResizedCropOp{.height = kSide, .width = kSide},
                  RandomHorizontalFlipOp{},
                  NormalizeOp{{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}, ToChwOp{}});
  if (!chain.ok()) Die(chain.status().ToString());
  return *std::move(chain);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void CompareImages(const std::vector<std::string>& files, int rounds) {
  const auto chain = TrainingChain();
  const auto worker = chain->MakeWorker();
  Floor floor;
  std::vector<float> ours(kValues), plain(kValues);
  const auto run = [&](const std::string& file, uint64_t sample) {
    const ByteView field = AsBytes(file);
    const MutableBytes out = std::as_writable_bytes(std::span(ours));
    const Status status = worker->Run({.sample = sample}, {&field, 1}, {&out, 1});
    if (!status.ok()) Die(status.ToString());
  };
  for (size_t i = 0; i < files.size(); ++i) {
    run(files[i], i);
    floor.Run(files[i], i, plain.data());
    if (ours != plain) Die(fmt::format("image {}: other pixels than the plain loop's", i));
  }
  std::vector<double> ratios, rates, floors;
  for (int round = 0; round < rounds; ++round) {
    const auto time = [&](const auto& one) {
      const double start = CpuSeconds();
      for (size_t i = 0; i < files.size(); ++i) {
        one(files[i], static_cast<uint64_t>(round) * files.size() + i);
      }
      return static_cast<double>(files.size()) / (CpuSeconds() - start);
    };
    floors.push_back(time([&](const auto& file, uint64_t i) { floor.Run(file, i, plain.data()); }));
    rates.push_back(time(run));
    ratios.push_back(rates.back() / floors.back());
  }
  size_t bytes = 0;
  for (const std::string& file : files) bytes += file.size();
  fmt::print("images    {} of {} KB on average, {} rounds\n", files.size(),
             bytes / files.size() / 1000, rounds);
  fmt::print("floor     {:.0f} images per CPU second\nchain     {:.0f}\nratio     {:.3f}\n",
             Median(floors), Median(rates), Median(ratios));
}

std::string Varint(size_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Field(int number, const std::string& bytes) {
  return static_cast<char>(number << 3 | 2) + Varint(bytes.size()) + bytes;
}

// Nine features, 176 bytes: five integers, three floats, two words of bytes.
void MeasureExamples() {
  std::string entries;
  std::vector<ExampleFeature> features;
  for (int i = 0; i < 9; ++i) {
    const std::string key = fmt::format("feat_{}", i);
    const std::string list = i < 5 ? Field(3, Field(1, Varint(size_t{1} << (3 * i))))
                                   : Field(2, Field(1, std::string(4, 'x')));
    entries += Field(1, Field(1, key) + Field(2, list));
    features.push_back({.key = key, .dtype = i < 5 ? "int64" : "float32"});
  }
  const std::string record = Field(1, entries);
  const auto chain = Chain::Compile({{"data"}}, {ParseExampleOp{"data", features}});
  if (!chain.ok()) Die(chain.status().ToString());
  const auto worker = (*chain)->MakeWorker();
  std::vector<std::byte> memory(9 * sizeof(int64_t));
  std::vector<MutableBytes> out;
  for (size_t i = 0; i < 9; ++i) {
    out.push_back(MutableBytes(memory).subspan(8 * i, (*chain)->outputs()[i].bytes));
  }
  constexpr int kRecords = 1'000'000;
  const ByteView field = AsBytes(record);
  const double start = CpuSeconds();
  for (int i = 0; i < kRecords; ++i) {
    if (!worker->Run({}, {&field, 1}, out).ok()) Die("a record that does not parse");
  }
  fmt::print("examples  {:.2f} M records of {} bytes and 9 features per CPU second\n",
             kRecords * 1e-6 / (CpuSeconds() - start), record.size());
}

}  // namespace

int main(int argc, char** argv) {
  CompareImages(Files(argc > 1 ? argv[1] : nullptr), argc > 2 ? std::atoi(argv[2]) : 9);
  MeasureExamples();
  return 0;
}
