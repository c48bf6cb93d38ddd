#include "media/ffmpeg/decode.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "media/ffmpeg/codec.h"
#include "media/ffmpeg/convert.h"
#include "media/ffmpeg/packet_source.h"
#include "media/ffmpeg/stream_decoder.h"

namespace forebay::media::ffmpeg {
namespace {

// Of pictures that are decoded before others that are to be shown first.
constexpr size_t kEarlyBytesMax = size_t{1} << 30;

// "decoding frames 3 to 24"
std::string RunText(const DecodeRun& run) {
  if (run.frames.size() == 1) return fmt::format("decoding frame {}", run.frames.front());
  return fmt::format("decoding frames {} to {}", run.frames.front(), run.frames.back());
}

class Decoder : public VideoDecoder {
 public:
  explicit Decoder(const Options& options) : options_(options) {}

  Status DecodeRgb(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                   const FetchedBytes& bytes, const OutputFormat& format,
                   MutableBytes output) override;
  Status DecodeNative(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                      const FetchedBytes& bytes,
                      const std::function<Status(NativeFrame)>& on_frame) override;

 private:
  struct OpenDecoder {
    std::string key;
    std::unique_ptr<StreamDecoder> decoder;
  };
  Status DecodeRuns(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                    const FetchedBytes& bytes, const OnFrame& on_frame);
  // Takes an open decoder out of the cache, or opens one.
  Result<OpenDecoder> Acquire(const StreamParameters& parameters);
  void Release(OpenDecoder decoder);

  const Options options_;
  PacketMemory memory_;
  std::vector<OpenDecoder> open_;  // most recently used last
  RgbConverter converter_;
  std::vector<uint32_t> frames_;  // of the runs, ascending
};

Result<Decoder::OpenDecoder> Decoder::Acquire(const StreamParameters& parameters) {
  OpenDecoder taken{.key = CodecKey(parameters), .decoder = nullptr};
  const auto found = std::ranges::find(open_, taken.key, &OpenDecoder::key);
  if (found != open_.end()) {
    taken.decoder = std::move(found->decoder);
    open_.erase(found);
    return taken;
  }
  FB_ASSIGN_OR_RETURN(taken.decoder, StreamDecoder::Open(parameters));
  return taken;
}

void Decoder::Release(OpenDecoder decoder) {
  if (options_.open_decoders_max == 0) return;
  if (open_.size() >= options_.open_decoders_max) open_.erase(open_.begin());
  open_.push_back(std::move(decoder));
}

Status Decoder::DecodeRuns(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                           const FetchedBytes& bytes, const OnFrame& on_frame) {
  FB_ASSIGN_OR_RETURN(OpenDecoder open, Acquire(index.parameters));
  FetchedPackets fetched(index, bytes, memory_);
  for (const DecodeRun& run : runs) {
    if (run.packets.empty() || run.frames.empty()) continue;
    PacketSource* source = &fetched;
    std::unique_ptr<DemuxedPackets> demuxed;
    if (index.access == Access::kDemux) {
      FB_ASSIGN_OR_RETURN(demuxed, DemuxedPackets::Make(index, run, bytes));
      source = demuxed.get();
    }
    // On failure the decoder is closed: its state is not to be trusted.
    FB_RETURN_IF_ERROR(
        open.decoder->Decode(index, run, *source, options_.drop_unreferenced, on_frame)
            .WithContext(RunText(run)));
  }
  Release(std::move(open));
  return {};
}

Status Decoder::DecodeRgb(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                          const FetchedBytes& bytes, const OutputFormat& format,
                          MutableBytes output) {
  frames_.clear();
  for (const DecodeRun& run : runs) {
    frames_.insert(frames_.end(), run.frames.begin(), run.frames.end());
  }
  std::ranges::sort(frames_);
  const uint64_t frame_bytes = RgbConverter::FrameBytes(index.parameters, format);
  if (frame_bytes == 0 || output.size() != frame_bytes * frames_.size()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("{} frames of {} bytes do not fit the output of {} bytes",
                              frames_.size(), frame_bytes, output.size()));
  }
  return DecodeRuns(index, runs, bytes, [&](uint32_t number, const AVFrame& frame) {
    const auto slot =
        static_cast<size_t>(std::ranges::lower_bound(frames_, number) - frames_.begin());
    return converter_
        .Convert(frame, index.parameters, format, output.subspan(slot * frame_bytes, frame_bytes))
        .WithContext(fmt::format("frame {}", number));
  });
}

Status Decoder::DecodeNative(const VideoIndex& index, const std::vector<DecodeRun>& runs,
                             const FetchedBytes& bytes,
                             const std::function<Status(NativeFrame)>& on_frame) {
  frames_.clear();
  for (const DecodeRun& run : runs) {
    frames_.insert(frames_.end(), run.frames.begin(), run.frames.end());
  }
  std::ranges::sort(frames_);
  // An edit list may show pictures in another order than the decoder gives them.
  std::map<uint32_t, NativeFrame> early;
  size_t early_bytes = 0;
  size_t next = 0;
  const auto take = [&](uint32_t number, const AVFrame& frame) -> Status {
    FB_ASSIGN_OR_RETURN(NativeFrame packed, PackNative(frame, number));
    early_bytes += packed.bytes.size();
    early[number] = std::move(packed);
    while (!early.empty() && next < frames_.size() && early.begin()->first == frames_[next]) {
      NativeFrame native = std::move(early.begin()->second);
      early.erase(early.begin());
      early_bytes -= native.bytes.size();
      ++next;
      FB_RETURN_IF_ERROR(on_frame(std::move(native)));
    }
    if (early_bytes <= kEarlyBytesMax) return {};
    return Status(Code::kResourceExhausted,
                  fmt::format("the file shows frame {} long after others that follow it: {} bytes "
                              "of those wait; ask for fewer frames at once",
                              frames_[std::min(next, frames_.size() - 1)], early_bytes));
  };
  FB_RETURN_IF_ERROR(DecodeRuns(index, runs, bytes, take));
  if (next == frames_.size()) return {};
  return Status(Code::kDataLoss, fmt::format("frame {} did not come", frames_[next]));
}

}  // namespace

Result<std::unique_ptr<VideoDecoder>> MakeDecoder(const VideoDecoder::Options& options) {
  return std::unique_ptr<VideoDecoder>(std::make_unique<Decoder>(options));
}

}  // namespace forebay::media::ffmpeg
