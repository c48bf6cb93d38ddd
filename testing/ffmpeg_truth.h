// What the ffmpeg program makes of a video: the truth that exact frames are compared with.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace forebay::testing {

uint32_t Crc32(ByteView bytes);

// A file of the video corpus.
struct CorpusVideo {
  std::string name;
  std::string path;
  std::vector<int> streams;
  std::string reject;   // not empty: cannot be indexed, and the reason holds these words
  std::string compare;  // FramesByFfmpeg is the truth of "all" frames, of the "tail", or "none"
};

// The frames of a stream in presentation order, each by the CRC-32 of its planes without padding.
Result<std::vector<uint32_t>> FramesByFfmpeg(const CorpusVideo& video, int stream);

// A file, read by ranges.
class RangeFile {
 public:
  explicit RangeFile(const std::string& path) : file_(path, std::ios::binary) {}
  uint64_t size();
  Status Read(ByteRange range, MutableBytes into);

 private:
  std::ifstream file_;
};

// The corpus of testing/video_corpus.py, made where it is not yet.
Result<std::vector<CorpusVideo>> VideoCorpus();

}  // namespace forebay::testing
