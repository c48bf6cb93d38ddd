#include "feed/table_cut.h"

#include <algorithm>
#include <utility>

namespace forebay::feed {
namespace {

using format::TableColumn;
using format::TableRead;

constexpr uint64_t kGapShare = 50;  // a gap is read through where it is less of what it joins

// Of rows at which a piece may begin, those at which one does: `rows_each` apart or more.
std::vector<uint64_t> Thin(const std::vector<uint64_t>& starts, uint64_t rows, uint64_t rows_each) {
  std::vector<uint64_t> chosen = {0};
  for (size_t i = 1; i < starts.size(); ++i) {
    // Before it would be too large, rather than after.
    const uint64_t next = i + 1 < starts.size() ? starts[i + 1] : rows;
    if (next - chosen.back() > rows_each) chosen.push_back(starts[i]);
  }
  return chosen;
}

// The rows at which pieces begin.
std::vector<uint64_t> Cuts(uint64_t rows, uint64_t decoded, const std::vector<TableColumn>& columns,
                           const TableCutOptions& options) {
  const bool known = std::ranges::none_of(
      columns, [](const TableColumn& column) { return column.layout.starts.empty(); });
  if (!known || decoded <= options.aligned_bytes) return {0};
  const auto each = [&](uint64_t bytes) { return std::max<uint64_t>(rows * bytes / decoded, 1); };
  std::vector<uint64_t> shared = columns[0].layout.starts;
  for (const TableColumn& column : columns) {
    std::vector<uint64_t> both;
    std::ranges::set_intersection(shared, column.layout.starts, std::back_inserter(both));
    shared = std::move(both);
  }
  std::vector<uint64_t> cuts = Thin(shared, rows, each(options.aligned_bytes));
  uint64_t largest = rows - cuts.back();
  for (size_t i = 1; i < cuts.size(); ++i) largest = std::max(largest, cuts[i] - cuts[i - 1]);
  if (largest <= each(options.unaligned_bytes)) return cuts;
  const auto most = std::ranges::max_element(
      columns, {}, [](const TableColumn& column) { return column.layout.stored_bytes(); });
  return Thin(most->layout.starts, rows, each(options.unaligned_bytes));
}

std::vector<Extent> ExtentsOf(uint32_t object, const std::vector<TableRead>& reads) {
  std::vector<ByteRange> ranges;
  for (const TableRead& read : reads) {
    ranges.insert(ranges.end(), read.ranges.begin(), read.ranges.end());
  }
  std::ranges::sort(ranges);
  std::vector<Extent> extents;
  for (const ByteRange& range : ranges) {
    if (!extents.empty()) {
      ByteRange& last = extents.back().range;
      const uint64_t gap = range.offset > last.end ? range.offset - last.end : 0;
      if (gap * kGapShare <= last.size() + range.size()) {
        last.end = std::max(last.end, range.end);
        continue;
      }
    }
    extents.push_back({object, range});
  }
  return extents;
}

}  // namespace

std::vector<TablePiece> CutTable(uint32_t group, uint32_t object, uint64_t rows,
                                 const std::vector<TableColumn>& columns,
                                 const TableCutOptions& options) {
  uint64_t decoded = 0;
  for (const TableColumn& column : columns) decoded += column.layout.DecodedBytes(rows);
  const std::vector<uint64_t> cuts = Cuts(rows, decoded, columns, options);
  std::vector<TablePiece> pieces;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const uint64_t end = i + 1 < cuts.size() ? cuts[i + 1] : rows;
    TablePiece piece{.group = group, .first_row = cuts[i], .rows = end - cuts[i]};
    for (const TableColumn& column : columns) {
      piece.reads.push_back(format::ReadOf(column, rows, cuts[i], end));
      // Multiplied as doubles: both may be large.
      piece.decoded_bytes += static_cast<uint64_t>(
          static_cast<double>(column.layout.DecodedBytes(rows)) *
          static_cast<double>(piece.reads.back().rows) / static_cast<double>(rows));
    }
    piece.extents = ExtentsOf(object, piece.reads);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace forebay::feed
