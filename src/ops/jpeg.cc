#include "ops/jpeg.h"

// jpeglib.h wants size_t and FILE.
#include <cstdio>

#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string>

#include "ops/bomb.h"

namespace forebay::ops {
namespace {

constexpr int kScansMost = 500;
constexpr JDIMENSION kRowsAtOnce = 8;

// The library reports errors by leaving through `jump`. Functions that may be left so, those named
// Guarded..., hold nothing that has a destructor.
struct Errors {
  jpeg_error_mgr base;
  std::jmp_buf jump;
  char text[JMSG_LENGTH_MAX];
};

Errors* ErrorsOf(j_common_ptr common) { return reinterpret_cast<Errors*>(common->err); }

[[noreturn]] void LeaveWith(j_common_ptr common, const char* text) {
  Errors* errors = ErrorsOf(common);
  std::snprintf(errors->text, sizeof(errors->text), "%s", text);
  std::longjmp(errors->jump, 1);
}

[[noreturn]] void OnError(j_common_ptr common) {
  Errors* errors = ErrorsOf(common);
  errors->base.format_message(common, errors->text);
  std::longjmp(errors->jump, 1);
}

void OnMessage(j_common_ptr) {}  // not to stderr; num_warnings counts them

// All bytes are there from the start: to ask for more is to have been cut short.
void OnSourceStart(j_decompress_ptr) {}
boolean OnSourceEmpty(j_decompress_ptr jpeg) {
  LeaveWith(reinterpret_cast<j_common_ptr>(jpeg), "the JPEG data is cut short");
}
void OnSourceSkip(j_decompress_ptr jpeg, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > jpeg->src->bytes_in_buffer) OnSourceEmpty(jpeg);
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<size_t>(count);
}

void OnProgress(j_common_ptr common) {
  const auto* jpeg = reinterpret_cast<j_decompress_ptr>(common);
  if (jpeg->input_scan_number > kScansMost) {
    LeaveWith(common, "a JPEG of more than 500 scans is refused");
  }
}

uint8_t Scale255(uint32_t a, uint32_t b) {  // a * b / 255, rounded
  const uint32_t t = a * b + 128;
  return static_cast<uint8_t>(((t >> 8) + t) >> 8);
}

// Stored inverted, as Adobe does and PIL takes for granted.
void InvertedCmykToRgb(const uint8_t* from, int64_t pixels, uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i, from += 4, to += 3) {
    for (int c = 0; c < 3; ++c) {
      to[c] = static_cast<uint8_t>(std::max(0, from[3] - Scale255(255U - from[c], from[3])));
    }
  }
}

// `flip` is 255 where the inks are not stored inverted.
void CmykToRgb(const uint8_t* from, int64_t pixels, uint8_t flip, uint8_t* to) {
  for (int64_t i = 0; i < pixels; ++i, from += 4, to += 3) {
    for (int c = 0; c < 3; ++c) {
      to[c] = static_cast<uint8_t>((from[c] ^ flip) * (from[3] ^ flip) / 255);
    }
  }
}

}  // namespace

struct JpegDecoder::State {
  jpeg_decompress_struct jpeg = {};
  Errors errors = {};
  jpeg_source_mgr source = {};
  jpeg_progress_mgr progress = {};
  bool created = false;
  Image pixels;
  Image cmyk;

  Status Failure() const { return Status(Code::kDataLoss, errors.text); }

  bool GuardedCreate() {
    jpeg.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = OnError;
    errors.base.output_message = OnMessage;
    if (setjmp(errors.jump) != 0) return false;
    jpeg_create_decompress(&jpeg);
    source.init_source = OnSourceStart;
    source.fill_input_buffer = OnSourceEmpty;
    source.skip_input_data = OnSourceSkip;
    source.resync_to_restart = jpeg_resync_to_restart;
    source.term_source = OnSourceStart;
    jpeg.src = &source;
    progress.progress_monitor = OnProgress;
    jpeg.progress = &progress;
    return true;
  }

  bool GuardedReadHeader(const uint8_t* data, size_t size) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg_abort_decompress(&jpeg);
    errors.base.num_warnings = 0;
    source.next_input_byte = data;
    source.bytes_in_buffer = size;
    jpeg_read_header(&jpeg, TRUE);
    return true;
  }

  // Starts, narrowed to *x and *width, which come out widened to what the library can cut off.
  bool GuardedStart(J_COLOR_SPACE space, bool narrow, JDIMENSION* x, JDIMENSION* width) {
    if (setjmp(errors.jump) != 0) return false;
    jpeg.out_color_space = space;
    jpeg.dct_method = JDCT_ISLOW;
    jpeg.do_fancy_upsampling = TRUE;
    jpeg_start_decompress(&jpeg);
    if (narrow) jpeg_crop_scanline(&jpeg, x, width);
    return true;
  }

  bool GuardedSkip(JDIMENSION rows) {
    if (setjmp(errors.jump) != 0) return false;
    if (rows > 0) jpeg_skip_scanlines(&jpeg, rows);
    return true;
  }

  bool GuardedRead(uint8_t* to, size_t stride, JDIMENSION rows) {
    if (setjmp(errors.jump) != 0) return false;
    JDIMENSION done = 0;
    while (done < rows) {
      JSAMPROW at[kRowsAtOnce];
      const JDIMENSION now = std::min(rows - done, kRowsAtOnce);
      for (JDIMENSION i = 0; i < now; ++i) at[i] = to + (done + i) * stride;
      done += jpeg_read_scanlines(&jpeg, at, now);
    }
    return true;
  }

  void GuardedAbort() {
    if (setjmp(errors.jump) != 0) return;
    jpeg_abort_decompress(&jpeg);
  }
  void GuardedDestroy() {
    if (setjmp(errors.jump) != 0) return;
    jpeg_destroy_decompress(&jpeg);
  }

  // Whether the end of the image is there, without decoding that far: in entropy-coded data no
  // other bytes look like it. Junk after it is left alone.
  bool HasEnd() const {
    for (size_t i = source.bytes_in_buffer; i >= 2; --i) {
      if (source.next_input_byte[i - 1] == JPEG_EOI && source.next_input_byte[i - 2] == 0xFF) {
        return true;
      }
    }
    return false;
  }

  void ToRgb(const uint8_t* inks, int64_t width, Cmyk cmyk_as, uint8_t* to) const;
  Result<ImageView> Read(const Rect& region, Cmyk cmyk_as);
};

JpegDecoder::JpegDecoder() : state_(std::make_unique<State>()) {}

JpegDecoder::~JpegDecoder() {
  if (state_->created) state_->GuardedDestroy();
}

bool JpegDecoder::damaged() const { return state_->errors.base.num_warnings > 0; }

Result<JpegDecoder::Info> JpegDecoder::Open(ByteView data, uint64_t pixels_max) {
  State& state = *state_;
  if (!state.created) {
    if (!state.GuardedCreate()) return state.Failure();
    state.created = true;
  }
  if (!state.GuardedReadHeader(reinterpret_cast<const uint8_t*>(data.data()), data.size())) {
    return state.Failure();
  }
  const jpeg_decompress_struct& jpeg = state.jpeg;
  const Info info = {{jpeg.image_width, jpeg.image_height}, jpeg.num_components};
  if (info.channels != 1 && info.channels != 3 && info.channels != 4) {
    return Status(Code::kDataLoss, "a JPEG of " + std::to_string(info.channels) + " components");
  }
  FB_RETURN_IF_ERROR(CheckBomb(info.size, 8 * info.channels, data.size(), pixels_max));
  if (!state.HasEnd()) return Status(Code::kDataLoss, "the JPEG data is cut short");
  // Coefficients of a progressive image: two bytes each, at most one and a half image of padding.
  const auto pixels = static_cast<int64_t>(jpeg.image_width) * jpeg.image_height;
  state.jpeg.mem->max_memory_to_use = (int64_t{64} << 20) + pixels * 2 * info.channels * 2;
  return info;
}

Result<ImageView> JpegDecoder::Decode(const Rect& region, Cmyk cmyk) {
  auto result = state_->Read(region, cmyk);
  // What follows the region is not looked at; the object is used again.
  state_->GuardedAbort();
  return result;
}

void JpegDecoder::State::ToRgb(const uint8_t* inks, int64_t width, Cmyk cmyk_as,
                               uint8_t* to) const {
  if (cmyk_as == Cmyk::kInverted) {
    InvertedCmykToRgb(inks, width, to);
  } else {
    CmykToRgb(inks, width, jpeg.saw_Adobe_marker != 0 ? 0 : 255, to);
  }
}

Result<ImageView> JpegDecoder::State::Read(const Rect& region, Cmyk cmyk_as) {
  const J_COLOR_SPACE space = jpeg.num_components == 1   ? JCS_GRAYSCALE
                              : jpeg.num_components == 4 ? JCS_CMYK
                                                         : JCS_RGB;
  // One pixel more on either side, so that upsampled chroma has its neighbours, and never so narrow
  // that there is only one column of chroma, which the library's upsampling gets wrong. Several
  // scans are decoded whole before the first row comes, where narrowing saves little and the
  // smoothing of missing scans would see it.
  constexpr int64_t kNarrowest = 16;
  const int64_t right = std::min<int64_t>(
      std::max(region.x + region.width + 1, std::max<int64_t>(region.x - 1, 0) + kNarrowest),
      jpeg.image_width);
  const int64_t left = std::max<int64_t>(0, std::min(region.x - 1, right - kNarrowest));
  const bool narrow = !jpeg_has_multiple_scans(&jpeg) && right - left < jpeg.image_width;
  auto x = static_cast<JDIMENSION>(narrow ? left : 0);
  auto width = static_cast<JDIMENSION>(narrow ? right - left : jpeg.image_width);
  if (!GuardedStart(space, narrow, &x, &width)) return Failure();

  const bool cmyk_stored = space == JCS_CMYK;
  Image& rows = cmyk_stored ? cmyk : pixels;
  rows.Reset(width, region.height, jpeg.output_components);
  if (!GuardedSkip(static_cast<JDIMENSION>(region.y)) ||
      !GuardedRead(rows.Row(0), rows.view().stride, static_cast<JDIMENSION>(region.height))) {
    return Failure();
  }
  if (cmyk_stored) {
    pixels.Reset(width, region.height, 3);
    for (int64_t y = 0; y < region.height; ++y) {
      ToRgb(rows.Row(y), width, cmyk_as, pixels.Row(y));
    }
  }
  return pixels.view().Cropped({region.x - x, 0, region.width, region.height});
}

}  // namespace forebay::ops
