#include "feed/dataset.h"

#include "base/assert.h"
#include "feed/batch_layout.h"

namespace forebay::feed {

uint64_t Dataset::OutputBytesMax(uint64_t rows) const {
  for (const SampleArray& array : arrays()) FB_ASSERT(!array.ragged());
  return BatchLayout(arrays(), rows).bytes();
}

}  // namespace forebay::feed
