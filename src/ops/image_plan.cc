#include "ops/image_plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "ops/bomb.h"
#include "ops/color.h"
#include "ops/geometry.h"

namespace forebay::ops {
namespace {

constexpr int64_t kPixelsMost = 178'956'970;

template <class... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

KeyedRandom RandomOf(const SampleIdentity& sample, std::string_view name) {
  return KeyedRandom({.seed = sample.seed,
                      .op = name,
                      .epoch = sample.epoch,
                      .sample = sample.sample,
                      .occurrence = sample.occurrence});
}

Rect All(const Size& size) { return {0, 0, size.width, size.height}; }

bool Within(const Rect& rect, const Size& size) {
  return rect.x >= 0 && rect.y >= 0 && rect.x + rect.width <= size.width &&
         rect.y + rect.height <= size.height;
}

struct KeptHead {
  int64_t width = 0, height = 0, channels = 0;
};
constexpr const char* kNotKept = "what was kept of the sample is not that";

Status CheckResized(const Size& to, const Size& from) {
  if (to.width <= kPixelsMost / to.height) return {};
  return Bad(fmt::format("an image of {} x {} pixels would become one of {} x {}", from.width,
                         from.height, to.width, to.height));
}

}  // namespace

ImagePlan::ImagePlan(DecodeImageOp decode) : decode_(std::move(decode)) {
  channels_ = decode_.mode == "RGB" ? 3 : decode_.mode == "L" ? 1 : 0;
}

Status ImagePlan::Append(const Op& op, std::string random_name) {
  return std::visit(
      Overloaded{
          [&](const NormalizeOp& normalize) {
            FB_RETURN_IF_ERROR(table_.Append(normalize));
            const auto channels = static_cast<int>(normalize.mean.size());
            if (channels_ == 0) channels_ = channels;
            return channels == channels_
                       ? Status()
                       : Bad(fmt::format("normalize: {} values for an image of {} channels",
                                         channels, channels_));
          },
          [&](const ToDtypeOp& to_dtype) { return table_.Append(to_dtype); },
          [&](const ToChwOp&) {
            return std::exchange(chw_, true) ? Bad("to_chw: it is CHW already") : Status();
          },
          [&](const ResizeOp& resize) {
            if (resize.width > 0 || size_) size_ = ResizedSize(resize, size_.value_or(Size{}));
            return AppendStep(resize, {});
          },
          [&](const CenterCropOp& crop) {
            size_ = {crop.width, crop.height};
            return AppendStep(crop, {});
          },
          [&](const RandomResizedCropOp& crop) {
            size_ = {crop.width, crop.height};
            return AppendStep(crop, std::move(random_name));
          },
          [&](const RandomHorizontalFlipOp& flip) {
            return AppendStep(flip, std::move(random_name));
          },
          [&](const ColorJitterOp& jitter) { return AppendStep(jitter, std::move(random_name)); },
          [](const auto&) { return Bad("not an op of images"); }},
      op);
}

Status ImagePlan::AppendStep(const StepOp& op, std::string random_name) {
  if (table_.dtype() != "uint8") {
    return Bad("ops that resize, crop, flip or recolour come before to_dtype and normalize");
  }
  steps_.push_back({op, std::move(random_name)});
  return {};
}

Status ImagePlan::Finish() {
  if (!size_) {
    return Bad(
        "images differ in size when the chain ends: it needs a resize to height and width, "
        "a center_crop or a random_resized_crop");
  }
  if (channels_ == 0) {
    return Bad("images of mode 'unchanged' may differ in channels: normalize says how many");
  }
  if (channels_ > 4) return Bad(fmt::format("an image of {} channels", channels_));
  FB_RETURN_IF_ERROR(CheckResized(*size_, *size_));
  table_.Finish(channels_);
  return {};
}

std::vector<int64_t> ImagePlan::Shape() const {
  if (chw_) return {channels_, size_->height, size_->width};
  return {size_->height, size_->width, channels_};
}

size_t ImagePlan::fixed_steps() const {
  const auto fixed = [](const Step& step) {
    return std::holds_alternative<ResizeOp>(step.op) ||
           std::holds_alternative<CenterCropOp>(step.op);
  };
  return static_cast<size_t>(std::ranges::find_if_not(steps_, fixed) - steps_.begin());
}

std::string ImagePlan::DescribeFixed() const {
  std::string text = DescribeOp(decode_);
  for (const Step& step : std::span(steps_).first(fixed_steps())) {
    text += "; " + std::visit([](const auto& op) { return DescribeOp(op); }, step.op);
  }
  return text;
}

Status ImageRunner::Run(const ImagePlan& plan, const SampleIdentity& sample, ByteView file,
                        MutableBytes out) {
  const std::span steps(plan.steps());
  FB_ASSIGN_OR_RETURN(const size_t done, RunHead(plan, steps, sample, file));
  FB_RETURN_IF_ERROR(RunSteps(steps.subspan(done), sample));
  return Write(plan, out);
}

// Width, height and channels; the pixels; what may be read behind them.
Status ImageRunner::Keep(const ImagePlan& plan, ByteView file, std::vector<std::byte>* kept) {
  const auto steps = std::span(plan.steps()).first(plan.fixed_steps());
  FB_ASSIGN_OR_RETURN(const size_t done, RunHead(plan, steps, {}, file));
  FB_RETURN_IF_ERROR(RunSteps(steps.subspan(done), {}));
  const KeptHead head = {now_.width, now_.height, now_.channels};
  const auto bytes = std::as_bytes(std::span(&head, 1));
  kept->insert(kept->end(), bytes.begin(), bytes.end());
  for (int64_t y = 0; y < now_.height; ++y) {
    const auto row = std::as_bytes(std::span(now_.Row(y), now_.row_bytes()));
    kept->insert(kept->end(), row.begin(), row.end());
  }
  kept->resize(kept->size() + ImageView::kSlack);
  return {};
}

Status ImageRunner::RunKept(const ImagePlan& plan, const SampleIdentity& sample, ByteView* kept,
                            MutableBytes out) {
  KeptHead head;
  if (kept->size() < sizeof(head)) return Status(Code::kDataLoss, kNotKept);
  std::memcpy(&head, kept->data(), sizeof(head));
  *kept = kept->subspan(sizeof(head));
  if (!CheckBomb({head.width, head.height}, 1, kept->size(), kPixelsMost).ok() ||
      head.channels < 1 || head.channels > 4) {
    return Status(Code::kDataLoss, kNotKept);
  }
  now_ = {.data = reinterpret_cast<const uint8_t*>(kept->data()),
          .stride = static_cast<size_t>(head.width * head.channels),
          .width = head.width,
          .height = head.height,
          .channels = static_cast<int>(head.channels)};
  const size_t bytes = now_.stride * static_cast<size_t>(head.height) + ImageView::kSlack;
  if (kept->size() < bytes) return Status(Code::kDataLoss, kNotKept);
  *kept = kept->subspan(bytes);
  mirrored_ = false;
  FB_RETURN_IF_ERROR(RunSteps(std::span(plan.steps()).subspan(plan.fixed_steps()), sample));
  return Write(plan, out);
}

Status ImageRunner::RunSteps(std::span<const ImagePlan::Step> steps, const SampleIdentity& sample) {
  for (const ImagePlan::Step& step : steps) FB_RETURN_IF_ERROR(RunStep(step, sample));
  return {};
}

Status ImageRunner::Write(const ImagePlan& plan, MutableBytes out) {
  if (now_.channels != plan.channels()) {
    return Bad(fmt::format("an image of {} channels, where the chain is made for {}", now_.channels,
                           plan.channels()));
  }
  plan.table().Write(now_, mirrored_, plan.chw(), out);
  return {};
}

Result<size_t> ImageRunner::RunHead(const ImagePlan& plan, std::span<const ImagePlan::Step> steps,
                                    const SampleIdentity& sample, ByteView file) {
  mirrored_ = false;
  FB_ASSIGN_OR_RETURN(const Size size, decoder_.Open(file, plan.decode()));
  const auto* resize = steps.empty() ? nullptr : std::get_if<ResizeOp>(&steps[0].op);
  const auto* random_crop =
      steps.empty() ? nullptr : std::get_if<RandomResizedCropOp>(&steps[0].op);
  const auto* center_crop = steps.empty() ? nullptr : std::get_if<CenterCropOp>(&steps[0].op);
  size_t done = steps.empty() ? 0 : 1;
  if (center_crop != nullptr && Within(CenterCropRect(*center_crop, size), size)) {
    FB_ASSIGN_OR_RETURN(now_, decoder_.Decode(CenterCropRect(*center_crop, size)));
    return done;
  }
  if (resize == nullptr && random_crop == nullptr) {
    FB_ASSIGN_OR_RETURN(now_, decoder_.Decode(All(size)));
    return 0;
  }
  Rect crop = All(size);
  Size to;
  Rect window;
  ResizeFilter filter;
  if (random_crop != nullptr) {
    KeyedRandom random = RandomOf(sample, steps[0].random_name);
    crop = DrawCrop(*random_crop, size, &random);
    to = {random_crop->width, random_crop->height};
    window = All(to);
    filter = random_crop->filter;
  } else {
    to = ResizedSize(*resize, size);
    window = All(to);
    filter = resize->filter;
    // Of a resize that is cropped afterwards, only what the crop keeps.
    const auto* then = steps.size() > 1 ? std::get_if<CenterCropOp>(&steps[1].op) : nullptr;
    if (then != nullptr && Within(CenterCropRect(*then, to), to)) {
      window = CenterCropRect(*then, to);
      done = 2;
    }
  }
  FB_RETURN_IF_ERROR(CheckResized({window.width, window.height}, size));
  resampler_.Plan({crop.width, crop.height}, to, window, filter);
  Rect source = resampler_.source();
  source.x += crop.x;
  source.y += crop.y;
  FB_ASSIGN_OR_RETURN(now_, decoder_.Decode(source));
  Resample();
  return done;
}

Status ImageRunner::RunStep(const ImagePlan::Step& step, const SampleIdentity& sample) {
  return std::visit(
      Overloaded{[&](const ResizeOp& op) {
                   Mirror();
                   return Resize(ResizedSize(op, now_.size()), op.filter);
                 },
                 [&](const CenterCropOp& op) {
                   Mirror();
                   Crop(CenterCropRect(op, now_.size()));
                   return Status();
                 },
                 [&](const RandomResizedCropOp& op) {
                   Mirror();
                   KeyedRandom random = RandomOf(sample, step.random_name);
                   now_ = now_.Cropped(DrawCrop(op, now_.size(), &random));
                   return Resize({op.width, op.height}, op.filter);
                 },
                 [&](const RandomHorizontalFlipOp& op) {
                   KeyedRandom random = RandomOf(sample, step.random_name);
                   mirrored_ ^= random.NextDouble() < op.p;
                   return Status();
                 },
                 [&](const ColorJitterOp& op) {
                   if (now_.channels != 1 && now_.channels != 3) {
                     return Bad(fmt::format("color_jitter of {} channels", now_.channels));
                   }
                   KeyedRandom random = RandomOf(sample, step.random_name);
                   JitterColors(op, &random, Own());
                   return Status();
                 }},
      step.op);
}

Status ImageRunner::Resize(const Size& to, ResizeFilter filter) {
  FB_RETURN_IF_ERROR(CheckResized(to, now_.size()));
  resampler_.Plan(now_.size(), to, All(to), filter);
  Resample();
  return {};
}

void ImageRunner::Resample() {
  Image* into = Other();
  now_ = resampler_.Run(now_, into);
  if (now_.data == into->view().data) UseOther();
}

void ImageRunner::Crop(const Rect& rect) {
  if (Within(rect, now_.size())) {
    now_ = now_.Cropped(rect);
    return;
  }
  Image* into = Other();
  into->Reset(rect.width, rect.height, now_.channels);
  const int64_t left = std::max<int64_t>(0, -rect.x);
  const int64_t right = std::min(rect.width, now_.width - rect.x);
  const auto channels = static_cast<size_t>(now_.channels);
  for (int64_t y = 0; y < rect.height; ++y) {
    uint8_t* row = into->Row(y);
    std::memset(row, 0, into->view().row_bytes());
    const int64_t from = rect.y + y;
    if (from < 0 || from >= now_.height) continue;
    std::memcpy(row + static_cast<size_t>(left) * channels,
                now_.Row(from) + static_cast<size_t>(rect.x + left) * channels,
                static_cast<size_t>(right - left) * channels);
  }
  now_ = into->view();
  UseOther();
}

void ImageRunner::Mirror() {
  if (!std::exchange(mirrored_, false)) return;
  Image* into = Other();
  into->Reset(now_.width, now_.height, now_.channels);
  const auto channels = static_cast<size_t>(now_.channels);
  for (int64_t y = 0; y < now_.height; ++y) {
    const uint8_t* from = now_.Row(y) + now_.row_bytes();
    uint8_t* to = into->Row(y);
    for (int64_t x = 0; x < now_.width; ++x, to += channels) {
      from -= channels;
      std::memcpy(to, from, channels);
    }
  }
  now_ = into->view();
  UseOther();
}

Image* ImageRunner::Own() {
  Image* own = &scratch_[current_];
  if (now_.data == own->view().data && now_.size() == own->view().size()) return own;
  Image* into = Other();
  into->Reset(now_.width, now_.height, now_.channels);
  for (int64_t y = 0; y < now_.height; ++y) {
    std::memcpy(into->Row(y), now_.Row(y), now_.row_bytes());
  }
  now_ = into->view();
  UseOther();
  return into;
}

void ImageRunner::UseOther() { current_ = 1 - current_; }

}  // namespace forebay::ops
