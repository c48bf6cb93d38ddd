#include "feed/video_clips.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "feed/path_pattern.h"

namespace forebay::feed {
namespace {

constexpr uint32_t kNoFrame = UINT32_MAX;
// Container time bases round: Matroska's is a millisecond.
constexpr double kTimeSlack_s = 1.5e-3;

std::vector<double> TimesOfFrames(const media::VideoIndex& index) {
  std::vector<double> times;
  times.reserve(index.frames.size());
  const auto& base = index.parameters.time_base;
  const double unit = static_cast<double>(base.num) / std::max(base.den, 1);
  const double rate = index.MeanFrameRate();
  for (size_t i = 0; i < index.frames.size(); ++i) {
    const int64_t pts = index.frames[i].pts;
    if (index.pts_monotonic && pts != media::kNoPts) {
      times.push_back(static_cast<double>(pts) * unit);
    } else {
      times.push_back(rate > 0 ? static_cast<double>(i) / rate : static_cast<double>(i));
    }
  }
  return times;
}

// Half of the usual time from a frame to the next: the median, which a pause or lost frames, where
// nothing is shown, do not stretch as they do the mean.
double HalfFrame(const std::vector<double>& times) {
  if (times.size() < 2) return 0.02;
  std::vector<double> steps(times.size() - 1);
  for (size_t i = 0; i < steps.size(); ++i) steps[i] = times[i + 1] - times[i];
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return 0.5 * *middle;
}

// Times that say nothing of when a frame was taken: they go back, or stand.
bool TimesAreWrong(const media::VideoIndex& index) {
  return !index.pts_monotonic && std::ranges::any_of(index.frames, [](const media::Frame& frame) {
    return frame.pts != media::kNoPts;
  });
}

// For each time of `reference` the nearest of `times`, within half a frame; empty: one to one.
std::vector<uint32_t> Align(const std::vector<double>& reference,
                            const std::vector<double>& times) {
  const double tolerance = HalfFrame(times) + kTimeSlack_s;
  std::vector<uint32_t> frame_of(reference.size(), kNoFrame);
  bool same = reference.size() <= times.size();
  size_t j = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    while (j + 1 < times.size() &&
           std::abs(times[j + 1] - reference[i]) <= std::abs(times[j] - reference[i])) {
      ++j;
    }
    if (j < times.size() && std::abs(times[j] - reference[i]) <= tolerance) {
      frame_of[i] = static_cast<uint32_t>(j);
    }
    same = same && frame_of[i] == i;
  }
  if (same) frame_of.clear();
  return frame_of;
}

// An upper bound of the bytes of any clip that spans `frames` frames: for every place, from the
// second sync point before it (leading pictures belong to the one before) to the clip's end.
uint64_t ClipBytesMax(const media::VideoIndex& index, uint64_t frames) {
  const auto& packets = index.packets;
  const uint64_t span = frames + 32;  // and the packets that reordering puts between
  std::vector<uint64_t> ends(packets.size() + 1, 0);
  for (size_t i = 0; i < packets.size(); ++i) ends[i + 1] = ends[i] + packets[i].size;
  uint64_t most = 0;
  size_t sync = 0;
  size_t before = 0;
  for (size_t i = 0; i < packets.size(); ++i) {
    if ((packets[i].flags & media::Packet::kKey) != 0) {
      before = sync;
      sync = i;
    }
    const size_t end = std::min<size_t>(packets.size(), i + span);
    const uint64_t first = packets[before].offset;
    const uint64_t last = packets[end - 1].offset + packets[end - 1].size;
    most = std::max({most, ends[end] - ends[before], last > first ? last - first : 0});
  }
  return most;
}

struct CameraPlan {
  uint32_t object;  // of the catalog
  std::shared_ptr<const media::VideoIndex> index;
  std::vector<media::DecodeRun> runs;
  std::vector<uint32_t> frames;    // as wanted, in clip order
  std::vector<uint32_t> distinct;  // ascending, each once
};

struct ClipPlan {
  std::vector<CameraPlan> cameras;
};

// The bytes of one camera as the decoder asks for them.
class UnitReader : public media::FetchedBytes {
 public:
  explicit UnitReader(const UnitBytes& bytes) : bytes_(bytes) {}
  Status Copy(ByteRange range, MutableBytes into) const override {
    for (size_t i = 0; i < bytes_.extents.size(); ++i) {
      if (!bytes_.extents[i].range.Contains(range)) continue;
      bytes_.buffers[i]->CopyOut(range.offset - bytes_.extents[i].range.offset, into);
      return {};
    }
    return Status(
        Code::kDataLoss, "bytes needed for decoding were not fetched",
        {.offset = static_cast<int64_t>(range.offset), .end = static_cast<int64_t>(range.end)});
  }

 private:
  const UnitBytes& bytes_;
};

class ClipDecoder : public SampleDecoder {
 public:
  ClipDecoder(std::shared_ptr<const catalog::Catalog> catalog,
              std::unique_ptr<media::VideoDecoder> decoder,
              const std::vector<media::OutputFormat>& formats)
      : catalog_(std::move(catalog)), decoder_(std::move(decoder)), formats_(formats) {}

  Status Decode(const SamplePlan& plan, size_t unit, const UnitBytes& bytes, const RowTargets& rows,
                size_t*) override {
    const CameraPlan& camera = static_cast<const ClipPlan*>(plan.detail.get())->cameras[unit];
    Status status = DecodeCamera(camera, unit, bytes, rows[0].array(unit));
    if (status.ok()) return status;
    const auto& object = catalog_->object(camera.object);
    ErrorDetail detail{.uri = catalog_->source_uri() + object.key};
    if (!bytes.extents.empty()) {  // all that was decoded from, where it is not known better
      detail.offset = static_cast<int64_t>(bytes.extents.front().range.offset);
      detail.end = static_cast<int64_t>(bytes.extents.back().range.end);
    }
    return std::move(status).WithDetail(detail).WithContext(fmt::format("ETag {}", object.etag));
  }

 private:
  Status DecodeCamera(const CameraPlan& camera, size_t unit, const UnitBytes& bytes,
                      MutableBytes out) {
    const UnitReader reader(bytes);
    if (camera.distinct.size() == camera.frames.size()) {
      return decoder_->DecodeRgb(*camera.index, camera.runs, reader, formats_[unit], out);
    }
    // A slower camera shows one picture for several of the first camera's.
    const size_t frame_bytes = out.size() / camera.frames.size();
    scratch_.resize(camera.distinct.size() * frame_bytes);
    FB_RETURN_IF_ERROR(
        decoder_->DecodeRgb(*camera.index, camera.runs, reader, formats_[unit], scratch_));
    for (size_t i = 0; i < camera.frames.size(); ++i) {
      const auto at = std::ranges::lower_bound(camera.distinct, camera.frames[i]);
      const auto from = static_cast<size_t>(at - camera.distinct.begin()) * frame_bytes;
      std::memcpy(out.data() + i * frame_bytes, scratch_.data() + from, frame_bytes);
    }
    return {};
  }

  std::shared_ptr<const catalog::Catalog> catalog_;
  std::unique_ptr<media::VideoDecoder> decoder_;
  const std::vector<media::OutputFormat>& formats_;
  std::vector<std::byte> scratch_;
};

}  // namespace

// One scene's objects by camera.
struct VideoClips::Found {
  std::string name;
  std::map<std::string, uint32_t> objects;
};

Result<std::unique_ptr<VideoClips>> VideoClips::Make(
    std::shared_ptr<const catalog::Catalog> catalog, const VideoClipsOptions& options) {
  std::unique_ptr<VideoClips> clips(new VideoClips(std::move(catalog), options));
  std::vector<Found> found;
  FB_RETURN_IF_ERROR(clips->FindScenes(&found));
  for (const Found& scene : found) FB_RETURN_IF_ERROR(clips->AddScene(scene));
  if (clips->sample_count() == 0) {
    std::string why;
    for (size_t i = 0; i < std::min<size_t>(clips->left_out_.size(), 3); ++i) {
      why += "; " + clips->left_out_[i];
    }
    return Status(
        Code::kNotFound,
        fmt::format("no clip of {} frames, {} apart, under {} with pattern '{}'{}", options.frames,
                    options.step, clips->catalog_->source_uri(), options.pattern, why));
  }
  FB_RETURN_IF_ERROR(clips->SetArrays());
  return clips;
}

Status VideoClips::FindScenes(std::vector<Found>* found) {
  FB_ASSIGN_OR_RETURN(const PathPattern pattern, PathPattern::Parse(options_.pattern));
  const auto& names = pattern.names();
  if (std::ranges::find(names, "camera") == names.end()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("pattern '{}' lacks {{camera}}", options_.pattern));
  }
  std::map<std::string, Found> scenes;
  std::map<std::string, uint32_t> all_cameras;
  for (uint32_t i = 0; i < catalog_->object_count(); ++i) {
    const std::string& key = catalog_->object(i).key;
    const auto values = pattern.Match(key);
    if (!values) continue;
    std::vector<std::string> parts;
    for (const std::string& name : names) {
      // An extension tells nothing about the scene.
      if (name != "camera" && name != "ext") parts.push_back(values->at(name));
    }
    const std::string name = fmt::format("{}", fmt::join(parts, "/"));
    const std::string& camera = values->at("camera");
    scenes[name].name = name;
    const auto [it, fresh] = scenes[name].objects.emplace(camera, i);
    if (!fresh) {
      return Status(Code::kInvalidArgument,
                    fmt::format("scene '{}' has two objects for camera '{}': {} and {}", name,
                                camera, catalog_->object(it->second).key, key));
    }
    ++all_cameras[camera];
  }
  cameras_ = options_.cameras;
  if (cameras_.empty()) {
    for (const auto& [camera, count] : all_cameras) cameras_.push_back(camera);
  }
  for (const std::string& camera : cameras_) {
    if (all_cameras.contains(camera)) continue;
    std::vector<std::string> known;
    known.reserve(all_cameras.size());
    for (const auto& [name, count] : all_cameras) known.push_back(name);
    return Status(Code::kInvalidArgument,
                  fmt::format("no camera '{}' under {}; there are: {}", camera,
                              catalog_->source_uri(), fmt::join(known, ", ")));
  }
  for (auto& [name, scene] : scenes) found->push_back(std::move(scene));
  return {};
}

Status VideoClips::AddScene(const Found& found) {
  Scene scene;
  for (const std::string& name : cameras_) {
    const auto it = found.objects.find(name);
    if (it == found.objects.end()) {
      left_out_.push_back(fmt::format("scene '{}': camera '{}' is missing", found.name, name));
      return {};
    }
    const catalog::CatalogObject& object = catalog_->object(it->second);
    if (!object.error.empty() || object.video_count == 0) {
      left_out_.push_back(fmt::format("scene '{}': {}: {}", found.name, object.key,
                                      object.error.empty() ? "no video" : object.error));
      return {};
    }
    Camera camera;
    camera.object = it->second;
    FB_ASSIGN_OR_RETURN(camera.index, catalog_->video(object.first_video));
    if (cameras_.size() > 1 && TimesAreWrong(*camera.index)) {
      left_out_.push_back(
          fmt::format("scene '{}': {}: its times do not ascend, so that it cannot "
                      "be aligned with the other cameras",
                      found.name, object.key));
      return {};
    }
    std::vector<double> times = TimesOfFrames(*camera.index);
    if (scene.cameras.empty()) {
      scene.times = std::move(times);
      scene.half_frame = HalfFrame(scene.times);
    } else {
      camera.frame_of = Align(scene.times, times);
    }
    scene.cameras.push_back(std::move(camera));
  }
  FindStarts(scene);
  if (scene.starts.empty()) {
    left_out_.push_back(fmt::format("scene '{}': no clip is covered by all cameras", found.name));
    return {};
  }
  scene_names_.push_back(found.name);
  first_sample_.push_back(first_sample_.back() + scene.starts.size());
  scenes_.push_back(std::move(scene));
  return {};
}

void VideoClips::FindStarts(Scene& scene) const {
  const uint64_t span = uint64_t{options_.frames - 1} * options_.step + 1;
  for (uint64_t start = 0; start + span <= scene.times.size(); start += options_.hop) {
    bool covered = true;
    for (const Camera& camera : scene.cameras) {
      if (camera.frame_of.empty()) {
        covered = covered && start + span <= std::max<uint64_t>(camera.index->frames.size(), 1);
        continue;
      }
      for (uint64_t i = 0; i < options_.frames && covered; ++i) {
        covered = camera.frame_of[start + i * options_.step] != kNoFrame;
      }
    }
    if (covered) scene.starts.push_back(static_cast<uint32_t>(start));
  }
}

Status VideoClips::SetArrays() {
  const uint64_t span = uint64_t{options_.frames - 1} * options_.step + 1;
  for (size_t c = 0; c < cameras_.size(); ++c) {
    media::OutputFormat format;
    format.layout = options_.chw ? media::PixelLayout::kChw : media::PixelLayout::kHwc;
    std::optional<media::DisplaySize> first;
    uint64_t bytes_max = 0;
    for (size_t s = 0; s < scenes_.size(); ++s) {
      const Camera& camera = scenes_[s].cameras[c];
      const media::DisplaySize size = media::DisplaySizeOf(camera.index->parameters);
      if (!first) first = size;
      bytes_max = std::max(bytes_max, ClipBytesMax(*camera.index, span));
      if (options_.width == 0 && (size.width != first->width || size.height != first->height)) {
        return Status(Code::kInvalidArgument,
                      fmt::format("{} is {}x{}, but {} is {}x{}: pictures of one camera must be of "
                                  "one size unless they are resized",
                                  catalog_->object(camera.object).key, size.width, size.height,
                                  catalog_->object(scenes_[0].cameras[c].object).key, first->width,
                                  first->height));
      }
    }
    format.width = options_.width > 0 ? options_.width : first->width;
    format.height = options_.width > 0 ? options_.height : first->height;
    raw_bytes_max_ += SlabsFor(bytes_max) * kSlabBytes;
    SampleArray array{.name = cameras_[c], .dtype = "uint8", .shape = {}, .bytes = 0};
    const int64_t frames = options_.frames;
    if (options_.chw) {
      array.shape = {frames, 3, format.height, format.width};
    } else {
      array.shape = {frames, format.height, format.width, 3};
    }
    array.bytes = 3ULL * options_.frames * static_cast<uint64_t>(format.width) *
                  static_cast<uint64_t>(format.height);
    arrays_.push_back(std::move(array));
    formats_.push_back(format);
  }
  return {};
}

std::pair<uint32_t, uint32_t> VideoClips::SceneAndStart(uint64_t sample) const {
  const auto after = std::ranges::upper_bound(first_sample_, sample);
  const auto scene = static_cast<uint32_t>(after - first_sample_.begin() - 1);
  return {scene, scenes_[scene].starts[sample - first_sample_[scene]]};
}

Result<SamplePlan> VideoClips::PlanSample(uint64_t sample, uint64_t gap_bytes) const {
  const auto [s, start] = SceneAndStart(sample);
  auto detail = std::make_shared<ClipPlan>();
  SamplePlan plan;
  for (const Camera& camera : scenes_[s].cameras) {
    CameraPlan wanted{
        .object = camera.object, .index = camera.index, .runs = {}, .frames = {}, .distinct = {}};
    for (uint32_t i = 0; i < options_.frames; ++i) {
      const uint32_t frame = start + i * options_.step;
      wanted.frames.push_back(camera.frame_of.empty() ? frame : camera.frame_of[frame]);
    }
    wanted.distinct = wanted.frames;
    wanted.distinct.erase(std::ranges::unique(wanted.distinct).begin(), wanted.distinct.end());
    Result<std::vector<media::DecodeRun>> runs = media::PlanDecode(*camera.index, wanted.distinct);
    if (!runs.ok()) {
      return std::move(runs).status().WithContext(catalog_->object(camera.object).key);
    }
    wanted.runs = *std::move(runs);
    DecodeUnit unit{.first_extent = plan.extents.size(), .extent_count = 0};
    for (const ByteRange& range : media::RangesOf(*camera.index, wanted.runs, gap_bytes)) {
      plan.extents.push_back({camera.object, range});
      ++unit.extent_count;
    }
    plan.units.push_back(unit);
    detail->cameras.push_back(std::move(wanted));
  }
  plan.detail = std::move(detail);
  return plan;
}

Result<std::unique_ptr<SampleDecoder>> VideoClips::MakeDecoder() const {
  FB_ASSIGN_OR_RETURN(auto decoder,
                      media::VideoDecoder::Make({.open_decoders_max = static_cast<uint32_t>(
                                                     std::max<size_t>(16, 2 * cameras_.size()))}));
  return std::unique_ptr<SampleDecoder>(
      std::make_unique<ClipDecoder>(catalog_, std::move(decoder), formats_));
}

order::BlockTable VideoClips::BlocksOf(uint64_t) const {
  std::vector<uint64_t> clips;
  clips.reserve(scenes_.size());
  for (const Scene& scene : scenes_) clips.push_back(scene.starts.size());
  return order::BlockTable::Ragged(clips);
}

std::string VideoClips::DescribeSample(uint64_t sample) const {
  const auto [scene, start] = SceneAndStart(sample);
  return fmt::format("scene '{}' from frame {} at {:.3f} s", scene_names_[scene], start,
                     scenes_[scene].times[start]);
}

VideoClips::Times VideoClips::TimesOf(uint64_t sample) const {
  const auto [s, start] = SceneAndStart(sample);
  const Scene& scene = scenes_[s];
  Times times{.scene = s, .seconds = {}, .half_frame = scene.half_frame};
  for (uint32_t i = 0; i < options_.frames; ++i) {
    times.seconds.push_back(scene.times[start + i * options_.step]);
  }
  return times;
}

}  // namespace forebay::feed
