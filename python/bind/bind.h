#pragma once

#include <nanobind/nanobind.h>

namespace forebay::python {

void BindOptions(nanobind::module_& m);
void BindOps(nanobind::module_& m);
void BindStore(nanobind::module_& m);
void BindRandom(nanobind::module_& m);
void BindVideo(nanobind::module_& m);
void BindLoader(nanobind::module_& m);

}  // namespace forebay::python
