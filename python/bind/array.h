// Arrays of a batch as NumPy or DLPack objects that share its memory.
#pragma once

#include <nanobind/nanobind.h>

#include "forebay/loader.h"

namespace forebay::python {

enum class ArrayKind {
  kNumpy,
  kDlpack,
  kDlpackBoolAsUint8,  // older readers (torch 1.13) know no bool
};

// Zero-copy and writable; the object, and whatever is made from it, shares ownership of the bytes.
nanobind::object ToPython(const Array& array, ArrayKind kind);

}  // namespace forebay::python
