#include "media/ffmpeg/stream_decoder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "media/ffmpeg/codec.h"

namespace forebay::media::ffmpeg {
namespace {

constexpr uint32_t kEpochMask = 0x7fffffff;

int64_t Tag(uint32_t epoch, uint32_t packet) {
  return static_cast<int64_t>(uint64_t{epoch} << 32 | packet);
}

Status PacketError(const VideoIndex& index, uint32_t packet, const std::string& what) {
  const Packet& p = index.packets[packet];
  return Status(
      Code::kDataLoss,
      fmt::format("packet {} ({} bytes at offset {}, {}): {}", packet, p.size, p.offset,
                  index.parameters.codec, what),
      {.offset = static_cast<int64_t>(p.offset), .end = static_cast<int64_t>(p.offset + p.size)});
}

// Decoders that say of each picture whether it is whole (AVFrame::decode_error_flags) when they are
// not strict. Others (HEVC) then give a picture with holes and say nothing.
bool MarksDamage(const std::string& codec) {
  return codec == "h264" || codec == "mpeg1video" || codec == "mpeg2video" || codec == "mpeg4";
}

std::string FlagsText(int flags) {
  std::string text;
  const auto add = [&](int flag, const char* name) {
    if ((flags & flag) != 0) text += fmt::format("{}{}", text.empty() ? "" : ", ", name);
  };
  add(FF_DECODE_ERROR_INVALID_BITSTREAM, "invalid bitstream");
  add(FF_DECODE_ERROR_MISSING_REFERENCE, "missing reference");
  add(FF_DECODE_ERROR_CONCEALMENT_ACTIVE, "damage concealed");
  add(FF_DECODE_ERROR_DECODE_SLICES, "a slice does not decode");
  return text.empty() ? fmt::format("error flags {}", flags) : text;
}

}  // namespace

// One way through a run.
struct StreamDecoder::Pass {
  const VideoIndex& index;
  const DecodeRun& run;
  PacketSource& source;
  bool drop_unreferenced;
  const OnFrame& on_frame;
  bool strict;
  uint32_t fed = 0;  // the packet fed last
  bool gap = false;  // pictures are missing in front of the packet after it

  // Pictures around the start that refer to what lies before it: they are decoded only because
  // later ones need them to have been there, and nobody wants them.
  bool BrokenByDesign(uint32_t packet) const {
    const uint32_t first = run.packets.front();
    const Packet& sync = index.packets[first];
    if (packet == first) return sync.recovery > 0;
    if (packet - first < sync.recovery) return true;
    const Packet& p = index.packets[packet];
    return p.pts != kNoPts && p.pts < sync.pts && (p.flags & Packet::kLeading) == 0;
  }
};

Result<std::unique_ptr<StreamDecoder>> StreamDecoder::Open(const StreamParameters& parameters) {
  std::unique_ptr<StreamDecoder> decoder(new StreamDecoder(parameters));
  FB_ASSIGN_OR_RETURN(decoder->context_, OpenCodec(parameters));
  decoder->frame_.reset(av_frame_alloc());
  if (decoder->frame_ == nullptr) return Status(Code::kResourceExhausted, "no memory");
  return decoder;
}

Status StreamDecoder::Decode(const VideoIndex& index, const DecodeRun& run, PacketSource& source,
                             bool drop_unreferenced, const OnFrame& on_frame) {
  if (run.packets.empty() || run.frames.empty()) return {};
  for (const uint32_t p : run.packets) {
    if (p >= index.packets.size()) return Status(Code::kInternal, "a run outside its index");
  }
  FB_RETURN_IF_ERROR(PrepareWanted(index, run));
  Pass pass{.index = index,
            .run = run,
            .source = source,
            .drop_unreferenced = drop_unreferenced,
            .on_frame = on_frame,
            .strict = !lenient_};
  Status status = RunWhole(pass);
  if (status.ok() || !pass.strict || status.code() != Code::kDataLoss) return status;
  if (!MarksDamage(index.parameters.codec)) return status;
  // Strictness refuses some sound streams too (a reference list that names pictures from before
  // the sync point). The second way conceals nothing either: no picture of the run may carry an
  // error flag. What already came out was right.
  FB_ASSIGN_OR_RETURN(context_, OpenCodec(index.parameters));
  pass.strict = false;
  const Status second = RunWhole(pass);
  if (!second.ok()) return status;
  lenient_ = true;
  return {};
}

Status StreamDecoder::PrepareWanted(const VideoIndex& index, const DecodeRun& run) {
  wanted_.clear();
  for (const uint32_t f : run.frames) {
    if (f >= index.frames.size()) return Status(Code::kInternal, "a run outside its index");
    Wanted wanted{.packet = index.frames[f].packet, .ordinal = 0, .frame = f};
    while (wanted.ordinal < f && index.frames[f - wanted.ordinal - 1].packet == wanted.packet) {
      ++wanted.ordinal;
    }
    wanted_.push_back(wanted);
  }
  std::ranges::sort(wanted_, [](const Wanted& a, const Wanted& b) {
    return a.packet != b.packet ? a.packet < b.packet : a.ordinal < b.ordinal;
  });
  left_ = wanted_.size();
  return {};
}

Status StreamDecoder::RunWhole(Pass& pass) {
  Status status = RunPass(pass);
  if (!pass.gap) return status;
  FB_ASSIGN_OR_RETURN(context_, OpenCodec(pass.index.parameters));
  pass.gap = false;
  pass.drop_unreferenced = false;
  return RunPass(pass);
}

Status StreamDecoder::RunPass(Pass& pass) {
  frame_numbers_.Restart();
  epoch_ = (epoch_ + 1) & kEpochMask;
  last_packet_ = UINT32_MAX;
  for (const uint32_t packet : pass.run.packets) {
    FB_RETURN_IF_ERROR(FeedPacket(pass, packet));
    if (pass.gap) return {};
    // A lenient pass is sound only as a whole.
    if (left_ == 0 && pass.strict) break;
  }
  // Always to the end: what is left inside would come out of the next run.
  const int error = avcodec_send_packet(context_.get(), nullptr);
  if (error < 0 && error != AVERROR_EOF) {
    return PacketError(pass.index, pass.fed, fmt::format("drain: {}", AvErrorText(error)));
  }
  FB_RETURN_IF_ERROR(Receive(pass, true));
  avcodec_flush_buffers(context_.get());
  return left_ == 0 ? Status() : Missing(pass);
}

Status StreamDecoder::FeedPacket(Pass& pass, uint32_t packet) {
  const Packet& p = pass.index.packets[packet];
  FB_ASSIGN_OR_RETURN(AVPacket * av, pass.source.Load(packet));
  const bool first = packet == pass.run.packets.front();
  const bool may_drop = pass.drop_unreferenced && !first && p.pts != kNoPts && !IsWanted(packet);
  const bool counts = pass.drop_unreferenced && bitstream_.frame_num_end() > 0;
  const PictureHead head = may_drop || counts ? HeadOf(*av) : PictureHead{};
  if (counts && frame_numbers_.Gap(head, bitstream_.frame_num_end())) {
    pass.gap = true;
    return {};
  }
  if (may_drop && p.parameter_set == 0 && parameter_set_ == 0 && head.disposable && !head.damaged) {
    return {};
  }
  if ((p.flags & Packet::kDamaged) != 0 && !pass.BrokenByDesign(packet)) {
    return PacketError(pass.index, packet, "the transport stream lost bytes of it");
  }
  av->pts = Tag(epoch_, packet);
  av->dts = av->pts;
  av->flags = (p.flags & Packet::kKey) != 0 ? AV_PKT_FLAG_KEY : 0;
  FB_RETURN_IF_ERROR(AttachParameters(pass.index, packet, first, av));
  const bool broken = pass.BrokenByDesign(packet);
  context_->err_recognition = pass.strict && !broken ? kStrict : 0;
  pass.fed = packet;
  // More than one round only when the decoder has a frame to give before it takes more.
  for (int round = 0; round < 64; ++round) {
    const int error = avcodec_send_packet(context_.get(), av);
    if (error < 0 && error != AVERROR(EAGAIN) && !broken) {
      return PacketError(pass.index, packet,
                         fmt::format("does not decode: {}", AvErrorText(error)));
    }
    FB_RETURN_IF_ERROR(Receive(pass, false));
    if (error != AVERROR(EAGAIN)) return {};
  }
  return PacketError(pass.index, packet, "the decoder does not take it");
}

Status StreamDecoder::AttachParameters(const VideoIndex& index, uint32_t packet, bool first,
                                       AVPacket* av) {
  const uint32_t set = index.packets[packet].parameter_set;
  // A decoder that ran elsewhere, in this stream or in another of the same parameters, keeps the
  // parameter sets it met there: each run starts from its own, as a fresh decoder would.
  const bool resets = first && (bitstream_.has_nal_units() || set != 0);
  if (set == parameter_set_ && !resets) return {};
  if (set > index.parameter_sets.size()) {
    return Status(Code::kDataLoss, "the index is damaged: a packet without its parameter set");
  }
  parameter_set_ = set;
  const std::string& extra = set == 0 ? index.parameters.extradata : index.parameter_sets[set - 1];
  return AttachParameterSet(extra, av);
}

Status StreamDecoder::Receive(Pass& pass, bool to_the_end) {
  // Each error consumes a packet or ends the draining; the bound is against a decoder that does
  // not.
  for (int errors = 0; errors < 256;) {
    const int error = avcodec_receive_frame(context_.get(), frame_.get());
    if (error == AVERROR_EOF || (error == AVERROR(EAGAIN) && !to_the_end)) return {};
    if (error < 0) {
      if (!pass.BrokenByDesign(pass.fed)) {
        return PacketError(pass.index, pass.fed,
                           fmt::format("does not decode: {}", AvErrorText(error)));
      }
      ++errors;
      continue;
    }
    Status status = Take(pass, *frame_);
    av_frame_unref(frame_.get());
    FB_RETURN_IF_ERROR(std::move(status));
  }
  return PacketError(pass.index, pass.fed, "the decoder does not come to an end");
}

Status StreamDecoder::Take(Pass& pass, const AVFrame& frame) {
  const auto tag = static_cast<uint64_t>(frame.pts);
  const auto packet = static_cast<uint32_t>(tag);
  if (frame.pts == AV_NOPTS_VALUE || tag >> 32 != epoch_ || packet >= pass.index.packets.size()) {
    return {};  // left over from another run, whatever the flush should have done
  }
  ordinal_ = packet == last_packet_ ? ordinal_ + 1 : 0;
  last_packet_ = packet;
  const auto found =
      std::ranges::lower_bound(wanted_, std::pair(packet, ordinal_), {},
                               [](const Wanted& w) { return std::pair(w.packet, w.ordinal); });
  const bool is_wanted =
      found != wanted_.end() && found->packet == packet && found->ordinal == ordinal_;
  if (frame.decode_error_flags != 0 && (is_wanted || !pass.BrokenByDesign(packet))) {
    return PacketError(pass.index, packet,
                       fmt::format("damaged picture: {}", FlagsText(frame.decode_error_flags)));
  }
  if (!is_wanted || found->done) return {};
  FB_RETURN_IF_ERROR(pass.on_frame(found->frame, frame));
  found->done = true;
  --left_;
  return {};
}

Status StreamDecoder::Missing(const Pass& pass) const {
  const auto first = std::ranges::find(wanted_, false, &Wanted::done);
  return PacketError(
      pass.index, first->packet,
      fmt::format("frame {} does not come out: {} packets from {} to {} were decoded, "
                  "{} of {} frames came",
                  first->frame, pass.run.packets.size(), pass.run.packets.front(),
                  pass.run.packets.back(), wanted_.size() - left_, wanted_.size()));
}

PictureHead StreamDecoder::HeadOf(const AVPacket& av) const {
  return bitstream_.Read(
      {reinterpret_cast<const std::byte*>(av.data), static_cast<size_t>(av.size)});
}

bool StreamDecoder::IsWanted(uint32_t packet) const {
  const auto found = std::ranges::lower_bound(wanted_, packet, {}, &Wanted::packet);
  return found != wanted_.end() && found->packet == packet;
}

}  // namespace forebay::media::ffmpeg
