#include "forebay/random.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bind.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {
namespace {

void Make(KeyedRandom* self, uint64_t seed, const std::string& op, uint64_t epoch, uint64_t sample,
          uint32_t occurrence) {
  new (self) KeyedRandom({seed, op, epoch, sample, occurrence});
}

uint64_t Below(KeyedRandom& self, uint64_t n) {
  if (n == 0) Raise(Status(Code::kInvalidArgument, "no integer is below 0"));
  return self.NextBelow(n);
}

}  // namespace

void BindRandom(nb::module_& m) {
  nb::class_<KeyedRandom>(m, "KeyedRandom")
      .def("__init__", &Make, nb::arg("seed"), nb::arg("op"), nb::arg("epoch"), nb::arg("sample"),
           nb::arg("occurrence"))
      .def_prop_ro("key", &KeyedRandom::key)
      .def("u32", &KeyedRandom::NextU32)
      .def("u64", &KeyedRandom::NextU64)
      .def("random", &KeyedRandom::NextDouble)
      .def("uniform", &KeyedRandom::NextUniform, nb::arg("low"), nb::arg("high"))
      .def("below", &Below, nb::arg("n"));
}

}  // namespace forebay::python
