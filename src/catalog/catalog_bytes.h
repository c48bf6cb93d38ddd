// Where a catalog's bytes are: in memory, mapped, or in a store, read in ranges.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/status.h"

namespace forebay::catalog {

// Thread-safe.
class CatalogBytes {
 public:
  using OnRead = std::move_only_function<void(Result<std::vector<std::byte>>)>;

  virtual ~CatalogBytes() = default;
  virtual uint64_t size() const = 0;
  // All of it, where it is in memory or mapped; valid as long as this.
  virtual std::optional<ByteView> view() const { return std::nullopt; }
  // Ends, well or not, within a minute; `on_read` runs once, on any thread, maybe inside the call.
  virtual void StartRead(ByteRange range, OnRead on_read) const = 0;
  // Gives up threads and connections until the next read.
  virtual void Rest() const {}
};

std::shared_ptr<const CatalogBytes> BytesInMemory(std::vector<std::byte> bytes);
// Errors: as of opening the file.
Result<std::shared_ptr<const CatalogBytes>> MapBytes(const std::string& path);

}  // namespace forebay::catalog
