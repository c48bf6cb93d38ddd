// A video as a plain libavformat and libavcodec loop sees it, read from the first packet to the
// last: the reference of decode tests and the floor of the decode benchmark. Needs no Forebay code
// but the plain data types; containers whose packets lie in one piece only.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "media/media.h"

namespace forebay::testing {

struct PlainFrame {
  uint32_t packet = 0;
  int width = 0, height = 0;
  std::string pixel_format;
  std::string native;  // planes without padding
};

struct PlainVideo {
  std::string bytes;               // the file
  media::VideoIndex index;         // of its first video stream; keys are what the demuxer says
  std::vector<PlainFrame> frames;  // in output order, each as sequential decoding gives it

  // Reads and decodes all of it; without `keep_pictures` PlainFrame::native stays empty. Fails with
  // a text for whoever reads the test's output.
  static Result<PlainVideo> Load(const std::string& path, bool keep_pictures = true);
};

// The file's bytes as fetched bytes, or only some ranges of them: then the rest is kDataLoss.
class FetchedText : public media::FetchedBytes {
 public:
  explicit FetchedText(const std::string& bytes) : bytes_(bytes), ranges_{{0, bytes.size()}} {}
  FetchedText(const std::string& bytes, std::vector<ByteRange> ranges)
      : bytes_(bytes), ranges_(std::move(ranges)) {}
  Status Copy(ByteRange range, MutableBytes into) const override;

 private:
  const std::string& bytes_;
  std::vector<ByteRange> ranges_;
};

// Runs `ffmpeg -v error -y ARGUMENTS path` once; kUnimplemented text when it fails. The shell
// splits `arguments`.
Status MakeVideo(const std::string& arguments, const std::string& path);

}  // namespace forebay::testing
