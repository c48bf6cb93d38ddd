#include <nanobind/nanobind.h>

#include "bind.h"
#include "interrupt.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  using namespace forebay::python;
  m.attr("__version__") = FOREBAY_VERSION;
  BindOptions(m);
  BindStore(m);
  BindVideo(m);
  BindLoader(m);
  // True: no thread is inside a wait of this module any more. For the exit of the interpreter.
  m.def(
      "wait_until_no_waiter",
      [](double seconds) {
        return Waiting::WaitUntilNone(
            std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9)));
      },
      nb::arg("seconds"), nb::call_guard<nb::gil_scoped_release>());
}
