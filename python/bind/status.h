// Status -> the exceptions of forebay/errors.py.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "forebay/status.h"

namespace forebay::python {

// Throws the exception that stands for `status`, which is not OK. Needs the GIL.
[[noreturn]] void Raise(const Status& status);

inline void RaiseIfError(const Status& status) {
  if (!status.ok()) Raise(status);
}

template <class T>
T ValueOrRaise(Result<T> result) {
  if (!result.ok()) Raise(std::move(result).status());
  return *std::move(result);
}

}  // namespace forebay::python
