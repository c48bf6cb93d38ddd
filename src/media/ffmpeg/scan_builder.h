// The packet table of one stream while a demuxer gives its packets, and the outcome of all streams.
#pragma once

#include <map>

#include "media/ffmpeg/scan_table.h"

namespace forebay::media::ffmpeg {

// One stream's packets as a demuxer gives them.
class TableBuilder {
 public:
  TableBuilder(const AVStream* stream, const AVInputFormat* format, uint64_t packets_max);
  StreamScan& scan() { return scan_; }
  int stream() const { return static_cast<int>(scan_.index.stream); }
  // `offset` is the payload's. Packets without bytes are none: nothing comes out of them.
  Status Add(const AVPacket& packet, uint64_t offset);
  // Takes what the demuxer found out about the stream since.
  void UpdateParameters(const AVStream* stream);

 private:
  Status TakeExtradata(const AVPacket& packet);
  StreamScan scan_;
  uint64_t packets_max_;
  uint16_t set_ = 0;
  bool has_palettes_ = false;
};

// Registers extradata and gives its number: 0 for the stream's own.
Result<uint16_t> SetNumber(VideoIndex* index, std::string extradata);

// Follows the parameter sets inside a stream, so that each packet knows what a decoder that starts
// at its sync point has to be given.
class SetTracker {
 public:
  explicit SetTracker(StreamScan* scan);
  // The packets in decode order, with the sets that each carries; `is_sync`: runs may start at it.
  Status Add(uint32_t packet, const std::vector<ParameterSet>& sets, bool is_sync);

 private:
  StreamScan& scan_;
  std::map<uint32_t, ParameterSet> outside_;  // in extradata
  std::map<uint32_t, ParameterSet> in_force_;
  uint16_t number_ = 0;
};

// Streams that failed are the file's failure only if none is left.
class Results {
 public:
  explicit Results(ScanReport* report) : report_(report) {}
  // OK, or an error that is not of the stream but of the store: the scan ends.
  Status Add(Result<VideoIndex> index, unsigned stream);
  Result<std::vector<VideoIndex>> Take();

 private:
  ScanReport* report_;
  std::vector<VideoIndex> indexes_;
  std::vector<std::pair<unsigned, Status>> failed_;
};

// A builder for each video stream that can be decoded; the others are discarded.
std::vector<TableBuilder> MakeBuilders(AVFormatContext* context, uint64_t packets_max,
                                       Results* results);
TableBuilder* BuilderOf(std::vector<TableBuilder>* builders, int stream);

// For a stream that lost pictures: see FrameNumbers.
void NothingIsDisposable(VideoIndex* index);

Status NoSyncPoint(const VideoIndex& index);

}  // namespace forebay::media::ffmpeg
