#include "feed/table_pieces.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace forebay::feed {
namespace {
constexpr auto kWaitMost = std::chrono::seconds(60);
}  // namespace

uint64_t DecodedPiece::bytes() const {
  uint64_t bytes = sizeof(*this) + rows.capacity();
  for (const DecodedColumn& column : columns) bytes += sizeof(column) + column.values.bytes();
  return bytes;
}

namespace {

template <size_t width>
void PlaceFixed(const std::byte* from, uint64_t count, std::byte* to, uint32_t row_bytes) {
  for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * row_bytes, from + i * width, width);
}

void Place(const std::byte* from, uint64_t count, uint32_t width, std::byte* to,
           uint32_t row_bytes) {
  switch (width) {
    case 1:
      return PlaceFixed<1>(from, count, to, row_bytes);
    case 2:
      return PlaceFixed<2>(from, count, to, row_bytes);
    case 4:
      return PlaceFixed<4>(from, count, to, row_bytes);
    case 8:
      return PlaceFixed<8>(from, count, to, row_bytes);
    default:
      break;
  }
  for (uint64_t i = 0; i < count; ++i) std::memcpy(to + i * row_bytes, from + i * width, width);
}

}  // namespace

// The widest first, so that each lies at a multiple of its size.
void DecodedPiece::LayOutRows(uint64_t first, uint64_t count, std::span<const uint32_t> widths) {
  std::vector<size_t> order;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (widths[i] > 0) order.push_back(i);
  }
  std::ranges::sort(
      order, [&](size_t a, size_t b) { return std::pair(widths[b], a) < std::pair(widths[a], b); });
  first_row = first;
  for (const size_t i : order) {
    columns[i].in_row = row_bytes;
    row_bytes += widths[i];
  }
  rows.Reset(count * row_bytes);
  constexpr uint64_t kTile = 1024;  // rows that stay in the cache while all columns are placed
  for (uint64_t at = 0; at < count; at += kTile) {
    for (const size_t i : order) {
      const DecodedColumn& column = columns[i];
      const uint64_t row = first - column.first_row + at;
      Place(column.values.values.data() + row * widths[i], std::min(kTile, count - at), widths[i],
            rows.data() + at * row_bytes + column.in_row, row_bytes);
    }
  }
  for (const size_t i : order) columns[i].values.values = RawBytes();
}

void TablePieces::set_limit(uint64_t bytes) {
  const MutexLock lock(mutex_);
  limit_ = bytes;
  (void)MakeRoom(0);
}

uint64_t TablePieces::used_bytes() {
  const MutexLock lock(mutex_);
  return used_;
}

std::shared_ptr<const DecodedPiece> TablePieces::FindKept(uint64_t number) {
  const auto it = kept_.find(number);
  if (it == kept_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, it->second.place);
  return it->second.piece;
}

std::shared_ptr<const DecodedPiece> TablePieces::Find(uint64_t number) {
  const MutexLock lock(mutex_);
  return FindKept(number);
}

std::shared_ptr<TablePieces::Work> TablePieces::WorkOn(uint64_t number) {
  std::shared_ptr<Work>& work = works_[number];
  if (!work) {
    work = std::make_shared<Work>();
    work->piece = std::make_shared<DecodedPiece>();
    work->piece->columns.resize(columns_);
  }
  return work;
}

Result<std::shared_ptr<const DecodedPiece>> TablePieces::Get(uint64_t number,
                                                             const DecodeColumn& decode,
                                                             const Finish& finish) {
  const MutexLock lock(mutex_);
  if (auto kept = FindKept(number)) return kept;
  const std::shared_ptr<Work> work = WorkOn(number);
  while (work->next < parts_ && work->status.ok()) {
    const size_t part = work->next++;
    std::vector<DecodedColumn> decoded(columns_ / parts_);
    mutex_.unlock();
    Status status = decode(part, decoded);
    mutex_.lock();
    if (work->status.ok()) work->status = std::move(status);
    std::ranges::move(decoded, work->piece->columns.begin() + static_cast<std::ptrdiff_t>(part));
    ++work->done;
    if (work->done == parts_ && work->status.ok()) {
      if (finish) {
        work->piece->rows = std::exchange(spare_, {});
        mutex_.unlock();
        finish(work->piece.get());
        mutex_.lock();
      }
      work->finished = true;
      Keep(number, work->piece);
    }
    if (work->finished || !work->status.ok()) {
      // Whoever comes later begins anew, or finds it.
      if (const auto it = works_.find(number); it != works_.end() && it->second == work) {
        works_.erase(it);
      }
      changed_.notify_all();
    }
  }
  const auto deadline = std::chrono::steady_clock::now() + kWaitMost;
  while (!work->finished && work->status.ok()) {
    if (changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) {
      return Status(Code::kDeadlineExceeded, "columns are not decoded after a minute");
    }
  }
  if (!work->status.ok()) return work->status;
  return std::shared_ptr<const DecodedPiece>(work->piece);
}

void TablePieces::Keep(uint64_t number, const std::shared_ptr<DecodedPiece>& piece) {
  const uint64_t bytes = piece->bytes();
  if (bytes > limit_ && limit_ > 0 && !std::exchange(told_, true)) {
    Log(LogLevel::kWarn,
        fmt::format("a part of a table takes {} decoded, and {} are kept of all of them: it is "
                    "read and decoded again for every batch; more memory helps",
                    FormatSize(bytes), FormatSize(limit_)));
  }
  if (kept_.contains(number) || !MakeRoom(bytes)) return;
  by_use_.push_front(number);
  kept_[number] = {piece, bytes, by_use_.begin()};
  used_ += bytes;
}

// Of the pieces that nobody holds, those go that were used longest ago.
bool TablePieces::MakeRoom(uint64_t bytes) {
  if (bytes > limit_) return false;
  for (auto it = by_use_.end(); used_ + bytes > limit_ && it != by_use_.begin();) {
    --it;
    const auto kept = kept_.find(*it);
    if (kept->second.piece.use_count() > 1) continue;
    used_ -= kept->second.bytes;
    if (limit_ > 0) spare_ = std::move(kept->second.piece->rows);
    kept_.erase(kept);
    it = by_use_.erase(it);
  }
  return used_ + bytes <= limit_;
}

}  // namespace forebay::feed
