// The loader with its real threads (store, coordinator, decoders, consumer), over files: what comes
// out, and that other threads may look and close meanwhile. Runs under TSan too.
#include "forebay/loader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <thread>

#include "forebay/video.h"
#include "testing/plain_video.h"
#include "testing/temp_folder.h"

namespace forebay {
namespace {

using std::chrono::seconds;

constexpr int kFrames = 4;
constexpr int kStep = 3;
constexpr int kHop = 7;
constexpr size_t kPictureBytes = 96UL * 64 * 3;

class LoaderTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new testing::TempFolder();
    const char* codecs[] = {"-c:v libx264 -preset veryfast -g 12 -bf 2", "-c:v mpeg4 -g 9"};
    for (int scene = 0; scene < 2; ++scene) {
      for (int camera = 0; camera < 2; ++camera) {
        const auto path = std::filesystem::path(folder_->path()) / fmt::format("scene{}", scene);
        std::filesystem::create_directories(path);
        ASSERT_TRUE(testing::MakeVideo(fmt::format("-f lavfi -i testsrc2=size=96x64:rate=25,"
                                                   "hue=h={} -frames:v 40 -pix_fmt yuv420p {}",
                                                   scene * 90 + camera * 45, codecs[camera]),
                                       path / fmt::format("cam{}.mp4", camera))
                        .ok());
      }
    }
    auto report = BuildIndex(folder_->path(), {}, {});
    ASSERT_TRUE(report.ok()) << report.status().ToString();
    ASSERT_EQ(report->videos, 4u);
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static std::unique_ptr<Loader> Make(const LoaderOptions& options) {
    ClipsOptions clips;
    clips.uri = folder_->path();
    clips.frames = kFrames;
    clips.step = kStep;
    clips.hop = kHop;
    auto loader = Loader::Make({{.name = "", .data = clips}}, options, {});
    EXPECT_TRUE(loader.ok()) << loader.status().ToString();
    return loader.ok() ? *std::move(loader) : nullptr;
  }

  // The pictures of one clip by class Video, which shares nothing with the loader but the decoder.
  static std::vector<std::byte> Clip(const std::string& scene, int camera, uint32_t first) {
    const std::string path = fmt::format("{}/{}/cam{}.mp4", folder_->path(), scene, camera);
    auto video = Video::Open(path, {}, {});
    EXPECT_TRUE(video.ok()) << video.status().ToString();
    std::vector<uint32_t> numbers;
    numbers.reserve(kFrames);
    for (int i = 0; i < kFrames; ++i) numbers.push_back(first + static_cast<uint32_t>(i * kStep));
    std::vector<std::byte> pictures(numbers.size() * kPictureBytes);
    EXPECT_TRUE((*video)->Frames(numbers, pictures).ok());
    return pictures;
  }

  static inline testing::TempFolder* folder_ = nullptr;
};

const Array& ArrayOf(const Batch& batch, const std::string& name) {
  for (const Array& array : batch.arrays) {
    if (array.spec->name == name) return array;
  }
  ADD_FAILURE() << "no array " << name;
  return batch.arrays.front();
}

TEST_F(LoaderTest, gives_every_sample_of_an_epoch_once_with_its_own_pictures) {
  const auto loader = Make({.order = {.tail = TailRule::kPad},
                            .place = {.batch_size = 2},
                            .epochs = 1,
                            .decode_threads = 2});
  ASSERT_NE(loader, nullptr);
  std::set<int64_t> seen;
  while (true) {
    auto next = loader->Next(seconds(60));
    ASSERT_TRUE(next.ok()) << next.status().ToString();
    if (!next->has_value()) break;
    const Batch& batch = **next;
    const Array& samples = ArrayOf(batch, "_sample");
    for (int64_t row = 0; row < samples.rows; ++row) {
      const int64_t sample = static_cast<const int64_t*>(samples.data)[row];
      EXPECT_TRUE(seen.insert(sample).second) << sample;
      int32_t scene = 0;
      double half_frame = 0;
      std::vector<double> times(kFrames);
      ASSERT_TRUE(loader
                      ->SampleTimes(0, std::span(&sample, 1), std::span(&scene, 1), times,
                                    std::span(&half_frame, 1))
                      .ok());
      const auto first = static_cast<uint32_t>(std::lround(times[0] * 25));
      for (int camera = 0; camera < 2; ++camera) {
        const Array& pictures = ArrayOf(batch, fmt::format("cam{}", camera));
        const auto want = Clip(loader->scenes(0)[static_cast<size_t>(scene)], camera, first);
        const auto* got =
            static_cast<const std::byte*>(pictures.data) + static_cast<size_t>(row) * want.size();
        EXPECT_EQ(std::memcmp(got, want.data(), want.size()), 0)
            << "sample " << sample << " camera " << camera;
      }
    }
  }
  EXPECT_EQ(static_cast<int64_t>(seen.size()), loader->sample_count());
}

TEST_F(LoaderTest, may_be_watched_and_closed_from_other_threads) {
  const auto loader = Make({.decode_threads = 2});
  ASSERT_NE(loader, nullptr);
  std::atomic<int> taken = 0;
  std::atomic<bool> closed = false;
  std::thread watcher([&] {
    while (!closed) {
      EXPECT_FALSE(loader->Metrics().empty());
      EXPECT_FALSE(loader->RunwayReason().empty());
      std::this_thread::yield();
    }
  });
  std::thread closer([&] {
    while (taken < 30) std::this_thread::yield();
    loader->Close();
    closed = true;
  });
  Status last;
  while (last.ok()) {
    auto next = loader->Next(seconds(60));
    if (next.ok()) {
      ++taken;
    } else {
      last = next.status();
      taken = 30;  // an error that came early lets the closer go
    }
  }
  closer.join();
  watcher.join();
  EXPECT_EQ(last.code(), Code::kCancelled) << last.ToString();
  EXPECT_GE(taken.load(), 30);
  // Numbers outlive Close; how many of the batches were counted by then depends on the machine.
  EXPECT_GT(loader->Metrics().at("forebay_batches_total"), 0);
}

std::vector<int64_t> SamplesOf(const Batch& batch) {
  const Array& samples = ArrayOf(batch, "_sample");
  const auto* first = static_cast<const int64_t*>(samples.data);
  return {first, first + samples.rows};
}

TEST_F(LoaderTest, delivers_the_batches_that_are_supplied) {
  const auto loader = Make({.order = {.shuffle = ShuffleKind::kExternal},
                            .place = {.batch_size = 3},
                            .epochs = 2,
                            .decode_threads = 2});
  ASSERT_NE(loader, nullptr);
  const std::vector<std::vector<int64_t>> batches = {{5, 1, 1}, {0}, {2, 3}};
  EXPECT_EQ(loader->Next(seconds(60)).status().code(), Code::kInvalidArgument) << "none is there";
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(loader->Supply(batches[0]).ok());
    for (size_t i = 0; i < batches.size(); ++i) {
      // The next one comes while this one is waited for, or after it was taken.
      if (i + 1 < batches.size()) {
        ASSERT_TRUE(loader->Supply(batches[i + 1]).ok());
      }
      auto next = loader->Next(seconds(60));
      ASSERT_TRUE(next.ok() && next->has_value()) << next.status().ToString();
      EXPECT_EQ(SamplesOf(**next), batches[i]);
      EXPECT_EQ((*next)->epoch, epoch);
    }
    EXPECT_EQ(loader->Next(seconds(60)).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(loader->State().position, 6);
    ASSERT_TRUE(loader->SupplyEnd().ok());
    auto end = loader->Next(seconds(60));
    EXPECT_TRUE(end.ok() && !end->has_value());
  }
  auto end = loader->Next(seconds(60));
  EXPECT_TRUE(end.ok() && !end->has_value()) << "there are two epochs";
}

TEST_F(LoaderTest, forgets_what_was_supplied_when_it_goes_elsewhere) {
  const LoaderOptions options{.order = {.shuffle = ShuffleKind::kExternal},
                              .place = {.batch_size = 2},
                              .decode_threads = 1};
  const auto loader = Make(options);
  ASSERT_NE(loader, nullptr);
  for (const int64_t sample : {0, 1, 2}) ASSERT_TRUE(loader->Supply({&sample, 1}).ok());
  ASSERT_TRUE(loader->Next(seconds(60)).ok());
  const LoaderState state = loader->State();
  EXPECT_EQ(state.position, 1);
  ASSERT_TRUE(loader->SetEpoch(4).ok());
  const int64_t sample = 3;
  ASSERT_TRUE(loader->Supply({&sample, 1}).ok());
  auto next = loader->Next(seconds(60));
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status().ToString();
  EXPECT_EQ(SamplesOf(**next), std::vector<int64_t>{3});
  EXPECT_EQ((*next)->epoch, 4);
  ASSERT_TRUE(loader->LoadState(state).ok());
  EXPECT_EQ(loader->Next(seconds(60)).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(loader->State().digest, state.digest);
}

TEST_F(LoaderTest, takes_no_batch_that_cannot_be_one) {
  const auto own = Make({});
  ASSERT_NE(own, nullptr);
  const std::vector<int64_t> one = {0};
  EXPECT_EQ(own->Supply(one).code(), Code::kInvalidArgument);
  EXPECT_EQ(own->SupplyEnd().code(), Code::kInvalidArgument);
  const auto loader =
      Make({.order = {.shuffle = ShuffleKind::kExternal}, .place = {.batch_size = 2}});
  ASSERT_NE(loader, nullptr);
  const std::vector<std::vector<int64_t>> none = {{}, {0, 1, 2}, {-1}, {loader->sample_count()}};
  for (const auto& batch : none) {
    EXPECT_EQ(loader->Supply(batch).code(), Code::kInvalidArgument);
  }
  Status status;
  int taken = 0;
  while (status.ok() && taken < 100'000) {
    status = loader->Supply(one);
    ++taken;
  }
  EXPECT_EQ(status.code(), Code::kResourceExhausted) << "the queue is bounded";
}

TEST_F(LoaderTest, keeps_a_taken_batch_whole_after_the_loader_is_gone) {
  auto loader = Make({.decode_threads = 2});
  ASSERT_NE(loader, nullptr);
  auto next = loader->Next(seconds(60));
  ASSERT_TRUE(next.ok() && next->has_value()) << next.status().ToString();
  Batch batch = **std::move(next);
  const Array& pictures = ArrayOf(batch, "cam0");
  const std::vector<std::byte> before(
      static_cast<const std::byte*>(pictures.data),
      static_cast<const std::byte*>(pictures.data) + pictures.bytes);
  loader->Close();
  loader.reset();
  EXPECT_EQ(std::memcmp(before.data(), pictures.data, before.size()), 0);
}

}  // namespace
}  // namespace forebay
