#include "testing/ffmpeg_truth.h"

extern "C" {
#include <libavutil/crc.h>
}

#include <fmt/core.h>

#include <cstdlib>
#include <sstream>

namespace forebay::testing {
Result<std::vector<uint32_t>> FramesByFfmpeg(const CorpusVideo& video, int stream) {
  const std::string path = fmt::format("{}/truth/{}.{}", FOREBAY_CORPUS_FOLDER, video.name, stream);
  std::ifstream lines(path);
  if (!lines) return Status(Code::kNotFound, path);
  std::vector<uint32_t> frames;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const size_t comma = line.rfind(',');
    if (comma == std::string::npos) return Status(Code::kInternal, "not a framehash line: " + line);
    frames.push_back(static_cast<uint32_t>(std::stoul(line.substr(comma + 1), nullptr, 16)));
  }
  return frames;
}

uint32_t Crc32(ByteView bytes) {
  const AVCRC* table = av_crc_get_table(AV_CRC_32_IEEE_LE);
  return ~av_crc(table, UINT32_MAX, reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

uint64_t RangeFile::size() {
  file_.seekg(0, std::ios::end);
  return static_cast<uint64_t>(file_.tellg());
}

Status RangeFile::Read(ByteRange range, MutableBytes into) {
  file_.clear();
  file_.seekg(static_cast<std::streamoff>(range.offset));
  file_.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
  if (file_ && range.size() == into.size()) return {};
  return Status(Code::kDataLoss, "not in the file");
}

Result<std::vector<CorpusVideo>> VideoCorpus() {
  const std::string folder = FOREBAY_CORPUS_FOLDER;
  const std::string command =
      fmt::format("python3 '{}' '{}'", FOREBAY_CORPUS_SCRIPT, FOREBAY_CORPUS_FOLDER);
  if (std::system(command.c_str()) != 0) return Status(Code::kInternal, command);
  std::vector<CorpusVideo> videos;
  std::ifstream list(folder + "/corpus.tsv");
  for (std::string line; std::getline(list, line);) {
    std::istringstream fields(line);
    CorpusVideo video;
    std::string streams;
    std::getline(fields, video.name, '\t');
    std::getline(fields, streams, '\t');
    std::getline(fields, video.compare, '\t');
    std::getline(fields, video.reject, '\t');
    std::istringstream numbers(streams);
    for (std::string number; std::getline(numbers, number, ',');) {
      video.streams.push_back(std::stoi(number));
    }
    video.path = folder + "/" + video.name;
    videos.push_back(std::move(video));
  }
  return videos;
}

}  // namespace forebay::testing
