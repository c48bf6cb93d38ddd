#include "format/inflate.h"

#include <fmt/core.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

namespace forebay::format {
namespace {

constexpr uint64_t kMostOfOne = 1032;  // bytes that deflate makes of one, at most
constexpr uint64_t kPiece = uint64_t{64} << 10;

}  // namespace

struct Inflater::Stream {
  z_stream z{};
  std::array<std::byte, kPiece> out;
  bool open = false;
  ~Stream() {
    if (open) inflateEnd(&z);
  }
};

Inflater::Inflater(std::unique_ptr<Stream> stream, uint64_t bytes, const Place& place)
    : stream_(std::move(stream)), bytes_(bytes), place_(place) {}
Inflater::Inflater(Inflater&&) noexcept = default;
Inflater::~Inflater() = default;

Result<Inflater> Inflater::Make(uint64_t packed, uint64_t bytes, const Place& place) {
  if (bytes > kMaxBytes) return AboveLimit(place, "the size of what is packed", bytes, kMaxBytes);
  if (bytes / kMostOfOne > packed) {
    return Damaged(place, fmt::format("at most {} bytes of {}", packed * kMostOfOne, packed),
                   fmt::format("{} declared", bytes));
  }
  auto stream = std::make_unique<Stream>();
  stream->open = inflateInit2(&stream->z, -MAX_WBITS) == Z_OK;
  if (!stream->open) return Status(Code::kResourceExhausted, "no memory for unpacking");
  return Inflater(std::move(stream), bytes, place);
}

Status Inflater::Take(ByteView packed, const OnBytes& on_bytes) {
  z_stream& z = stream_->z;
  while (!packed.empty()) {
    if (ended_) return Damaged(place_, "the end of what is packed", "more bytes");
    const size_t size = std::min<size_t>(packed.size(), size_t{1} << 30);
    z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data()));
    z.avail_in = static_cast<uInt>(size);
    for (bool more = true; more && !ended_;) {
      z.next_out = reinterpret_cast<Bytef*>(stream_->out.data());
      z.avail_out = kPiece;
      const int result = inflate(&z, Z_NO_FLUSH);
      if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
        return Damaged(place_, "deflated data", "others");
      }
      const size_t made = kPiece - z.avail_out;
      made_ += made;
      if (made_ > bytes_) {
        return Damaged(place_, fmt::format("{} unpacked bytes", bytes_), "more of them");
      }
      on_bytes(ByteView(stream_->out).first(made));
      ended_ = result == Z_STREAM_END;
      more = z.avail_out == 0;
    }
    packed = packed.subspan(size - z.avail_in);
  }
  return {};
}

Status Inflater::End() const {
  if (ended_ && made_ == bytes_) return {};
  return Damaged(place_, fmt::format("{} unpacked bytes", bytes_),
                 ended_ ? fmt::format("{}", made_) : "data that are cut");
}

}  // namespace forebay::format
