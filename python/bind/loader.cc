#include "forebay/loader.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "array.h"
#include "bind.h"
#include "fork.h"
#include "interrupt.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {
namespace {

using std::chrono::nanoseconds;
template <class T, int kDims>
using HostArray = nb::ndarray<T, nb::ndim<kDims>, nb::c_contig, nb::device::cpu>;

nanoseconds Seconds(double seconds) { return nanoseconds(static_cast<int64_t>(seconds * 1e9)); }

// A Loader that gives the GIL away while it works or waits, and that a forked child leaves alone.
class PyLoader {
 public:
  explicit PyLoader(std::unique_ptr<Loader> loader) : loader_(std::move(loader)) {}
  PyLoader(PyLoader&&) = default;
  ~PyLoader() {
    if (loader_ == nullptr) return;
    if (!usable()) {
      (void)loader_.release();  // its threads live in the parent only; joining them would hang
    } else if (nb::is_alive()) {
      nb::gil_scoped_release release;
      loader_.reset();
    }
  }

  bool usable() const { return fork_generation_ == ForkGeneration(); }
  Loader& loader() { return *loader_; }
  const Loader& loader() const { return *loader_; }

  bool WaitReady(double seconds) {
    const auto deadline = std::chrono::steady_clock::now() + Seconds(seconds);
    bool ready = false;
    WaitInSlices([&](nanoseconds slice) {
      const nanoseconds left = deadline - std::chrono::steady_clock::now();
      ready = loader_->WaitReady(std::clamp(left, nanoseconds(0), slice));
      return ready || left <= slice;
    });
    return ready;
  }

  // (arrays by name, step, epoch); None at the end of an epoch. Call it when WaitReady said true:
  // it does not serve signals.
  nb::object Next(ArrayKind kind) {
    Result<std::optional<Batch>> next = [this] {
      Waiting waiting;
      nb::gil_scoped_release release;
      return loader_->Next(kSignalSlice);
    }();
    if (!next.ok()) Raise(next.status());
    if (!next->has_value()) return nb::none();
    nb::dict arrays;
    for (const Array& array : (*next)->arrays) {
      arrays[nb::str(array.spec->name.c_str())] = ToPython(array, kind);
    }
    return nb::make_tuple(arrays, (*next)->step, (*next)->epoch);
  }

  void Close() {
    nb::gil_scoped_release release;
    loader_->Close();
  }

  void SetEpoch(int64_t epoch) {
    Status status;
    {
      nb::gil_scoped_release release;
      status = loader_->SetEpoch(epoch);
    }
    RaiseIfError(status);
  }

  void LoadState(const LoaderState& state) {
    Status status;
    {
      nb::gil_scoped_release release;
      status = loader_->LoadState(state);
    }
    RaiseIfError(status);
  }

  void SetWeights(const std::vector<double>& weights) {
    Status status;
    {
      nb::gil_scoped_release release;
      status = loader_->SetWeights(weights);
    }
    RaiseIfError(status);
  }

  std::vector<std::string> SampleNames(size_t source, int64_t first, int64_t count) const {
    Result<std::vector<std::string>> names = [&] {
      nb::gil_scoped_release release;
      return loader_->SampleNames(source, first, count);
    }();
    if (!names.ok()) Raise(names.status());
    return *std::move(names);
  }

  void Supply(const HostArray<const int64_t, 1>& samples) {
    RaiseIfError(loader_->Supply({samples.data(), samples.size()}));
  }
  void SupplyEnd() { RaiseIfError(loader_->SupplyEnd()); }

  void SampleTimes(size_t source, const HostArray<const int64_t, 1>& samples,
                   const HostArray<int32_t, 1>& scene, const HostArray<double, 2>& times,
                   const HostArray<double, 1>& half_frame) {
    if (scene.size() != samples.size() || half_frame.size() != samples.size() ||
        times.shape(0) != samples.size()) {
      Raise(Status(Code::kInvalidArgument, "outputs must have one row for each sample"));
    }
    RaiseIfError(loader_->SampleTimes(source, {samples.data(), samples.size()},
                                      {scene.data(), scene.size()}, {times.data(), times.size()},
                                      {half_frame.data(), half_frame.size()}));
  }

 private:
  std::unique_ptr<Loader> loader_;
  uint64_t fork_generation_ = ForkGeneration();
};

PyLoader Make(std::vector<SourceOptions> sources, LoaderOptions options, StoreOptions store) {
  return PyLoader(ValueOrRaise(RunInterruptibly(
      [sources = std::move(sources), options = std::move(options), store = std::move(store)] {
        return Loader::Make(sources, options, store);
      })));
}

nb::list Arrays(const PyLoader& self) {
  nb::list result;
  for (const ArraySpec& spec : self.loader().arrays()) {
    nb::list shape;
    for (const int64_t size : spec.shape) shape.append(size);
    result.append(nb::make_tuple(spec.name, spec.dtype, nb::tuple(shape)));
  }
  return result;
}

void BindSources(nb::module_& m) {
  nb::class_<ClipsOptions>(m, "ClipsOptions")
      .def(nb::init<>())
      .def_rw("uri", &ClipsOptions::uri)
      .def_rw("pattern", &ClipsOptions::pattern)
      .def_rw("cameras", &ClipsOptions::cameras)
      .def_rw("frames", &ClipsOptions::frames)
      .def_rw("step", &ClipsOptions::step)
      .def_rw("hop", &ClipsOptions::hop)
      .def_rw("width", &ClipsOptions::width)
      .def_rw("height", &ClipsOptions::height)
      .def_rw("chw", &ClipsOptions::chw)
      .def_rw("catalog", &ClipsOptions::catalog);
  nb::class_<RecordsOptions>(m, "RecordsOptions")
      .def(nb::init<>())
      .def_rw("uri", &RecordsOptions::uri)
      .def_rw("format", &RecordsOptions::format)
      .def_rw("catalog", &RecordsOptions::catalog)
      .def_rw("columns", &RecordsOptions::columns)
      .def_rw("ops", &RecordsOptions::ops)
      .def_rw("s3_data_type", &RecordsOptions::s3_data_type)
      .def_rw("host", &RecordsOptions::host)
      .def_rw("hosts", &RecordsOptions::hosts);
  nb::class_<SourceOptions>(m, "SourceOptions")
      .def(nb::init<>())
      .def_rw("name", &SourceOptions::name)
      .def_rw("data", &SourceOptions::data)
      .def_rw("weight", &SourceOptions::weight);
}

void BindLoaderOptions(nb::module_& m) {
  nb::enum_<ShuffleKind>(m, "ShuffleKind")
      .value("NONE", ShuffleKind::kNone)
      .value("GLOBAL", ShuffleKind::kGlobal)
      .value("BLOCKS", ShuffleKind::kBlocks)
      .value("EXTERNAL", ShuffleKind::kExternal);
  nb::enum_<TailRule>(m, "TailRule")
      .value("DROP", TailRule::kDrop)
      .value("PAD", TailRule::kPad)
      .value("RAGGED", TailRule::kRagged);
  nb::class_<BlockShuffleOptions>(m, "BlockShuffleOptions")
      .def(nb::init<>())
      .def_rw("window", &BlockShuffleOptions::window)
      .def_rw("streams", &BlockShuffleOptions::streams)
      .def_rw("run", &BlockShuffleOptions::run);
  nb::class_<OrderOptions>(m, "OrderOptions")
      .def(nb::init<>())
      .def_rw("seed", &OrderOptions::seed)
      .def_rw("shuffle", &OrderOptions::shuffle)
      .def_rw("blocks", &OrderOptions::blocks)
      .def_rw("tail", &OrderOptions::tail)
      .def_rw("epoch_samples", &OrderOptions::epoch_samples)
      .def_rw("mixture_block", &OrderOptions::mixture_block);
  nb::class_<PlaceOptions>(m, "PlaceOptions")
      .def(nb::init<>())
      .def_rw("batch_size", &PlaceOptions::batch_size)
      .def_rw("rank", &PlaceOptions::rank)
      .def_rw("world_size", &PlaceOptions::world_size)
      .def_rw("replicas", &PlaceOptions::replicas)
      .def_rw("step_stride", &PlaceOptions::step_stride)
      .def_rw("step_offset", &PlaceOptions::step_offset);
  nb::class_<LoaderOptions>(m, "LoaderOptions")
      .def(nb::init<>())
      .def_rw("order", &LoaderOptions::order)
      .def_rw("place", &LoaderOptions::place)
      .def_rw("epochs", &LoaderOptions::epochs)
      .def_rw("memory_bytes", &LoaderOptions::memory_bytes)
      .def_rw("runway_s", &LoaderOptions::runway_s)
      .def_rw("decode_threads", &LoaderOptions::decode_threads)
      .def_rw("held_limit", &LoaderOptions::held_limit)
      .def_rw("skip_max", &LoaderOptions::skip_max)
      .def_rw("content_digest", &LoaderOptions::content_digest)
      .def_rw("digest_log_steps", &LoaderOptions::digest_log_steps);
}

void BindLoaderState(nb::module_& m) {
  nb::class_<MixtureWeights>(m, "MixtureWeights")
      .def(nb::init<>())
      .def_rw("start", &MixtureWeights::start)
      .def_rw("weights", &MixtureWeights::weights);
  nb::class_<SourceGrowth>(m, "SourceGrowth")
      .def(nb::init<>())
      .def_rw("from_epoch", &SourceGrowth::from_epoch)
      .def_rw("samples", &SourceGrowth::samples);
  nb::class_<SourceState>(m, "SourceState")
      .def(nb::init<>())
      .def_rw("name", &SourceState::name)
      .def_rw("spec", &SourceState::spec)
      .def_rw("catalog_hash", &SourceState::catalog_hash)
      .def_rw("samples", &SourceState::samples)
      .def_rw("sizes", &SourceState::sizes);
  nb::class_<LoaderState>(m, "LoaderState")
      .def(nb::init<>())
      .def_rw("schema", &LoaderState::schema)
      .def_rw("spec_hash", &LoaderState::spec_hash)
      .def_rw("catalog_hash", &LoaderState::catalog_hash)
      .def_rw("spec", &LoaderState::spec)
      .def_rw("seed", &LoaderState::seed)
      .def_rw("epoch", &LoaderState::epoch)
      .def_rw("position", &LoaderState::position)
      .def_rw("digest", &LoaderState::digest)
      .def_rw("sources", &LoaderState::sources)
      .def_rw("mixture", &LoaderState::mixture)
      .def_rw("skips", &LoaderState::skips)
      .def_rw("replaced", &LoaderState::replaced)
      .def_rw("content", &LoaderState::content);
}

}  // namespace

void BindLoader(nb::module_& m) {
  BindSources(m);
  BindLoaderOptions(m);
  BindLoaderState(m);
  nb::enum_<ArrayKind>(m, "ArrayKind")
      .value("NUMPY", ArrayKind::kNumpy)
      .value("DLPACK", ArrayKind::kDlpack)
      .value("DLPACK_BOOL_AS_UINT8", ArrayKind::kDlpackBoolAsUint8);
  nb::class_<PyLoader>(m, "Loader")
      .def_static("make", &Make, nb::arg("sources"), nb::arg("options"), nb::arg("store"))
      .def_prop_ro("usable", &PyLoader::usable)
      .def_prop_ro("arrays", &Arrays)
      .def_prop_ro("sample_count", [](const PyLoader& l) { return l.loader().sample_count(); })
      .def_prop_ro("batches_per_epoch",
                   [](const PyLoader& l) { return l.loader().batches_per_epoch(); })
      .def_prop_ro("batches_left", [](const PyLoader& l) { return l.loader().batches_left(); })
      .def(
          "scenes", [](const PyLoader& l, size_t source) { return l.loader().scenes(source); },
          nb::arg("source"))
      .def("sample_names", &PyLoader::SampleNames, nb::arg("source"), nb::arg("first"),
           nb::arg("count"))
      .def("sample_times", &PyLoader::SampleTimes, nb::arg("source"),
           nb::arg("samples").noconvert(), nb::arg("scene").noconvert(),
           nb::arg("times").noconvert(), nb::arg("half_frame").noconvert())
      .def("wait_ready", &PyLoader::WaitReady, nb::arg("seconds"))
      .def("next", &PyLoader::Next, nb::arg("kind"))
      .def("set_epoch", &PyLoader::SetEpoch, nb::arg("epoch"))
      .def("state", [](const PyLoader& l) { return l.loader().State(); })
      .def("load_state", &PyLoader::LoadState, nb::arg("state"))
      .def("set_weights", &PyLoader::SetWeights, nb::arg("weights"))
      .def("supply", &PyLoader::Supply, nb::arg("samples").noconvert())
      .def("supply_end", &PyLoader::SupplyEnd)
      .def_prop_ro("runway_reason", [](const PyLoader& l) { return l.loader().RunwayReason(); })
      .def("metrics", [](const PyLoader& l) { return l.loader().Metrics(); })
      .def("close", &PyLoader::Close);
}

}  // namespace forebay::python
