// What becomes of a byte of a channel: to_dtype and normalize as a table, so that any sequence of
// them is one look-up, and the last pass over an image, which writes the sample's array.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/ops.h"
#include "forebay/status.h"
#include "ops/image.h"

namespace forebay::ops {

class PixelTable {
 public:
  // Follows what is there already. Errors: kInvalidArgument.
  Status Append(const ToDtypeOp& op);
  Status Append(const NormalizeOp& op);
  // Fills the table. Once, after the last Append.
  void Finish(int channels);

  const std::string& dtype() const { return dtype_; }
  // How many channels a normalize has values for; 0: none.
  size_t channels_named() const { return mean_count_; }

  // Writes all of `image`, mirrored or not, as HWC or CHW, to `out`, which has its size.
  void Write(const ImageView& image, bool mirrored, bool chw, MutableBytes out) const;

 private:
  struct Step {
    bool scale = false;  // x / 255
    std::vector<float> mean, std;
  };

  std::string dtype_ = "uint8";
  std::vector<Step> steps_;
  size_t mean_count_ = 0;
  // 256 of each channel, of the final type.
  std::vector<float> float32_;
  std::vector<uint16_t> float16_;
};

}  // namespace forebay::ops
