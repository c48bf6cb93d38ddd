// Bytes that are written before they are read: growing does not clear them first.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace forebay {

template <class T>
class Unset : public std::allocator<T> {
 public:
  Unset() = default;
  template <class U>
  Unset(const Unset<U>&) {}  // NOLINT(google-explicit-constructor): as allocators are
  template <class U>
  struct rebind {            // NOLINT(readability-identifier-naming): the standard's name
    using other = Unset<U>;  // NOLINT(readability-identifier-naming): the standard's
  };
  template <class U>
  void construct(U* place) {  // NOLINT(readability-identifier-naming)
    ::new (static_cast<void*>(place)) U;
  }
  template <class U, class... Arguments>
  void construct(U* place, Arguments&&... arguments) {  // NOLINT(readability-identifier-naming)
    ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
  }
};

using RawBytes = std::vector<std::byte, Unset<std::byte>>;

}  // namespace forebay
