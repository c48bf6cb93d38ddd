#include "array.h"

#include <nanobind/ndarray.h>

#include <memory>
#include <utility>
#include <vector>

#include "fork.h"
#include "status.h"

namespace nb = nanobind;

namespace forebay::python {
namespace {

struct Holder {
  std::shared_ptr<void> owner;
  uint64_t fork_generation;
};

// In a forked child the parent's locks may be held by threads that do not exist: the child's copy
// of the memory is left to its end.
void DropHolder(void* pointer) noexcept {
  auto* holder = static_cast<Holder*>(pointer);
  if (holder->fork_generation == ForkGeneration()) delete holder;
}

Result<nb::dlpack::dtype> DtypeOf(const ArraySpec& spec) {
  if (spec.dtype == "uint8") return nb::dtype<uint8_t>();
  if (spec.dtype == "int8") return nb::dtype<int8_t>();
  if (spec.dtype == "int16") return nb::dtype<int16_t>();
  if (spec.dtype == "uint16") return nb::dtype<uint16_t>();
  if (spec.dtype == "uint32") return nb::dtype<uint32_t>();
  if (spec.dtype == "uint64") return nb::dtype<uint64_t>();
  if (spec.dtype == "int32") return nb::dtype<int32_t>();
  if (spec.dtype == "int64") return nb::dtype<int64_t>();
  if (spec.dtype == "float32") return nb::dtype<float>();
  if (spec.dtype == "float64") return nb::dtype<double>();
  constexpr uint8_t kHalfBits = 16;
  const auto half = [](nb::dlpack::dtype_code code) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), kHalfBits, 1};
  };
  if (spec.dtype == "float16") return half(nb::dlpack::dtype_code::Float);
  if (spec.dtype == "bfloat16") return half(nb::dlpack::dtype_code::Bfloat);
  if (spec.dtype == "bool") return nb::dtype<bool>();
  return Status(Code::kInternal, "array '" + spec.name + "' has the unknown type " + spec.dtype);
}

template <class Framework>
nb::object Export(const Array& array, nb::dlpack::dtype dtype) {
  static_assert(sizeof(size_t) == sizeof(int64_t));
  nb::capsule owner(new Holder{array.owner, ForkGeneration()}, DropHolder);
  std::vector<size_t> shape(array.spec->shape.begin(), array.spec->shape.end());
  shape.at(0) = static_cast<size_t>(array.rows);
  nb::ndarray<Framework> view(array.data, shape.size(), shape.data(), owner, nullptr, dtype,
                              nb::device::cpu::value);
  return nb::cast(view, nb::rv_policy::reference);
}

}  // namespace

nb::object ToPython(const Array& array, ArrayKind kind) {
  nb::dlpack::dtype dtype = ValueOrRaise(DtypeOf(*array.spec));
  if (kind == ArrayKind::kDlpackBoolAsUint8 && dtype == nb::dtype<bool>()) {
    dtype = nb::dtype<uint8_t>();
  }
  return kind == ArrayKind::kNumpy ? Export<nb::numpy>(array, dtype)
                                   : Export<nb::array_api>(array, dtype);
}

}  // namespace forebay::python
