#include "media/ffmpeg/scan_spans.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "media/ffmpeg/demux_range.h"

namespace forebay::media::ffmpeg {
namespace {

constexpr uint64_t kHeaderMax = 4u << 20;
constexpr uint64_t kGroupMax = 128u << 20;  // bytes from one sync point to the next
constexpr uint32_t kBeyond = 8;             // packets compared past the next sync point

// How the packets of a transport stream stand in its file. FFmpeg's positions (AVPacket::pos) are a
// packet's own size before its end as FFmpeg reads it, which is at the payload's.
struct TransportPackets {
  uint64_t size = 188;
  uint64_t sync = 0;  // of the first byte, 0x47, behind such a position
};

// Where a demuxer may be put in, ascending.
struct Units {
  std::vector<uint64_t> starts;
  std::string header;
  std::optional<TransportPackets> transport;
};

// Matroska: clusters. An element's header at `at`; false where there is none.
struct Element {
  uint32_t id = 0;
  uint64_t body = 0;
  uint64_t size = 0;
  bool open_ended = false;
};

Result<bool> ReadElement(CachedSource* source, uint64_t at, Element* element) {
  std::byte raw[12] = {};
  const uint64_t n = std::min<uint64_t>(sizeof raw, source->size() - std::min(at, source->size()));
  if (n < 2) return false;
  FB_RETURN_IF_ERROR(source->ReadFully(at, MutableBytes(raw, n)));
  const auto byte = [&](size_t i) { return std::to_integer<uint64_t>(raw[i]); };
  size_t id_bytes = 1;
  while (id_bytes <= 4 && (byte(0) >> (8 - id_bytes)) == 0) ++id_bytes;
  if (id_bytes > 4 || id_bytes >= n) return false;
  element->id = 0;
  for (size_t i = 0; i < id_bytes; ++i)
    element->id = element->id << 8 | static_cast<uint32_t>(byte(i));
  size_t size_bytes = 1;
  while (size_bytes <= 8 && (byte(id_bytes) >> (8 - size_bytes)) == 0) ++size_bytes;
  if (size_bytes > 8 || id_bytes + size_bytes > n) return false;
  uint64_t size = byte(id_bytes) & ((1u << (8 - size_bytes)) - 1);
  for (size_t i = 1; i < size_bytes; ++i) size = size << 8 | byte(id_bytes + i);
  element->open_ended = size == (uint64_t{1} << (7 * size_bytes)) - 1;
  element->size = size;
  element->body = at + id_bytes + size_bytes;
  return true;
}

Result<Units> MatroskaUnits(CachedSource* source) {
  constexpr uint32_t kSegment = 0x18538067, kCluster = 0x1f43b675;
  Units units;
  uint64_t at = 0;
  while (at < source->size()) {
    Element element;
    FB_ASSIGN_OR_RETURN(const bool found, ReadElement(source, at, &element));
    if (!found) break;
    if (element.id == kCluster) units.starts.push_back(at);
    // Segments, and clusters whose end is not told, are walked into.
    const bool enter = element.id == kSegment || element.open_ended;
    at = enter ? element.body : element.body + std::min(element.size, source->size());
  }
  if (units.starts.empty()) return units;
  if (units.starts.front() > kHeaderMax) {
    return Status(Code::kUnimplemented, "Matroska with more than 4 MiB in front of its clusters");
  }
  units.header.resize(units.starts.front());
  FB_RETURN_IF_ERROR(source->ReadFully(
      0, {reinterpret_cast<std::byte*>(units.header.data()), units.header.size()}));
  return units;
}

// 188 bytes; 192 with a time in front (M2TS), 204 with a check code behind.
Result<TransportPackets> TransportPacketsAt(CachedSource* source, uint64_t position) {
  constexpr TransportPackets kLayouts[] = {{188, 0}, {192, 4}, {204, 16}};
  constexpr uint64_t kLooksMax = 32;
  TransportPackets best;
  uint64_t most = 0;
  for (const TransportPackets& layout : kLayouts) {
    uint64_t found = 0;
    for (uint64_t at = position + layout.sync; found < kLooksMax && at < source->size();) {
      std::byte first = {};
      FB_RETURN_IF_ERROR(source->ReadFully(at, {&first, 1}));
      if (first != std::byte{0x47}) break;
      ++found;
      at += layout.size;
    }
    if (found > most) best = layout, most = found;
  }
  return best;
}

// MPEG-TS: the tables (PAT, PMT) mostly stand in front of the first picture. They are kept with all
// that packets of this layout have around them: a demuxer finds one layout in the whole.
Result<std::string> TransportTables(CachedSource* source, const TransportPackets& layout,
                                    uint64_t first_picture) {
  constexpr uint64_t kTsPacket = 188;
  std::string tables;
  std::vector<std::byte> whole(layout.size);
  const uint64_t end = std::min(first_picture, kHeaderMax);
  std::vector<uint32_t> kept = {0};  // PAT; then the PMTs that it names
  for (uint64_t at = end % layout.size; at + layout.size <= end; at += layout.size) {
    FB_RETURN_IF_ERROR(source->ReadFully(at, whole));
    const ByteView packet = ByteView(whole).subspan(layout.sync, kTsPacket);
    const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(packet[i]); };
    const uint32_t pid = (byte(1) & 0x1f) << 8 | byte(2);
    if (byte(0) != 0x47 || std::ranges::find(kept, pid) == kept.end()) continue;
    tables.append(AsText(whole));
    const bool adaptation = (byte(3) & 0x20) != 0;
    size_t section = adaptation ? 5 + byte(4) : 4;
    if (pid != 0 || (byte(1) & 0x40) == 0 || section >= kTsPacket) continue;
    section += 1 + byte(section);
    if (section + 3 > kTsPacket) continue;
    const size_t length = (byte(section + 1) & 0xf) << 8 | byte(section + 2);
    const size_t stop = std::min<size_t>(section + 3 + length, kTsPacket + 4) - 4;  // CRC
    for (size_t program = section + 8; program + 4 <= stop; program += 4) {
      kept.push_back((byte(program + 2) & 0x1f) << 8 | byte(program + 3));
    }
  }
  return tables;
}

// MPEG-TS and -PS: each packet's own position.
Result<Units> MpegUnits(CachedSource* source, const std::vector<DemuxedPacket>& demuxed,
                        const VideoIndex& index) {
  Units units;
  for (const DemuxedPacket& packet : demuxed) {
    if (packet.position >= 0) units.starts.push_back(static_cast<uint64_t>(packet.position));
  }
  std::ranges::sort(units.starts);
  units.starts.erase(std::ranges::unique(units.starts).begin(), units.starts.end());
  if (units.starts.empty() || index.container != "mpegts") return units;
  FB_ASSIGN_OR_RETURN(const TransportPackets layout,
                      TransportPacketsAt(source, units.starts.front()));
  units.transport = layout;
  FB_ASSIGN_OR_RETURN(units.header, TransportTables(source, layout, units.starts.front()));
  return units;
}

// Demuxes again from the sync points and compares.
class Checker {
 public:
  Checker(CachedSource* source, const std::vector<DemuxedPacket>& demuxed,
          const std::optional<TransportPackets>& transport, VideoIndex* index)
      : source_(source), demuxed_(demuxed), transport_(transport), index_(*index) {}

  // True if the packets from `sync` to `last` come again.
  Result<bool> Check(uint32_t sync, uint32_t last) {
    const auto& packets = index_.packets;
    const uint64_t start = packets[sync].offset;
    uint64_t end = 0;
    for (uint32_t i = sync; i <= last; ++i) {
      end = std::max(end, packets[i].offset + packets[i].size);
    }
    if (end - start > kGroupMax) return false;
    std::vector<std::byte> bytes(end - start);
    FB_RETURN_IF_ERROR(source_->ReadFully(start, bytes));
    uint32_t next = sync;
    while (next > 0 && packets[next - 1].offset == start) --next;
    bool first = true, same = true;
    FB_RETURN_IF_ERROR(DemuxRange(index_, bytes, [&](const AVPacket& packet) {
      ByteView payload = BytesOf(packet);
      const DemuxedPacket& want = demuxed_[next];
      if (first && payload.size() > want.size) payload = payload.last(want.size);
      first = false;
      same = payload.size() == want.size && HashOfPayload(payload) == want.hash;
      return same && ++next <= last;
    }));
    if (transport_) MarkHoles(bytes, start, sync);
    return same && next > last;
  }
  uint32_t damaged() const { return damaged_; }

 private:
  // Packets of a transport stream count to 16. What is lost inside a coded picture leaves a hole
  // that decoders may not notice; between two pictures, where files were put together, it is none.
  void MarkHoles(ByteView bytes, uint64_t start, uint32_t first) {
    constexpr uint64_t kTsPacket = 188;
    std::optional<uint32_t> last;
    for (uint64_t at = 0; at + transport_->sync + kTsPacket <= bytes.size();
         at += transport_->size) {
      const ByteView packet = bytes.subspan(at + transport_->sync, kTsPacket);
      const auto byte = [&](size_t i) { return std::to_integer<uint32_t>(packet[i]); };
      const auto pid = static_cast<int32_t>((byte(1) & 0x1f) << 8 | byte(2));
      const bool payload = (byte(3) & 0x10) != 0;
      if (byte(0) != 0x47 || pid != index_.demux_stream || !payload) continue;
      const bool jumps = (byte(3) & 0x20) != 0 && byte(4) > 0 && (byte(5) & 0x80) != 0;
      const bool begins = (byte(1) & 0x40) != 0, broken = (byte(1) & 0x80) != 0;
      const bool follows = !last || (*last + 1) % 16 == (byte(3) & 15);
      if (broken || (!follows && !begins && !jumps)) MarkAt(start + at, first);
      last = byte(3) & 15;
    }
  }

  // The packets that begin in the unit in which `offset` lies.
  void MarkAt(uint64_t offset, uint32_t first) {
    auto& packets = index_.packets;
    const auto after =
        std::upper_bound(packets.begin() + first, packets.end(), offset,
                         [](uint64_t value, const Packet& p) { return value < p.offset; });
    for (auto p = after; p != packets.begin() && (p - 1)->offset == (after - 1)->offset; --p) {
      damaged_ += ((p - 1)->flags & Packet::kDamaged) == 0 ? 1 : 0;
      (p - 1)->flags |= Packet::kDamaged;
    }
  }

  CachedSource* source_;
  const std::vector<DemuxedPacket>& demuxed_;
  const std::optional<TransportPackets>& transport_;
  uint32_t damaged_ = 0;
  VideoIndex& index_;
};

// Each packet's unit: the one at its position or, where the demuxer does not know it, that of the
// packet before; never before that.
Status SetSpans(const Units& units, const std::vector<DemuxedPacket>& demuxed, uint64_t object_size,
                VideoIndex* index) {
  uint64_t at = units.starts.front();
  std::vector<size_t> numbers(demuxed.size());
  for (size_t i = 0; i < demuxed.size(); ++i) {
    const int64_t position = demuxed[i].position;
    if (position >= 0 && static_cast<uint64_t>(position) >= at) {
      const auto after = std::ranges::upper_bound(units.starts, static_cast<uint64_t>(position));
      if (after != units.starts.begin()) at = *std::prev(after);
    }
    numbers[i] =
        static_cast<size_t>(std::ranges::lower_bound(units.starts, at) - units.starts.begin());
    index->packets[i].offset = at;
    index->payload_sizes.push_back(demuxed[i].size);
  }
  // A packet ends where the next one's unit begins; that an access unit of a transport stream has
  // ended shows in the first bytes of the next; and a packet whose position the demuxer of a
  // program stream does not know may reach into the next unit.
  const bool program = index->container == "mpeg";
  for (size_t i = 0; i < demuxed.size(); ++i) {
    size_t next = i + 1;
    while (next < demuxed.size() && numbers[next] == numbers[i]) ++next;
    const size_t unit = next < demuxed.size() ? numbers[next] + program : units.starts.size();
    uint64_t end = unit < units.starts.size() ? units.starts[unit] : object_size;
    if (units.transport) end = std::min(end + units.transport->size, object_size);
    const uint64_t size = end - index->packets[i].offset;
    if (size > UINT32_MAX) return Status(Code::kDataLoss, "a packet spans more than 4 GiB");
    index->packets[i].size = static_cast<uint32_t>(size);
  }
  return {};
}

}  // namespace

uint64_t HashOfPayload(ByteView payload) {
  uint64_t hash = payload.size() + 1;
  size_t i = 0;
  for (; i + 8 <= payload.size(); i += 8) {
    uint64_t value;
    std::memcpy(&value, payload.data() + i, 8);
    hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash ^= hash >> 29;
  }
  for (; i < payload.size(); ++i) {
    hash = (hash ^ std::to_integer<uint64_t>(payload[i])) * 0x9e3779b97f4a7c15ULL;
  }
  return hash;
}

Status FindSpans(ObjectReader* object, const std::vector<DemuxedPacket>& demuxed,
                 std::vector<bool>* entries, VideoIndex* index, ScanReport* report) {
  CachedSource source(object);
  const bool matroska = index->container == "matroska";
  if (!matroska && index->container != "mpegts" && index->container != "mpeg") {
    return Status(Code::kUnimplemented,
                  fmt::format("the packets of this {} file are not contiguous bytes of it",
                              index->container));
  }
  FB_ASSIGN_OR_RETURN(Units units,
                      matroska ? MatroskaUnits(&source) : MpegUnits(&source, demuxed, *index));
  if (units.starts.empty()) {
    return Status(Code::kDataLoss, "its packets have no place in the object");
  }
  index->demux_header = std::move(units.header);
  FB_RETURN_IF_ERROR(SetSpans(units, demuxed, object->size(), index));
  Checker checker(&source, demuxed, units.transport, index);
  // Back to front, so that a group whose start fails is checked again as a part of the one before.
  const auto n = static_cast<uint32_t>(index->packets.size());
  uint32_t next_sync = n, removed = 0;
  for (uint32_t i = n; i-- > 0;) {
    if (!(*entries)[i]) continue;
    const uint32_t last = std::min(n - 1, next_sync - 1 + kBeyond);
    FB_ASSIGN_OR_RETURN(const bool same, checker.Check(i, last));
    if (same) {
      next_sync = i;
    } else {
      (*entries)[i] = false;
      if ((index->packets[i].flags & Packet::kKey) == 0) continue;
      index->packets[i].flags &= static_cast<uint8_t>(~Packet::kKey);
      ++removed;
    }
  }
  if (checker.damaged() > 0) {
    report->warnings.push_back(
        fmt::format("stream {}: the transport stream lost bytes of {} pictures: they and those "
                    "that refer to them are errors",
                    index->stream, checker.damaged()));
  }
  if (removed > 0) {
    report->sync_points_removed += removed;
    report->warnings.push_back(
        fmt::format("stream {}: {} sync points cannot be entered inside the container",
                    index->stream, removed));
  }
  return {};
}

}  // namespace forebay::media::ffmpeg
