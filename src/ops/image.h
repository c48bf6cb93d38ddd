// Pixels between two ops: bytes, channels interleaved, in memory that is used again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace forebay::ops {

struct Size {
  int64_t width = 0, height = 0;
  bool operator==(const Size&) const = default;
};

struct Rect {
  int64_t x = 0, y = 0, width = 0, height = 0;
  bool operator==(const Rect&) const = default;
};

// Someone else's pixels. kSlack bytes after the last one may be read.
struct ImageView {
  static constexpr size_t kSlack = 32;

  const uint8_t* data = nullptr;
  size_t stride = 0;  // bytes from row to row
  int64_t width = 0, height = 0;
  int channels = 0;

  const uint8_t* Row(int64_t y) const { return data + static_cast<size_t>(y) * stride; }
  size_t row_bytes() const { return static_cast<size_t>(width) * static_cast<size_t>(channels); }
  Size size() const { return {width, height}; }
  ImageView Cropped(const Rect& r) const {
    return {.data = Row(r.y) + r.x * channels,
            .stride = stride,
            .width = r.width,
            .height = r.height,
            .channels = channels};
  }
};

// Scratch that grows as needed, and shrinks when one large image is followed by small ones.
class Image {
 public:
  // What was in it is lost. Rows follow each other without a gap.
  void Reset(int64_t width, int64_t height, int channels) {
    view_ = {.width = width, .height = height, .channels = channels};
    view_.stride = view_.row_bytes();
    const size_t bytes = view_.stride * static_cast<size_t>(height) + ImageView::kSlack;
    if (bytes > capacity_ || capacity_ > kKept + 2 * bytes) {
      pixels_.reset();
      pixels_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
      capacity_ = bytes;
    }
    view_.data = pixels_.get();
  }
  const ImageView& view() const { return view_; }
  uint8_t* Row(int64_t y) { return pixels_.get() + static_cast<size_t>(y) * view_.stride; }

 private:
  static constexpr size_t kKept = size_t{32} << 20;

  std::unique_ptr<uint8_t[]> pixels_;
  size_t capacity_ = 0;
  ImageView view_;
};

}  // namespace forebay::ops
