// What a chain does to one image, and the running of it: from a file's bytes to the array.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "forebay/ops.h"
#include "forebay/status.h"
#include "ops/chain.h"
#include "ops/decode_image.h"
#include "ops/image.h"
#include "ops/pixel_table.h"
#include "ops/resample.h"

namespace forebay::ops {

// Immutable after Finish.
class ImagePlan {
 public:
  using StepOp = std::variant<ResizeOp, CenterCropOp, RandomResizedCropOp, RandomHorizontalFlipOp,
                              ColorJitterOp>;
  struct Step {
    StepOp op;
    std::string random_name;  // for KeyedRandom
  };

  explicit ImagePlan(DecodeImageOp decode);

  // Takes the ops that work on images. Errors: kInvalidArgument: in an order that has no meaning.
  Status Append(const Op& op, std::string random_name);
  // Errors: kInvalidArgument: nothing said how large the image becomes.
  Status Finish();

  const DecodeImageOp& decode() const { return decode_; }
  const std::vector<Step>& steps() const { return steps_; }
  // How many of the first steps are the same whatever the sample's identity.
  size_t fixed_steps() const;
  // The decoding and those steps.
  std::string DescribeFixed() const;
  const PixelTable& table() const { return table_; }
  bool chw() const { return chw_; }
  // What comes out; after Finish.
  Size size() const { return *size_; }
  int channels() const { return channels_; }
  std::vector<int64_t> Shape() const;

 private:
  Status AppendStep(const StepOp& op, std::string random_name);

  DecodeImageOp decode_;
  std::vector<Step> steps_;
  PixelTable table_;
  bool chw_ = false;
  std::optional<Size> size_;
  int channels_ = 0;  // 0: not known
};

// Of one thread.
class ImageRunner {
 public:
  // Errors: kDataLoss, and kInvalidArgument of an image that the plan does not fit.
  Status Run(const ImagePlan& plan, const SampleIdentity& sample, ByteView file, MutableBytes out);
  // Decodes and does the fixed steps; appends what comes of it to `kept`.
  Status Keep(const ImagePlan& plan, ByteView file, std::vector<std::byte>* kept);
  // The other steps. `kept` begins with what Keep appended, and is moved on behind it.
  Status RunKept(const ImagePlan& plan, const SampleIdentity& sample, ByteView* kept,
                 MutableBytes out);
  // Of the last one: decoded, with damage that the decoder got past.
  bool damaged() const { return decoder_.damaged(); }

 private:
  // Decodes what the first of `steps` need and does those; returns how many it did.
  Result<size_t> RunHead(const ImagePlan& plan, std::span<const ImagePlan::Step> steps,
                         const SampleIdentity& sample, ByteView file);
  Status RunSteps(std::span<const ImagePlan::Step> steps, const SampleIdentity& sample);
  Status Write(const ImagePlan& plan, MutableBytes out);
  Status RunStep(const ImagePlan::Step& step, const SampleIdentity& sample);
  Status Resize(const Size& to, ResizeFilter filter);
  void Resample();  // `now_`, as it is planned
  void Crop(const Rect& rect);
  void Mirror();
  // Makes `now_` pixels of our own, that may be changed in place.
  Image* Own();
  Image* Other() { return &scratch_[1 - current_]; }
  void UseOther();

  ImageDecoder decoder_;
  Resampler resampler_;
  std::array<Image, 2> scratch_;
  size_t current_ = 0;
  ImageView now_;
  bool mirrored_ = false;  // still to be done to `now_`
};

}  // namespace forebay::ops
