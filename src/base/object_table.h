// The objects of a run by number: what an extent's `object` points into.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/extent.h"
#include "forebay/status.h"

namespace forebay {

// Immutable, shared by threads. Of a large data set the keys stay where they are until somebody
// asks: At may read, and wait for that until a deadline of its own, so it is not called on the
// thread that serves the store.
class ObjectTable {
 public:
  virtual ~ObjectTable() = default;
  virtual uint64_t size() const = 0;
  // object < size().
  virtual Result<ObjectVersion> At(uint32_t object) const = 0;
};

class ObjectList : public ObjectTable {
 public:
  explicit ObjectList(std::vector<ObjectVersion> objects) : objects_(std::move(objects)) {}
  uint64_t size() const override { return objects_.size(); }
  Result<ObjectVersion> At(uint32_t object) const override { return objects_[object]; }

 private:
  std::vector<ObjectVersion> objects_;
};

}  // namespace forebay
