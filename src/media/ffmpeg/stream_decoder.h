// One open libavcodec decoder, used for run after run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "media/ffmpeg/av.h"
#include "media/ffmpeg/bitstream.h"
#include "media/media.h"

namespace forebay::media::ffmpeg {

// Takes one wanted frame as it comes out.
using OnFrame = std::function<Status(uint32_t number, const AVFrame& frame)>;

// Where a run's packets come from.
class PacketSource {
 public:
  virtual ~PacketSource() = default;
  // Packet i of the index; the result is valid until the next call.
  virtual Result<AVPacket*> Load(uint32_t packet) = 0;
};

class StreamDecoder {
 public:
  static Result<std::unique_ptr<StreamDecoder>> Open(const StreamParameters& parameters);

  // Feeds `run` from its sync point and gives its frames to on_frame, each once. After an error the
  // decoder's state is unknown: discard it. kDataLoss names frame or packet.
  Status Decode(const VideoIndex& index, const DecodeRun& run, PacketSource& source,
                bool drop_unreferenced, const OnFrame& on_frame);

 private:
  explicit StreamDecoder(const StreamParameters& parameters)
      : bitstream_(parameters.codec, parameters.extradata) {}

  // A wanted frame: the ordinal-th picture that comes out of `packet`.
  struct Wanted {
    uint32_t packet = 0;
    uint32_t ordinal = 0;
    uint32_t frame = 0;
    bool done = false;
  };
  struct Pass;

  Status PrepareWanted(const VideoIndex& index, const DecodeRun& run);
  // RunPass, and again with all packets where the stream lost pictures.
  Status RunWhole(Pass& pass);
  Status RunPass(Pass& pass);
  Status FeedPacket(Pass& pass, uint32_t packet);
  Status AttachParameters(const VideoIndex& index, uint32_t packet, bool first, AVPacket* av);
  Status Receive(Pass& pass, bool to_the_end);
  Status Take(Pass& pass, const AVFrame& frame);
  Status Missing(const Pass& pass) const;
  PictureHead HeadOf(const AVPacket& av) const;
  bool IsWanted(uint32_t packet) const;

  AvPtr<AVCodecContext> context_;
  AvPtr<AVFrame> frame_;
  BitstreamReader bitstream_;
  FrameNumbers frame_numbers_;
  uint32_t parameter_set_ = 0;  // in force in the decoder
  uint32_t epoch_ = 0;          // number of the run: the high half of every tag
  bool lenient_ = false;        // strict reading refused what proved to be sound pictures
  std::vector<Wanted> wanted_;  // by packet, ordinal
  size_t left_ = 0;             // of wanted_, still to come
  uint32_t last_packet_ = 0;    // whose picture came out last, and how many of it did
  uint32_t ordinal_ = 0;
};

}  // namespace forebay::media::ffmpeg
