#include "media/ffmpeg/scan_io.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace forebay::media::ffmpeg {

Status ObjectReader::Read(uint64_t offset, MutableBytes into) {
  if (offset > size_ || into.size() > size_ - offset) {
    return Status(Code::kDataLoss, fmt::format("bytes {}..{} lie past the end of the object, {}",
                                               offset, offset + into.size(), size_));
  }
  if (into.empty()) return {};
  bytes_wanted_ += into.size();
  return read_at_(ByteRange{offset, offset + into.size()}, into);
}

Result<std::vector<std::byte>> ObjectReader::Fetch(ByteRange range) {
  if (range.end > size_ || range.offset > range.end) {
    return Status(Code::kDataLoss, fmt::format("bytes {}..{} lie past the end of the object, {}",
                                               range.offset, range.end, size_));
  }
  std::vector<std::byte> bytes(range.size());
  FB_RETURN_IF_ERROR(Read(range.offset, bytes));
  return bytes;
}

Result<std::vector<std::vector<std::byte>>> ObjectReader::FetchMany(
    const std::vector<ByteRange>& ranges) {
  std::vector<std::vector<std::byte>> buffers;
  buffers.reserve(ranges.size());
  if (!read_many_) {
    for (const ByteRange& range : ranges) {
      FB_ASSIGN_OR_RETURN(auto bytes, Fetch(range));
      buffers.push_back(std::move(bytes));
    }
    return buffers;
  }
  std::vector<MutableBytes> into;
  for (const ByteRange& range : ranges) {
    if (range.end > size_ || range.offset > range.end) {
      return Status(Code::kDataLoss, fmt::format("bytes {}..{} lie past the end of the object, {}",
                                                 range.offset, range.end, size_));
    }
    bytes_wanted_ += range.size();
    buffers.emplace_back(range.size());
    into.emplace_back(buffers.back());
  }
  if (!ranges.empty()) FB_RETURN_IF_ERROR(read_many_(ranges, into));
  return buffers;
}

Status ByteSource::ReadFully(uint64_t offset, MutableBytes into) {
  while (!into.empty()) {
    FB_ASSIGN_OR_RETURN(const size_t got, Read(offset, into));
    if (got == 0) return Status(Code::kDataLoss, "the object ends early");
    offset += got;
    into = into.subspan(got);
  }
  return {};
}

void SparseSource::Add(uint64_t offset, std::vector<std::byte> bytes) {
  bytes_ += bytes.size();
  pieces_[offset] = std::move(bytes);
}

ByteView SparseSource::Find(ByteRange range) const {
  auto at = pieces_.upper_bound(range.offset);
  if (at == pieces_.begin()) return {};
  --at;
  const ByteRange known{at->first, at->first + at->second.size()};
  if (!known.Contains(range)) return {};
  return ByteView(at->second).subspan(range.offset - known.offset, range.size());
}

Result<size_t> SparseSource::Read(uint64_t offset, MutableBytes into) {
  if (offset >= kSize) return size_t{0};
  auto next = pieces_.upper_bound(offset);
  if (next != pieces_.begin()) {
    const auto& [start, bytes] = *std::prev(next);
    if (offset < start + bytes.size()) {
      const size_t n = std::min<uint64_t>(into.size(), start + bytes.size() - offset);
      std::memcpy(into.data(), bytes.data() + (offset - start), n);
      return n;
    }
  }
  const uint64_t end = next == pieces_.end() ? kSize : next->first;
  const size_t n = std::min<uint64_t>(into.size(), end - offset);
  if (n > zeros_left_) return Status(Code::kDataLoss, "a packet claims more than 256 MiB");
  zeros_left_ -= n;
  std::memset(into.data(), 0, n);
  return n;
}

const CachedSource::Block* CachedSource::Find(uint64_t number) const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    if (block->number == number) return &*block;
  }
  return nullptr;
}

Status CachedSource::Load(uint64_t number) {
  // Reading on doubles what is read ahead; a jump starts small again.
  ahead_ = number == next_number_ ? std::min(ahead_ * 2, kAheadBlocksMax) : 1;
  const uint64_t blocks_in_object = (size() + kBlock - 1) / kBlock;
  uint64_t last = std::min(number + ahead_, blocks_in_object);
  for (uint64_t n = number + 1; n < last; ++n) {
    if (Find(n) != nullptr) last = n;
  }
  const uint64_t end = std::min(last * kBlock, size());
  FB_ASSIGN_OR_RETURN(const auto bytes, object_->Fetch({number * kBlock, end}));
  for (uint64_t n = number; n < last; ++n) {
    const auto from = bytes.begin() + static_cast<ptrdiff_t>((n - number) * kBlock);
    const auto left = static_cast<uint64_t>(bytes.end() - from);
    blocks_.push_back({n, {from, from + static_cast<ptrdiff_t>(std::min(kBlock, left))}});
  }
  while (blocks_.size() > kBlocksMax) blocks_.pop_front();
  next_number_ = last;
  return {};
}

Result<size_t> CachedSource::Read(uint64_t offset, MutableBytes into) {
  if (offset >= size() || into.empty()) return size_t{0};
  const uint64_t number = offset / kBlock;
  const Block* block = Find(number);
  if (block == nullptr) {
    FB_RETURN_IF_ERROR(Load(number));
    block = Find(number);
  }
  const uint64_t skip = offset - number * kBlock;
  const size_t n = std::min<uint64_t>(into.size(), block->bytes.size() - skip);
  std::memcpy(into.data(), block->bytes.data() + skip, n);
  return n;
}

Result<size_t> MemorySource::Read(uint64_t offset, MutableBytes into) {
  if (offset >= size()) return size_t{0};
  const ByteView from =
      offset < front_.size() ? front_.subspan(offset) : back_.subspan(offset - front_.size());
  const size_t n = std::min(into.size(), from.size());
  std::memcpy(into.data(), from.data(), n);
  return n;
}

std::string AvError(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

int Demuxer::ReadPacket(void* self, uint8_t* into, int size) {
  auto* demuxer = static_cast<Demuxer*>(self);
  auto got = demuxer->source_->Read(
      demuxer->position_, {reinterpret_cast<std::byte*>(into), static_cast<size_t>(size)});
  if (!got.ok()) {
    demuxer->source_status_ = std::move(got).status();
    return AVERROR(EIO);
  }
  if (*got == 0) return AVERROR_EOF;
  demuxer->position_ += *got;
  return static_cast<int>(*got);
}

int64_t Demuxer::Seek(void* self, int64_t offset, int whence) {
  auto* demuxer = static_cast<Demuxer*>(self);
  const auto size = static_cast<int64_t>(demuxer->source_->size());
  whence &= ~AVSEEK_FORCE;
  if (whence == AVSEEK_SIZE) return size;
  if (whence == SEEK_CUR) offset += static_cast<int64_t>(demuxer->position_);
  if (whence == SEEK_END) offset += size;
  if (offset < 0) return AVERROR(EINVAL);
  demuxer->position_ = static_cast<uint64_t>(offset);
  return offset;
}

int Demuxer::RefuseOther(AVFormatContext* context, AVIOContext** /*io*/, const char* /*url*/,
                         int /*flags*/, AVDictionary** /*options*/) {
  static_cast<Demuxer*>(context->opaque)->refused_other_ = true;
  return AVERROR(EACCES);
}

namespace {

bool IsPlaylist(const AVInputFormat* format) {
  const std::string_view name = format->name;
  return name == "hls" || name == "concat" || name == "dash" || name == "sdp" || name == "imf";
}

// An HLS playlist, which FFmpeg 7.1 knows by its name or media type alone.
bool IsUnnamedPlaylist(ByteSource& source) {
  constexpr std::string_view kMark = "#EXTM3U";
  std::array<std::byte, kMark.size()> head{};
  return source.size() >= head.size() && source.ReadFully(0, head).ok() && AsText(head) == kMark;
}

Status Elsewhere() {
  return Status(Code::kInvalidArgument,
                "a playlist of other objects, not a video: index those instead");
}

}  // namespace

Result<std::unique_ptr<Demuxer>> Demuxer::Open(ByteSource* source, const Options& options) {
  std::unique_ptr<Demuxer> demuxer(new Demuxer(source));
  FB_RETURN_IF_ERROR(demuxer->OpenInput(options));
  return demuxer;
}

Status Demuxer::OpenInput(const Options& options) {
  constexpr int kBuffer = 32 << 10;
  auto* buffer = static_cast<uint8_t*>(av_malloc(kBuffer));
  if (buffer != nullptr) {
    io_ = avio_alloc_context(buffer, kBuffer, 0, this, &ReadPacket, nullptr, &Seek);
    if (io_ == nullptr) av_free(buffer);
  }
  context_ = avformat_alloc_context();
  if (io_ == nullptr || context_ == nullptr) {
    return Status(Code::kResourceExhausted, "no memory for a demuxer");
  }
  if (!options.seekable) io_->seekable = 0;
  context_->pb = io_;
  context_->flags |= options.flags | AVFMT_FLAG_CUSTOM_IO;
  context_->probesize = options.probe_bytes;
  context_->format_probesize = static_cast<int>(options.probe_bytes);
  context_->max_streams = 64;
  const auto* format = options.format != nullptr ? av_find_input_format(options.format) : nullptr;
  if (options.format != nullptr && format == nullptr) {
    return Status(Code::kUnimplemented,
                  fmt::format("this FFmpeg has no demuxer for {}", options.format));
  }
  source_->StartPacket();
  // What lies in the object is all there is: nothing it says opens a file or a connection.
  context_->opaque = this;
  context_->io_open = &RefuseOther;
  context_->protocol_whitelist = av_strdup("none");
  int error = format != nullptr
                  ? 0
                  : av_probe_input_buffer2(io_, &format, "", nullptr, 0, options.probe_bytes);
  if (error >= 0) {
    if (IsPlaylist(format)) return Elsewhere();
    error = avformat_open_input(&context_, nullptr, format, nullptr);
  }
  if (error >= 0) return {};
  if (!source_status_.ok()) return source_status_;
  if (refused_other_) return Elsewhere();
  const bool unknown = error == AVERROR_INVALIDDATA && options.format == nullptr;
  if (unknown && IsUnnamedPlaylist(*source_)) return Elsewhere();
  return Status(unknown ? Code::kInvalidArgument : Code::kDataLoss,
                unknown ? "not a video that FFmpeg knows"
                        : fmt::format("the container cannot be opened: {}", AvError(error)));
}

Demuxer::~Demuxer() {
  avformat_close_input(&context_);
  if (io_ != nullptr) {
    av_freep(static_cast<void*>(&io_->buffer));
    avio_context_free(&io_);
  }
}

Result<bool> Demuxer::Next(AVPacket* packet) {
  av_packet_unref(packet);
  source_->StartPacket();
  const int error = av_read_frame(context_, packet);
  if (error >= 0) return true;
  if (!source_status_.ok()) return source_status_;
  damaged_ = error != AVERROR_EOF;
  return false;
}

}  // namespace forebay::media::ffmpeg
