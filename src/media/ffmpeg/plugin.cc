// The one symbol that libforebay_media.so exports.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>
#include <libswscale/swscale.h>
}

#include <fmt/core.h>

#include "media/ffmpeg/decode.h"
#include "media/ffmpeg/scan.h"
#include "media/plugin_api.h"

namespace forebay::media::ffmpeg {
namespace {

std::string Version() {
  const auto text = [](const char* name, unsigned v) {
    return fmt::format("{} {}.{}.{}", name, AV_VERSION_MAJOR(v), AV_VERSION_MINOR(v),
                       AV_VERSION_MICRO(v));
  };
  return fmt::format("{}, {}, {}, {} (FFmpeg {})", text("libavcodec", avcodec_version()),
                     text("libavformat", avformat_version()), text("libavutil", avutil_version()),
                     text("libswscale", swscale_version()), av_version_info());
}

const MediaApi* Api() {
  static const MediaApi api = [] {
    // FFmpeg writes to stderr on every oddity of a file; what matters comes back as a Status.
    av_log_set_level(AV_LOG_QUIET);
    MediaApi a;
    a.magic = kMediaMagic;
    a.size = sizeof(MediaApi);
    a.fingerprint = MediaFingerprint();
    a.scan = &Scan;
    a.make_decoder = &MakeDecoder;
    a.version = &Version;
    return a;
  }();
  return &api;
}

}  // namespace
}  // namespace forebay::media::ffmpeg

extern "C" FOREBAY_API const forebay::media::MediaApi* forebay_media_api() {
  return forebay::media::ffmpeg::Api();
}
