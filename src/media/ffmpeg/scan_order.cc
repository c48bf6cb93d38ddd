#include "media/ffmpeg/scan_order.h"

extern "C" {
#include <libavcodec/avcodec.h>
}

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
  for (uint32_t i = 0; i < packets.size(); ++i) {
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

int64_t RunStart(const VideoIndex& index, uint32_t t) {
  const auto& packets = index.packets;
  bool last = true;
  for (int64_t s = t; s >= 0; --s) {
    const Packet& p = packets[static_cast<size_t>(s)];
    if ((p.flags & Packet::kKey) == 0) continue;
    if (last && (packets[t].flags & Packet::kLeading) != 0) return s;
    last = false;
    if (p.pts <= packets[t].pts && p.pts != kNoPts && t - s >= p.recovery) return s;
  }
  return -1;
}

void FramesByTime(StreamScan* scan) {
  auto& index = scan->index;
  index.frames.clear();
  // RunStart walks back; the starts ascend nearly as the packets do, so a file's sum stays small
  // but for frames that have none: those are only in front of the first sync packet.
  int64_t first_key_pts = INT64_MAX;
  uint32_t first_key = UINT32_MAX;
  for (uint32_t i = 0; i < index.packets.size() && first_key == UINT32_MAX; ++i) {
    if ((index.packets[i].flags & Packet::kKey) != 0) first_key = i;
  }
  if (first_key == UINT32_MAX) return;
  first_key_pts = index.packets[first_key].pts;
  for (uint32_t i = first_key; i < index.packets.size(); ++i) {
    const Packet& packet = index.packets[i];
    if ((packet.flags & Packet::kDiscard) != 0 || packet.pts == kNoPts) continue;
    const bool reached = packet.pts >= first_key_pts || (packet.flags & Packet::kLeading) != 0;
    if (reached) index.frames.push_back({i, packet.pts});
  }
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
