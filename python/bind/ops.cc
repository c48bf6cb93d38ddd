#include "forebay/ops.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "bind.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {
namespace {

void BindImageOps(nb::module_& m) {
  nb::class_<DecodeImageOp>(m, "DecodeImageOp")
      .def(nb::init<>())
      .def_rw("field", &DecodeImageOp::field)
      .def_rw("mode", &DecodeImageOp::mode)
      .def_rw("orientation", &DecodeImageOp::orientation)
      .def_rw("cmyk", &DecodeImageOp::cmyk)
      .def_rw("grey16", &DecodeImageOp::grey16)
      .def_rw("pixels_max", &DecodeImageOp::pixels_max);
  nb::enum_<ResizeFilter>(m, "ResizeFilter")
      .value("BILINEAR", ResizeFilter::kBilinear)
      .value("BICUBIC", ResizeFilter::kBicubic)
      .value("LANCZOS", ResizeFilter::kLanczos)
      .value("BOX", ResizeFilter::kBox)
      .value("OPENCV_BILINEAR", ResizeFilter::kOpenCvBilinear);
  nb::class_<ResizeOp>(m, "ResizeOp")
      .def(nb::init<>())
      .def_rw("height", &ResizeOp::height)
      .def_rw("width", &ResizeOp::width)
      .def_rw("filter", &ResizeOp::filter);
  nb::class_<CenterCropOp>(m, "CenterCropOp")
      .def(nb::init<>())
      .def_rw("height", &CenterCropOp::height)
      .def_rw("width", &CenterCropOp::width);
  nb::class_<RandomResizedCropOp>(m, "RandomResizedCropOp")
      .def(nb::init<>())
      .def_rw("height", &RandomResizedCropOp::height)
      .def_rw("width", &RandomResizedCropOp::width)
      .def_rw("scale", &RandomResizedCropOp::scale)
      .def_rw("ratio", &RandomResizedCropOp::ratio)
      .def_rw("filter", &RandomResizedCropOp::filter);
  nb::class_<RandomHorizontalFlipOp>(m, "RandomHorizontalFlipOp")
      .def(nb::init<>())
      .def_rw("p", &RandomHorizontalFlipOp::p);
  nb::class_<ColorJitterOp>(m, "ColorJitterOp")
      .def(nb::init<>())
      .def_rw("brightness", &ColorJitterOp::brightness)
      .def_rw("contrast", &ColorJitterOp::contrast)
      .def_rw("saturation", &ColorJitterOp::saturation)
      .def_rw("hue", &ColorJitterOp::hue);
  nb::class_<NormalizeOp>(m, "NormalizeOp")
      .def(nb::init<>())
      .def_rw("mean", &NormalizeOp::mean)
      .def_rw("std", &NormalizeOp::std);
  nb::class_<ToChwOp>(m, "ToChwOp").def(nb::init<>());
  nb::class_<ToDtypeOp>(m, "ToDtypeOp")
      .def(nb::init<>())
      .def_rw("dtype", &ToDtypeOp::dtype)
      .def_rw("scale", &ToDtypeOp::scale);
}

void BindFieldOps(nb::module_& m) {
  nb::class_<ParseIntOp>(m, "ParseIntOp").def(nb::init<>()).def_rw("field", &ParseIntOp::field);
  nb::class_<ParseNpyOp>(m, "ParseNpyOp")
      .def(nb::init<>())
      .def_rw("field", &ParseNpyOp::field)
      .def_rw("dtype", &ParseNpyOp::dtype)
      .def_rw("shape", &ParseNpyOp::shape);
  nb::class_<JsonField>(m, "JsonField")
      .def(nb::init<>())
      .def_rw("pointer", &JsonField::pointer)
      .def_rw("name", &JsonField::name)
      .def_rw("dtype", &JsonField::dtype)
      .def_rw("shape", &JsonField::shape)
      .def_rw("ragged", &JsonField::ragged);
  nb::class_<ParseJsonOp>(m, "ParseJsonOp")
      .def(nb::init<>())
      .def_rw("field", &ParseJsonOp::field)
      .def_rw("fields", &ParseJsonOp::fields);
  nb::class_<ExampleFeature>(m, "ExampleFeature")
      .def(nb::init<>())
      .def_rw("key", &ExampleFeature::key)
      .def_rw("name", &ExampleFeature::name)
      .def_rw("dtype", &ExampleFeature::dtype)
      .def_rw("shape", &ExampleFeature::shape)
      .def_rw("has_default", &ExampleFeature::has_default)
      .def_rw("default_value", &ExampleFeature::default_value)
      .def_rw("pad", &ExampleFeature::pad)
      .def_rw("ragged", &ExampleFeature::ragged)
      .def_rw("indices", &ExampleFeature::indices)
      .def_rw("size", &ExampleFeature::size);
  nb::class_<ParseExampleOp>(m, "ParseExampleOp")
      .def(nb::init<>())
      .def_rw("field", &ParseExampleOp::field)
      .def_rw("features", &ParseExampleOp::features);
  nb::class_<RecordFeature>(m, "RecordFeature")
      .def(nb::init<>())
      .def_rw("key", &RecordFeature::key)
      .def_rw("label", &RecordFeature::label)
      .def_rw("name", &RecordFeature::name)
      .def_rw("dtype", &RecordFeature::dtype)
      .def_rw("shape", &RecordFeature::shape)
      .def_rw("ragged", &RecordFeature::ragged)
      .def_rw("sparse", &RecordFeature::sparse);
  nb::class_<ParseRecordOp>(m, "ParseRecordOp")
      .def(nb::init<>())
      .def_rw("field", &ParseRecordOp::field)
      .def_rw("features", &ParseRecordOp::features);
  nb::class_<TokensOp>(m, "TokensOp")
      .def(nb::init<>())
      .def_rw("length", &TokensOp::length)
      .def_rw("stride", &TokensOp::stride)
      .def_rw("dtype", &TokensOp::dtype)
      .def_rw("vocabulary", &TokensOp::vocabulary);
  nb::class_<PackTokensOp>(m, "PackTokensOp")
      .def(nb::init<>())
      .def_rw("length", &PackTokensOp::length)
      .def_rw("window", &PackTokensOp::window)
      .def_rw("seed", &PackTokensOp::seed)
      .def_rw("pad", &PackTokensOp::pad)
      .def_rw("dtype", &PackTokensOp::dtype)
      .def_rw("vocabulary", &PackTokensOp::vocabulary);
  nb::class_<SelectOp>(m, "SelectOp").def(nb::init<>()).def_rw("fields", &SelectOp::fields);
  nb::class_<RenameOp>(m, "RenameOp")
      .def(nb::init<>())
      .def_rw("field", &RenameOp::field)
      .def_rw("name", &RenameOp::name);
}

}  // namespace

void BindOps(nb::module_& m) {
  BindImageOps(m);
  BindFieldOps(m);
  m.def("describe_op", [](const Op& op) { return DescribeOp(op); }, nb::arg("op"));
  m.def("validate_op", [](const Op& op) { RaiseIfError(ValidateOp(op)); }, nb::arg("op"));
}

}  // namespace forebay::python
