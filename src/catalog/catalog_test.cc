#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "catalog/video_codec.h"

namespace forebay::catalog {
namespace {

media::VideoIndex SomeVideo(uint64_t seed, size_t frames) {
  Random random(seed);
  media::VideoIndex index;
  index.container = "mov";
  index.parameters.codec = "hevc";
  index.parameters.extradata = std::string("\0\1\xff", 3);
  index.parameters.pixel_format = "yuv420p";
  index.parameters.width = 480;
  index.parameters.height = 270;
  index.parameters.time_base = {1, 15360};
  index.parameters.rotation = 90;
  index.parameter_sets = {"other"};
  uint64_t at = 48;
  for (size_t i = 0; i < frames; ++i) {
    media::Packet packet;
    packet.offset = at;
    packet.size = static_cast<uint32_t>(random.NextBelow(9000));
    packet.dts = static_cast<int64_t>(i) * 512 - 1024;
    packet.pts = packet.dts + static_cast<int64_t>(random.NextBelow(4)) * 512;
    if (i == 3) packet.pts = media::kNoPts;
    packet.flags = i % 30 == 0 ? media::Packet::kKey : 0;
    packet.recovery = i == 30 ? 18 : 0;
    packet.parameter_set = i >= 60 ? 1 : 0;
    at += packet.size + random.NextBelow(3) * 100;
    index.packets.push_back(packet);
    if (i != 3) index.frames.push_back({static_cast<uint32_t>(i), packet.pts});
  }
  if (frames > 5) std::swap(index.frames[1], index.frames[2]);
  if (frames > 5) index.frames[0].pts = media::kNoPts;
  return index;
}

void ExpectEqual(const media::VideoIndex& a, const media::VideoIndex& b) {
  EXPECT_EQ(PackVideo(a), PackVideo(b));
  ASSERT_EQ(a.packets.size(), b.packets.size());
  for (size_t i = 0; i < a.packets.size(); ++i) {
    ASSERT_EQ(a.packets[i].offset, b.packets[i].offset) << i;
    ASSERT_EQ(a.packets[i].size, b.packets[i].size) << i;
    ASSERT_EQ(a.packets[i].pts, b.packets[i].pts) << i;
    ASSERT_EQ(a.packets[i].dts, b.packets[i].dts) << i;
    ASSERT_EQ(a.packets[i].flags, b.packets[i].flags) << i;
    ASSERT_EQ(a.packets[i].recovery, b.packets[i].recovery) << i;
    ASSERT_EQ(a.packets[i].parameter_set, b.packets[i].parameter_set) << i;
  }
  ASSERT_EQ(a.frames.size(), b.frames.size());
  for (size_t i = 0; i < a.frames.size(); ++i) {
    ASSERT_EQ(a.frames[i].packet, b.frames[i].packet) << i;
    ASSERT_EQ(a.frames[i].pts, b.frames[i].pts) << i;
  }
  EXPECT_EQ(a.parameters.extradata, b.parameters.extradata);
  EXPECT_EQ(a.parameters.rotation, b.parameters.rotation);
  EXPECT_EQ(a.parameter_sets, b.parameter_sets);
}

CatalogInput SomeInput() {
  CatalogInput input;
  input.source_uri = "s3://bucket/drives/";
  input.objects.push_back({"b/front.mp4", 1000000, "e2", "", {SomeVideo(2, 600), SomeVideo(3, 5)}});
  input.objects.push_back({"a/front.mp4", 900000, "e1", "", {SomeVideo(1, 90)}});
  input.objects.push_back({"a/left.mp4", 10, "e3", "data_loss: moov atom not found", {}});
  return input;
}

TEST(VideoCodec, gives_back_what_was_packed_in_less_than_ten_kilobytes_for_600_frames) {
  const media::VideoIndex index = SomeVideo(7, 600);
  const auto packed = PackVideo(index);
  EXPECT_LT(packed.size(), 10000u);
  const auto again = UnpackVideo(packed);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  ExpectEqual(index, *again);
}

TEST(VideoCodec, damage_anywhere_is_an_error_or_another_valid_index_and_never_a_crash) {
  const auto packed = PackVideo(SomeVideo(7, 60));
  for (size_t i = 0; i < packed.size(); ++i) {
    auto bad = packed;
    bad[i] ^= std::byte{0x85};
    (void)UnpackVideo(bad);
    EXPECT_FALSE(UnpackVideo(ByteView(packed).first(i)).ok()) << i;
  }
}

TEST(Catalog, keeps_objects_sorted_with_their_videos_and_errors) {
  auto bytes = WriteCatalog(SomeInput());
  ASSERT_TRUE(bytes.ok());
  const auto catalog = Catalog::Open(*bytes);
  ASSERT_TRUE(catalog.ok()) << catalog.status().ToString();
  ASSERT_EQ((*catalog)->object_count(), 3u);
  EXPECT_EQ((*catalog)->object(0).key, "a/front.mp4");
  EXPECT_EQ((*catalog)->object(1).error, "data_loss: moov atom not found");
  EXPECT_EQ((*catalog)->object(2).first_video, 1u);
  EXPECT_EQ((*catalog)->object(2).video_count, 2u);
  EXPECT_EQ((*catalog)->object_of_video(2), 2u);
  ExpectEqual(**(*catalog)->video(2), SomeVideo(3, 5));
}

TEST(Catalog, its_hash_tells_data_sets_apart_but_not_places) {
  const auto hash = [](CatalogInput input) {
    return (*Catalog::Open(*WriteCatalog(std::move(input))))->content_hash();
  };
  CatalogInput moved = SomeInput();
  moved.source_uri = "file:///elsewhere/";
  EXPECT_EQ(hash(SomeInput()), hash(moved));
  CatalogInput changed = SomeInput();
  changed.objects[0].etag = "e9";
  EXPECT_NE(hash(SomeInput()), hash(changed));
}

TEST(Catalog, every_flipped_or_missing_byte_is_found) {
  const auto bytes = *WriteCatalog(SomeInput());
  for (size_t i = 0; i < bytes.size(); i += 1 + i / 64) {
    auto bad = bytes;
    bad[i] ^= std::byte{1};
    if (i >= 12 && i < 16) continue;  // reserved
    EXPECT_FALSE(Catalog::Open(bad).ok()) << i;
    EXPECT_FALSE(
        Catalog::Open({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(i)}).ok());
  }
}

TEST(Catalog, two_objects_of_one_key_are_refused) {
  CatalogInput input = SomeInput();
  input.objects.push_back(input.objects[0]);
  EXPECT_EQ(WriteCatalog(std::move(input)).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::catalog
