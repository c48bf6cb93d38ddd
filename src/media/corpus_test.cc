// Scan and decode together on every kind of file: each frame, asked for by number in several
// orders, is the one that the ffmpeg program gives; what cannot be indexed says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "media/media.h"
#include "testing/ffmpeg_truth.h"

namespace forebay::media {
namespace {

using forebay::testing::CorpusVideo;
using forebay::testing::Crc32;
using forebay::testing::FramesByFfmpeg;
using forebay::testing::RangeFile;
using forebay::testing::VideoCorpus;

// The bytes of some ranges of a file.
class Fetched : public FetchedBytes {
 public:
  Fetched(RangeFile* file, std::vector<ByteRange> ranges)
      : file_(*file), ranges_(std::move(ranges)) {}
  Status Copy(ByteRange range, MutableBytes into) const override {
    const auto holds = [&](const ByteRange& r) { return r.Contains(range); };
    if (!std::ranges::any_of(ranges_, holds)) return Status(Code::kDataLoss, "not fetched");
    return file_.Read(range, into);
  }

 private:
  RangeFile& file_;
  std::vector<ByteRange> ranges_;
};

Result<std::vector<VideoIndex>> ScanFile(RangeFile& file, Verified verify, ScanReport* report) {
  ScanOptions options;
  options.verify = verify;
  const ReadAt read = [&](ByteRange range, MutableBytes into) { return file.Read(range, into); };
  return ScanVideo(read, file.size(), options, report);
}

// Decodes `numbers` in one call and compares each with the truth. True if all is well.
bool FramesAreRight(VideoDecoder& decoder, const VideoIndex& index, RangeFile& file,
                    const std::vector<uint32_t>& truth, const std::vector<uint32_t>& numbers) {
  const auto runs = PlanDecode(index, numbers);
  if (!runs.ok()) {
    ADD_FAILURE() << runs.status().ToString();
    return false;
  }
  const Fetched bytes(&file, RangesOf(index, *runs, 0));
  size_t came = 0;
  std::vector<uint32_t> wrong;
  const Status status = decoder.DecodeNative(index, *runs, bytes, [&](NativeFrame frame) {
    ++came;
    if (Crc32(frame.bytes) != truth[frame.frame]) wrong.push_back(frame.frame);
    return Status();
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(wrong.empty()) << wrong.size() << " wrong frames, the first is " << wrong.front();
  if (status.ok()) {
    EXPECT_EQ(came, numbers.size());
  }
  return status.ok() && wrong.empty() && came == numbers.size();
}

std::vector<uint32_t> Numbers(size_t count) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

void Shuffle(std::vector<uint32_t>* numbers) {
  Random random(11);
  for (size_t i = numbers->size(); i > 1; --i) {
    std::swap((*numbers)[i - 1], (*numbers)[random.NextBelow(i)]);
  }
}

std::unique_ptr<VideoDecoder> NewDecoder() {
  auto decoder = VideoDecoder::Make({});
  EXPECT_TRUE(decoder.ok()) << decoder.status().ToString();
  return decoder.ok() ? *std::move(decoder) : nullptr;
}

// Ascending in one call, then one by one backwards and shuffled with one decoder, and some with a
// decoder each; of those one by one, each `every`th. Stops at the first way that goes wrong.
void ExpectExactFrames(const VideoIndex& index, RangeFile& file, const std::vector<uint32_t>& truth,
                       uint32_t every) {
  ASSERT_EQ(index.frames.size(), truth.size());
  auto decoder = NewDecoder();
  ASSERT_NE(decoder, nullptr);
  std::vector<uint32_t> numbers = Numbers(truth.size());
  SCOPED_TRACE("in one call");
  if (!FramesAreRight(*decoder, index, file, truth, numbers)) return;
  SCOPED_TRACE("then one by one");
  for (uint32_t i = static_cast<uint32_t>(truth.size()); i-- > 0;) {
    if (i % (2 * every) == every && !FramesAreRight(*decoder, index, file, truth, {i})) return;
  }
  SCOPED_TRACE("then shuffled, and with fresh decoders");
  Shuffle(&numbers);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i % (4 * every) == 0) decoder = NewDecoder();
    if (i % every == 0 && !FramesAreRight(*decoder, index, file, truth, {numbers[i]})) return;
  }
}

const std::vector<CorpusVideo>& Corpus() {
  static const std::vector<CorpusVideo> videos = [] {
    auto corpus = VideoCorpus();
    EXPECT_TRUE(corpus.ok()) << corpus.status().ToString();
    return corpus.ok() ? *std::move(corpus) : std::vector<CorpusVideo>();
  }();
  return videos;
}

// One file of the corpus by its scan; false: it is not to be indexed, and is not.
bool ExpectIndexed(const CorpusVideo& video, const Result<std::vector<VideoIndex>>& indexes) {
  if (!video.reject.empty()) {
    EXPECT_FALSE(indexes.ok());
    if (!indexes.ok()) {
      EXPECT_NE(indexes.status().message().find(video.reject), std::string::npos)
          << indexes.status().ToString();
    }
    return false;
  }
  EXPECT_TRUE(indexes.ok()) << indexes.status().ToString();
  return indexes.ok();
}

class Corpora : public ::testing::TestWithParam<Verified> {};

TEST_P(Corpora, give_the_frames_that_ffmpeg_gives) {
  ASSERT_GT(Corpus().size(), 60u);
  const char* only = std::getenv("FOREBAY_CORPUS_ONLY");
  for (const CorpusVideo& video : Corpus()) {
    if (only != nullptr && video.name != only) continue;
    SCOPED_TRACE(video.name);
    RangeFile file(video.path);
    ScanReport report;
    const auto indexes = ScanFile(file, GetParam(), &report);
    if (!ExpectIndexed(video, indexes) || video.compare == "none") continue;
    EXPECT_EQ(indexes->size(), video.streams.size());
    for (size_t i = 0; i < std::min(indexes->size(), video.streams.size()); ++i) {
      EXPECT_EQ((*indexes)[i].stream, static_cast<uint32_t>(video.streams[i]));
      auto known = FramesByFfmpeg(video, video.streams[i]);
      ASSERT_TRUE(known.ok()) << known.status().ToString();
      std::vector<uint32_t> truth = *std::move(known);
      const size_t count = (*indexes)[i].frames.size();
      if (video.compare == "tail" && count < truth.size()) {
        truth.erase(truth.begin(), truth.end() - static_cast<ptrdiff_t>(count));
      }
      ExpectExactFrames((*indexes)[i], file, truth, GetParam() == Verified::kFull ? 12 : 3);
    }
  }
}

const CorpusVideo* Named(const std::string& name) {
  const auto found = std::ranges::find(Corpus(), name, &CorpusVideo::name);
  return found == Corpus().end() ? nullptr : &*found;
}

struct Known {
  std::unique_ptr<RangeFile> file;
  VideoIndex index;
  std::vector<uint32_t> truth;
};

Known Scanned(const std::string& name) {
  Known known;
  const CorpusVideo* video = Named(name);
  if (video == nullptr) return known;
  known.file = std::make_unique<RangeFile>(video->path);
  const auto indexes = ScanFile(*known.file, Verified::kHeads, nullptr);
  const auto truth = FramesByFfmpeg(*video, 0);
  if (indexes.ok() && truth.ok()) known.index = indexes->front(), known.truth = *truth;
  return known;
}

// A decoder that serves two files of the same parameters leaves no colours of one in the other.
TEST(Decoder, starts_each_run_with_the_palette_of_its_own_file) {
  for (const std::string container : {"avi", "mov"}) {
    Known one = Scanned("palette." + container), other = Scanned("palette2." + container);
    ASSERT_EQ(one.truth.size(), 6u);
    ASSERT_EQ(other.truth.size(), 6u);
    ASSERT_NE(one.truth, other.truth);
    const auto decoder = NewDecoder();
    ASSERT_NE(decoder, nullptr);
    for (const uint32_t number : {3u, 0u, 5u}) {
      EXPECT_TRUE(FramesAreRight(*decoder, one.index, *one.file, one.truth, {number}));
      EXPECT_TRUE(FramesAreRight(*decoder, other.index, *other.file, other.truth, {number}));
    }
  }
}

// "Picture or error": the HEVC decoder, when it is not strict, gives pictures with holes unmarked.
TEST(Decoder, gives_a_damaged_hevc_picture_to_nobody) {
  Known damaged = Scanned("lost_packet.ts");
  const auto truth = FramesByFfmpeg(*Named("cra_rasl.ts"), 0);
  ASSERT_TRUE(truth.ok());
  ASSERT_EQ(damaged.index.frames.size(), truth->size());
  uint32_t refused = 0;
  for (uint32_t i = 0; i < truth->size(); ++i) {
    const auto decoder = NewDecoder();
    const auto runs = PlanDecode(damaged.index, {i});
    ASSERT_TRUE(runs.ok());
    const Fetched bytes(damaged.file.get(), RangesOf(damaged.index, *runs, 0));
    const Status status =
        decoder->DecodeNative(damaged.index, *runs, bytes, [&](NativeFrame frame) {
          EXPECT_EQ(Crc32(frame.bytes), (*truth)[i]) << "frame " << i;
          return Status();
        });
    refused += !status.ok();
  }
  EXPECT_GT(refused, 0u);
  EXPECT_LT(refused, truth->size());
}

INSTANTIATE_TEST_SUITE_P(Scanned, Corpora, ::testing::Values(Verified::kHeads, Verified::kFull),
                         [](const auto& each) {
                           return each.param == Verified::kHeads ? "by_heads" : "in_full";
                         });

}  // namespace
}  // namespace forebay::media
