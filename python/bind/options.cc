#include "forebay/options.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bind.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {

void BindOptions(nb::module_& m) {
  nb::class_<StoreOptions>(m, "StoreOptions")
      .def(nb::init<>())
      .def_rw("endpoint_url", &StoreOptions::endpoint_url)
      .def_rw("region", &StoreOptions::region)
      .def_rw("profile", &StoreOptions::profile)
      .def_rw("ca_bundle", &StoreOptions::ca_bundle)
      .def_rw("no_sign_request", &StoreOptions::no_sign_request)
      .def_rw("request_payer", &StoreOptions::request_payer)
      .def_rw("verify_ssl", &StoreOptions::verify_ssl)
      .def_rw("addressing_style", &StoreOptions::addressing_style)
      .def_rw("max_attempts", &StoreOptions::max_attempts)
      .def_rw("request_timeout_ms", &StoreOptions::request_timeout_ms)
      .def_rw("node_bandwidth", &StoreOptions::node_bandwidth)
      .def("validate", [](const StoreOptions& options) { RaiseIfError(options.Validate()); });
}

}  // namespace forebay::python
