// Raw deflate, as zip files keep it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "format/damage.h"

namespace forebay::format {

// Unpacks piece by piece, and never more than was declared.
class Inflater {
 public:
  using OnBytes = std::function<void(ByteView)>;

  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  // `packed` bytes that become `bytes`. Errors: kDataLoss for more than kMaxBytes, or than deflate
  // can make of so few.
  static Result<Inflater> Make(uint64_t packed, uint64_t bytes, const Place& place);
  Inflater(Inflater&&) noexcept;
  Inflater& operator=(Inflater&&) = delete;
  ~Inflater();

  // The next packed bytes. Errors: kDataLoss.
  Status Take(ByteView packed, const OnBytes& on_bytes);
  // There are no more. Errors: kDataLoss when that is not the end, or not of as many bytes.
  Status End() const;

 private:
  struct Stream;
  Inflater(std::unique_ptr<Stream> stream, uint64_t bytes, const Place& place);

  std::unique_ptr<Stream> stream_;
  uint64_t bytes_;
  Place place_;
  uint64_t made_ = 0;
  bool ended_ = false;
};

}  // namespace forebay::format
