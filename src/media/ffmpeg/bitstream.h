// What the first bytes of a coded picture say: can decoding start here, does anything refer to it,
// is it ever shown. Reads headers only; never decodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace forebay::media::ffmpeg {

enum class Sync : uint8_t {
  kUnknown,  // the codec is not read here
  kNone,     // decoding cannot start here
  kIntra,    // intra coded, but nothing says that later pictures refer to no earlier one
  kGradual,  // a gradual refresh starts here
  kOpen,     // starts here; pictures shown before it may refer to earlier ones (CRA, open GOP)
  kClosed,   // starts here (IDR, key frame)
};

enum class Leading : uint8_t { kNo, kDecodable, kSkipped };  // RADL, RASL

struct PictureHead {
  Sync sync = Sync::kUnknown;
  Leading leading = Leading::kNo;
  uint16_t recovery = 0;         // kGradual: the count the stream gives
  uint8_t temporal_id = 0;       // HEVC
  int32_t order = 0;             // MPEG-1 and -2: the temporal reference
  bool shown = true;             // false: never comes out (VP8, VP9 alternate reference)
  bool disposable = false;       // no other picture refers to it, and it carries no parameter set
  bool starts_sequence = false;  // output order starts anew: IDR, BLA, group of pictures
  bool broken_link = false;      // HEVC BLA: its RASL pictures never come out
  bool ends_sequence = false;    // an end-of-sequence unit follows the picture
  bool has_sets = false;         // carries parameter sets
  bool field = false;            // one field of two (MPEG-2)
  uint32_t slices = 0;           // H.264: read so far
  int32_t frame_num = -1;        // H.264: which counts pictures that others refer to; -1: unknown
  bool reference = false;        // H.264: others refer to it
  const char* pixel_format = nullptr;  // VP9 key frames: FFmpeg's name
  bool damaged = false;                // the units do not fit the packet
};

// A parameter set as it stands in the stream, without start code or length.
struct ParameterSet {
  uint8_t type = 0;  // the codec's NAL unit type
  std::string bytes;
  bool operator==(const ParameterSet&) const = default;
};

// Some bytes of a packet: pieces that ascend and do not overlap.
class PartialPacket {
 public:
  PartialPacket(uint64_t size) : size_(size) {}  // NOLINT: a packet nothing is known of
  explicit PartialPacket(ByteView whole) : size_(whole.size()) { pieces_.push_back({0, whole}); }
  uint64_t size() const { return size_; }
  void Add(uint64_t offset, ByteView bytes) { pieces_.push_back({offset, bytes}); }
  // Bytes [at, at + n), cut at the packet's end. Empty and noted as needed where they are unknown.
  ByteView Get(uint64_t at, uint64_t n);
  // What Get could not give; empty: nothing.
  ByteRange needed() const { return needed_; }
  bool whole() const { return pieces_.size() == 1 && pieces_[0].bytes.size() == size_; }

 private:
  struct Piece {
    uint64_t offset;
    ByteView bytes;
  };
  uint64_t size_;
  std::vector<Piece> pieces_;
  ByteRange needed_;
};

// Reads the pictures of one stream. `codec` is FFmpeg's short name.
class BitstreamReader {
 public:
  BitstreamReader(const std::string& codec, const std::string& extradata);

  // False: the codec is not read here, every head is Sync::kUnknown.
  bool understands() const { return kind_ != Kind::kOther; }
  // True: every packet is a picture of its own (MJPEG, ProRes, ...).
  bool intra_only() const { return kind_ == Kind::kIntraOnly; }
  // H.264: what frame_num counts to before it starts again; 0: not known.
  uint32_t frame_num_end() const { return frame_num_bits_ > 0 ? 1u << frame_num_bits_ : 0; }
  bool has_nal_units() const { return kind_ == Kind::kH264 || kind_ == Kind::kHevc; }
  // Bytes of the length in front of each NAL unit; 0: start codes.
  int length_size() const { return length_size_; }

  // `sets`, if given, takes the parameter sets in front of the picture.
  PictureHead Read(ByteView packet, std::vector<ParameterSet>* sets = nullptr) const;
  // The same from some of the bytes; a head that needs more leaves packet->needed() not empty.
  PictureHead ReadPartial(PartialPacket* packet, std::vector<ParameterSet>* sets = nullptr) const;

  // The parameter sets in extradata.
  std::vector<ParameterSet> SetsOf(const std::string& extradata) const;
  // Extradata in this stream's form (avcC, hvcC, Annex B) that holds these sets instead of its own.
  std::string ExtradataWith(const std::vector<ParameterSet>& sets) const;
  // Sets replace each other by this: type and the id inside.
  uint32_t SetKey(const ParameterSet& set) const;

 private:
  enum class Kind : uint8_t { kOther, kIntraOnly, kH264, kHevc, kAv1, kVp8, kVp9, kMpeg12, kMpeg4 };
  PictureHead ReadNals(PartialPacket* packet, std::vector<ParameterSet>* sets) const;
  bool VisitNal(PartialPacket* packet, ByteRange nal, PictureHead* head,
                std::vector<ParameterSet>* sets) const;
  bool VisitH264(PartialPacket* packet, ByteRange nal, PictureHead* head) const;
  bool VisitHevc(PartialPacket* packet, ByteRange nal, PictureHead* head) const;
  void SetFromExtradata();
  void SetFromH264Sps(ByteView sps);
  std::string Avcc(const std::vector<ParameterSet>& sets) const;
  std::string Hvcc(const std::vector<ParameterSet>& sets) const;

  Kind kind_ = Kind::kOther;
  int length_size_ = 0;
  uint8_t highest_temporal_id_ = 0;
  int frame_num_bits_ = 0;
  bool separate_planes_ = false;
  std::string extradata_;
};

// Whether an H.264 stream lost pictures that others refer to. A decoder then makes some up, as many
// as its count lacks of the picture fed last, whether others refer to that one or not: what it
// gives is the same only if all packets are fed.
class FrameNumbers {
 public:
  // The heads in decode order. True: pictures are missing in front of this one.
  bool Gap(const PictureHead& head, uint32_t frame_num_end);
  void Restart() { last_ = -1; }

 private:
  int32_t last_ = -1;  // of the last picture that others refer to
};

}  // namespace forebay::media::ffmpeg
