#include "engine/pack_rows.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "engine/pack_columns.h"
#include "format/lines.h"
#include "format/little_endian.h"
#include "format/npy.h"

namespace forebay::engine {
namespace {

using format::OutputField;

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

struct Array {
  std::string_view name;
  format::NpyHeader header;
  ByteView data;
  bool is_label = false;

  uint64_t rows() const { return header.shape.empty() ? 0 : header.shape[0]; }
  std::vector<int64_t> RowShape() const {
    if (header.shape.size() == 1) return {1};
    return {header.shape.begin() + 1, header.shape.end()};
  }
  OutputField Row(uint64_t row) const {
    const uint64_t bytes = rows() == 0 ? 0 : data.size() / rows();
    return {name, data.subspan(row * bytes, bytes), header.dtype, RowShape()};
  }
};

Result<Array> OpenArray(const OutputField& file) {
  Array array{.name = file.name};
  if (array.name.ends_with(".npy")) array.name.remove_suffix(4);
  array.is_label = IsLabelField(array.name) || array.name == "y";
  FB_ASSIGN_OR_RETURN(array.header, format::ParseNpyHeader(file.bytes.first(std::min<uint64_t>(
                                        file.bytes.size(), format::kMaxNpyHeadBytes))));
  if (array.header.big_endian || (array.header.fortran_order && array.header.shape.size() > 1)) {
    return Bad(fmt::format("array '{}' is big-endian or stored by columns", array.name));
  }
  array.data = file.bytes.subspan(array.header.data_offset);
  return array;
}

const Array* Find(const std::vector<Array>& arrays, std::string_view name) {
  const auto found = std::ranges::find(arrays, name, &Array::name);
  return found == arrays.end() ? nullptr : &*found;
}

Result<std::vector<int64_t>> Integers(const Array& array) {
  return format::IntegersOf({array.name, array.data, array.header.dtype, {}});
}

bool IsLabelOrNone(const Array& array, uint64_t rows) {
  return !array.is_label || (array.rows() == rows && !array.header.shape.empty());
}

Status TakeLabels(const std::vector<Array>& arrays, uint64_t row, PackRow* out) {
  for (const Array& array : arrays) {
    if (array.is_label) out->labels.push_back({array.Row(row)});
  }
  return {};
}

// Compressed sparse rows.
struct Matrix {
  const Array* data = nullptr;
  std::vector<int64_t> indices, starts;
  std::vector<uint64_t> shape;
};

Status CheckMatrix(const Matrix& matrix) {
  const uint64_t count = matrix.data->rows();
  const bool ends = matrix.starts.size() == matrix.shape[0] + 1 && matrix.starts.front() == 0 &&
                    static_cast<uint64_t>(matrix.starts.back()) == count &&
                    std::ranges::is_sorted(matrix.starts) && matrix.indices.size() == count;
  if (!ends) return Bad("its indptr, indices and data do not fit each other");
  for (const int64_t index : matrix.indices) {
    if (index < 0 || static_cast<uint64_t>(index) >= matrix.shape[1]) {
      return Bad(fmt::format("index {} in a matrix of {} columns", index, matrix.shape[1]));
    }
  }
  return {};
}

Result<Matrix> OpenMatrix(const std::vector<Array>& arrays) {
  Matrix matrix;
  const Array* shape = Find(arrays, "shape");
  const Array* format = Find(arrays, "format");
  matrix.data = Find(arrays, "data");
  const Array* indices = Find(arrays, "indices");
  if (shape == nullptr || matrix.data == nullptr || indices == nullptr ||
      (format != nullptr && AsText(format->data).substr(0, 3) != "csr")) {
    return Bad(
        "a sparse matrix is packed from compressed rows (CSR), as scipy.sparse.save_npz "
        "saves them");
  }
  FB_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, Integers(*shape));
  if (sizes.size() != 2 || sizes[0] < 0 || sizes[1] < 0) return Bad("it has no two dimensions");
  matrix.shape.assign(sizes.begin(), sizes.end());
  FB_ASSIGN_OR_RETURN(matrix.indices, Integers(*indices));
  FB_ASSIGN_OR_RETURN(matrix.starts, Integers(*Find(arrays, "indptr")));
  FB_RETURN_IF_ERROR(CheckMatrix(matrix));
  return matrix;
}

Status ReadMatrix(const std::vector<Array>& arrays, const OnRow& on_row) {
  FB_ASSIGN_OR_RETURN(const Matrix matrix, OpenMatrix(arrays));
  const uint64_t each = matrix.data->header.item_bytes;
  for (const Array& array : arrays) {
    if (!IsLabelOrNone(array, matrix.shape[0])) return Bad("it has not a label for each row");
  }
  for (uint64_t row = 0; row < matrix.shape[0]; ++row) {
    const auto begin = static_cast<uint64_t>(matrix.starts[row]);
    const auto end = static_cast<uint64_t>(matrix.starts[row + 1]);
    format::SparseOutput sparse{.keys = {}, .shape = {matrix.shape[1]}};
    const auto of_row = std::span(matrix.indices).subspan(begin, end - begin);
    sparse.keys.assign(of_row.begin(), of_row.end());
    PackRow out;
    out.features.push_back({{"values",
                             matrix.data->data.subspan(begin * each, (end - begin) * each),
                             matrix.data->header.dtype,
                             {}},
                            &sparse});
    FB_RETURN_IF_ERROR(TakeLabels(arrays, row, &out));
    FB_RETURN_IF_ERROR(on_row(std::move(out)));
  }
  return {};
}

}  // namespace

Status PackRows::ReadCsv(OutputField* field) {
  std::vector<std::string_view> cells;
  std::string scratch;
  FB_RETURN_IF_ERROR(format::SplitCsvLine(field->bytes, ',', '"', &cells, &scratch));
  std::vector<std::byte>& row = kept_.emplace_back();
  for (const std::string_view cell : cells) {
    FB_ASSIGN_OR_RETURN(const std::string number, NumberFromText(cell, "float32"));
    format::Append(&row, AsBytes(number));
  }
  field->bytes = row;
  field->dtype = "float32";
  field->shape = {static_cast<int64_t>(cells.size())};
  return {};
}

Status PackRows::TakeLabel(OutputField* field, PackRow* row) {
  const uint64_t each = format::BytesOfType(field->dtype);
  const auto column = static_cast<uint64_t>(options_.label_column);
  if (each == 0 || field->shape.size() > 1 || column >= field->bytes.size() / each) {
    return Bad(fmt::format("field '{}' is no row of numbers with a column {}", field->name,
                           options_.label_column));
  }
  const ByteView label = field->bytes.subspan(column * each, each);
  std::vector<std::byte>& rest = kept_.emplace_back();
  format::Append(&rest, field->bytes.first(column * each));
  format::Append(&rest, field->bytes.subspan((column + 1) * each));
  row->labels.push_back({{"label", label, field->dtype, {1}}});
  field->bytes = rest;
  field->shape = {static_cast<int64_t>(rest.size() / each)};
  return {};
}

Status PackRows::ReadLibsvm(ByteView line, PackRow* row) {
  if (options_.sparse_columns == 0) {
    return Bad("a sparse row needs to know how many features there are: --sparse-columns");
  }
  std::string_view text = AsText(line);
  text = text.substr(0, text.find('#'));
  sparse_ = {.keys = {}, .shape = {options_.sparse_columns}};
  std::vector<std::byte>& values = kept_.emplace_back();
  std::vector<std::byte>& label = kept_.emplace_back();
  constexpr std::string_view kBlank = " \t\r";
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
    if (text.empty()) break;
    const std::string_view word = text.substr(0, text.find_first_of(kBlank));
    text.remove_prefix(word.size());
    const size_t colon = word.find(':');
    if (label.empty() != (colon == std::string_view::npos)) {
      return Bad(fmt::format("'{}' in a line of LIBSVM: a label, then feature:value", word));
    }
    FB_ASSIGN_OR_RETURN(const std::string number,
                        NumberFromText(word.substr(colon + 1), "float32"));
    format::Append(label.empty() ? &label : &values, AsBytes(number));
    if (colon == std::string_view::npos) continue;
    FB_ASSIGN_OR_RETURN(const std::string feature, NumberFromText(word.substr(0, colon), "uint64"));
    const uint64_t key = format::Load<uint64_t>(AsBytes(feature)) - (options_.zero_based ? 0 : 1);
    if (key >= options_.sparse_columns || (!sparse_.keys.empty() && key <= sparse_.keys.back())) {
      return Bad(
          fmt::format("feature {} is not behind the one before, or not one of {} counted "
                      "from {}",
                      word.substr(0, colon), options_.sparse_columns, options_.zero_based ? 0 : 1));
    }
    sparse_.keys.push_back(key);
  }
  if (label.empty()) return Bad("a line of LIBSVM without a label");
  row->features.push_back({{"values", values, "float32", {}}, &sparse_});
  row->labels.push_back({{"values", label, "float32", {1}}});
  return {};
}

Status ReadNpy(OutputField* file) {
  FB_ASSIGN_OR_RETURN(const Array array, OpenArray(*file));
  if (format::BytesOfType(array.header.dtype) == 0) {
    return Bad(fmt::format("'{}' holds {}, no numbers", file->name, array.header.dtype));
  }
  file->bytes = array.data;
  file->dtype = format::KnownType(array.header.dtype);
  file->shape = {array.header.shape.begin(), array.header.shape.end()};
  return {};
}

Status ReadArrays(const std::vector<OutputField>& files, const OnRow& on_row) {
  std::vector<Array> arrays;
  for (const OutputField& file : files) {
    FB_ASSIGN_OR_RETURN(Array array, OpenArray(file));
    arrays.push_back(std::move(array));
  }
  if (Find(arrays, "indptr") != nullptr) return ReadMatrix(arrays, on_row);
  const uint64_t rows = arrays.empty() ? 0 : arrays[0].rows();
  for (const Array& array : arrays) {
    if (array.header.shape.empty() || array.rows() != rows ||
        format::BytesOfType(array.header.dtype) == 0) {
      return Bad(fmt::format("array '{}' is not of numbers with {} rows, as the others are",
                             array.name, rows));
    }
  }
  for (uint64_t row = 0; row < rows; ++row) {
    PackRow out;
    for (const Array& array : arrays) {
      if (!array.is_label) out.features.push_back({array.Row(row)});
    }
    FB_RETURN_IF_ERROR(TakeLabels(arrays, row, &out));
    FB_RETURN_IF_ERROR(on_row(std::move(out)));
  }
  return {};
}

}  // namespace forebay::engine
