#include "media/ffmpeg/scan_builder.h"

extern "C" {
#include <libavcodec/avcodec.h>
}

#include <fmt/core.h>

#include <algorithm>

#include "media/ffmpeg/codec.h"

namespace forebay::media::ffmpeg {
namespace {

constexpr uint32_t kParameterSetsMax = 1024;

std::string ContainerName(const AVInputFormat* format) {
  const std::string names = format->name;
  return names.substr(0, names.find(','));
}

bool IsOfTheStore(const Status& status) {
  switch (status.code()) {
    case Code::kDataLoss:
    case Code::kUnimplemented:
    case Code::kInvalidArgument:
      return false;
    default:
      return !status.ok();
  }
}

}  // namespace

Result<uint16_t> SetNumber(VideoIndex* index, std::string extradata) {
  if (extradata == index->parameters.extradata) return uint16_t{0};
  auto& sets = index->parameter_sets;
  const auto known = std::find(sets.begin(), sets.end(), extradata);
  if (known != sets.end()) return static_cast<uint16_t>(known - sets.begin() + 1);
  if (sets.size() >= kParameterSetsMax) {
    return Status(Code::kDataLoss, fmt::format("the stream's parameters change more than {} times",
                                               kParameterSetsMax));
  }
  sets.push_back(std::move(extradata));
  return static_cast<uint16_t>(sets.size());
}

TableBuilder::TableBuilder(const AVStream* stream, const AVInputFormat* format,
                           uint64_t packets_max)
    : packets_max_(packets_max) {
  scan_.index.stream = static_cast<uint32_t>(stream->index);
  scan_.index.container = ContainerName(format);
  UpdateParameters(stream);
}

void TableBuilder::UpdateParameters(const AVStream* stream) {
  scan_.index.parameters = ParametersOf(stream);
  scan_.index.demux_stream = stream->id;
  scan_.reader = BitstreamReader(scan_.index.parameters.codec, scan_.index.parameters.extradata);
}

Status TableBuilder::Add(const AVPacket& packet, uint64_t offset) {
  auto& packets = scan_.index.packets;
  FB_RETURN_IF_ERROR(TakeExtradata(packet));
  if (packet.size <= 0) return {};
  if (packets.size() >= packets_max_) {
    return Status(Code::kDataLoss, fmt::format("more than {} packets", packets_max_));
  }
  Packet p;
  p.offset = offset;
  p.size = static_cast<uint32_t>(packet.size);
  p.pts = packet.pts == AV_NOPTS_VALUE ? kNoPts : packet.pts;
  p.dts = packet.dts == AV_NOPTS_VALUE ? kNoPts : packet.dts;
  if ((packet.flags & AV_PKT_FLAG_KEY) != 0) p.flags |= Packet::kKey;
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) p.flags |= Packet::kDiscard;
  // AV_PKT_FLAG_DISPOSABLE is not taken: libavformat counts mp4's table of dependencies (sdtp) from
  // the first sample that an edit list keeps, and so gives the flag to the wrong packets.
  p.parameter_set = set_;
  packets.push_back(p);
  return {};
}

Status TableBuilder::TakeExtradata(const AVPacket& packet) {
  size_t size = 0;
  if (av_packet_get_side_data(&packet, AV_PKT_DATA_ENCRYPTION_INFO, &size) != nullptr) {
    return Status(Code::kUnimplemented, "the video is encrypted");
  }
  const auto side = [&packet](AVPacketSideDataType type) {
    size_t bytes = 0;
    const uint8_t* data = av_packet_get_side_data(&packet, type, &bytes);
    return ByteView(reinterpret_cast<const std::byte*>(data), data == nullptr ? 0 : bytes);
  };
  const ByteView extradata = side(AV_PKT_DATA_NEW_EXTRADATA), palette = side(AV_PKT_DATA_PALETTE);
  if (extradata.empty() && palette.empty()) return {};
  // One number a packet holds for one of them.
  has_palettes_ = has_palettes_ || !palette.empty();
  if (has_palettes_ && !extradata.empty()) {
    return Status(Code::kUnimplemented, "its palette and its parameters change, both");
  }
  FB_ASSIGN_OR_RETURN(set_, SetNumber(&scan_.index, palette.empty() ? std::string(AsText(extradata))
                                                                    : PaletteSet(palette)));
  scan_.set_changes.emplace_back(static_cast<uint32_t>(scan_.index.packets.size()), set_);
  return {};
}

SetTracker::SetTracker(StreamScan* scan) : scan_(*scan) {
  for (ParameterSet& set : scan_.reader.SetsOf(scan_.index.parameters.extradata)) {
    outside_[scan_.reader.SetKey(set)] = set;
  }
  in_force_ = outside_;
}

Status SetTracker::Add(uint32_t packet, const std::vector<ParameterSet>& sets, bool is_sync) {
  // Where the container itself says when they change, its word stands.
  if (!scan_.reader.has_nal_units() || !scan_.set_changes.empty()) return {};
  std::map<uint32_t, ParameterSet> known = is_sync ? outside_ : decltype(outside_){};
  for (const ParameterSet& set : sets) {
    const uint32_t key = scan_.reader.SetKey(set);
    in_force_[key] = set;
    if (is_sync) known[key] = set;
  }
  if (is_sync) {
    number_ = 0;
    if (known != in_force_) {
      std::vector<ParameterSet> all;
      all.reserve(in_force_.size());
      for (const auto& [key, set] : in_force_) all.push_back(set);
      FB_ASSIGN_OR_RETURN(number_, SetNumber(&scan_.index, scan_.reader.ExtradataWith(all)));
    }
  }
  scan_.index.packets[packet].parameter_set = number_;
  return {};
}

void NothingIsDisposable(VideoIndex* index) {
  for (Packet& p : index->packets) p.flags &= static_cast<uint8_t>(~Packet::kDisposable);
}

Status NoSyncPoint(const VideoIndex& index) {
  const bool shown = std::ranges::any_of(
      index.packets, [](const Packet& p) { return (p.flags & Packet::kDiscard) == 0; });
  if (!shown && !index.packets.empty()) {
    return Status(
        Code::kDataLoss,
        fmt::format("stream {}: the file's edit list shows none of its pictures", index.stream));
  }
  return Status(Code::kDataLoss,
                fmt::format("stream {}: none of its {} packets is one at which decoding can start",
                            index.stream, index.packets.size()));
}

Status Results::Add(Result<VideoIndex> index, unsigned stream) {
  if (index.ok()) {
    indexes_.push_back(*std::move(index));
    return {};
  }
  Status status = std::move(index).status();
  if (IsOfTheStore(status)) return status;
  failed_.emplace_back(stream, std::move(status));
  return {};
}

Result<std::vector<VideoIndex>> Results::Take() {
  if (indexes_.empty()) {
    if (failed_.empty()) return Status(Code::kInvalidArgument, "it has no video stream");
    return failed_.front().second;
  }
  for (const auto& [stream, why] : failed_) {
    report_->warnings.push_back(fmt::format("stream {} is left out: {}", stream, why.ToString()));
  }
  return std::move(indexes_);
}

std::vector<TableBuilder> MakeBuilders(AVFormatContext* context, uint64_t packets_max,
                                       Results* results) {
  std::vector<TableBuilder> builders;
  for (unsigned i = 0; i < context->nb_streams; ++i) context->streams[i]->discard = AVDISCARD_ALL;
  for (const unsigned i : VideoStreams(context)) {
    AVStream* stream = context->streams[i];
    if (Status status = Decodable(stream); !status.ok()) {
      (void)results->Add(std::move(status), i);  // an error of the stream's
      continue;
    }
    stream->discard = AVDISCARD_DEFAULT;
    builders.emplace_back(stream, context->iformat, packets_max);
  }
  return builders;
}

TableBuilder* BuilderOf(std::vector<TableBuilder>* builders, int stream) {
  for (TableBuilder& builder : *builders) {
    if (builder.stream() == stream) return &builder;
  }
  return nullptr;
}

}  // namespace forebay::media::ffmpeg
