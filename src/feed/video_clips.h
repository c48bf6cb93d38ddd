// Clips of several cameras as a data set: which samples there are, what bytes each needs, how they
// become arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog/catalog.h"
#include "feed/dataset.h"
#include "media/media.h"

namespace forebay::feed {

struct VideoClipsOptions {
  std::string pattern;
  std::vector<std::string> cameras;  // empty: all that the pattern finds, sorted
  uint32_t frames = 1;
  uint32_t step = 1;
  uint32_t hop = 1;
  int32_t width = 0, height = 0;  // resize; 0: as the stream
  bool chw = false;
};

// Cameras are aligned to the first one by the container's presentation times, within half a frame;
// a clip that some camera does not cover is no sample.
class VideoClips : public Dataset {
 public:
  // Errors: kInvalidArgument (pattern, unknown camera, two objects for one camera of a scene,
  // unequal sizes without a resize), kNotFound (no sample at all, with what was left out and why).
  static Result<std::unique_ptr<VideoClips>> Make(std::shared_ptr<const catalog::Catalog> catalog,
                                                  const VideoClipsOptions& options);

  uint64_t sample_count() const override { return first_sample_.back(); }
  const std::vector<SampleArray>& arrays() const override { return arrays_; }
  Result<SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const override;
  Result<std::unique_ptr<SampleDecoder>> MakeDecoder() const override;
  std::string DescribeSample(uint64_t sample) const override;
  order::BlockTable BlocksOf(uint64_t samples) const override;  // a scene each
  uint64_t raw_bytes_max() const override { return raw_bytes_max_; }

  size_t frames() const { return options_.frames; }
  const std::vector<std::string>& scenes() const { return scene_names_; }
  // Scene of the sample; times of its frames in the first camera (size `frames`), half a frame.
  struct Times {
    uint32_t scene = 0;
    std::vector<double> seconds;
    double half_frame = 0;
  };
  Times TimesOf(uint64_t sample) const;
  // One line per scene or object left out, with the reason.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  struct Camera {
    std::shared_ptr<const media::VideoIndex> index;
    uint32_t object = 0;
    std::vector<uint32_t> frame_of;  // first camera's frame -> this one's; empty: the same
  };
  struct Scene {
    std::vector<Camera> cameras;
    std::vector<double> times;     // of the first camera's frames
    double half_frame = 0;         // of the first camera
    std::vector<uint32_t> starts;  // frames of the first camera where clips start
  };
  struct Found;

  VideoClips(std::shared_ptr<const catalog::Catalog> catalog, const VideoClipsOptions& options)
      : catalog_(std::move(catalog)), options_(options) {}
  Status FindScenes(std::vector<Found>* found);
  Status AddScene(const Found& found);
  Status SetArrays();
  void FindStarts(Scene& scene) const;
  std::pair<uint32_t, uint32_t> SceneAndStart(uint64_t sample) const;

  std::shared_ptr<const catalog::Catalog> catalog_;
  VideoClipsOptions options_;
  std::vector<std::string> cameras_;
  std::vector<std::string> scene_names_;
  std::vector<Scene> scenes_;
  std::vector<uint64_t> first_sample_{0};  // of each scene, and one past the last
  std::vector<SampleArray> arrays_;
  std::vector<media::OutputFormat> formats_;
  std::vector<std::string> left_out_;
  uint64_t raw_bytes_max_ = 0;
};

}  // namespace forebay::feed
