// FFmpeg's objects with C++ lifetimes. Included only inside libforebay_media.so.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/error.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}

#include <memory>
#include <string>

#include "media/video_index.h"

namespace forebay::media::ffmpeg {

struct AvDeleter {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
  void operator()(AVPacket* p) const { av_packet_free(&p); }
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
  void operator()(AVCodecParameters* p) const { avcodec_parameters_free(&p); }
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
  void operator()(AVBufferPool* p) const { av_buffer_pool_uninit(&p); }
  void operator()(SwsContext* p) const { sws_freeContext(p); }
  void operator()(AVIOContext* p) const {
    av_freep(static_cast<void*>(&p->buffer));
    avio_context_free(&p);
  }
};
template <class T>
using AvPtr = std::unique_ptr<T, AvDeleter>;

inline std::string AvErrorText(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof text);
  return text;
}

inline AVRational ToAv(Rational r) { return {r.num, r.den}; }

}  // namespace forebay::media::ffmpeg
