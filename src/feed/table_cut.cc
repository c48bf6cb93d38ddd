#include "feed/table_cut.h"

#include <algorithm>
#include <utility>

namespace forebay::feed {
namespace {

using format::TableLayout;
using format::TablePage;

constexpr uint64_t kGapShare = 50;  // a gap is read through where it is less of what it joins

std::vector<uint64_t> StartsOf(const TableLayout& column) {
  std::vector<uint64_t> starts;
  for (const TablePage& page : column.pages) starts.push_back(page.first_row);
  return starts;
}

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
std::vector<uint64_t> Cuts(uint64_t rows, uint64_t decoded, const std::vector<TableLayout>& columns,
                           const TableCutOptions& options) {
  const bool known =
      std::ranges::none_of(columns, [](const TableLayout& column) { return column.pages.empty(); });
  if (!known || decoded <= options.aligned_bytes) return {0};
  const auto each = [&](uint64_t bytes) { return std::max<uint64_t>(rows * bytes / decoded, 1); };
  std::vector<uint64_t> shared = StartsOf(columns[0]);
  for (const TableLayout& column : columns) {
    std::vector<uint64_t> both;
    std::ranges::set_intersection(shared, StartsOf(column), std::back_inserter(both));
    shared = std::move(both);
  }
  std::vector<uint64_t> cuts = Thin(shared, rows, each(options.aligned_bytes));
  uint64_t largest = rows - cuts.back();
  for (size_t i = 1; i < cuts.size(); ++i) largest = std::max(largest, cuts[i] - cuts[i - 1]);
  if (largest <= each(options.unaligned_bytes)) return cuts;
  const auto most = std::ranges::max_element(
      columns, {}, [](const TableLayout& column) { return column.stored_bytes(); });
  return Thin(StartsOf(*most), rows, each(options.unaligned_bytes));
}

TableRead ReadOf(const TableLayout& column, uint64_t rows, uint64_t first, uint64_t end) {
  const std::vector<TablePage>& pages = column.pages;
  if (pages.empty() || (first == 0 && end == rows)) return {column.ranges, 0, rows};
  const auto after = [&](uint64_t row) {  // the first page that begins behind this row
    return std::ranges::upper_bound(pages, row, {}, &TablePage::first_row);
  };
  const auto from = std::prev(after(first));
  const auto to = after(end - 1);
  TableRead read{.first_row = from->first_row};
  read.rows = (to == pages.end() ? rows : to->first_row) - from->first_row;
  const ByteRange dictionary{column.ranges.front().offset, pages.front().range.offset};
  const ByteRange wanted{from->range.offset, std::prev(to)->range.end};
  if (!dictionary.empty() && dictionary.end < wanted.offset) {
    read.ranges = {dictionary, wanted};
  } else {
    read.ranges = {{std::min(dictionary.offset, wanted.offset), wanted.end}};
    if (dictionary.empty()) read.ranges = {wanted};
  }
  return read;
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
                                 const std::vector<TableLayout>& columns,
                                 const TableCutOptions& options) {
  uint64_t decoded = 0;
  for (const TableLayout& column : columns) decoded += column.DecodedBytes(rows);
  const std::vector<uint64_t> cuts = Cuts(rows, decoded, columns, options);
  std::vector<TablePiece> pieces;
  for (size_t i = 0; i < cuts.size(); ++i) {
    const uint64_t end = i + 1 < cuts.size() ? cuts[i + 1] : rows;
    TablePiece piece{.group = group, .first_row = cuts[i], .rows = end - cuts[i]};
    for (const TableLayout& column : columns) {
      piece.reads.push_back(ReadOf(column, rows, cuts[i], end));
      // Multiplied as doubles: both may be large.
      piece.decoded_bytes += static_cast<uint64_t>(static_cast<double>(column.DecodedBytes(rows)) *
                                                   static_cast<double>(piece.reads.back().rows) /
                                                   static_cast<double>(rows));
    }
    piece.extents = ExtentsOf(object, piece.reads);
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace forebay::feed
