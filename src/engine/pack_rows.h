// Rows of numbers as SageMaker's records take them: of text, of arrays, of sparse matrices.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "forebay/pack.h"
#include "format/sagemaker_writer.h"

namespace forebay::engine {

// A record's, until the next one.
struct PackRow {
  std::vector<format::SageMakerOutput> features, labels;
};
using OnRow = std::function<Status(PackRow row)>;

class PackRows {
 public:
  explicit PackRows(const PackOptions& options) : options_(options) {}

  // A line of CSV becomes float32.
  Status ReadCsv(format::OutputField* field);
  // One number of a row becomes the label.
  Status TakeLabel(format::OutputField* field, PackRow* row);
  // A line of LIBSVM: label, then feature:value, the features ascending.
  Status ReadLibsvm(ByteView line, PackRow* row);
  // What came before is not needed any more.
  void Clear() { kept_.clear(); }

 private:
  const PackOptions& options_;
  std::deque<std::vector<std::byte>> kept_;
  format::SparseOutput sparse_;
};

// Of a .npy file: what is in it.
Status ReadNpy(format::OutputField* file);
// The arrays of an .npz, each a whole .npy file: a matrix as SciPy saves it (CSR), or arrays with
// as many rows each. Those named label, labels, cls, class or y are labels.
Status ReadArrays(const std::vector<format::OutputField>& files, const OnRow& on_row);

}  // namespace forebay::engine
