// PlanDecode and RangesOf on made-up indexes: what holds for every index.
#include "media/video_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace forebay::media {
namespace {

Packet At(uint64_t offset, uint32_t size, int64_t pts, uint8_t flags = 0) {
  Packet packet;
  packet.offset = offset;
  packet.size = size;
  packet.pts = pts;
  packet.flags = flags;
  return packet;
}

// Frames in order of pts, as a scan would number them.
void NumberFrames(VideoIndex& index) {
  std::vector<uint32_t> order;
  for (uint32_t p = 0; p < index.packets.size(); ++p) {
    if (index.packets[p].pts != kNoPts && (index.packets[p].flags & Packet::kDiscard) == 0) {
      order.push_back(p);
    }
  }
  std::ranges::sort(order, {}, [&](uint32_t p) { return index.packets[p].pts; });
  for (const uint32_t p : order) index.frames.push_back({.packet = p, .pts = index.packets[p].pts});
}

// I0 P3 b1 b2 | I6 b4 b5 P9 b7 b8: open group, b4 and b5 are shown before the second I.
VideoIndex OpenGroups() {
  VideoIndex index;
  const struct {
    int64_t pts;
    uint8_t flags;
  } rows[] = {{0, Packet::kKey},        {3, 0},
              {1, Packet::kDisposable}, {2, Packet::kDisposable},
              {6, Packet::kKey},        {4, 0},
              {5, Packet::kDisposable}, {9, 0},
              {7, Packet::kDisposable}, {8, Packet::kDisposable}};
  uint64_t offset = 100;
  for (const auto& row : rows) {
    index.packets.push_back(At(offset, 10, row.pts, row.flags));
    offset += 10;
  }
  NumberFrames(index);
  return index;
}

std::vector<DecodeRun> Plan(const VideoIndex& index, const std::vector<uint32_t>& frames) {
  auto runs = PlanDecode(index, frames);
  EXPECT_TRUE(runs.ok()) << runs.status().ToString();
  return runs.ok() ? *std::move(runs) : std::vector<DecodeRun>();
}

using Numbers = std::vector<uint32_t>;

TEST(PlanDecode, starts_a_leading_picture_at_the_sync_point_before_the_one_it_follows) {
  const auto runs = Plan(OpenGroups(), {4});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].packets, (Numbers{0, 1, 4, 5}));
  EXPECT_EQ(runs[0].frames, (Numbers{4}));
}

TEST(PlanDecode, starts_a_decodable_leading_picture_at_its_own_sync_point) {
  VideoIndex index = OpenGroups();
  index.packets[5].flags |= Packet::kLeading;
  EXPECT_EQ(Plan(index, {4})[0].packets, (Numbers{4, 5}));
}

TEST(PlanDecode, leaves_out_what_no_wanted_frame_refers_to) {
  EXPECT_EQ(Plan(OpenGroups(), {8})[0].packets, (Numbers{4, 5, 7, 9}));
}

TEST(PlanDecode, makes_one_run_of_a_group_and_one_of_groups_that_continue) {
  EXPECT_EQ(Plan(OpenGroups(), {7, 8}).size(), 1u);
  const auto joined = Plan(OpenGroups(), {2, 6});  // packets 0..3, then 4
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0].packets, (Numbers{0, 1, 3, 4}));
  EXPECT_EQ(Plan(OpenGroups(), {0, 6}).size(), 2u);
}

TEST(PlanDecode, starts_early_enough_for_a_gradual_refresh) {
  VideoIndex index;
  for (uint32_t p = 0; p < 30; ++p) {
    index.packets.push_back(At(p * 10, 10, p, p % 10 == 0 ? uint8_t{Packet::kKey} : uint8_t{0}));
    if (p > 0) index.packets.back().recovery = p % 10 == 0 ? 7 : 0;
  }
  NumberFrames(index);
  EXPECT_EQ(Plan(index, {26})[0].packets.front(), 10u);
  EXPECT_EQ(Plan(index, {27})[0].packets.front(), 20u);
  EXPECT_EQ(Plan(index, {16})[0].packets.front(), 0u);
}

TEST(PlanDecode, feeds_both_fields_of_a_picture_that_came_in_two_packets) {
  VideoIndex index;
  index.parameters.codec = "h264";
  index.parameters.field_order = 2;
  index.packets = {At(0, 10, 0, Packet::kKey), At(10, 10, kNoPts), At(20, 10, 1),
                   At(30, 10, kNoPts)};
  NumberFrames(index);
  EXPECT_EQ(Plan(index, {1})[0].packets, (Numbers{0, 1, 2, 3}));
}

TEST(PlanDecode, keeps_discarded_packets_as_references_and_refuses_numbers_outside) {
  VideoIndex index = OpenGroups();
  index.packets[0].flags |= Packet::kDiscard;
  index.frames.clear();
  NumberFrames(index);
  EXPECT_EQ(Plan(index, {0})[0].packets, (Numbers{0, 1, 2}));
  EXPECT_EQ(PlanDecode(index, {9}).code(), Code::kInvalidArgument);
}

TEST(PlanDecode, names_the_frame_that_has_no_sync_point_and_survives_a_damaged_index) {
  VideoIndex index = OpenGroups();
  index.packets[0].flags = 0;
  const auto runs = PlanDecode(index, {2});
  EXPECT_EQ(runs.code(), Code::kDataLoss);
  EXPECT_NE(runs.status().ToString().find("frame 2"), std::string::npos);
  index.frames[3].packet = 1000;
  EXPECT_EQ(PlanDecode(index, {3}).code(), Code::kDataLoss);
}

TEST(RangesOf, merges_by_the_price_of_a_gap_and_takes_whole_spans_of_what_is_demuxed) {
  VideoIndex index = OpenGroups();
  const auto runs = Plan(index, {8});
  EXPECT_EQ(RangesOf(index, runs, 0), (std::vector<ByteRange>{{140, 160}, {170, 180}, {190, 200}}));
  EXPECT_EQ(RangesOf(index, runs, 10), (std::vector<ByteRange>{{140, 200}}));
  index.access = Access::kDemux;
  EXPECT_EQ(RangesOf(index, runs, 0), (std::vector<ByteRange>{{140, 200}}));
}

// Any decode order of groups with reordered, unreferenced and discarded packets, other tracks
// between them.
rc::Gen<VideoIndex> AnyIndex() {
  return rc::gen::exec([] {
    VideoIndex index;
    const int groups = *rc::gen::inRange(1, 6);
    uint64_t offset = *rc::gen::inRange<uint64_t>(0, 1000);
    int64_t pts = *rc::gen::inRange<int64_t>(-5, 5);
    for (int g = 0; g < groups; ++g) {
      const int size = *rc::gen::inRange(1, 12);
      std::vector<int64_t> times(static_cast<size_t>(size));
      for (auto& time : times) time = pts++;
      // The sync point may come after some pictures that it is sent before.
      const int lead = g == 0 ? 0 : *rc::gen::inRange(0, std::min(size, 4));
      std::rotate(times.begin(), times.begin() + lead, times.begin() + lead + 1);
      for (int i = 0; i < size; ++i) {
        offset += *rc::gen::element<uint64_t>(0, 0, 0, 700);
        const auto bytes = *rc::gen::inRange<uint32_t>(1, 300);
        uint8_t flags =
            i == 0 ? uint8_t{Packet::kKey} : *rc::gen::element<uint8_t>(0, 0, Packet::kDisposable);
        if (*rc::gen::inRange(0, 20) == 0) flags |= Packet::kDiscard;
        index.packets.push_back(At(offset, bytes, times[static_cast<size_t>(i)], flags));
        offset += bytes;
      }
    }
    NumberFrames(index);
    RC_PRE(!index.frames.empty());
    return index;
  });
}

Numbers AnyFrames(const VideoIndex& index) {
  const auto count = static_cast<uint32_t>(index.frames.size());
  return *rc::gen::nonEmpty(rc::gen::container<Numbers>(rc::gen::inRange<uint32_t>(0, count)));
}

// The packets that frame needs by the closure rule, written down directly.
std::set<uint32_t> NeededBy(const VideoIndex& index, uint32_t frame) {
  const uint32_t t = index.frames[frame].packet;
  uint32_t s = t;
  while ((index.packets[s].flags & Packet::kKey) == 0 ||
         index.packets[s].pts > index.packets[t].pts)
    --s;
  std::set<uint32_t> needed;
  for (uint32_t p = s; p <= t; ++p) {
    if (p == t || (index.packets[p].flags & Packet::kDisposable) == 0) needed.insert(p);
  }
  return needed;
}

RC_GTEST_PROP(PlanDecode, runs_hold_what_each_frame_needs_and_each_frame_once, ()) {
  const VideoIndex index = *AnyIndex();
  const Numbers frames = AnyFrames(index);
  const auto runs = PlanDecode(index, frames);
  RC_ASSERT(runs.ok());
  Numbers came;
  for (const DecodeRun& run : *runs) {
    RC_ASSERT(std::ranges::is_sorted(run.packets));
    RC_ASSERT((index.packets[run.packets.front()].flags & Packet::kKey) != 0);
    for (const uint32_t f : run.frames) {
      came.push_back(f);
      RC_ASSERT(std::ranges::includes(run.packets, NeededBy(index, f)));
    }
  }
  const std::set<uint32_t> distinct(frames.begin(), frames.end());
  RC_ASSERT(std::ranges::equal(came, distinct));
}

RC_GTEST_PROP(PlanDecode, runs_hold_no_packet_that_nobody_needs_and_none_twice, ()) {
  const VideoIndex index = *AnyIndex();
  const Numbers frames = AnyFrames(index);
  const auto runs = PlanDecode(index, frames);
  RC_ASSERT(runs.ok());
  std::set<uint32_t> needed;
  for (const uint32_t f : frames) needed.merge(NeededBy(index, f));
  std::set<uint32_t> fed;
  for (const DecodeRun& run : *runs) {
    for (const uint32_t p : run.packets) RC_ASSERT(fed.insert(p).second);
  }
  RC_ASSERT(fed == needed);
}

RC_GTEST_PROP(RangesOf, cover_the_packets_lie_in_the_object_and_ascend, ()) {
  const VideoIndex index = *AnyIndex();
  const auto runs = PlanDecode(index, AnyFrames(index));
  RC_ASSERT(runs.ok());
  const auto gap = *rc::gen::element<uint64_t>(0, 100, 1000);
  const auto ranges = RangesOf(index, *runs, gap);
  const Packet& last = index.packets.back();
  for (size_t i = 0; i < ranges.size(); ++i) {
    RC_ASSERT(!ranges[i].empty());
    RC_ASSERT(ranges[i].end <= last.offset + last.size);
    if (i > 0) RC_ASSERT(ranges[i].offset > ranges[i - 1].end + gap);
  }
  for (const DecodeRun& run : *runs) {
    for (const uint32_t p : run.packets) {
      const ByteRange packet{index.packets[p].offset,
                             index.packets[p].offset + index.packets[p].size};
      RC_ASSERT(
          std::ranges::any_of(ranges, [&](const ByteRange& r) { return r.Contains(packet); }));
    }
  }
}

}  // namespace
}  // namespace forebay::media
