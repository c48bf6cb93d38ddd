#include "media/ffmpeg/verify.h"

extern "C" {
#include <libavutil/frame.h>
}

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "media/ffmpeg/codec.h"
#include "media/ffmpeg/picture_hash.h"
#include "media/ffmpeg/scan_builder.h"
#include "media/ffmpeg/scan_order.h"

namespace forebay::media::ffmpeg {
namespace {

constexpr int kPassesMax = 8;
// A run from a sync point goes on over the next ones until this many were seen, so that frames that
// need the one before (leading pictures, gradual refreshes) are compared too.
constexpr int kNextSyncs = 2;

// What came out of a decoder for a packet.
struct Picture {
  uint64_t hash = 0;  // 0: nothing
  bool damaged = false;
  // A packet may give more than one.
  void Add(const Picture& next) {
    hash = hash * 31 + next.hash;
    damaged = damaged || next.damaged;
  }
};

// A decoder that is told packets by their number.
class TaggedDecoder {
 public:
  using Sink = std::function<void(uint32_t packet, const Picture& picture)>;

  static Result<std::unique_ptr<TaggedDecoder>> Open(const AVCodecParameters* parameters,
                                                     const std::string* extradata, int flags) {
    std::unique_ptr<TaggedDecoder> self(new TaggedDecoder());
    self->frame_ = av_frame_alloc();
    self->packet_.reset(av_packet_alloc());
    AVCodecParameters* copy = avcodec_parameters_alloc();
    Result<CodecContextPtr> context = Status(Code::kResourceExhausted, "no memory for a decoder");
    if (self->frame_ != nullptr && self->packet_ != nullptr && copy != nullptr &&
        avcodec_parameters_copy(copy, parameters) >= 0) {
      if (extradata != nullptr && !IsPalette(*extradata)) SetExtradata(*extradata, copy);
      context = OpenDecoder(copy, flags);
    }
    avcodec_parameters_free(&copy);
    if (!context.ok()) return std::move(context).status();
    self->context_ = *std::move(context);
    return self;
  }

  ~TaggedDecoder() { av_frame_free(&frame_); }

  // Errors of the decoder are no errors here: nothing comes out, or it comes out damaged.
  void Feed(const AVPacket& packet, uint32_t number, const std::string* new_extradata,
            const Sink& sink) {
    if (av_packet_ref(packet_.get(), &packet) < 0) return;
    packet_->pts = packet_->dts = number;
    packet_->flags &= ~AV_PKT_FLAG_DISCARD;
    if (new_extradata != nullptr) (void)AttachParameterSet(*new_extradata, packet_.get());
    while (avcodec_send_packet(context_.get(), packet_.get()) == AVERROR(EAGAIN)) {
      if (!Receive(sink)) break;
    }
    while (Receive(sink)) {
    }
    av_packet_unref(packet_.get());
  }

  void Drain(const Sink& sink) {
    avcodec_send_packet(context_.get(), nullptr);
    while (Receive(sink)) {
    }
  }

 private:
  TaggedDecoder() = default;

  static void SetExtradata(const std::string& extradata, AVCodecParameters* parameters) {
    auto* bytes =
        static_cast<uint8_t*>(av_mallocz(extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (bytes == nullptr) return;
    std::ranges::copy(extradata, bytes);
    av_freep(static_cast<void*>(&parameters->extradata));
    parameters->extradata = bytes;
    parameters->extradata_size = static_cast<int>(extradata.size());
  }

  bool Receive(const Sink& sink) {
    const int error = avcodec_receive_frame(context_.get(), frame_);
    // Some decoders fail on one picture and go on with the next.
    if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return false;
    if (error < 0) return ++errors_ < kErrorsMax;
    errors_ = 0;
    const bool damaged =
        frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0;
    if (frame_->pts != AV_NOPTS_VALUE) {
      sink(static_cast<uint32_t>(frame_->pts), {HashOfPicture(*frame_), damaged});
    }
    av_frame_unref(frame_);
    return true;
  }

  static constexpr int kErrorsMax = 64;
  CodecContextPtr context_;
  PacketPtr packet_;
  AVFrame* frame_ = nullptr;
  int errors_ = 0;
};

// The decode from the first packet on.
struct Sequential {
  std::vector<Picture> pictures;  // by packet
  std::vector<int64_t> ranks;     // by packet; -1: never comes out
  std::vector<uint32_t> order;    // packets in output order
};

// A decode from a packet that may be a sync point.
struct Run {
  uint32_t start = 0;
  uint32_t end = 0;  // packets [start, end) were fed
  std::vector<Picture> pictures;
};

class Verifier {
 public:
  Verifier(PacketFeed* feed, const AVCodecParameters* parameters, StreamScan* scan,
           ScanReport* report)
      : feed_(*feed),
        parameters_(parameters),
        scan_(*scan),
        index_(scan->index),
        report_(report),
        order_(parameters),
        sets_(scan) {}

  Status Order() {
    FB_RETURN_IF_ERROR(Pass(true, {}));
    SetOrder();
    Finish();
    return {};
  }

  Status Verify() {
    check_syncs_ = true;
    const uint64_t claimed = CountKeys();
    FB_RETURN_IF_ERROR(Pass(true, {}));
    SetOrder();
    Judge();
    for (int pass = 0; pass < kPassesMax; ++pass) {
      const std::map<uint32_t, uint32_t> missing = Unproven();
      if (missing.empty()) break;
      if (pass + 1 == kPassesMax) {
        KeepFirstSync();
        break;
      }
      FB_RETURN_IF_ERROR(Pass(false, missing));
      Judge();
    }
    const uint64_t kept = CountKeys();
    if (claimed > kept) report_->sync_points_removed += static_cast<uint32_t>(claimed - kept);
    if (kept == 0) return NoSyncPoint(index_);
    index_.verified = Verified::kFull;
    Finish();
    return {};
  }

 private:
  struct Active {
    std::unique_ptr<TaggedDecoder> decoder;
    Run* run = nullptr;
    int syncs_seen = 0;
    uint32_t until = 0;  // fed to here at least
    int64_t stop_order = INT64_MIN;
  };

  uint64_t CountKeys() const {
    return static_cast<uint64_t>(
        std::count_if(index_.packets.begin(), index_.packets.end(),
                      [](const Packet& p) { return (p.flags & Packet::kKey) != 0; }));
  }

  // May decoding start here, by the first bytes or, for codecs that are not read, the container?
  bool IsCandidate(uint32_t i) const {
    if (!scan_.entries.empty() && !scan_.entries[i]) return false;
    if (scan_.reader.intra_only()) return true;
    if (!scan_.reader.understands()) return (index_.packets[i].flags & Packet::kKey) != 0;
    return scan_.heads[i].sync != Sync::kNone && scan_.heads[i].sync != Sync::kUnknown;
  }

  // What is not known yet of a file that was indexed by its table.
  Status LookAt(uint32_t i, const AVPacket& packet) {
    if (heads_known_) return {};
    std::vector<ParameterSet> sets;
    scan_.heads[i] = scan_.reader.Read(BytesOf(packet), &sets);
    scan_.head_read[i] = true;
    Packet& p = index_.packets[i];
    p.flags &= static_cast<uint8_t>(~Packet::kDisposable);
    if (scan_.heads[i].disposable) p.flags |= Packet::kDisposable;
    if (order_.understands()) scan_.orders[i] = order_.Read(BytesOf(packet), scan_.heads[i]);
    lossy_ = numbers_.Gap(scan_.heads[i], scan_.reader.frame_num_end()) || lossy_;
    return sets_.Add(i, sets, IsCandidate(i));
  }

  // Decodes the whole stream once: sequentially if asked to, and a run from each candidate; or, if
  // `runs` names them (start -> end), from these alone.
  Status Pass(bool sequential, const std::map<uint32_t, uint32_t>& runs) {
    FB_RETURN_IF_ERROR(feed_.Restart());
    PacketPtr packet(av_packet_alloc());
    if (packet == nullptr) return Status(Code::kResourceExhausted, "no memory for a packet");
    std::unique_ptr<TaggedDecoder> whole;
    if (sequential) {
      FB_RETURN_IF_ERROR(StartSequential(&whole));
    }
    uint32_t last = 0;
    for (const auto& [start, end] : runs) last = std::max(last, end);
    const auto n = static_cast<uint32_t>(index_.packets.size());
    const uint32_t end = sequential ? n : last;
    for (uint32_t i = 0; i < end; ++i) {
      FB_ASSIGN_OR_RETURN(const bool more, feed_.Next(packet.get()));
      if (!more) return Status(Code::kDataLoss, "the object gave fewer packets when read again");
      if (sequential) {
        FB_RETURN_IF_ERROR(LookAt(i, *packet));
        whole->Feed(*packet, i, ChangeAt(i), sink_);
      }
      FB_RETURN_IF_ERROR(FeedRuns(i, *packet, sequential, runs));
    }
    if (sequential) whole->Drain(sink_);
    if (lossy_) NothingIsDisposable(&index_);
    for (Active& active : active_) Close(&active, end);
    active_.clear();
    return {};
  }

  Status StartSequential(std::unique_ptr<TaggedDecoder>* whole) {
    const size_t n = index_.packets.size();
    heads_known_ = scan_.heads.size() == n && std::ranges::all_of(scan_.head_read, std::identity());
    scan_.heads.resize(n);
    scan_.head_read.resize(n);
    if (!heads_known_ && order_.understands()) scan_.orders.assign(n, INT64_MIN);
    sequential_.pictures.assign(n, {});
    sequential_.ranks.assign(n, -1);
    sink_ = [this](uint32_t i, const Picture& picture) {
      if (i >= sequential_.ranks.size()) return;
      if (sequential_.ranks[i] < 0) {
        sequential_.ranks[i] = static_cast<int64_t>(sequential_.order.size());
      }
      sequential_.order.push_back(i);
      sequential_.pictures[i].Add(picture);
    };
    FB_ASSIGN_OR_RETURN(*whole, TaggedDecoder::Open(parameters_, nullptr, 0));
    return {};
  }

  // The container's new extradata that starts with packet i.
  const std::string* ChangeAt(uint32_t i) const {
    for (const auto& [packet, set] : scan_.set_changes) {
      if (packet == i) return ExtradataOf(set);
    }
    return nullptr;
  }
  const std::string* ExtradataOf(uint16_t set) const {
    return set == 0 ? &index_.parameters.extradata : &index_.parameter_sets[set - 1u];
  }

  Status FeedRuns(uint32_t i, const AVPacket& packet, bool first_pass,
                  const std::map<uint32_t, uint32_t>& runs) {
    const bool starts = first_pass ? check_syncs_ && IsCandidate(i) : runs.contains(i);
    if (starts) {
      if (first_pass) {
        for (Active& active : active_) ++active.syncs_seen;
      }
      Active active;
      FB_ASSIGN_OR_RETURN(
          active.decoder,
          TaggedDecoder::Open(parameters_, ExtradataOf(index_.packets[i].parameter_set),
                              AV_CODEC_FLAG_OUTPUT_CORRUPT));
      Run& run = runs_[i];
      run = {i, i, {}};
      active.run = &run;
      active.until = first_pass ? 0 : runs.at(i);
      active_.push_back(std::move(active));
    }
    for (Active& active : active_) {
      if (IsDone(active, i, first_pass)) {
        Close(&active, i);
        continue;
      }
      Run* run = active.run;
      // As at run time: extradata goes along where the set in force changes.
      const uint16_t set = index_.packets[i].parameter_set;
      const bool changes = i > run->start ? set != index_.packets[i - 1].parameter_set
                                          : IsPalette(*ExtradataOf(set));
      const std::string* change = changes ? ExtradataOf(set) : nullptr;
      active.decoder->Feed(packet, i, change, SinkOf(run));
    }
    std::erase_if(active_, [](const Active& active) { return active.decoder == nullptr; });
    return {};
  }

  // The leading pictures of the last sync point are fed too, as far as the container's times tell.
  bool IsDone(const Active& active, uint32_t i, bool first_pass) const {
    if (!first_pass) return i >= active.until;
    if (scan_.reader.intra_only()) return i > active.run->start;
    if (active.syncs_seen < kNextSyncs) return false;
    const uint32_t last = LastSync(i);
    const Packet &p = index_.packets[i], &sync = index_.packets[last];
    if (p.pts == kNoPts || sync.pts == kNoPts) return i - last > kLeadingMax;
    return i != last && p.pts > sync.pts;
  }
  static constexpr uint32_t kLeadingMax = 8;
  uint32_t LastSync(uint32_t i) const {
    while (i > 0 && !IsCandidate(i)) --i;
    return i;
  }

  TaggedDecoder::Sink SinkOf(Run* run) {
    return [run](uint32_t i, const Picture& picture) {
      if (i < run->start) return;
      if (run->pictures.size() <= i - run->start) run->pictures.resize(i - run->start + 1);
      run->pictures[i - run->start].Add(picture);
    };
  }

  void Close(Active* active, uint32_t end) {
    if (active->decoder == nullptr) return;
    active->decoder->Drain(SinkOf(active->run));
    active->run->end = end;
    active->decoder = nullptr;
  }

  // Ranks become the order of the packets where the container's times are not theirs.
  void SetOrder() {
    for (uint32_t i = 0; i < index_.packets.size(); ++i) {
      if (sequential_.ranks[i] < 0) scan_.heads[i].shown = false;
    }
    if (TimesAreSound(scan_)) {
      // Of two orders the bitstream's own counts; where it tells none, the decoder's.
      if (!scan_.orders.empty() || OutputFollowsTimes()) times_sound_ = true;
    }
    if (!times_sound_) {
      container_pts_.reserve(index_.packets.size());
      for (const Packet& p : index_.packets) container_pts_.push_back(p.pts);
    }
    int64_t next_rank = static_cast<int64_t>(sequential_.order.size());
    for (size_t k = index_.packets.size(); k-- > 0;) {
      Packet& p = index_.packets[k];
      const int64_t rank = sequential_.ranks[k];
      if (rank >= 0) next_rank = rank;
      // A start that does not come out itself (a gradual refresh at the front) still has a place.
      const bool has_place = rank >= 0 || IsCandidate(static_cast<uint32_t>(k));
      if (!has_place)
        p.pts = kNoPts;
      else if (!times_sound_)
        p.pts = next_rank;
    }
  }

  bool OutputFollowsTimes() const {
    int64_t last = INT64_MIN;
    for (const uint32_t i : sequential_.order) {
      if (index_.packets[i].pts == kNoPts || index_.packets[i].pts <= last) return false;
      last = index_.packets[i].pts;
    }
    return true;
  }

  bool Matches(const Run& run, uint32_t t) const {
    if (t < run.start || t - run.start >= run.pictures.size()) return false;
    const Picture& have = run.pictures[t - run.start];
    const Picture& want = sequential_.pictures[t];
    return have.hash == want.hash && (!have.damaged || want.damaged);
  }
  bool ComesOut(uint32_t t) const { return sequential_.ranks[t] >= 0; }

  // Gives each run's start its sync flag, recovery and leading pictures, by what matched.
  void Judge() {
    for (Packet& p : index_.packets) {
      p.flags &= static_cast<uint8_t>(~(Packet::kKey | Packet::kLeading));
      p.recovery = 0;
    }
    for (const auto& [start, run] : runs_) {
      if (banned_.contains(start)) continue;
      JudgeRun(run);
    }
    uint32_t last_key = UINT32_MAX;
    for (uint32_t t = 0; t < index_.packets.size(); ++t) {
      if ((index_.packets[t].flags & Packet::kKey) != 0) last_key = t;
      if (last_key == UINT32_MAX || !ComesOut(t)) continue;
      const Packet& key = index_.packets[last_key];
      if (index_.packets[t].pts < key.pts && key.recovery == 0 && Matches(runs_.at(last_key), t)) {
        index_.packets[t].flags |= Packet::kLeading;
      }
    }
  }

  void JudgeRun(const Run& run) {
    Packet& start = index_.packets[run.start];
    if (start.pts == kNoPts) return;
    uint32_t recovery = RecoveryOf(run, start.pts);
    // A gradual refresh serves by this count alone, so it holds for all that follows.
    if (recovery > 0) recovery = RecoveryOf(run, INT64_MIN);
    if (recovery > UINT16_MAX) return;
    start.flags |= Packet::kKey;
    start.recovery = static_cast<uint16_t>(recovery);
  }

  // How many packets that others may refer to have to follow the start until pictures from `pts` on
  // are right, and one of them is; UINT32_MAX: none is.
  uint32_t RecoveryOf(const Run& run, int64_t pts) const {
    uint32_t recovery = 0, followed = 0;
    bool any = false;
    for (uint32_t t = run.start; t < run.end; ++t) {
      if (t > run.start && (index_.packets[t].flags & Packet::kDisposable) == 0) ++followed;
      if (!ComesOut(t) || index_.packets[t].pts < pts) continue;
      if (!Matches(run, t)) {
        recovery = followed + 1;
        any = false;
      } else if (followed >= recovery) {
        any = true;
      }
    }
    return any ? recovery : UINT32_MAX;
  }

  // Frames whose run, by the rule, was not compared so far: start -> end wanted. A start whose run
  // gave another picture loses its flag for good.
  std::map<uint32_t, uint32_t> Unproven() {
    std::map<uint32_t, uint32_t> missing;
    for (bool again = true; again;) {
      again = false;
      missing.clear();
      for (const auto& [t, s] : RunStarts(index_)) {
        if (!ComesOut(t)) continue;
        const Run& run = runs_.at(s);
        if (t >= run.end) {
          missing[s] = std::max(missing[s], t + 1);
        } else if (!Matches(run, t)) {
          banned_.insert(s);
          again = true;
        }
      }
      if (again) Judge();
    }
    return missing;
  }

  // The one start that gives the sequential decode itself.
  void KeepFirstSync() {
    bool first = true;
    for (Packet& p : index_.packets) {
      if ((p.flags & Packet::kKey) != 0 && !first) p.flags &= static_cast<uint8_t>(~Packet::kKey);
      if ((p.flags & Packet::kKey) != 0) first = false;
      p.flags &= static_cast<uint8_t>(~Packet::kLeading);
    }
  }

  void Finish() {
    index_.frames.clear();
    std::vector<bool> reached(index_.packets.size());
    for (const auto& [t, s] : RunStarts(index_)) reached[t] = true;
    uint32_t unreached = 0;
    std::vector<uint32_t> order = sequential_.order;
    if (times_sound_) {
      std::stable_sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
        return index_.packets[a].pts < index_.packets[b].pts;
      });
    }
    for (const uint32_t i : order) {
      if ((index_.packets[i].flags & Packet::kDiscard) != 0) continue;
      if (!reached[i]) {
        ++unreached;
        continue;
      }
      index_.frames.push_back({i, times_sound_ ? index_.packets[i].pts : container_pts_[i]});
    }
    WarnUnreached(index_, unreached, report_);
    CheckMonotonic(&index_);
  }

  PacketFeed& feed_;
  const AVCodecParameters* parameters_;
  StreamScan& scan_;
  VideoIndex& index_;
  ScanReport* report_;
  OrderReader order_;
  SetTracker sets_;
  bool heads_known_ = false;
  bool check_syncs_ = false;
  bool times_sound_ = false;
  FrameNumbers numbers_;
  bool lossy_ = false;
  Sequential sequential_;
  TaggedDecoder::Sink sink_;
  std::map<uint32_t, Run> runs_;
  std::set<uint32_t> banned_;
  std::vector<Active> active_;
  std::vector<int64_t> container_pts_;
};

}  // namespace

PayloadFeed::PayloadFeed(ObjectReader* object, const VideoIndex* index)
    : source_(object), index_(index) {
  keys_.reserve(index->packets.size());
  for (const Packet& p : index->packets) keys_.push_back((p.flags & Packet::kKey) != 0);
}

Result<bool> PayloadFeed::Next(AVPacket* packet) {
  av_packet_unref(packet);
  if (next_ >= index_->packets.size()) return false;
  const bool key = keys_[next_];
  const Packet& p = index_->packets[next_++];
  if (av_new_packet(packet, static_cast<int>(p.size)) < 0) {
    return Status(Code::kResourceExhausted, "no memory for a packet");
  }
  FB_RETURN_IF_ERROR(
      source_.ReadFully(p.offset, {reinterpret_cast<std::byte*>(packet->data), size_t{p.size}}));
  // Some decoders (PNG) take a packet without it for one that changes the picture before.
  if (key) packet->flags |= AV_PKT_FLAG_KEY;
  return true;
}

Status VerifyByDecoding(PacketFeed* feed, const AVCodecParameters* parameters, StreamScan* scan,
                        ScanReport* report) {
  return Verifier(feed, parameters, scan, report).Verify();
}

Status OrderByDecoding(PacketFeed* feed, const AVCodecParameters* parameters, StreamScan* scan,
                       ScanReport* report) {
  return Verifier(feed, parameters, scan, report).Order();
}

}  // namespace forebay::media::ffmpeg
