#include "forebay/video.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "bind.h"
#include "fork.h"
#include "interrupt.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {
namespace {

using Numbers = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pictures = nb::ndarray<uint8_t, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

// A Video that any thread may call, one at a time, and that a forked child leaves alone.
class SharedVideo {
 public:
  SharedVideo(std::unique_ptr<Video> video, int width, int height)
      : video_(std::move(video)),
        width_(width > 0 ? width : video_->width()),
        height_(height > 0 ? height : video_->height()) {}
  SharedVideo(SharedVideo&&) = default;
  ~SharedVideo() {
    if (!usable()) (void)video_.release();
  }

  bool usable() const { return fork_generation_ == ForkGeneration(); }
  const Video& video() const { return *video_; }
  int width() const { return width_; }  // of the frames
  int height() const { return height_; }

  void Frames(const Numbers& numbers, const Pictures& out) {
    if (out.shape(0) != numbers.shape(0) || out.shape(1) != static_cast<size_t>(height_) ||
        out.shape(2) != static_cast<size_t>(width_) || out.shape(3) != 3) {
      Raise(Status(Code::kInvalidArgument, "out must be uint8 [numbers, height, width, 3]"));
    }
    Status status;
    {
      nb::gil_scoped_release release;
      std::lock_guard lock(*mutex_);
      status = video_->Frames({numbers.data(), numbers.size()},
                              std::as_writable_bytes(std::span(out.data(), out.size())));
    }
    RaiseIfError(status);
  }

 private:
  std::unique_ptr<Video> video_;
  int width_;
  int height_;
  std::unique_ptr<std::mutex> mutex_ = std::make_unique<std::mutex>();
  uint64_t fork_generation_ = ForkGeneration();
};

SharedVideo OpenVideo(std::string uri, StoreOptions store, VideoOptions options) {
  const int width = options.width, height = options.height;
  auto video = ValueOrRaise(RunInterruptibly(
      [uri = std::move(uri), store = std::move(store), options = std::move(options)] {
        return Video::Open(uri, store, options);
      }));
  return SharedVideo(std::move(video), width, height);
}

nb::object Times(nb::handle_t<SharedVideo> self) {
  const std::vector<double>& times = nb::cast<const SharedVideo&>(self).video().times();
  return nb::cast(
      nb::ndarray<nb::numpy, const double, nb::ndim<1>>(times.data(), {times.size()}, self),
      nb::rv_policy::reference);
}

void BindIndex(nb::module_& m) {
  nb::class_<IndexOptions>(m, "IndexOptions")
      .def(nb::init<>())
      .def_rw("out", &IndexOptions::out)
      .def_rw("format", &IndexOptions::format)
      .def_rw("s3_data_type", &IndexOptions::s3_data_type)
      .def_rw("key_order", &IndexOptions::key_order)
      .def_rw("append", &IndexOptions::append)
      .def_rw("dtype", &IndexOptions::dtype)
      .def_rw("drop_tail", &IndexOptions::drop_tail)
      .def_rw("concatenated", &IndexOptions::concatenated)
      .def_rw("max_damaged", &IndexOptions::max_damaged)
      .def_rw("verify", &IndexOptions::verify);
  // None: there is no FFmpeg that can be used.
  m.def("ffmpeg_version", []() -> std::optional<std::string> {
    auto version = FfmpegVersion();
    if (!version.ok()) return std::nullopt;
    return *std::move(version);
  });
  m.def("record_formats", [] { return RecordFormats(); });
  m.def(
      "build_index",
      [](std::string source, StoreOptions store, IndexOptions options) {
        const IndexReport report = ValueOrRaise(RunInterruptibly(
            [source = std::move(source), store = std::move(store), options = std::move(options)] {
              return BuildIndex(source, store, options);
            }));
        nb::dict result;
        result["catalog_uri"] = report.catalog_uri;
        result["content_hash"] = report.content_hash;
        result["objects"] = report.objects;
        result["objects_failed"] = report.objects_failed;
        result["objects_skipped"] = report.objects_skipped;
        result["videos"] = report.videos;
        result["frames"] = report.frames;
        result["dataset_bytes"] = report.dataset_bytes;
        result["bytes_read"] = report.bytes_read;
        result["requests"] = report.requests;
        result["index_bytes"] = report.index_bytes;
        result["format"] = report.format;
        result["appended"] = report.appended;
        result["generations"] = report.generations;
        result["shards"] = report.shards;
        result["records"] = report.records;
        result["oddities"] = report.oddities;
        result["warnings"] = report.warnings;
        nb::dict fields;
        for (const IndexField& field : report.fields) {
          fields[nb::str(field.name.c_str(), field.name.size())] = field.records;
        }
        result["fields"] = fields;
        nb::dict failures;
        for (const IndexFailure& failure : report.failures) {
          failures[nb::str(failure.uri.c_str())] = failure.why;
        }
        result["failures"] = failures;
        return result;
      },
      nb::arg("source"), nb::arg("store"), nb::arg("options"));
}

}  // namespace

void BindVideo(nb::module_& m) {
  nb::class_<VideoOptions>(m, "VideoOptions")
      .def(nb::init<>())
      .def_rw("stream", &VideoOptions::stream)
      .def_rw("verify", &VideoOptions::verify)
      .def_rw("width", &VideoOptions::width)
      .def_rw("height", &VideoOptions::height);
  nb::class_<SharedVideo>(m, "Video")
      .def_static("open", &OpenVideo, nb::arg("uri"), nb::arg("store"), nb::arg("options"))
      .def_prop_ro("frame_count", [](const SharedVideo& v) { return v.video().frame_count(); })
      .def_prop_ro("width", &SharedVideo::width)
      .def_prop_ro("height", &SharedVideo::height)
      .def_prop_ro("stream", [](const SharedVideo& v) { return v.video().stream(); })
      .def_prop_ro("usable", &SharedVideo::usable)
      .def_prop_ro("times", &Times)
      .def("frame_at", [](const SharedVideo& v,
                          double seconds) { return ValueOrRaise(v.video().FrameAt(seconds)); })
      .def("frames", &SharedVideo::Frames, nb::arg("numbers").noconvert(),
           nb::arg("out").noconvert());
  BindIndex(m);
}

}  // namespace forebay::python
