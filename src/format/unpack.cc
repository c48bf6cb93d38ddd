#include "format/unpack.h"

#include <fmt/core.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "format/foreign.h"

namespace forebay::format {
namespace {

constexpr uint64_t kFreely = uint64_t{64} << 20;  // of whatever ratio
constexpr uint64_t kRatio = 1000;
constexpr uint64_t kStep = uint64_t{1} << 20;
constexpr uint64_t kPiece = 8ULL << 20;
constexpr int kWindowLog = 27;  // 128 MiB, what decoders accept unless told otherwise

// What grows as bytes come, up to a limit.
class Output {
 public:
  Output(uint64_t packed, uint64_t most, const Place& place)
      : most_(std::min(most, std::max(kFreely, packed * kRatio))), place_(place) {}

  // Room for at least one more byte.
  Result<MutableBytes> Room() {
    if (used_ == most_) return AboveLimit(place_, "the unpacked size", used_ + 1, most_);
    if (used_ == bytes_.size()) {
      bytes_.resize(std::min(most_, std::max(kStep, 2 * bytes_.size())));
    }
    return MutableBytes(bytes_).subspan(used_);
  }
  void Use(size_t bytes) { used_ += bytes; }
  std::vector<std::byte> Take() {
    bytes_.resize(used_);
    return std::move(bytes_);
  }

 private:
  const uint64_t most_;
  const Place place_;
  std::vector<std::byte> bytes_;
  uint64_t used_ = 0;
};

struct InflateEnd {
  void operator()(z_stream* z) const {
    inflateEnd(z);
    delete z;
  }
};

// gzip's members, or zlib's one stream.
Status Inflate(ByteView packed, Output& out, const Place& place) {
  const std::unique_ptr<z_stream, InflateEnd> z(new z_stream{});
  constexpr int kEither = 32;
  if (inflateInit2(z.get(), MAX_WBITS + kEither) != Z_OK) {
    return Status(Code::kResourceExhausted, "no memory for unpacking");
  }
  while (!packed.empty()) {
    z->next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    z->avail_in = static_cast<uInt>(std::min<size_t>(packed.size(), size_t{1} << 30));
    const size_t given = z->avail_in;
    FB_ASSIGN_OR_RETURN(const MutableBytes room, out.Room());
    z->next_out = reinterpret_cast<Bytef*>(room.data());
    z->avail_out = static_cast<uInt>(std::min<size_t>(room.size(), size_t{1} << 30));
    const size_t free = z->avail_out;
    const int result = inflate(z.get(), Z_NO_FLUSH);
    out.Use(free - z->avail_out);
    const size_t taken = given - z->avail_in;
    packed = packed.subspan(taken);
    if (result == Z_STREAM_END) {
      // Another member, or the zeros that fill a block.
      if (AsText(packed).find_first_not_of('\0') == std::string_view::npos) return {};
      if (inflateReset(z.get()) == Z_OK) continue;
    }
    if (result != Z_OK || (taken == 0 && z->avail_out != 0)) {
      return Damaged(place, "gzip or zlib data", "others, or a wrong checksum");
    }
  }
  return Damaged(place, "the end of packed data", "none: it is cut");
}

struct FreeDecoder {
  void operator()(ZSTD_DCtx* decoder) const { ZSTD_freeDCtx(decoder); }
};

Status Decompress(ByteView packed, Output& out, const Place& place) {
  const std::unique_ptr<ZSTD_DCtx, FreeDecoder> decoder(ZSTD_createDCtx());
  if (!decoder) return Status(Code::kResourceExhausted, "no memory for unpacking");
  (void)ZSTD_DCtx_setParameter(decoder.get(), ZSTD_d_windowLogMax, kWindowLog);
  ZSTD_inBuffer in{packed.data(), packed.size(), 0};
  for (size_t left = 1; in.pos < in.size || left != 0;) {
    FB_ASSIGN_OR_RETURN(const MutableBytes room, out.Room());
    ZSTD_outBuffer piece{room.data(), room.size(), 0};
    const size_t before = in.pos;
    left = ZSTD_decompressStream(decoder.get(), &piece, &in);
    if (ZSTD_isError(left) != 0) return Damaged(place, "zstd data", ZSTD_getErrorName(left));
    out.Use(piece.pos);
    if (left != 0 && in.pos == before && piece.pos == 0) {
      return Damaged(place, "the end of packed data", "none: it is cut");
    }
  }
  return {};
}

}  // namespace

bool IsPacked(ByteView head) {
  const Foreign kind = ForeignKind(head);
  return kind == Foreign::kGzip || kind == Foreign::kZlib || kind == Foreign::kZstd;
}

Result<std::vector<std::byte>> Unpack(ByteView packed, uint64_t most, const Place& place) {
  if (!IsPacked(packed)) {
    return Status(Code::kInvalidArgument, "it is not compressed by gzip, zlib or zstd");
  }
  Output out(packed.size(), most, place);
  const bool zstd = ForeignKind(packed) == Foreign::kZstd;
  FB_RETURN_IF_ERROR(zstd ? Decompress(packed, out, place) : Inflate(packed, out, place));
  return out.Take();
}

Result<std::vector<std::byte>> ReadStored(const Shard& shard) {
  if (shard.size > kUnpackedMost) {
    return AboveLimit({shard.name, 0}, "the size of a compressed shard", shard.size, kUnpackedMost);
  }
  std::vector<std::byte> bytes(shard.size);
  for (uint64_t at = 0; at < bytes.size();) {
    const uint64_t end = std::min<uint64_t>(bytes.size(), at + kPiece);
    FB_RETURN_IF_ERROR(shard.read({at, end}, MutableBytes(bytes).subspan(at, end - at)));
    at = end;
  }
  return bytes;
}

Shard InMemory(std::string name, ByteView bytes) {
  Shard shard{.name = std::move(name), .size = bytes.size(), .read = {}};
  shard.read = [bytes](ByteRange range, MutableBytes into) {
    if (!range.empty()) std::memcpy(into.data(), bytes.data() + range.offset, range.size());
    return Status();
  };
  return shard;
}

}  // namespace forebay::format
