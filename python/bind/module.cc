#include <nanobind/nanobind.h>

#include <cstdlib>

#include "bind.h"
#include "interrupt.h"

namespace nb = nanobind;

NB_MODULE(_core, m) {
  using namespace forebay::python;
  // A daemon thread that still holds a loader when the interpreter ends is no defect of its
  // program; our tests, where nothing does, set the variable.
  nb::set_leak_warnings(std::getenv("FOREBAY_LEAK_WARNINGS") != nullptr);
  m.attr("__version__") = FOREBAY_VERSION;
  BindOptions(m);
  BindStore(m);
  BindRandom(m);
  BindOps(m);
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
