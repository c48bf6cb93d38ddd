#include "catalog/catalog.h"

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/hash.h"
#include "catalog/coding.h"
#include "catalog/video_codec.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

// What the loader does with an index: the runs and ranges of a few of its frames.
void UseIndex(const media::VideoIndex& index) {
  const auto count = static_cast<uint32_t>(index.frames.size());
  std::vector<uint32_t> frames;
  for (uint32_t i = 0; i < 8 && count > 0; ++i) {
    frames.push_back(static_cast<uint32_t>(uint64_t{i} * 7919 % count));
  }
  const auto runs = media::PlanDecode(index, frames);
  FB_ASSERT(media::PlanDecode(index, {count}).code() == Code::kInvalidArgument);
  (void)index.MeanFrameRate();
  if (count > 0) (void)index.FrameSeconds(count - 1);
  if (!runs.ok()) return;
  size_t given = 0;
  for (const media::DecodeRun& run : *runs) {
    FB_ASSERT(std::ranges::is_sorted(run.packets) && run.packets.back() < index.packets.size());
    given += run.frames.size();
  }
  std::ranges::sort(frames);
  FB_ASSERT(given == static_cast<size_t>(std::ranges::unique(frames).begin() - frames.begin()));
  uint64_t end = 0;
  for (const ByteRange& range : media::RangesOf(index, *runs, 4096)) {
    FB_ASSERT(range.offset < range.end && (end == 0 || range.offset > end));
    end = range.end;
  }
}

void Open(std::vector<std::byte> file) {
  const auto catalog = catalog::Catalog::Open(std::move(file));
  if (!catalog.ok()) return;
  for (uint32_t i = 0; i < (*catalog)->object_count(); ++i) {
    const catalog::CatalogObject& object = (*catalog)->object(i);
    FB_ASSERT(object.first_video + object.video_count <= (*catalog)->video_count());
  }
  for (uint32_t i = 0; i < (*catalog)->video_count(); ++i) {
    FB_ASSERT((*catalog)->object_of_video(i) < (*catalog)->object_count());
    const auto index = (*catalog)->video(i);
    if (index.ok()) UseIndex(**index);
  }
}

}  // namespace

void Catalog(ByteView input) {
  Open({input.begin(), input.end()});
  // The hash keeps damage out; whoever writes the file can make it fit.
  catalog::Writer file;
  file.Append(AsBytes("FBCATLG\n"));
  file.Word(uint32_t{1});
  file.Word(uint32_t{0});
  file.Word(uint64_t{40 + input.size()});
  const Hash128 hash = HashBytes(input);
  file.Word(hash.low);
  file.Word(hash.high);
  file.Append(input);
  Open(std::move(file.bytes()));
}

void VideoIndex(ByteView input) {
  const auto index = catalog::UnpackVideo(input);
  if (!index.ok()) {
    FB_ASSERT(index.code() == Code::kDataLoss);
    return;
  }
  UseIndex(*index);
  const auto packed = catalog::PackVideo(*index);
  const auto again = catalog::UnpackVideo(packed);
  FB_ASSERT(again.ok() && catalog::PackVideo(*again) == packed);
}

}  // namespace forebay::fuzz
