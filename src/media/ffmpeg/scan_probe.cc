#include "media/ffmpeg/scan_probe.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
}

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "media/ffmpeg/scan_order.h"

namespace forebay::media::ffmpeg {
namespace {

constexpr uint64_t kFirstBytes = 48;  // mostly enough to the first slice
constexpr size_t kProbesMax = 16384;
constexpr uint32_t kOrderPackets = 10;  // behind each of two sync packets
constexpr int kRoundsMax = 12;          // each adds one unit of a packet

// The heads of one stream's packets while they are fetched.
class Prober {
 public:
  Prober(ObjectReader* object, StreamScan* scan) : object_(object), scan_(*scan) {}

  Status Run(const std::vector<uint32_t>& packets) {
    for (const uint32_t i : packets) {
      const Packet& p = scan_.index.packets[i];
      wanted_[i].push_back({p.offset, p.offset + std::min<uint64_t>(p.size, kFirstBytes)});
    }
    for (int round = 0; round < kRoundsMax && !wanted_.empty(); ++round) {
      FB_RETURN_IF_ERROR(Fetch());
      Read();
    }
    return {};
  }

  // The units whose bytes are at hand, each as if it ended where its known bytes do: enough for a
  // parser that reads headers.
  std::vector<std::byte> Start(uint32_t packet) const {
    std::vector<std::byte> start;
    const auto found = pieces_.find(packet);
    if (found == pieces_.end()) return start;
    const auto length_size = static_cast<uint64_t>(scan_.reader.length_size());
    if (length_size == 0) {
      const auto first = found->second.find(0);
      return first == found->second.end() ? start : first->second;
    }
    const Pieces& pieces = found->second;
    for (uint64_t at = 0;;) {
      const ByteView prefix = KnownAt(pieces, at);
      if (prefix.size() <= length_size) return start;
      uint64_t size = 0;
      for (const std::byte b : prefix.first(length_size))
        size = size << 8 | std::to_integer<uint64_t>(b);
      const uint64_t known = std::min<uint64_t>(size, prefix.size() - length_size);
      for (uint64_t k = length_size; k > 0; --k) {
        start.push_back(static_cast<std::byte>(known >> (8 * (k - 1))));
      }
      const ByteView unit = prefix.subspan(length_size, known);
      start.insert(start.end(), unit.begin(), unit.end());
      at += length_size + size;
    }
  }
  const std::vector<ParameterSet>& sets(uint32_t packet) { return sets_[packet]; }

 private:
  Status Fetch() {
    std::vector<ByteRange> ranges;
    std::vector<uint32_t> owners;
    for (const auto& [packet, wanted] : wanted_) {
      for (const ByteRange& range : wanted) {
        ranges.push_back(range);
        owners.push_back(packet);
      }
    }
    wanted_.clear();
    FB_ASSIGN_OR_RETURN(auto buffers, object_->FetchMany(ranges));
    for (size_t k = 0; k < ranges.size(); ++k) {
      const Packet& p = scan_.index.packets[owners[k]];
      pieces_[owners[k]][ranges[k].offset - p.offset] = std::move(buffers[k]);
      changed_.push_back(owners[k]);
    }
    return {};
  }

  void Read() {
    for (const uint32_t i : changed_) {
      const Packet& p = scan_.index.packets[i];
      PartialPacket partial(uint64_t{p.size});
      for (const auto& [offset, bytes] : pieces_[i]) partial.Add(offset, bytes);
      sets_[i].clear();
      scan_.heads[i] = scan_.reader.ReadPartial(&partial, &sets_[i]);
      scan_.head_read[i] = partial.needed().empty();
      const ByteRange need = partial.needed();
      if (need.empty()) continue;
      // A unit's length and first bytes come together.
      const uint64_t end = std::min<uint64_t>(p.size, std::max(need.end, need.offset + 32));
      wanted_[i].push_back({p.offset + need.offset, p.offset + end});
    }
    changed_.clear();
  }

  using Pieces = std::map<uint64_t, std::vector<std::byte>>;

  // What is known from `at` on, up to the first gap.
  static ByteView KnownAt(const Pieces& pieces, uint64_t at) {
    ByteView best;
    for (const auto& [offset, bytes] : pieces) {
      if (offset > at) break;
      if (at - offset >= bytes.size()) continue;
      const ByteView known = ByteView(bytes).subspan(at - offset);
      if (known.size() > best.size()) best = known;
    }
    return best;
  }

  ObjectReader* object_;
  StreamScan& scan_;
  std::map<uint32_t, std::vector<ByteRange>> wanted_;
  std::map<uint32_t, Pieces> pieces_;
  std::map<uint32_t, std::vector<ParameterSet>> sets_;
  std::vector<uint32_t> changed_;
};

std::vector<uint32_t> KeysOf(const VideoIndex& index) {
  std::vector<uint32_t> keys;
  for (uint32_t i = 0; i < index.packets.size(); ++i) {
    if ((index.packets[i].flags & Packet::kKey) != 0) keys.push_back(i);
  }
  return keys;
}

// What the heads of the sync packets leave open.
std::string DoubtOfHeads(const StreamScan& scan, const std::vector<uint32_t>& keys) {
  for (const uint32_t i : keys) {
    const PictureHead& head = scan.heads[i];
    if (!scan.head_read[i]) return fmt::format("packet {}: its start cannot be read", i);
    if (head.damaged) return fmt::format("packet {}: its units do not fit it", i);
    if (head.broken_link) return fmt::format("packet {}: pictures behind a broken link", i);
    if (head.sync == Sync::kClosed || head.sync == Sync::kOpen) continue;
    return fmt::format("packet {} is marked as a sync point and its bytes say otherwise", i);
  }
  return {};
}

// Pictures in front of the first sync point, in decode or in output order, that are to be shown:
// only a decoder knows whether they come out.
std::string DoubtOfStart(const VideoIndex& index, uint32_t first_key) {
  if (first_key > 0) return "it does not start with a sync point";
  const int64_t first_pts = index.packets[0].pts;
  for (const Packet& p : index.packets) {
    if ((p.flags & Packet::kDiscard) == 0 && p.pts < first_pts) {
      return "pictures are shown before the first sync point";
    }
  }
  return {};
}

// Parameter sets inside the stream are sound where each sync packet brings all of them, or where
// they are the ones in extradata.
std::string DoubtOfSets(const StreamScan& scan, const std::vector<uint32_t>& keys, Prober* prober) {
  if (!scan.reader.has_nal_units()) return {};
  const auto outside = scan.reader.SetsOf(scan.index.parameters.extradata);
  bool differ = outside.empty();
  size_t fewest = SIZE_MAX;
  for (const uint32_t i : keys) {
    const auto& sets = prober->sets(i);
    fewest = std::min(fewest, sets.size());
    for (const ParameterSet& set : sets) {
      if (std::find(outside.begin(), outside.end(), set) == outside.end()) differ = true;
    }
  }
  const size_t complete =
      std::max<size_t>(outside.size(), scan.index.parameters.codec == "h264" ? 2 : 3);
  if (differ && fewest < complete) return "parameter sets change inside the stream";
  return {};
}

// An all-sync file may have more sync points than are worth a look each: the others lose the flag,
// which costs decoding and never a picture.
void ThinOut(VideoIndex* index, std::vector<uint32_t>* keys, ScanReport* report) {
  const size_t every = (keys->size() + kProbesMax - 1) / kProbesMax;
  if (every <= 1) return;
  std::vector<uint32_t> kept;
  for (size_t k = 0; k < keys->size(); ++k) {
    if (k % every == 0) {
      kept.push_back((*keys)[k]);
    } else {
      index->packets[(*keys)[k]].flags &= static_cast<uint8_t>(~Packet::kKey);
    }
  }
  report->warnings.push_back(fmt::format("stream {}: {} of {} sync points are used", index->stream,
                                         kept.size(), keys->size()));
  *keys = std::move(kept);
}

// The packets behind two of the sync points, whose order in the bitstream is compared with their
// times: times that a remux made up are wrong everywhere.
class OrderProbes {
 public:
  OrderProbes(const AVCodecParameters* parameters, const VideoIndex& index,
              const std::vector<uint32_t>& keys) {
    if (!OrderReader(parameters).understands()) return;
    Add(keys.front(), index);
    if (keys.size() > 2) Add(keys[keys.size() / 2], index);
    if (runs_.size() == 2) runs_[0].second = std::min(runs_[0].second, runs_[1].first);
  }

  // Their packets and `keys`, ascending.
  std::vector<uint32_t> With(std::vector<uint32_t> keys) const {
    for (const auto& [begin, end] : runs_) {
      for (uint32_t i = begin; i < end; ++i) keys.push_back(i);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }

  void Read(const AVCodecParameters* parameters, const Prober& prober, StreamScan* scan) const {
    if (runs_.empty()) return;
    scan->orders.assign(scan->index.packets.size(), INT64_MIN);
    for (size_t run = 0; run < runs_.size(); ++run) {
      // What lies between the runs is not read, so each counts by itself.
      OrderReader order(parameters);
      for (uint32_t i = runs_[run].first; i < runs_[run].second; ++i) {
        if (!scan->head_read[i]) break;
        const int64_t within = order.Read(prober.Start(i), scan->heads[i]);
        scan->orders[i] = (static_cast<int64_t>(run) << 56) + within;
      }
      const char* name = av_get_pix_fmt_name(order.pixel_format());
      auto& pixel_format = scan->index.parameters.pixel_format;
      if (pixel_format.empty() && name != nullptr) pixel_format = name;
    }
  }

 private:
  void Add(uint32_t key, const VideoIndex& index) {
    const auto end = std::min<uint64_t>(uint64_t{key} + kOrderPackets, index.packets.size());
    runs_.emplace_back(key, static_cast<uint32_t>(end));
  }
  std::vector<std::pair<uint32_t, uint32_t>> runs_;
};

}  // namespace

Status ProbeHeads(ObjectReader* object, const AVCodecParameters* parameters, StreamScan* scan,
                  ScanReport* report) {
  VideoIndex& index = scan->index;
  scan->heads.assign(index.packets.size(), {});
  scan->head_read.assign(index.packets.size(), false);
  std::vector<uint32_t> keys = KeysOf(index);
  if (keys.empty()) {
    scan->doubt = "the container names no sync point";
    return {};
  }
  if (scan->reader.intra_only()) return {};
  if (!scan->reader.understands()) {
    scan->doubt = fmt::format("sync points of {} cannot be told by their first bytes",
                              index.parameters.codec);
    return {};
  }
  ThinOut(&index, &keys, report);
  const OrderProbes order_probes(parameters, index, keys);
  Prober prober(object, scan);
  FB_RETURN_IF_ERROR(prober.Run(order_probes.With(keys)));
  order_probes.Read(parameters, prober, scan);
  const char* pixel_format = scan->heads[keys.front()].pixel_format;
  if (index.parameters.pixel_format.empty() && pixel_format != nullptr) {
    index.parameters.pixel_format = pixel_format;
  }
  scan->doubt = DoubtOfHeads(*scan, keys);
  if (scan->doubt.empty()) scan->doubt = DoubtOfStart(index, keys.front());
  if (scan->doubt.empty()) scan->doubt = DoubtOfSets(*scan, keys, &prober);
  if (scan->doubt.empty() && !TimesAreSound(*scan)) {
    scan->doubt = "the times in the container are not those of the pictures";
  }
  return {};
}

Status CompleteParameters(ObjectReader* object, const AVCodecParameters* parameters,
                          StreamScan* scan) {
  StreamParameters& to = scan->index.parameters;
  if (!to.pixel_format.empty() && to.width > 0) return {};
  FB_ASSIGN_OR_RETURN(CodecContextPtr decoder, OpenDecoder(parameters, 0));
  const auto take = [&to](AVPixelFormat format, int width, int height) {
    const char* name = av_get_pix_fmt_name(format);
    if (name != nullptr) to.pixel_format = name;
    if (to.width == 0) to.width = width;
    if (to.height == 0) to.height = height;
  };
  take(decoder->pix_fmt, decoder->width, decoder->height);
  if (!to.pixel_format.empty() && to.width > 0) return {};
  const auto& packets = scan->index.packets;
  const auto key = std::find_if(packets.begin(), packets.end(),
                                [](const Packet& p) { return (p.flags & Packet::kKey) != 0; });
  constexpr uint32_t kBytesMax = 16u << 20;
  if (key == packets.end() || key->size > kBytesMax) return {};
  PacketPtr packet(av_packet_alloc());
  if (packet == nullptr || av_new_packet(packet.get(), static_cast<int>(key->size)) < 0) {
    return Status(Code::kResourceExhausted, "no memory for a packet");
  }
  FB_RETURN_IF_ERROR(
      object->Read(key->offset, {reinterpret_cast<std::byte*>(packet->data), size_t{key->size}}));
  AVFrame* frame = av_frame_alloc();
  if (avcodec_send_packet(decoder.get(), packet.get()) >= 0 &&
      avcodec_send_packet(decoder.get(), nullptr) >= 0 && frame != nullptr &&
      avcodec_receive_frame(decoder.get(), frame) >= 0) {
    take(static_cast<AVPixelFormat>(frame->format), frame->width, frame->height);
  }
  av_frame_free(&frame);
  return {};
}

}  // namespace forebay::media::ffmpeg
