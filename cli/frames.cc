// forebay frames URI [--numbers 0,5,9] [--times 0.5,2] [--stream N] [--framemd5 | -o DIR]
#include "forebay/video.h"

#include <fmt/core.h>
#include <openssl/evp.h>
#include <spng.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "command.h"
#include "output.h"

namespace forebay::cli {
namespace {

// Pictures held at a time.
constexpr uint64_t kPictureBytesMax = 128ULL << 20;
constexpr int64_t kFirstVideo = INT64_MIN;  // no --stream was given

std::string Md5(std::span<const std::byte> bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  std::string text;
  if (EVP_Digest(bytes.data(), bytes.size(), digest, &length, EVP_md5(), nullptr) != 1) return text;
  for (unsigned i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

// Seconds per unit as num/den: time bases are 1/n or n/d with a small n.
std::pair<int64_t, int64_t> Fraction(double value) {
  for (const int64_t num : {1, 1001, 2, 100, 125}) {
    const double den = static_cast<double>(num) / value;
    if (std::abs(den - std::round(den)) < 1e-6 * den && den < 1e12) return {num, std::llround(den)};
  }
  return {std::llround(value * 1e9), 1'000'000'000};
}

Status WritePng(const std::string& path, int width, int height, std::span<const std::byte> rgb) {
  const auto failed = [&path](const char* why) {
    return Status(Code::kInternal, fmt::format("{}: {}", path, why));
  };
  spng_ctx* png = spng_ctx_new(SPNG_CTX_ENCODER);
  if (png == nullptr) return failed("no memory");
  spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(width);
  header.height = static_cast<uint32_t>(height);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  int error = spng_set_ihdr(png, &header);
  if (error == 0) {
    error = spng_encode_image(png, rgb.data(), rgb.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  }
  size_t size = 0;
  void* bytes = error == 0 ? spng_get_png_buffer(png, &size, &error) : nullptr;
  spng_ctx_free(png);
  if (bytes == nullptr) return failed(spng_strerror(error));
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(size));
  file.close();
  std::free(bytes);  // NOLINT: libspng's, by malloc
  return file ? Status() : failed("cannot be written");
}

// "0,5,9" -> values. False when a part is no number.
template <class T>
bool ParseList(const std::string& text, std::vector<T>* values) {
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    T value{};
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, value);
    if (error != std::errc() || rest != text.data() + end) return false;
    values->push_back(value);
    at = end + 1;
  }
  return true;
}

class Frames : public Command {
 public:
  std::string name() const override { return "frames"; }
  std::string summary() const override { return "decode exactly these frames of a video"; }
  void Define(Flags& flags) override {
    flags.Argument("uri", &uri_, "the video");
    flags.Option("--numbers", &numbers_text_, "frame numbers, from 0: 0,5,9; none: all");
    flags.Option("--times", &times_text_, "seconds: 0.5,2 (the frame shown then)");
    flags.Option("--stream", &stream_, "the stream's number in the container");
    flags.Choice("--verify", &verify_, {"none", "heads", "full"}, "how sync points are checked");
    flags.Flag("--framemd5", &framemd5_, "print lines as FFmpeg's framemd5 muxer does");
    flags.Option("-o,--output", &folder_, "write each frame as PNG into this folder");
  }

  int Run(const Context& context) override {
    std::vector<double> times;
    if (!numbers_text_.empty() && !ParseList(numbers_text_, &numbers_)) {
      return context.FailUsage(
          fmt::format("--numbers \"{}\" is no list like 0,5,9", numbers_text_));
    }
    if (!times_text_.empty() && !ParseList(times_text_, &times)) {
      return context.FailUsage(fmt::format("--times \"{}\" is no list like 0.5,2", times_text_));
    }
    if (framemd5_ && !folder_.empty()) return context.FailUsage("--framemd5 or -o, not both");
    if (stream_ != kFirstVideo && (stream_ < 0 || stream_ > INT32_MAX)) {
      return context.FailUsage(fmt::format("--stream {}: streams are numbered from 0", stream_));
    }
    VideoOptions options;
    if (stream_ != kFirstVideo) options.stream = static_cast<int>(stream_);
    options.verify = verify_;
    const auto video = Video::Open(uri_, context.globals.store, options);
    if (!video.ok()) return context.FailObject(video.status());
    for (const double seconds : times) {
      const auto number = (*video)->FrameAt(seconds);
      if (!number.ok()) return context.Fail(number.status());
      numbers_.push_back(*number);
    }
    if (numbers_text_.empty() && times_text_.empty()) {
      numbers_.resize((*video)->frame_count());
      std::iota(numbers_.begin(), numbers_.end(), 0);
    }
    const Status status = folder_.empty() ? Print(context, **video) : WriteFolder(**video);
    return status.ok() ? kExitOk : written_ ? context.FailObject(status) : kExitOther;
  }

 private:
  Status Print(const Context& context, Video& video) {
    bool first = true;
    return video.NativeFrames(numbers_, [&](const NativePicture& picture) {
      if (framemd5_) {
        const std::string header = first ? Header(video, picture) : "";
        first = false;
        return Written(header + FrameMd5Line(video, picture));
      }
      const double seconds = video.times()[picture.frame];
      if (!context.globals.json) {
        return Written(fmt::format("{:6}  {:12.6f} s  {}x{} {}  {}\n", picture.frame, seconds,
                                   picture.width, picture.height, picture.pixel_format,
                                   Md5(picture.bytes)));
      }
      JsonLine line("frames");
      line.Add("frame", uint64_t{picture.frame}).Add("seconds", seconds);
      if (picture.pts != INT64_MIN) line.Add("pts", picture.pts);
      return Written(line.Add("width", int64_t{picture.width})
                         .Add("height", int64_t{picture.height})
                         .Add("pixel_format", picture.pixel_format)
                         .Add("md5", Md5(picture.bytes))
                         .Take());
    });
  }

  static std::string Header(const Video& video, const NativePicture& picture) {
    const auto [num, den] = Fraction(video.time_base());
    std::string text = "#format: frame checksums\n#version: 2\n#hash: MD5\n";
    text += fmt::format("#tb 0: {}/{}\n#media_type 0: video\n#codec_id 0: rawvideo\n", num, den);
    text += fmt::format("#dimensions 0: {}x{}\n", picture.width, picture.height);
    return text + "#stream#, dts,        pts, duration,     size, hash\n";
  }

  static std::string FrameMd5Line(const Video& video, const NativePicture& picture) {
    const bool timed = picture.pts != INT64_MIN;
    const int64_t pts = timed ? picture.pts : picture.frame;
    // Until the next frame; the last one's is the one before it.
    const auto& times = video.times();
    int64_t duration = 1;
    if (timed && times.size() > 1) {
      const size_t next = std::min<size_t>(picture.frame + 1, times.size() - 1);
      duration = std::llround((times[next] - times[next - 1]) / video.time_base());
    }
    return fmt::format("0, {:10}, {:10}, {:8}, {:8}, {}\n", pts, pts, duration,
                       picture.bytes.size(), Md5(picture.bytes));
  }

  Status WriteFolder(Video& video) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) {
      return Status(Code::kInvalidArgument, fmt::format("{}: {}", folder_, error.message()));
    }
    std::ranges::sort(numbers_);
    numbers_.erase(std::ranges::unique(numbers_).begin(), numbers_.end());
    const size_t frame_bytes =
        static_cast<size_t>(video.width()) * static_cast<size_t>(video.height()) * 3;
    if (frame_bytes == 0) return Status(Code::kDataLoss, "the video's pictures have no size");
    const size_t at_a_time = std::max<size_t>(1, kPictureBytesMax / frame_bytes);
    std::vector<std::byte> pictures;
    for (size_t at = 0; at < numbers_.size(); at += at_a_time) {
      const auto part = std::span<const uint32_t>(numbers_).subspan(
          at, std::min(at_a_time, numbers_.size() - at));
      pictures.resize(part.size() * frame_bytes);
      FB_RETURN_IF_ERROR(video.Frames(part, pictures));
      for (size_t i = 0; i < part.size(); ++i) {
        const std::string path = fmt::format("{}/{:06}.png", folder_, part[i]);
        FB_RETURN_IF_ERROR(WritePng(path, video.width(), video.height(),
                                    std::span(pictures).subspan(i * frame_bytes, frame_bytes)));
      }
    }
    return {};
  }

  // A reader that has gone has been told of already.
  Status Written(const std::string& text) {
    written_ = WriteOut(text);
    return written_ ? Status() : Status(Code::kCancelled, "stdout is closed");
  }

  std::string uri_, numbers_text_, times_text_, folder_, verify_ = "heads";
  int64_t stream_ = kFirstVideo;
  bool framemd5_ = false;
  bool written_ = true;
  std::vector<uint32_t> numbers_;
};

}  // namespace

std::unique_ptr<Command> MakeFrames() { return std::make_unique<Frames>(); }

}  // namespace forebay::cli
