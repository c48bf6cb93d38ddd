#include "media/ffmpeg/scan_mp4.h"

#include <fmt/core.h>

#include <algorithm>

namespace forebay::media::ffmpeg {
namespace {

constexpr uint64_t kMetaBytesMax = 256u << 20;  // all boxes kept, together
constexpr uint64_t kBoxesMax = 4'000'000;       // top-level: two per fragment
constexpr int kDepthMax = 12;

constexpr uint32_t Type(const char (&name)[5]) {
  uint32_t type = 0;
  for (int i = 0; i < 4; ++i) type = type << 8 | static_cast<unsigned char>(name[i]);
  return type;
}

uint64_t ReadBe(ByteView bytes, size_t at, int n) {
  uint64_t value = 0;
  for (int i = 0; i < n; ++i) value = value << 8 | std::to_integer<uint64_t>(bytes[at + i]);
  return value;
}

struct Box {
  uint32_t type = 0;
  uint64_t header = 8;  // bytes of the header
  uint64_t size = 0;    // all of it; 0: to the end of what holds it
};

// The box header at the start of `bytes` (16 bytes, or fewer at the end). False: none can be there.
bool ReadBox(ByteView bytes, Box* box) {
  if (bytes.size() < 8) return false;
  box->size = ReadBe(bytes, 0, 4);
  box->type = static_cast<uint32_t>(ReadBe(bytes, 4, 4));
  box->header = 8;
  if (box->size == 1) {
    if (bytes.size() < 16) return false;
    box->header = 16;
    box->size = ReadBe(bytes, 8, 8);
  }
  return box->size == 0 || (box->size >= box->header && box->size < SparseSource::kSize / 2);
}

bool Describes(uint32_t type) {
  switch (type) {
    case Type("ftyp"):
    case Type("styp"):
    case Type("moov"):
    case Type("moof"):
    case Type("sidx"):
    case Type("mfra"):
      return true;
    default:
      return false;
  }
}

bool Holds(uint32_t type) {
  switch (type) {
    case Type("moov"):
    case Type("trak"):
    case Type("mdia"):
    case Type("minf"):
    case Type("stbl"):
    case Type("mvex"):
    case Type("moof"):
    case Type("traf"):
    case Type("edts"):
      return true;
    default:
      return false;
  }
}

// What the boxes inside moov and moof say before libavformat is let near them: whether samples come
// in fragments, whether they are encrypted, and that no table claims more than the caps. Tables
// with an entry per claim are bounded by their bytes; only run lengths are not.
class Inspector {
 public:
  explicit Inspector(uint64_t samples_max) : samples_max_(samples_max) {}
  bool fragmented() const { return fragmented_; }

  Status Walk(ByteView bytes, int depth = 0) {
    if (depth > kDepthMax) return Status(Code::kDataLoss, "boxes are nested too deep");
    while (bytes.size() >= 8) {
      Box box;
      if (!ReadBox(bytes.first(std::min<size_t>(bytes.size(), 16)), &box)) return {};
      uint64_t size = box.size == 0 ? bytes.size() : box.size;
      size = std::min<uint64_t>(size, bytes.size());
      if (size < box.header) return {};
      const ByteView body = bytes.subspan(box.header, size - box.header);
      FB_RETURN_IF_ERROR(Holds(box.type) ? Enter(box.type, body, depth) : Look(box.type, body));
      bytes = bytes.subspan(size);
    }
    return {};
  }

 private:
  Status Enter(uint32_t type, ByteView body, int depth) {
    if (type == Type("mvex")) fragmented_ = true;
    if (type == Type("trak")) {
      equal_samples_ = 0;
      ticks_ = sound_ = false;
    }
    FB_RETURN_IF_ERROR(Walk(body, depth + 1));
    // Sound with one sample per tick is kept as chunks, not samples.
    return type == Type("trak") && !(ticks_ && sound_) ? Count(equal_samples_) : Status();
  }

  Status Look(uint32_t type, ByteView body) {
    switch (type) {
      case Type("stsd"):
        return LookAtEntries(body);
      case Type("stts"):
      case Type("ctts"):
        return CountRuns(body);
      case Type("hdlr"):
        if (body.size() >= 12) sound_ = ReadBe(body, 8, 4) == Type("soun");
        return {};
      case Type("stsz"):
        if (body.size() >= 12) equal_samples_ = ReadBe(body, 8, 4);
        return {};
      case Type("trun"):
        return body.size() >= 8 ? Count(total_in_runs_ += ReadBe(body, 4, 4)) : Status();
      case Type("pssh"):
        return Status(Code::kUnimplemented, "the video is encrypted (it has a pssh box)");
      default:
        return {};
    }
  }

  Status LookAtEntries(ByteView body) {
    if (body.size() < 8) return {};
    for (ByteView entries = body.subspan(8); entries.size() >= 8;) {
      const uint64_t size = ReadBe(entries, 0, 4);
      const uint64_t type = ReadBe(entries, 4, 4);
      if (type == Type("encv")) {
        return Status(Code::kUnimplemented, "the video is encrypted (common encryption)");
      }
      if (size < 8 || size > entries.size()) break;
      entries = entries.subspan(size);
    }
    return {};
  }

  Status CountRuns(ByteView body) {
    uint64_t sum = 0;
    for (size_t at = 8; at + 8 <= body.size(); at += 8) sum += ReadBe(body, at, 4);
    ticks_ = ticks_ || (body.size() == 16 && ReadBe(body, 12, 4) == 1);
    return ticks_ ? Status() : Count(sum);
  }

  Status Count(uint64_t samples) const {
    if (samples <= samples_max_) return {};
    return Status(Code::kDataLoss, fmt::format("a table claims {} samples, over the limit of {}",
                                               samples, samples_max_));
  }

  uint64_t samples_max_;
  uint64_t total_in_runs_ = 0;
  uint64_t equal_samples_ = 0;  // of the track at hand
  bool ticks_ = false;
  bool sound_ = false;
  bool fragmented_ = false;
};

// Walks the top level and fetches.
class Mapper {
 public:
  Mapper(ObjectReader* object, std::vector<std::byte> head, uint64_t frames_max)
      : object_(object), inspector_(frames_max), window_(std::move(head)) {}

  Result<SparseSource> Run() {
    uint64_t boxes = 0;
    while (position_ < object_->size() && ++boxes <= kBoxesMax) {
      FB_ASSIGN_OR_RETURN(const bool more, Step());
      if (!more) break;
    }
    if (!has_moov_) return NoMoov();
    EndAt(position_);
    return std::move(source_);
  }

 private:
  // Bytes [offset, offset + n) out of the window, which is fetched anew where it lacks them.
  Result<ByteView> Window(uint64_t offset, uint64_t n, uint64_t ahead) {
    const ByteRange want{offset, std::min(offset + n, object_->size())};
    ByteRange have{window_at_, window_at_ + window_.size()};
    if (!have.Contains(want)) {
      const uint64_t end = std::min(offset + std::max(n, ahead), object_->size());
      // Keep what is there already: a moov that starts in the head is fetched from its end.
      if (offset >= have.offset && offset < have.end) {
        FB_ASSIGN_OR_RETURN(const auto rest, object_->Fetch({have.end, end}));
        window_.insert(window_.end(), rest.begin(), rest.end());
      } else {
        FB_ASSIGN_OR_RETURN(window_, object_->Fetch({offset, end}));
        window_at_ = offset;
      }
    }
    return ByteView(window_).subspan(offset - window_at_, want.size());
  }

  // How much to ask for where the next box starts: moov at the end is mostly all that is left, and
  // a moof is as large as the one before.
  uint64_t Ahead() const {
    if (!has_moov_) return 64u << 10;
    return std::max<uint64_t>(last_moof_ + 64, 1024);
  }

  // One top-level box. False: nothing after it is of interest.
  Result<bool> Step() {
    FB_ASSIGN_OR_RETURN(const ByteView head, Window(position_, 16, Ahead()));
    Box box;
    if (!ReadBox(head, &box)) return StopAtDamage();
    const uint64_t left = object_->size() - position_;
    const uint64_t size = box.size == 0 ? left : box.size;
    if (!Describes(box.type)) return SkipBox(box, size);
    if (size > left) return StopAtDamage();
    if (source_.bytes() + size > kMetaBytesMax) {
      return Status(Code::kDataLoss, "the tables of the file claim more than 256 MiB");
    }
    FB_ASSIGN_OR_RETURN(const ByteView bytes, Window(position_, size, 0));
    if (box.type == Type("moov") || box.type == Type("moof")) {
      FB_RETURN_IF_ERROR(inspector_.Walk(bytes));
    }
    if (box.type == Type("moof")) last_moof_ = size;
    if (box.type == Type("moov")) has_moov_ = true;
    source_.Add(position_, {bytes.begin(), bytes.end()});
    position_ += size;
    return !has_moov_ || inspector_.fragmented();
  }

  // A box whose content reads as zeros. libavformat must not take zeros for content, so what is
  // not mdat becomes `free`.
  Result<bool> SkipBox(const Box& box, uint64_t size) {
    std::vector<std::byte> header(
        window_.begin() + static_cast<ptrdiff_t>(position_ - window_at_),
        window_.begin() + static_cast<ptrdiff_t>(position_ - window_at_ + box.header));
    if (box.type != Type("mdat")) std::memcpy(header.data() + 4, "free", 4);
    source_.Add(position_, std::move(header));
    if (box.type == Type("mdat")) mdat_ = {position_, position_ + size};
    if (size >= object_->size() - position_) {
      position_ += size;
      return false;
    }
    position_ += size;
    return true;
  }

  // A header that cannot be one: the end, if the tables were found.
  Result<bool> StopAtDamage() {
    damaged_at_ = position_;
    return false;
  }

  // The rest, as long as it may be, is one box of zeros.
  void EndAt(uint64_t position) {
    std::vector<std::byte> header(16);
    const uint64_t size = SparseSource::kSize - position;
    header[3] = std::byte{1};
    std::memcpy(header.data() + 4, "free", 4);
    for (int i = 0; i < 8; ++i) header[8 + i] = static_cast<std::byte>(size >> (56 - 8 * i));
    source_.Add(position, std::move(header));
  }

  Status NoMoov() const {
    if (damaged_at_ != UINT64_MAX) {
      return Status(Code::kDataLoss, fmt::format("no moov box (the index of the samples): the file "
                                                 "is cut short or damaged at byte {}",
                                                 damaged_at_));
    }
    if (mdat_.end > object_->size()) {
      return Status(
          Code::kDataLoss,
          fmt::format("no moov box (the index of the samples): the file is cut short, its "
                      "media bytes should end at {} and the object has {} bytes",
                      mdat_.end, object_->size()));
    }
    return Status(Code::kDataLoss,
                  "no moov box (the index of the samples): the file is cut short, "
                  "or was never finished");
  }

  ObjectReader* object_;
  Inspector inspector_;
  std::vector<std::byte> window_;
  uint64_t window_at_ = 0;
  uint64_t position_ = 0;
  uint64_t last_moof_ = 0;
  uint64_t damaged_at_ = UINT64_MAX;
  ByteRange mdat_;
  bool has_moov_ = false;
  SparseSource source_;
};

}  // namespace

bool LooksLikeMp4(ByteView head) {
  Box box;
  if (!ReadBox(head.first(std::min<size_t>(head.size(), 16)), &box)) return false;
  switch (box.type) {
    case Type("ftyp"):
    case Type("styp"):
    case Type("moov"):
    case Type("moof"):
    case Type("mdat"):
    case Type("free"):
    case Type("skip"):
    case Type("wide"):
    case Type("pnot"):
      return true;
    default:
      return false;
  }
}

Result<SparseSource> MapMp4(ObjectReader* object, std::vector<std::byte> head,
                            uint64_t frames_max) {
  return Mapper(object, std::move(head), frames_max).Run();
}

}  // namespace forebay::media::ffmpeg
