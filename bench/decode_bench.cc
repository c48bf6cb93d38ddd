// Clips per CPU second: Forebay's decoder beside a plain libavcodec loop over the same packets.
//
// usage: decode_bench SOURCE_VIDEO [PAIRS [CLIPS [PEER_COMMAND]]]
//
// A clip is 8 frames, 3 apart, from a random start, RGB. The videos are made from SOURCE_VIDEO by
// the ffmpeg CLI: H.264 and HEVC, groups of 15 to 120 frames, at 720p and at 480x270. Both sides
// keep their decoders open, use one thread and read from memory. The floor feeds every packet from
// the sync point before the first wanted frame to the last wanted one and converts the wanted
// frames by swscale's default way. Pairs alternate; the median of their ratios counts.
// Target: 1.2 at 720p, 1.1 at 480x270, and the same against a peer (bench/torchcodec_peer.py) that
// decodes the same clips between.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libswscale/swscale.h>
}

#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "media/media.h"
#include "testing/peer_process.h"
#include "testing/plain_video.h"

namespace {

using namespace forebay;  // NOLINT: a program
using forebay::testing::FetchedText;
using forebay::testing::MakeVideo;
using forebay::testing::PeerProcess;
using forebay::testing::PlainVideo;

constexpr uint32_t kFrames = 8, kStep = 3;

struct Video {
  std::string path;
  PlainVideo plain;
};

struct Clip {
  const Video* video = nullptr;
  std::vector<uint32_t> frames;
};

double CpuSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

[[noreturn]] void Die(const std::string& why) {
  fmt::print(stderr, "decode_bench: {}\n", why);
  std::exit(1);
}

// One open decoder and scaler of the plain loop.
class PlainStream {
 public:
  explicit PlainStream(const PlainVideo& video) : video_(video) {
    const auto& p = video.index.parameters;
    const AVCodec* codec = avcodec_find_decoder_by_name(p.codec.c_str());
    context_ = avcodec_alloc_context3(codec);
    context_->width = p.width;
    context_->height = p.height;
    context_->has_b_frames = p.video_delay;
    context_->thread_count = 1;
    context_->extradata_size = static_cast<int>(p.extradata.size());
    context_->extradata =
        static_cast<uint8_t*>(av_mallocz(p.extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    std::memcpy(context_->extradata, p.extradata.data(), p.extradata.size());
    if (avcodec_open2(context_, codec, nullptr) < 0) Die("the plain decoder does not open");
    scaler_ = sws_getContext(p.width, p.height, AV_PIX_FMT_YUV420P, p.width, p.height,
                             AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr);
    packet_ = av_packet_alloc();
    frame_ = av_frame_alloc();
  }
  ~PlainStream() {
    av_frame_free(&frame_);
    av_packet_free(&packet_);
    sws_freeContext(scaler_);
    avcodec_free_context(&context_);
  }
  PlainStream(const PlainStream&) = delete;
  PlainStream& operator=(const PlainStream&) = delete;

  void Decode(const std::vector<uint32_t>& frames, uint8_t* output) {
    const auto& index = video_.index;
    uint32_t last = 0, start = UINT32_MAX;
    for (const uint32_t f : frames) {
      const uint32_t t = index.frames[f].packet;
      uint32_t s = t;
      while ((index.packets[s].flags & media::Packet::kKey) == 0 ||
             index.packets[s].pts > index.packets[t].pts) {
        --s;
      }
      start = std::min(start, s);
      last = std::max(last, t);
    }
    left_ = frames.size();
    for (uint32_t p = start; p <= last && left_ > 0; ++p) {
      const media::Packet& packet = index.packets[p];
      // A plain reader's packets are its own, padded.
      if (av_new_packet(packet_, static_cast<int>(packet.size)) < 0) Die("no memory");
      std::memcpy(packet_->data, video_.bytes.data() + packet.offset, packet.size);
      packet_->pts = p;
      if (avcodec_send_packet(context_, packet_) < 0) Die("the plain loop does not decode");
      av_packet_unref(packet_);
      Receive(frames, output);
    }
    avcodec_send_packet(context_, nullptr);
    Receive(frames, output);
    avcodec_flush_buffers(context_);
    if (left_ != 0) Die("the plain loop lost a frame");
  }

 private:
  void Receive(const std::vector<uint32_t>& frames, uint8_t* output) {
    const auto& index = video_.index;
    const size_t stride = static_cast<size_t>(context_->width) * 3;
    while (avcodec_receive_frame(context_, frame_) >= 0) {
      for (size_t i = 0; i < frames.size(); ++i) {
        if (index.frames[frames[i]].packet != frame_->pts) continue;
        uint8_t* planes[4] = {output + i * stride * static_cast<size_t>(frame_->height), nullptr,
                              nullptr, nullptr};
        const int strides[4] = {static_cast<int>(stride), 0, 0, 0};
        sws_scale(scaler_, frame_->data, frame_->linesize, 0, frame_->height, planes, strides);
        --left_;
      }
      av_frame_unref(frame_);
    }
  }

  const PlainVideo& video_;
  AVCodecContext* context_ = nullptr;
  SwsContext* scaler_ = nullptr;
  AVPacket* packet_ = nullptr;
  AVFrame* frame_ = nullptr;
  size_t left_ = 0;
};

std::vector<Video> MakeVideos(const std::string& source, const std::string& size,
                              const std::string& folder) {
  const struct {
    const char* name;
    const char* options;
  } kinds[] = {
      {"h264_15", "-c:v libx264 -preset superfast -g 15 -bf 2"},
      {"h264_60", "-c:v libx264 -preset veryfast -g 60 -bf 3"},
      {"h264_120", "-c:v libx264 -preset superfast -g 120 -bf 2 -x264-params open-gop=1"},
      {"hevc_30", "-c:v libx265 -preset ultrafast -g 30 -x265-params log-level=none:open-gop=1"},
      {"hevc_90", "-c:v libx265 -preset ultrafast -g 90 -x265-params log-level=none:open-gop=0"},
  };
  std::vector<Video> videos;
  for (const auto& kind : kinds) {
    const std::string path = folder + "/" + kind.name + "_" + size + ".mp4";
    const Status made = MakeVideo(
        "-stream_loop 2 -i '" + source + "' -an -frames:v 240 -vf scale=" + size +
            " -pix_fmt yuv420p -tag:v " + (kind.name[1] == 'e' ? "hvc1 " : "avc1 ") + kind.options,
        path);
    if (!made.ok()) Die(made.ToString());
    auto video = PlainVideo::Load(path, false);
    if (!video.ok()) Die(video.status().ToString());
    videos.push_back({path, *std::move(video)});
  }
  return videos;
}

std::vector<Clip> MakeClips(const std::vector<Video>& videos, size_t count) {
  Random random(HashName("decode_bench"));
  std::vector<Clip> clips;
  for (size_t i = 0; i < count; ++i) {
    Clip clip{.video = &videos[i % videos.size()], .frames = {}};
    const auto last =
        static_cast<uint32_t>(clip.video->plain.index.frames.size()) - kFrames * kStep;
    const auto start = static_cast<uint32_t>(random.NextBelow(last));
    for (uint32_t f = 0; f < kFrames; ++f) clip.frames.push_back(start + f * kStep);
    clips.push_back(std::move(clip));
  }
  return clips;
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One row of the result: clips per CPU second of one and the other, and the ratio of each pair.
struct Pairs {
  std::vector<double> other, ours, ratios;

  void Add(size_t clips, double other_s, double ours_s) {
    other.push_back(static_cast<double>(clips) / other_s);
    ours.push_back(static_cast<double>(clips) / ours_s);
    ratios.push_back(other_s / ours_s);
  }
  void Print(const std::string& size, const std::string& name, double target) const {
    const auto [least, most] = std::ranges::minmax(ratios);
    fmt::print(
        "{}: {} {:.2f}, forebay {:.2f} clips per CPU s; ratio {:.3f} (median of {} pairs, {:.3f} "
        "to {:.3f}), target {}\n",
        size, name, Median(other), Median(ours), Median(ratios), ratios.size(), least, most,
        target);
    std::fflush(stdout);
  }
};

std::vector<std::string> LinesForPeer(const std::vector<Clip>& clips) {
  std::vector<std::string> lines;
  for (const Clip& clip : clips) {
    std::string line = clip.video->path;
    for (const uint32_t frame : clip.frames) line += " " + std::to_string(frame);
    lines.push_back(std::move(line));
  }
  return lines;
}

struct Settings {
  std::string source, folder, peer;
  size_t pairs = 9, clips = 40;
};

void Compare(const Settings& settings, const std::string& size, double target) {
  const std::vector<Video> videos = MakeVideos(settings.source, size, settings.folder);
  const std::vector<Clip> clips = MakeClips(videos, settings.clips);
  std::vector<std::unique_ptr<PlainStream>> plain;
  for (const auto& video : videos) plain.push_back(std::make_unique<PlainStream>(video.plain));
  auto decoder = media::VideoDecoder::Make({});
  if (!decoder.ok()) Die(decoder.status().ToString());
  const auto& p = videos[0].plain.index.parameters;
  std::vector<std::byte> output(static_cast<size_t>(p.width) * static_cast<size_t>(p.height) * 3 *
                                kFrames);
  const auto run_plain = [&] {
    const double begin = CpuSeconds();
    for (const Clip& clip : clips) {
      plain[static_cast<size_t>(clip.video - videos.data())]->Decode(
          clip.frames, reinterpret_cast<uint8_t*>(output.data()));
    }
    return CpuSeconds() - begin;
  };
  const auto run_ours = [&] {
    const double begin = CpuSeconds();
    for (const Clip& clip : clips) {
      const PlainVideo& video = clip.video->plain;
      const auto runs = media::PlanDecode(video.index, clip.frames);
      if (!runs.ok()) Die(runs.status().ToString());
      const Status status =
          (*decoder)->DecodeRgb(video.index, *runs, FetchedText(video.bytes), {}, output);
      if (!status.ok()) Die(status.ToString());
    }
    return CpuSeconds() - begin;
  };
  std::unique_ptr<PeerProcess> peer;
  if (!settings.peer.empty()) {
    peer = std::make_unique<PeerProcess>(settings.peer, LinesForPeer(clips));
  }
  run_plain(), run_ours();  // decoders open, memory touched
  if (peer) peer->Round();
  Pairs floor, beside;
  for (size_t i = 0; i < settings.pairs; ++i) {
    // Whoever comes first changes from round to round.
    double a = 0, b = 0;
    if (i % 2 == 0)
      a = run_plain(), b = run_ours();
    else
      b = run_ours(), a = run_plain();
    floor.Add(clips.size(), a, b);
    if (peer) beside.Add(clips.size(), peer->Round(), b);
  }
  floor.Print(size, "plain loop", target);
  if (peer) beside.Print(size, peer->version(), target);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("usage: decode_bench SOURCE_VIDEO [PAIRS [CLIPS [PEER_COMMAND]]]");
  const auto number = [&](int i, size_t otherwise) {
    return argc > i ? static_cast<size_t>(std::max(1, std::atoi(argv[i]))) : otherwise;
  };
  Settings settings{.source = argv[1],
                    .folder = (std::filesystem::temp_directory_path() /
                               ("forebay_bench_" + std::to_string(CpuSeconds())))
                                  .string(),
                    .peer = argc > 4 ? argv[4] : ""};
  settings.pairs = number(2, settings.pairs);
  settings.clips = number(3, settings.clips);
  std::filesystem::create_directories(settings.folder);
  const auto version = media::MediaVersion();
  if (version.ok()) fmt::print("{}\n", *version);
  Compare(settings, "1280x720", 1.2);
  Compare(settings, "480x270", 1.1);
  std::filesystem::remove_all(settings.folder);
}
