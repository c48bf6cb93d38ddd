// class Video of include/forebay/video.h: an index made on the spot, ranges fetched as frames need
// them, exact frames.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "engine/scanned_object.h"
#include "forebay/video.h"
#include "media/media.h"

namespace forebay {
namespace engine {
namespace {

// Fetched and decoded at a time: bounds memory, and a cut costs one group of pictures twice.
constexpr uint64_t kPartBytes = 32ULL << 20;
constexpr uint64_t kPictureBytesMax = 256ULL << 20;
// Below this a gap between two packets is cheaper than a request.
constexpr uint64_t kGapBytes = 128ULL << 10;

class FetchedRanges : public media::FetchedBytes {
 public:
  Status Fetch(store::PinnedObject& object, std::vector<ByteRange> ranges) {
    ranges_ = std::move(ranges);
    bytes_.resize(ranges_.size());
    std::vector<MutableBytes> into;
    into.reserve(ranges_.size());
    for (size_t i = 0; i < ranges_.size(); ++i) {
      if (ranges_[i].end > object.info().size) {
        return Status(Code::kDataLoss,
                      fmt::format("the object ends before byte {}", ranges_[i].end));
      }
      bytes_[i].resize(ranges_[i].size());
      into.emplace_back(bytes_[i]);
    }
    return object.ReadMany(ranges_, into);
  }
  Status Copy(ByteRange range, MutableBytes into) const override {
    const auto behind = std::ranges::upper_bound(ranges_, range.offset, {}, &ByteRange::offset);
    const auto before = static_cast<size_t>(behind - ranges_.begin());  // that begin no later
    if (before == 0 || !ranges_[before - 1].Contains(range)) {
      return Status(Code::kInternal, "bytes needed for decoding were not fetched");
    }
    const std::byte* held = bytes_[before - 1].data();
    std::memcpy(into.data(), held + (range.offset - ranges_[before - 1].offset), into.size());
    return {};
  }

 private:
  std::vector<ByteRange> ranges_;  // ascending
  std::vector<std::vector<std::byte>> bytes_;
};

class VideoImpl : public Video {
 public:
  VideoImpl(std::unique_ptr<ScannedObject> object, media::VideoIndex index,
            std::unique_ptr<media::VideoDecoder> decoder, const VideoOptions& options)
      : object_(std::move(object)), index_(std::move(index)), decoder_(std::move(decoder)) {
    format_.width = options.width;
    format_.height = options.height;
    size_ = media::DisplaySizeOf(index_.parameters);
    times_.reserve(index_.frames.size());
    const media::Rational base = index_.parameters.time_base;
    for (uint32_t f = 0; f < index_.frames.size(); ++f) {
      const int64_t pts = index_.frames[f].pts;
      times_.push_back(pts == media::kNoPts ? index_.FrameSeconds(f)
                                            : static_cast<double>(pts) * base.num / base.den);
    }
  }

  uint32_t frame_count() const override { return static_cast<uint32_t>(index_.frames.size()); }
  int width() const override { return size_.width; }
  int height() const override { return size_.height; }
  int stream() const override { return static_cast<int>(index_.stream); }
  double time_base() const override {
    return static_cast<double>(index_.parameters.time_base.num) / index_.parameters.time_base.den;
  }
  const std::vector<double>& times() const override { return times_; }

  Result<uint32_t> FrameAt(double seconds) const override {
    if (!index_.pts_monotonic) {
      return Status(Code::kInvalidArgument,
                    "the video's times do not ascend: ask for frames by number",
                    {.uri = object_->uri()});
    }
    if (std::isnan(seconds)) {
      return Status(Code::kInvalidArgument, "a time must be a number", {.uri = object_->uri()});
    }
    const auto after = std::ranges::upper_bound(times_, seconds);
    if (after == times_.begin()) {
      return Status(Code::kInvalidArgument,
                    fmt::format("no frame is shown at {} s: the first comes at {} s", seconds,
                                times_.empty() ? 0.0 : times_.front()),
                    {.uri = object_->uri()});
    }
    return static_cast<uint32_t>(after - times_.begin() - 1);
  }

  Status Frames(std::span<const uint32_t> numbers, std::span<std::byte> out) override;
  Status NativeFrames(std::span<const uint32_t> numbers,
                      const std::function<Status(const NativePicture&)>& visit) override;

 private:
  using Numbers = std::vector<uint32_t>;
  // `numbers`, ascending and distinct, in parts of bounded bytes.
  Result<std::vector<Numbers>> Parts(Numbers numbers, uint64_t frames_max) const;
  // Plans and fetches one part.
  Result<std::vector<media::DecodeRun>> Fetch(const Numbers& part, FetchedRanges* bytes);

  std::unique_ptr<ScannedObject> object_;
  const media::VideoIndex index_;
  const std::unique_ptr<media::VideoDecoder> decoder_;
  media::OutputFormat format_;
  media::DisplaySize size_;
  std::vector<double> times_;
};

Result<std::vector<VideoImpl::Numbers>> VideoImpl::Parts(Numbers numbers,
                                                         uint64_t frames_max) const {
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  if (!numbers.empty() && numbers.back() >= frame_count()) {
    return Status(Code::kInvalidArgument, fmt::format("frame {} is not in the video, which has {}",
                                                      numbers.back(), frame_count()));
  }
  std::vector<Numbers> parts;
  uint64_t bytes = 0;  // of the packets from the part's first frame on
  uint32_t packet = 0;
  for (const uint32_t f : numbers) {
    const uint32_t t = index_.frames[f].packet;
    for (; packet <= t; ++packet) bytes += index_.packets[packet].size;
    if (parts.empty() || bytes > kPartBytes || parts.back().size() >= frames_max) {
      parts.emplace_back();
      bytes = 0;
    }
    parts.back().push_back(f);
  }
  return parts;
}

Result<std::vector<media::DecodeRun>> VideoImpl::Fetch(const Numbers& part, FetchedRanges* bytes) {
  FB_ASSIGN_OR_RETURN(std::vector<media::DecodeRun> runs, media::PlanDecode(index_, part));
  FB_RETURN_IF_ERROR(bytes->Fetch(object_->object(), media::RangesOf(index_, runs, kGapBytes)));
  return runs;
}

Status VideoImpl::Frames(std::span<const uint32_t> numbers, std::span<std::byte> out) {
  const auto wide = [](int asked, int natural) { return asked > 0 ? asked : natural; };
  const uint64_t frame_bytes = uint64_t{3} *
                               static_cast<uint32_t>(wide(format_.width, size_.width)) *
                               static_cast<uint32_t>(wide(format_.height, size_.height));
  if (out.size() != frame_bytes * numbers.size()) {
    return Status(Code::kInvalidArgument, fmt::format("{} frames of {} bytes do not fit {} bytes",
                                                      numbers.size(), frame_bytes, out.size()));
  }
  if (numbers.empty()) return {};
  // Where each number's picture goes, by number.
  std::vector<size_t> places(numbers.size());
  std::iota(places.begin(), places.end(), 0);
  std::ranges::stable_sort(places, {}, [&](size_t i) { return numbers[i]; });
  auto place = places.begin();
  std::vector<std::byte> pictures;
  FB_ASSIGN_OR_RETURN(const auto parts,
                      Parts({numbers.begin(), numbers.end()},
                            std::max<uint64_t>(1, kPictureBytesMax / frame_bytes)));
  for (const Numbers& part : parts) {
    FetchedRanges bytes;
    FB_ASSIGN_OR_RETURN(const auto runs, Fetch(part, &bytes));
    pictures.resize(part.size() * frame_bytes);
    FB_RETURN_IF_ERROR(decoder_->DecodeRgb(index_, runs, bytes, format_, pictures)
                           .WithDetail({.uri = object_->uri()}));
    for (size_t i = 0; i < part.size(); ++i) {
      for (; place != places.end() && numbers[*place] == part[i]; ++place) {
        std::memcpy(out.data() + *place * frame_bytes, pictures.data() + i * frame_bytes,
                    frame_bytes);
      }
    }
  }
  return {};
}

Status VideoImpl::NativeFrames(std::span<const uint32_t> numbers,
                               const std::function<Status(const NativePicture&)>& visit) {
  FB_ASSIGN_OR_RETURN(const auto parts, Parts({numbers.begin(), numbers.end()}, UINT32_MAX));
  for (const Numbers& part : parts) {
    FetchedRanges bytes;
    FB_ASSIGN_OR_RETURN(const auto runs, Fetch(part, &bytes));
    Status stopped;  // by the visitor: its own status, without our detail
    Status status = decoder_->DecodeNative(index_, runs, bytes, [&](media::NativeFrame frame) {
      NativePicture picture{.frame = frame.frame,
                            .pts = index_.frames[frame.frame].pts,
                            .width = frame.width,
                            .height = frame.height,
                            .pixel_format = std::move(frame.pixel_format),
                            .bytes = std::move(frame.bytes)};
      stopped = visit(picture);
      return stopped;
    });
    FB_RETURN_IF_ERROR(std::move(stopped));
    FB_RETURN_IF_ERROR(std::move(status).WithDetail({.uri = object_->uri()}));
  }
  return {};
}

}  // namespace
}  // namespace engine

Result<std::string> FfmpegVersion() { return media::MediaVersion(); }

Result<std::unique_ptr<Video>> Video::Open(const std::string& uri, const StoreOptions& store,
                                           const VideoOptions& options) {
  if (options.width < 0 || options.height < 0) {
    return Status(Code::kInvalidArgument, "a picture's size is not negative");
  }
  FB_ASSIGN_OR_RETURN(auto object, engine::ScannedObject::Open(uri, store));
  FB_ASSIGN_OR_RETURN(std::vector<media::VideoIndex> videos, object->Scan(options.verify));
  // Pictures that are left out, streams that are no use: as `forebay index` tells them.
  for (const std::string& warning : object->report().warnings) {
    Log(LogLevel::kWarn, fmt::format("{}: {}", object->uri(), warning));
  }
  auto found = videos.begin();
  if (options.stream >= 0) {
    found = std::ranges::find(videos, static_cast<uint32_t>(options.stream),
                              &media::VideoIndex::stream);
  }
  if (found == videos.end()) {
    return Status(videos.empty() ? Code::kInvalidArgument : Code::kNotFound,
                  videos.empty() ? std::string("the object holds no video stream")
                                 : fmt::format("stream {} is no video stream", options.stream),
                  {.uri = object->uri()});
  }
  FB_ASSIGN_OR_RETURN(auto decoder, media::VideoDecoder::Make({.open_decoders_max = 2}));
  return std::make_unique<engine::VideoImpl>(std::move(object), std::move(*found),
                                             std::move(decoder), options);
}

}  // namespace forebay
