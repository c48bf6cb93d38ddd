// The boundary between libforebay_media.so, which links FFmpeg, and the rest. Both sides are built
// from one tree by one compiler, so the functions speak C++ types; the fingerprint refuses a
// library from another build.
#pragma once

#include <cstdint>

#include "media/media.h"

namespace forebay::media {

struct MediaApi {
  // First, and never moved: read before anything else is trusted.
  uint32_t magic = 0;
  uint32_t size = 0;         // sizeof(MediaApi)
  uint64_t fingerprint = 0;  // MediaFingerprint() of the library's build

  Result<std::vector<VideoIndex>> (*scan)(const ReadAt& read_at, uint64_t object_size,
                                          const ScanOptions& options, ScanReport* report) = nullptr;
  Result<std::unique_ptr<VideoDecoder>> (*make_decoder)(const VideoDecoder::Options&) = nullptr;
  std::string (*version)() = nullptr;
};

inline constexpr uint32_t kMediaMagic = 0x46424d31;  // "FBM1"
inline constexpr char kMediaSymbol[] = "forebay_media_api";
using MediaApiFunction = const MediaApi* (*)();

// Changes with the release, the compiler and the layout of what crosses the boundary.
constexpr uint64_t MediaFingerprint() {
  constexpr std::string_view kBuild = FOREBAY_VERSION " " __VERSION__;
  uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
  for (const char c : kBuild) add(static_cast<unsigned char>(c));
  for (const uint64_t size :
       {sizeof(MediaApi), sizeof(VideoIndex), sizeof(StreamParameters), sizeof(Packet),
        sizeof(Frame), sizeof(DecodeRun), sizeof(NativeFrame), sizeof(OutputFormat),
        sizeof(ScanOptions), sizeof(ScanReport), sizeof(VideoDecoder::Options), sizeof(Status)}) {
    add(size);
  }
  return hash;
}

}  // namespace forebay::media
