#include "media/ffmpeg/bitstream.h"

extern "C" {
#include <libavcodec/codec_desc.h>
}

#include <algorithm>

namespace forebay::media::ffmpeg {
namespace {

constexpr uint64_t kSetBytesMax = 64u << 10;

uint8_t At(ByteView bytes, size_t i) { return std::to_integer<uint8_t>(bytes[i]); }

// Bits of a unit with its emulation prevention bytes taken out.
class Bits {
 public:
  explicit Bits(ByteView unit) {
    bytes_.reserve(unit.size());
    int zeros = 0;
    for (const std::byte b : unit) {
      const auto value = std::to_integer<uint8_t>(b);
      if (zeros >= 2 && value == 3) {
        zeros = 0;
        continue;
      }
      zeros = value == 0 ? zeros + 1 : 0;
      bytes_.push_back(value);
    }
  }
  // 0 past the end; overrun() tells.
  uint32_t Take(int n) {
    uint32_t value = 0;
    for (int i = 0; i < n; ++i) {
      const size_t byte = at_ / 8;
      const uint32_t bit = byte < bytes_.size() ? bytes_[byte] >> (7 - at_ % 8) & 1 : 0;
      value = value << 1 | bit;
      ++at_;
    }
    return value;
  }
  uint32_t TakeUe() {
    int zeros = 0;
    while (zeros < 32 && !overrun() && Take(1) == 0) ++zeros;
    if (zeros >= 32 || overrun()) return UINT32_MAX;
    return (1u << zeros) - 1 + Take(zeros);
  }
  int32_t TakeSe() {
    const uint32_t code = TakeUe();
    const auto half = static_cast<int32_t>(code / 2);
    return code % 2 != 0 ? half + 1 : -half;
  }
  void Skip(size_t bits) { at_ += bits; }
  bool overrun() const { return at_ > bytes_.size() * 8; }
  size_t bytes_left() const { return overrun() ? 0 : bytes_.size() - (at_ + 7) / 8; }

 private:
  std::vector<uint8_t> bytes_;
  size_t at_ = 0;
};

// The start code 00 00 01 at or after `from`: the position behind it, or npos.
size_t FindStartCode(ByteView bytes, size_t from) {
  for (size_t i = from; i + 3 <= bytes.size(); ++i) {
    const uint8_t third = At(bytes, i + 2);
    if (third > 1) {
      i += 2;
    } else if (third == 1 && At(bytes, i) == 0 && At(bytes, i + 1) == 0) {
      return i + 3;
    }
  }
  return std::string::npos;
}

constexpr uint8_t kH264Sei = 6, kH264Sps = 7, kH264Pps = 8, kH264EndOfSequence = 10;
constexpr uint8_t kHevcVps = 32, kHevcSps = 33, kHevcPps = 34, kHevcEndOfSequence = 36;

PictureHead ReadVp8(PartialPacket* packet) {
  PictureHead head;
  const ByteView bytes = packet->Get(0, 3);
  if (bytes.empty()) return head;
  head.sync = (At(bytes, 0) & 1) == 0 ? Sync::kClosed : Sync::kNone;
  head.starts_sequence = head.sync == Sync::kClosed;
  head.shown = (At(bytes, 0) >> 4 & 1) != 0;
  return head;
}

// The format behind the sync code of a key frame.
const char* Vp9PixelFormat(Bits* bits, uint32_t profile) {
  static constexpr const char* kNames[3][5] = {
      {"yuv444p", "yuv440p", "yuv422p", "yuv420p", "gbrp"},
      {"yuv444p10le", "yuv440p10le", "yuv422p10le", "yuv420p10le", "gbrp10le"},
      {"yuv444p12le", "yuv440p12le", "yuv422p12le", "yuv420p12le", "gbrp12le"}};
  if (bits->Take(24) != 0x498342) return nullptr;
  const uint32_t depth = profile >= 2 ? 1 + bits->Take(1) : 0;
  constexpr uint32_t kRgb = 7;
  if (bits->Take(3) == kRgb) return kNames[depth][4];
  bits->Skip(1);  // range
  const bool any = profile == 1 || profile == 3;
  const uint32_t horizontal = any ? bits->Take(1) : 1, vertical = any ? bits->Take(1) : 1;
  return bits->overrun() ? nullptr : kNames[depth][horizontal * 2 + vertical];
}

PictureHead ReadVp9(PartialPacket* packet) {
  PictureHead head;
  const ByteView bytes = packet->Get(0, std::min<uint64_t>(packet->size(), 10));
  if (bytes.empty()) return head;
  Bits bits(bytes);
  head.sync = Sync::kNone;
  if (bits.Take(2) != 2) {
    head.damaged = true;
    return head;
  }
  const uint32_t low = bits.Take(1);
  const uint32_t profile = bits.Take(1) << 1 | low;
  if (profile == 3) bits.Skip(1);
  if (bits.Take(1) != 0) return head;  // shows a frame decoded before
  if (bits.Take(1) == 0) head.sync = Sync::kClosed;
  head.starts_sequence = head.sync == Sync::kClosed;
  head.shown = bits.Take(1) != 0;
  bits.Skip(1);
  if (head.sync == Sync::kClosed) head.pixel_format = Vp9PixelFormat(&bits, profile);
  if (!head.shown) {
    // Hidden by itself, or the first of a superframe, whose last is shown.
    const ByteView last = packet->Get(packet->size() - 1, 1);
    if (!last.empty() && (At(last, 0) & 0xe0) == 0xc0) head.shown = true;
  }
  return head;
}

// Walks OBUs to the first frame header.
PictureHead ReadAv1(PartialPacket* packet) {
  PictureHead head;
  bool still = false;
  for (uint64_t at = 0; at < packet->size();) {
    const ByteView bytes = packet->Get(at, std::min<uint64_t>(16, packet->size() - at));
    if (bytes.empty()) return head;
    const int type = At(bytes, 0) >> 3 & 15;
    size_t header = (At(bytes, 0) & 4) != 0 ? 2 : 1;
    uint64_t size = packet->size() - at - std::min<uint64_t>(header, packet->size() - at);
    if ((At(bytes, 0) & 2) != 0) {
      size = 0;
      for (int i = 0; i < 5 && header < bytes.size(); ++i) {
        const uint8_t value = At(bytes, header++);
        size |= static_cast<uint64_t>(value & 127) << (7 * i);
        if ((value & 128) == 0) break;
      }
    }
    const ByteView body = bytes.size() > header ? bytes.subspan(header) : ByteView{};
    if (type == 1 && !body.empty()) {
      head.has_sets = true;
      still = (At(body, 0) >> 3 & 1) != 0;  // reduced_still_picture_header
    }
    if ((type == 3 || type == 6) && !body.empty()) {
      const uint8_t first = At(body, 0);
      const bool existing = !still && (first & 0x80) != 0;
      const bool key = still || (!existing && (first >> 5 & 3) == 0 && (first >> 4 & 1) != 0);
      head.sync = key ? Sync::kClosed : Sync::kNone;
      head.starts_sequence = key;
      return head;
    }
    at += header + size;
  }
  head.sync = Sync::kNone;
  head.damaged = true;
  return head;
}

PictureHead ReadMpeg12(ByteView packet) {
  PictureHead head;
  head.sync = Sync::kNone;
  bool closed = false;
  for (size_t at = FindStartCode(packet, 0); at != std::string::npos && at < packet.size();
       at = FindStartCode(packet, at)) {
    const uint8_t code = At(packet, at);
    const ByteView body = packet.subspan(at + 1);
    if (code == 0xb3) head.has_sets = true;
    if (code == 0xb8 && body.size() >= 4) {
      closed = (At(body, 3) >> 6 & 1) != 0;
      head.starts_sequence = true;
    }
    if (code == 0x00 && body.size() >= 2) {
      head.order = At(body, 0) << 2 | At(body, 1) >> 6;
      const int type = At(body, 1) >> 3 & 7;
      if (type == 1) head.sync = closed ? Sync::kClosed : Sync::kOpen;
      head.disposable = type == 3 && !head.has_sets;
    }
    if (code == 0xb5 && body.size() >= 3 && At(body, 0) >> 4 == 8) {
      head.field = (At(body, 2) & 3) != 3;
    }
    if (code >= 0x01 && code <= 0xaf) break;  // a slice
  }
  return head;
}

PictureHead ReadMpeg4(ByteView packet) {
  PictureHead head;
  head.sync = Sync::kNone;
  for (size_t at = FindStartCode(packet, 0); at != std::string::npos && at < packet.size();
       at = FindStartCode(packet, at)) {
    const uint8_t code = At(packet, at);
    if (code >= 0x20 && code <= 0x2f) head.has_sets = true;
    if (code == 0xb6 && at + 1 < packet.size()) {
      const int type = At(packet, at + 1) >> 6;
      if (type == 0) head.sync = Sync::kOpen;
      head.disposable = type == 2 && !head.has_sets;
      break;
    }
  }
  return head;
}

}  // namespace

ByteView PartialPacket::Get(uint64_t at, uint64_t n) {
  if (at >= size_) return {};
  n = std::min(n, size_ - at);
  for (const Piece& piece : pieces_) {
    if (piece.offset <= at && at + n <= piece.offset + piece.bytes.size()) {
      return piece.bytes.subspan(at - piece.offset, n);
    }
  }
  needed_ = {at, at + n};
  return {};
}

BitstreamReader::BitstreamReader(const std::string& codec, const std::string& extradata)
    : extradata_(extradata) {
  if (codec == "h264") kind_ = Kind::kH264;
  if (codec == "hevc") kind_ = Kind::kHevc;
  if (codec == "av1") kind_ = Kind::kAv1;
  if (codec == "vp8") kind_ = Kind::kVp8;
  if (codec == "vp9") kind_ = Kind::kVp9;
  if (codec == "mpeg1video" || codec == "mpeg2video") kind_ = Kind::kMpeg12;
  if (codec == "mpeg4") kind_ = Kind::kMpeg4;
  if (kind_ == Kind::kOther) {
    const AVCodecDescriptor* descriptor = avcodec_descriptor_get_by_name(codec.c_str());
    if (descriptor != nullptr && (descriptor->props & AV_CODEC_PROP_INTRA_ONLY) != 0) {
      kind_ = Kind::kIntraOnly;
    }
  }
  SetFromExtradata();
}

void BitstreamReader::SetFromExtradata() {
  const ByteView bytes = AsBytes(extradata_);
  if (kind_ == Kind::kH264 && bytes.size() >= 7 && At(bytes, 0) == 1) {
    length_size_ = (At(bytes, 4) & 3) + 1;
  }
  const bool annex_b = bytes.size() >= 4 && At(bytes, 0) == 0 && At(bytes, 1) == 0 &&
                       (At(bytes, 2) == 1 || (At(bytes, 2) == 0 && At(bytes, 3) == 1));
  if (kind_ == Kind::kHevc && bytes.size() >= 23 && !annex_b) {
    length_size_ = (At(bytes, 21) & 3) + 1;
  }
  if (kind_ == Kind::kH264) {
    for (const ParameterSet& set : SetsOf(extradata_)) {
      if (set.type == kH264Sps) SetFromH264Sps(AsBytes(set.bytes));
    }
  }
  if (kind_ != Kind::kHevc) return;
  bool known = false;
  for (const ParameterSet& set : SetsOf(extradata_)) {
    // sps_video_parameter_set_id, then sps_max_sub_layers_minus1
    if (set.type != kHevcSps || set.bytes.size() < 3) continue;
    highest_temporal_id_ =
        std::max<uint8_t>(highest_temporal_id_, static_cast<uint8_t>(set.bytes[2]) >> 1 & 7);
    known = true;
  }
  // Above every id: without a parameter set nothing is known to be unreferenced.
  if (!known) highest_temporal_id_ = 7;
}

namespace {

void SkipScalingList(Bits* bits, int size) {
  int32_t last = 8, next = 8;
  for (int i = 0; i < size && next != 0 && !bits->overrun(); ++i) {
    next = (last + bits->TakeSe() % 256 + 256) % 256;
    if (next != 0) last = next;
  }
}

}  // namespace

void BitstreamReader::SetFromH264Sps(ByteView sps) {
  constexpr uint32_t kHighProfiles[] = {100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134};
  Bits bits(sps.subspan(std::min<size_t>(1, sps.size())));
  const uint32_t profile = bits.Take(8);
  bits.Skip(16);  // constraints, level
  bits.TakeUe();  // id
  if (std::ranges::find(kHighProfiles, profile) != std::end(kHighProfiles)) {
    const uint32_t chroma = bits.TakeUe();
    separate_planes_ = chroma == 3 && bits.Take(1) != 0;
    bits.TakeUe(), bits.TakeUe();  // depths
    bits.Skip(1);
    const bool matrices = bits.Take(1) != 0;
    for (int i = 0; matrices && i < (chroma == 3 ? 12 : 8); ++i) {
      if (bits.Take(1) != 0) SkipScalingList(&bits, i < 6 ? 16 : 64);
    }
  }
  const uint32_t more = bits.TakeUe();
  if (!bits.overrun() && more <= 12) frame_num_bits_ = static_cast<int>(more) + 4;
}

bool FrameNumbers::Gap(const PictureHead& head, uint32_t frame_num_end) {
  if (frame_num_end == 0 || head.frame_num < 0) return false;
  const auto now = static_cast<uint32_t>(head.frame_num), last = static_cast<uint32_t>(last_);
  const bool follows =
      last_ < 0 || head.sync == Sync::kClosed || now == last || now == (last + 1) % frame_num_end;
  if (head.reference) last_ = head.frame_num;
  return !follows;
}

PictureHead BitstreamReader::Read(ByteView packet, std::vector<ParameterSet>* sets) const {
  PartialPacket whole(packet);
  return ReadPartial(&whole, sets);
}

PictureHead BitstreamReader::ReadPartial(PartialPacket* packet,
                                         std::vector<ParameterSet>* sets) const {
  PictureHead head;
  switch (kind_) {
    case Kind::kOther:
      return head;
    case Kind::kIntraOnly:
      head.sync = Sync::kClosed;
      head.starts_sequence = true;
      return head;
    case Kind::kH264:
    case Kind::kHevc:
      return ReadNals(packet, sets);
    case Kind::kAv1:
      return ReadAv1(packet);
    case Kind::kVp8:
      return ReadVp8(packet);
    case Kind::kVp9:
      return ReadVp9(packet);
    case Kind::kMpeg12:
    case Kind::kMpeg4: {
      // Headers of a picture; slices follow soon.
      const ByteView bytes = packet->Get(0, packet->whole() ? packet->size() : 256);
      return kind_ == Kind::kMpeg12 ? ReadMpeg12(bytes) : ReadMpeg4(bytes);
    }
  }
  return head;
}

PictureHead BitstreamReader::ReadNals(PartialPacket* packet,
                                      std::vector<ParameterSet>* sets) const {
  PictureHead head;
  head.sync = Sync::kNone;
  if (length_size_ == 0) {
    const ByteView bytes = packet->Get(0, packet->size());
    size_t start = FindStartCode(bytes, 0);
    if (start == std::string::npos) head.damaged = true;
    while (start != std::string::npos && start < bytes.size()) {
      const size_t next = FindStartCode(bytes, start);
      const size_t end = next == std::string::npos ? bytes.size() : next - 3;
      if (end > start) VisitNal(packet, {start, end}, &head, sets);
      start = next;
    }
    return head;
  }
  for (uint64_t at = 0; at < packet->size();) {
    const ByteView prefix = packet->Get(at, static_cast<uint64_t>(length_size_));
    if (prefix.empty()) break;
    uint64_t size = 0;
    for (const std::byte b : prefix) size = size << 8 | std::to_integer<uint64_t>(b);
    at += static_cast<uint64_t>(length_size_);
    if (size > packet->size() - std::min(at, packet->size())) {
      head.damaged = true;
      break;
    }
    // From some of the bytes the first slice is enough; it comes behind all that matters.
    if (size > 0 && VisitNal(packet, {at, at + size}, &head, sets) && !packet->whole()) break;
    if (!packet->needed().empty()) break;
    at += size;
  }
  return head;
}

// True: a slice.
bool BitstreamReader::VisitNal(PartialPacket* packet, ByteRange nal, PictureHead* head,
                               std::vector<ParameterSet>* sets) const {
  const ByteView first = packet->Get(nal.offset, 1);
  if (first.empty()) return false;
  const bool h264 = kind_ == Kind::kH264;
  const uint8_t type = h264 ? At(first, 0) & 31 : At(first, 0) >> 1 & 63;
  const bool is_set =
      h264 ? type == kH264Sps || type == kH264Pps : type >= kHevcVps && type <= kHevcPps;
  if (is_set) {
    head->has_sets = true;
    head->disposable = false;
    if (sets != nullptr) {
      ByteView bytes = packet->Get(nal.offset, std::min(nal.size(), kSetBytesMax));
      while (!bytes.empty() && At(bytes, bytes.size() - 1) == 0)
        bytes = bytes.first(bytes.size() - 1);
      if (!bytes.empty()) sets->push_back({type, std::string(AsText(bytes))});
    }
    return false;
  }
  if (type == (h264 ? kH264EndOfSequence : kHevcEndOfSequence)) head->ends_sequence = true;
  return h264 ? VisitH264(packet, nal, head) : VisitHevc(packet, nal, head);
}

namespace {

// The recovery point of a unit of supplemental information, if it holds one. False: more bytes are
// needed to tell.
bool ReadRecoveryPoint(ByteView unit, bool whole, uint64_t unit_size, PictureHead* head) {
  Bits bits(unit.subspan(1));
  while (bits.bytes_left() > 1) {
    uint32_t type = 0, size = 0, value = 0;
    do type += value = bits.Take(8);
    while (value == 255 && !bits.overrun());
    do size += value = bits.Take(8);
    while (value == 255 && !bits.overrun());
    if (bits.overrun()) break;
    if (type == 6 && bits.bytes_left() >= std::min<uint32_t>(size, 4)) {
      const uint32_t count = bits.TakeUe();
      const bool exact = bits.Take(1) != 0;
      head->recovery = static_cast<uint16_t>(std::min<uint32_t>(count, UINT16_MAX));
      head->sync = count == 0 && exact ? Sync::kOpen : Sync::kGradual;
      return true;
    }
    // A long text to the unit's end hides nothing behind it.
    if (type == 5 && size + 8 >= unit_size) return true;
    bits.Skip(static_cast<size_t>(size) * 8);
    if (bits.overrun()) return whole;
  }
  return whole || bits.bytes_left() > 0;
}

}  // namespace

bool BitstreamReader::VisitH264(PartialPacket* packet, ByteRange nal, PictureHead* head) const {
  const uint8_t first = At(packet->Get(nal.offset, 1), 0);
  const int type = first & 31;
  const int reference = first >> 5 & 3;
  if (type == kH264Sei) {
    ByteView unit = packet->Get(nal.offset, std::min<uint64_t>(nal.size(), 24));
    if (unit.empty()) return false;
    if (!ReadRecoveryPoint(unit, unit.size() == nal.size(), nal.size(), head)) {
      unit = packet->Get(nal.offset, std::min<uint64_t>(nal.size(), kSetBytesMax));
      if (!unit.empty()) ReadRecoveryPoint(unit, true, nal.size(), head);
    }
    return false;
  }
  if (type != 1 && type != 2 && type != 5) return false;
  // Of two fields in one packet each has its say.
  head->disposable = (head->slices == 0 || head->disposable) && reference == 0 && !head->has_sets;
  ++head->slices;
  head->reference = head->reference || reference != 0;
  if (type == 5) {
    head->frame_num = 0;
    head->sync = Sync::kClosed;
    head->starts_sequence = true;
    return true;
  }
  const ByteView slice = packet->Get(nal.offset, std::min<uint64_t>(nal.size(), 12));
  if (slice.empty()) return false;
  Bits bits(slice.subspan(1));
  bits.TakeUe();  // first_mb_in_slice
  const uint32_t slice_type = bits.TakeUe() % 5;
  bits.TakeUe();  // pic_parameter_set_id
  if (separate_planes_) bits.Skip(2);
  const uint32_t frame_num = bits.Take(frame_num_bits_);
  if (frame_num_bits_ > 0 && !bits.overrun()) head->frame_num = static_cast<int32_t>(frame_num);
  const bool intra = slice_type == 2 || slice_type == 4;
  if (head->sync == Sync::kOpen && !intra) head->sync = Sync::kGradual;
  if (head->sync == Sync::kNone && intra) head->sync = Sync::kIntra;
  if (head->sync == Sync::kIntra && !intra) head->sync = Sync::kNone;
  return true;
}

bool BitstreamReader::VisitHevc(PartialPacket* packet, ByteRange nal, PictureHead* head) const {
  const ByteView header = packet->Get(nal.offset, 2);
  if (header.size() < 2) return false;
  const int type = At(header, 0) >> 1 & 63;
  const int layer = (At(header, 0) & 1) << 5 | At(header, 1) >> 3;
  if (type > 31 || layer != 0) return false;
  head->temporal_id = static_cast<uint8_t>((At(header, 1) & 7) - 1);
  if (type >= 16 && type <= 21) {
    // IDR_N_LP and BLA_N_LP have no leading pictures, the other IDR and BLA only decodable ones or
    // ones that never come out.
    head->sync = type == 21 ? Sync::kOpen : Sync::kClosed;
    head->broken_link = type <= 18;
    head->starts_sequence = type != 21;
    return true;
  }
  if (type == 6 || type == 7) head->leading = Leading::kDecodable;
  if (type == 8 || type == 9) head->leading = Leading::kSkipped;
  head->disposable =
      type < 16 && type % 2 == 0 && head->temporal_id >= highest_temporal_id_ && !head->has_sets;
  return true;
}

std::vector<ParameterSet> BitstreamReader::SetsOf(const std::string& extradata) const {
  std::vector<ParameterSet> sets;
  const ByteView bytes = AsBytes(extradata);
  const auto take = [&](size_t at) -> size_t {  // one set with a 16-bit length; its end, 0: none
    if (at + 2 > bytes.size()) return 0;
    const size_t size = static_cast<size_t>(At(bytes, at)) << 8 | At(bytes, at + 1);
    if (size == 0 || at + 2 + size > bytes.size()) return 0;
    const uint8_t first = At(bytes, at + 2);
    const auto type = static_cast<uint8_t>(kind_ == Kind::kH264 ? first & 31 : first >> 1 & 63);
    sets.push_back({type, std::string(AsText(bytes.subspan(at + 2, size)))});
    return at + 2 + size;
  };
  if (!has_nal_units() || bytes.size() < 7) return sets;
  if (length_size_ == 0) {
    PartialPacket whole(bytes);
    ReadNals(&whole, &sets);
    return sets;
  }
  if (kind_ == Kind::kH264) {
    size_t at = 5;
    for (const int mask : {31, 255}) {
      if (at == 0 || at >= bytes.size()) break;
      int count = At(bytes, at++) & mask;
      while (count-- > 0 && at != 0) at = take(at);
    }
    return sets;
  }
  size_t at = 23;
  for (int arrays = bytes.size() > 22 ? At(bytes, 22) : 0; arrays > 0 && at != 0; --arrays) {
    if (at + 3 > bytes.size()) break;
    const bool wanted = (At(bytes, at) & 63) >= kHevcVps && (At(bytes, at) & 63) <= kHevcPps;
    int count = At(bytes, at + 1) << 8 | At(bytes, at + 2);
    at += 3;
    while (count-- > 0 && at != 0) {
      at = take(at);
      if (at != 0 && !wanted) sets.pop_back();
    }
  }
  return sets;
}

uint32_t BitstreamReader::SetKey(const ParameterSet& set) const {
  const ByteView bytes = AsBytes(set.bytes);
  uint32_t id = 0;
  if (kind_ == Kind::kH264) {
    // An SPS has its id behind profile, constraints and level.
    const size_t at = set.type == kH264Sps ? 4 : 1;
    if (bytes.size() > at)
      id = Bits(bytes.subspan(at, std::min<size_t>(bytes.size() - at, 8))).TakeUe();
  } else if (bytes.size() > 2) {
    if (set.type == kHevcVps) id = At(bytes, 2) >> 4;
    if (set.type == kHevcPps) {
      id = Bits(bytes.subspan(2, std::min<size_t>(bytes.size() - 2, 8))).TakeUe();
    }
    // An HEVC SPS has its id behind a structure of variable length; streams use one at a time.
  }
  return static_cast<uint32_t>(set.type) << 16 | (id & 0xffff);
}

std::string BitstreamReader::ExtradataWith(const std::vector<ParameterSet>& sets) const {
  if (length_size_ > 0) return kind_ == Kind::kH264 ? Avcc(sets) : Hvcc(sets);
  std::string annex_b;
  for (const ParameterSet& set : sets) annex_b += std::string("\0\0\0\1", 4) + set.bytes;
  return annex_b;
}

namespace {
void AppendWithLength(const std::string& bytes, std::string* to) {
  to->push_back(static_cast<char>(bytes.size() >> 8));
  to->push_back(static_cast<char>(bytes.size()));
  to->append(bytes);
}
}  // namespace

std::string BitstreamReader::Avcc(const std::vector<ParameterSet>& sets) const {
  std::string avcc = extradata_.substr(0, 5);
  for (const uint8_t type : {kH264Sps, kH264Pps}) {
    const auto count = std::count_if(sets.begin(), sets.end(),
                                     [&](const ParameterSet& set) { return set.type == type; });
    avcc.push_back(static_cast<char>(type == kH264Sps ? 0xe0 | (count & 31) : count & 255));
    for (const ParameterSet& set : sets) {
      if (set.type == type) AppendWithLength(set.bytes, &avcc);
    }
  }
  return avcc;
}

std::string BitstreamReader::Hvcc(const std::vector<ParameterSet>& sets) const {
  std::string hvcc = extradata_.substr(0, 22);
  hvcc.push_back(3);
  for (const uint8_t type : {kHevcVps, kHevcSps, kHevcPps}) {
    const auto count = std::count_if(sets.begin(), sets.end(),
                                     [&](const ParameterSet& set) { return set.type == type; });
    hvcc.push_back(static_cast<char>(0x80 | type));
    hvcc.push_back(static_cast<char>(count >> 8));
    hvcc.push_back(static_cast<char>(count));
    for (const ParameterSet& set : sets) {
      if (set.type == type) AppendWithLength(set.bytes, &hvcc);
    }
  }
  return hvcc;
}

}  // namespace forebay::media::ffmpeg
