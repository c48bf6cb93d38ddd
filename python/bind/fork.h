// Knowing in a child process that an object was made by its parent.
#pragma once

#include <cstdint>

namespace forebay::python {

// Grows by one in every child of a fork; constant within a process.
uint64_t ForkGeneration();

}  // namespace forebay::python
