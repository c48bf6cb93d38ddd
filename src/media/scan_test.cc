// What a scan reads, what it makes of tables that lie, and how it fails. That its frames are the
// right ones is corpus_test's matter.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "base/random.h"
#include "media/media.h"
#include "testing/ffmpeg_truth.h"

namespace forebay::media {
namespace {

using forebay::testing::RangeFile;
using forebay::testing::VideoCorpus;

std::string PathOf(const std::string& name) {
  static const auto corpus = VideoCorpus();
  EXPECT_TRUE(corpus.ok()) << corpus.status().ToString();
  if (!corpus.ok()) return {};
  for (const auto& video : *corpus) {
    if (video.name == name) return video.path;
  }
  ADD_FAILURE() << name << " is not in the corpus";
  return {};
}

std::string Load(const std::string& name) {
  std::ifstream file(PathOf(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// An object in memory that remembers what was asked of it.
struct Object {
  std::string bytes;
  std::vector<ByteRange> reads;
  int batches = 0;

  Status Read(ByteRange range, MutableBytes into) {
    if (range.end > bytes.size() || range.size() != into.size()) {
      return Status(Code::kInternal, "a read outside the object");
    }
    reads.push_back(range);
    std::copy_n(bytes.data() + range.offset, into.size(), reinterpret_cast<char*>(into.data()));
    return {};
  }
  Result<std::vector<VideoIndex>> Scan(Verified verify, ScanReport* report) {
    ScanOptions options;
    options.verify = verify;
    const ReadAt read = [this](ByteRange range, MutableBytes into) { return Read(range, into); };
    options.read_many = [this](const std::vector<ByteRange>& ranges,
                               const std::vector<MutableBytes>& into) -> Status {
      ++batches;
      for (size_t i = 0; i < ranges.size(); ++i) FB_RETURN_IF_ERROR(Read(ranges[i], into[i]));
      return {};
    };
    return ScanVideo(read, bytes.size(), options, report);
  }
};

VideoIndex ScanOne(const std::string& name, Verified verify = Verified::kHeads,
                   ScanReport* report = nullptr) {
  Object object{.bytes = Load(name), .reads = {}};
  auto indexes = object.Scan(verify, report);
  EXPECT_TRUE(indexes.ok()) << name << ": " << indexes.status().ToString();
  if (!indexes.ok() || indexes->empty()) return {};
  return indexes->front();
}

size_t CountFlag(const VideoIndex& index, Packet::Flag flag) {
  return static_cast<size_t>(
      std::ranges::count_if(index.packets, [&](const Packet& p) { return (p.flags & flag) != 0; }));
}

TEST(Scan, reads_of_an_mp4_its_tables_and_a_few_bytes_at_each_sync_point) {
  for (const char* name : {"closed_b.mp4", "faststart.mp4", "opengop.mp4", "hev1_inband.mp4"}) {
    Object object{.bytes = Load(name), .reads = {}};
    ScanReport report;
    const auto indexes = object.Scan(Verified::kHeads, &report);
    ASSERT_TRUE(indexes.ok()) << indexes.status().ToString();
    EXPECT_TRUE(report.had_sample_table);
    uint64_t bytes = 0;
    for (const ByteRange& read : object.reads) bytes += read.size();
    EXPECT_EQ(report.bytes_wanted, bytes);
    EXPECT_LT(bytes, 12u << 10) << name;
    EXPECT_LE(object.batches, 4) << name << ": the probes of a round go out together";
    EXPECT_EQ(indexes->front().verified, Verified::kHeads);
    EXPECT_EQ(CountFlag(indexes->front(), Packet::kKey), 4u);
  }
}

TEST(Scan, reads_other_containers_once) {
  Object object{.bytes = Load("closed_b.mkv"), .reads = {}};
  ScanReport report;
  ASSERT_TRUE(object.Scan(Verified::kHeads, &report).ok());
  EXPECT_FALSE(report.had_sample_table);
  EXPECT_LT(report.bytes_wanted, object.bytes.size() + (16u << 10));
}

TEST(Scan, finds_packets_past_4_gib_without_reading_up_to_them) {
  RangeFile file(PathOf("over_4_gib.mp4"));
  const ReadAt read = [&](ByteRange range, MutableBytes into) { return file.Read(range, into); };
  ScanReport report;
  const auto indexes = ScanVideo(read, file.size(), {}, &report);
  ASSERT_TRUE(indexes.ok()) << indexes.status().ToString();
  EXPECT_GT(indexes->front().packets.front().offset, uint64_t{5} << 30);
  EXPECT_LT(report.bytes_wanted, 12u << 10);
}

TEST(Scan, keeps_the_sync_points_that_are_ones_whatever_the_table_says) {
  for (const char* name :
       {"no_stss_h264.mp4", "no_stss_hevc.mp4", "wrong_stss_h264.mp4", "wrong_stss_hevc.mp4"}) {
    const VideoIndex index = ScanOne(name);
    EXPECT_EQ(index.verified, Verified::kFull) << name;
    for (uint32_t i = 0; i < index.packets.size(); ++i) {
      EXPECT_EQ((index.packets[i].flags & Packet::kKey) != 0, i % 24 == 0) << name << " " << i;
    }
  }
  ScanReport report;
  ScanOne("no_stss_hevc.mp4", Verified::kHeads, &report);
  EXPECT_EQ(report.sync_points_removed, 92u);
}

TEST(Scan, measures_how_long_a_gradual_refresh_takes) {
  const VideoIndex index = ScanOne("intra_refresh.mp4");
  EXPECT_EQ(index.packets[0].recovery, 0);
  size_t gradual = 0;
  for (const Packet& packet : index.packets) gradual += packet.recovery > 0;
  EXPECT_EQ(gradual, 3u);
}

TEST(Scan, stores_the_parameter_sets_that_a_fresh_decoder_would_lack) {
  const VideoIndex index = ScanOne("stateful_pps.h264");
  ASSERT_EQ(index.parameter_sets.size(), 1u);
  // The stream's own up to packet 48; at the sync point there the new ones stand in the stream.
  EXPECT_EQ(index.packets[24].parameter_set, 0);
  EXPECT_EQ(index.packets[48].parameter_set, 0);
  EXPECT_EQ(index.packets[72].parameter_set, 1);
  EXPECT_EQ(index.packets[95].parameter_set, 1);
}

TEST(Scan, keeps_packets_that_an_edit_list_trims_and_shows_none_of_them) {
  const VideoIndex index = ScanOne("trim_discardkey.mp4");
  EXPECT_EQ(CountFlag(index, Packet::kDiscard), 15u);
  EXPECT_EQ(index.frames.size() + 15, index.packets.size());
  for (const Frame& frame : index.frames) {
    EXPECT_EQ(index.packets[frame.packet].flags & Packet::kDiscard, 0);
  }
}

TEST(Scan, says_what_the_container_says_of_the_picture) {
  const VideoIndex turned = ScanOne("rotate90.mp4");
  EXPECT_EQ(turned.parameters.rotation, 90);
  EXPECT_FALSE(turned.parameters.flip);
  EXPECT_EQ(DisplaySizeOf(turned.parameters).width, 240);
  EXPECT_EQ(ScanOne("rotate180.mp4").parameters.rotation, 180);
  EXPECT_EQ(ScanOne("hevc10.mp4").parameters.pixel_format, "yuv420p10le");
  EXPECT_EQ(ScanOne("h264_444.mp4").parameters.pixel_format, "yuv444p");
  EXPECT_EQ(ScanOne("vp9.mp4").parameters.pixel_format, "yuv420p");
  EXPECT_EQ(ScanOne("av1.mp4").parameters.pixel_format, "yuv420p");
  EXPECT_EQ(ScanOne("prores.mov").parameters.pixel_format, "yuv422p10le");
  EXPECT_NEAR(ScanOne("ntsc_ms.mkv").MeanFrameRate(), 30000.0 / 1001, 0.01);
}

TEST(Scan, has_no_times_where_the_container_has_none_or_wrong_ones) {
  EXPECT_FALSE(ScanOne("closed_b.avi").pts_monotonic);
  EXPECT_EQ(ScanOne("closed_b.h264").frames[5].pts, kNoPts);
  EXPECT_FALSE(ScanOne("bad_pts.mkv").pts_monotonic);
  EXPECT_FALSE(ScanOne("bad_pts_hevc.mp4").pts_monotonic);
  EXPECT_TRUE(ScanOne("wrap33.ts").pts_monotonic);
}

TEST(Scan, indexes_what_is_whole_of_a_file_that_ends_early) {
  Object object{.bytes = Load("cut_short_faststart.mp4"), .reads = {}};
  const auto indexes = object.Scan(Verified::kHeads, nullptr);
  ASSERT_TRUE(indexes.ok()) << indexes.status().ToString();
  const VideoIndex& index = indexes->front();
  EXPECT_TRUE(index.truncated);
  EXPECT_GT(index.frames.size(), 40u);
  for (const Packet& packet : index.packets) {
    EXPECT_LE(packet.offset + packet.size, object.bytes.size());
  }
}

Status WhyNot(std::string bytes) {
  Object object{.bytes = std::move(bytes), .reads = {}};
  const auto indexes = object.Scan(Verified::kHeads, nullptr);
  return indexes.ok() ? Status() : indexes.status();
}

TEST(Scan, says_why_it_cannot_index_a_file) {
  EXPECT_EQ(WhyNot(Load("no_key.mp4")).code(), Code::kDataLoss);
  EXPECT_EQ(WhyNot(Load("encrypted.mp4")).code(), Code::kUnimplemented);
  EXPECT_EQ(WhyNot(Load("cut_short.mp4")).code(), Code::kDataLoss);
  EXPECT_EQ(WhyNot("").code(), Code::kInvalidArgument);
  EXPECT_EQ(WhyNot(std::string(5000, 'x')).code(), Code::kInvalidArgument);
  EXPECT_EQ(WhyNot("\xff\xd8\xff").code(), Code::kInvalidArgument);
}

TEST(Scan, returns_what_the_reader_failed_with) {
  for (const char* name : {"closed_b.mp4", "closed_b.mkv", "closed_b.h264"}) {
    const std::string bytes = Load(name);
    for (int good = 0; good < 3; ++good) {
      int reads = 0;
      const ReadAt read = [&](ByteRange range, MutableBytes into) {
        if (reads++ >= good) return Status(Code::kUnavailable, "the store is away");
        std::copy_n(bytes.data() + range.offset, into.size(), reinterpret_cast<char*>(into.data()));
        return Status();
      };
      const auto indexes = ScanVideo(read, bytes.size(), {}, nullptr);
      if (indexes.ok()) continue;  // it needed no more reads than were good
      EXPECT_EQ(indexes.status().code(), Code::kUnavailable) << name << " " << good;
    }
    EXPECT_FALSE(ScanVideo([](ByteRange, MutableBytes) { return Status(Code::kUnavailable, ""); },
                           bytes.size(), {}, nullptr)
                     .ok());
  }
}

TEST(Scan, refuses_tables_that_claim_more_than_the_limit) {
  Object object{.bytes = Load("closed_b.mp4"), .reads = {}};
  ScanOptions options;
  options.frames_max = 50;
  const ReadAt read = [&](ByteRange range, MutableBytes into) { return object.Read(range, into); };
  const auto indexes = ScanVideo(read, object.bytes.size(), options, nullptr);
  ASSERT_FALSE(indexes.ok());
  EXPECT_EQ(indexes.status().code(), Code::kDataLoss);
}

// Whatever the bytes are: an index whose packets lie in the object and whose frames are packets, or
// an error of the file.
void ExpectSane(const std::string& bytes, const std::string& what) {
  Object object{.bytes = bytes, .reads = {}};
  const auto indexes = object.Scan(Verified::kHeads, nullptr);
  if (!indexes.ok()) {
    EXPECT_NE(indexes.status().code(), Code::kInternal) << what << indexes.status().ToString();
    return;
  }
  for (const VideoIndex& index : *indexes) {
    for (const Packet& packet : index.packets) {
      EXPECT_LE(packet.offset + packet.size, bytes.size()) << what;
      EXPECT_LE(packet.parameter_set, index.parameter_sets.size()) << what;
    }
    for (const Frame& frame : index.frames) EXPECT_LT(frame.packet, index.packets.size()) << what;
  }
}

TEST(Scan, bears_any_damage) {
  Random random(5);
  for (const char* name : {"faststart.mp4", "frag.mp4", "hev1_inband.mp4", "stripped.mkv",
                           "cra_rasl.ts", "mpeg4_b.avi"}) {
    const std::string sound = Load(name);
    // Tables stand in front; media bytes behind them are hit too.
    for (int i = 0; i < 20; ++i) {
      std::string bytes = sound;
      const uint64_t front = i % 2 == 0 ? 6000 : bytes.size();
      for (int k = 0; k <= i % 7; ++k) {
        bytes[random.NextBelow(std::min<uint64_t>(front, bytes.size()))] =
            static_cast<char>(random.NextBelow(256));
      }
      if (i % 5 == 4) bytes.resize(random.NextBelow(bytes.size()));
      ExpectSane(bytes, std::string(name) + " " + std::to_string(i) + ": ");
    }
  }
}

}  // namespace
}  // namespace forebay::media
