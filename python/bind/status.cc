#include "status.h"

#include <nanobind/stl/string.h>

#include <string>

namespace nb = nanobind;

namespace forebay::python {

void Raise(const Status& status) {
  const ErrorDetail& detail = status.detail();
  nb::object range = nb::none();
  if (detail.offset >= 0) range = nb::make_tuple(detail.offset, detail.end);
  nb::object error =
      nb::module_::import_("forebay.errors")
          .attr("from_status")(std::string(CodeName(status.code())), status.ToString(), detail.uri,
                               range, detail.attempt, detail.request_id);
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace forebay::python
