#include "media/ffmpeg/scan_order.h"

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace forebay::media::ffmpeg {

OrderReader::OrderReader(const AVCodecParameters* parameters) {
  const AVCodecID codec = parameters->codec_id;
  mpeg12_ = codec == AV_CODEC_ID_MPEG1VIDEO || codec == AV_CODEC_ID_MPEG2VIDEO;
  if (codec != AV_CODEC_ID_H264 && codec != AV_CODEC_ID_HEVC) return;
  context_.reset(avcodec_alloc_context3(nullptr));
  if (context_ == nullptr || avcodec_parameters_to_context(context_.get(), parameters) < 0) return;
  context_->log_level_offset = 100;
  parser_ = av_parser_init(codec);
  if (parser_ != nullptr) parser_->flags |= PARSER_FLAG_COMPLETE_FRAMES;
}

OrderReader::~OrderReader() {
  if (parser_ != nullptr) av_parser_close(parser_);
}

int64_t OrderReader::Read(ByteView packet, const PictureHead& head) {
  int32_t order = head.order;
  is_field_ = head.field;
  if (parser_ != nullptr) {
    // Padded, as parsers read past the end.
    padded_.assign(packet.size() + AV_INPUT_BUFFER_PADDING_SIZE, 0);
    std::memcpy(padded_.data(), packet.data(), packet.size());
    uint8_t* out = nullptr;
    int out_size = 0;
    parser_->output_picture_number = 0;
    av_parser_parse2(parser_, context_.get(), &out, &out_size, padded_.data(),
                     static_cast<int>(packet.size()), AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
    order = parser_->output_picture_number;
    is_field_ = parser_->picture_structure == AV_PICTURE_STRUCTURE_TOP_FIELD ||
                parser_->picture_structure == AV_PICTURE_STRUCTURE_BOTTOM_FIELD;
  }
  if (head.starts_sequence) ++sequence_;
  return (sequence_ << 32) + order;
}

AVPixelFormat OrderReader::pixel_format() const {
  return parser_ != nullptr ? static_cast<AVPixelFormat>(parser_->format) : AV_PIX_FMT_NONE;
}
int OrderReader::width() const { return parser_ != nullptr ? parser_->width : 0; }
int OrderReader::height() const { return parser_ != nullptr ? parser_->height : 0; }

bool TimesAreSound(const StreamScan& scan) {
  const auto& packets = scan.index.packets;
  std::vector<uint32_t> shown;
  // What comes before the first sync point is not shown.
  const auto first =
      std::ranges::find_if(packets, [](const Packet& p) { return (p.flags & Packet::kKey) != 0; });
  for (auto i = static_cast<uint32_t>(first - packets.begin()); i < packets.size(); ++i) {
    if (i < scan.heads.size() && scan.head_read[i] && !scan.heads[i].shown) continue;
    if (packets[i].pts == kNoPts) return false;
    shown.push_back(i);
  }
  std::sort(shown.begin(), shown.end(),
            [&](uint32_t a, uint32_t b) { return packets[a].pts < packets[b].pts; });
  int64_t last_order = INT64_MIN;
  for (size_t k = 0; k < shown.size(); ++k) {
    const uint32_t i = shown[k];
    if (k > 0 && packets[i].pts == packets[shown[k - 1]].pts) return false;
    if (scan.orders.empty() || scan.orders[i] == INT64_MIN) continue;
    if (scan.orders[i] <= last_order) return false;
    last_order = scan.orders[i];
  }
  return true;
}

std::vector<std::pair<uint32_t, uint32_t>> RunStarts(const VideoIndex& index) {
  // Against hostile tables; sound streams look at one or two.
  constexpr size_t kStepsMax = 4096;
  struct Key {
    uint32_t packet;
    uint32_t followed;  // packets up to it that others may refer to
  };
  std::vector<Key> keys;
  std::vector<std::pair<uint32_t, uint32_t>> starts;
  uint32_t followed = 0;
  for (uint32_t t = 0; t < index.packets.size(); ++t) {
    const Packet& packet = index.packets[t];
    if ((packet.flags & Packet::kDisposable) == 0) ++followed;
    if ((packet.flags & Packet::kKey) != 0) keys.push_back({t, followed});
    if (packet.pts == kNoPts) continue;
    const bool leading = (packet.flags & Packet::kLeading) != 0;
    for (size_t k = keys.size(), steps = 0; k-- > 0 && steps < kStepsMax; ++steps) {
      const Packet& key = index.packets[keys[k].packet];
      const bool serves = key.recovery > 0
                              ? followed - keys[k].followed >= key.recovery
                              : keys[k].packet == t || leading || key.pts <= packet.pts;
      if (!serves) continue;
      starts.emplace_back(t, keys[k].packet);
      break;
    }
  }
  return starts;
}

void WarnUnreached(const VideoIndex& index, uint64_t unreached, ScanReport* report) {
  if (unreached == 0) return;
  report->warnings.push_back(
      fmt::format("stream {}: {} pictures that no sync point leads to are "
                  "left out",
                  index.stream, unreached));
}

void FramesByTime(StreamScan* scan, ScanReport* report) {
  auto& index = scan->index;
  index.frames.clear();
  for (const auto& [packet, start] : RunStarts(index)) {
    if ((index.packets[packet].flags & Packet::kDiscard) != 0) continue;
    index.frames.push_back({packet, index.packets[packet].pts});
  }
  const auto shown = std::ranges::count_if(index.packets, [](const Packet& p) {
    return p.pts != kNoPts && (p.flags & Packet::kDiscard) == 0;
  });
  WarnUnreached(index, static_cast<uint64_t>(shown) - index.frames.size(), report);
  std::stable_sort(index.frames.begin(), index.frames.end(),
                   [](const Frame& a, const Frame& b) { return a.pts < b.pts; });
  CheckMonotonic(&index);
}

void CheckMonotonic(VideoIndex* index) {
  index->pts_monotonic = true;
  for (size_t i = 0; i < index->frames.size(); ++i) {
    const int64_t pts = index->frames[i].pts;
    if (pts == kNoPts || (i > 0 && pts <= index->frames[i - 1].pts)) index->pts_monotonic = false;
  }
}

}  // namespace forebay::media::ffmpeg
