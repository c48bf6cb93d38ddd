#include "fetch/fetcher.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace forebay::fetch {

// One item's fetch: a small state machine over the tiers. Tier `level_` works on `asked_`; what it
// lacks gathers in `missing_` for the next one.
class Fetcher::Operation : public TierSink {
 public:
  Operation(Fetcher& owner, uint64_t tag, const std::vector<Extent>& extents)
      : owner_(owner), tag_(tag) {
    item_.extents = extents;
    for (const Extent& extent : extents) {
      item_.buffers.push_back(std::make_shared<SlabBuffer>(owner.pool_->Take(extent.range.size())));
      missing_bytes_.push_back(extent.range.size());
      PushPieces(item_.buffers.size() - 1, extent, *item_.buffers.back());
    }
  }

  void Ask(Priority priority, Time deadline) {
    status_ = {};
    priority_ = priority;
    deadline_ = deadline;
    cancelled_ = false;
    level_ = 0;
    running_ = true;
    ++owner_.running_;
    AskTier();
  }

  void Promote() {
    priority_ = Priority::kDemand;
    if (ticket_ != 0) owner_.tiers_[level_]->Promote(ticket_);
  }

  void Cancel() {
    cancelled_ = true;
    if (ticket_ != 0) owner_.tiers_[level_]->Cancel(ticket_);
  }

  void OnBytes(size_t piece, const Extent& extent, const PieceReport& report) override {
    const bool last_tier = level_ + 1 == owner_.tiers_.size();
    const uint64_t bytes = extent.range.size();
    if (last_tier) {
      owner_.stats_.bytes_fetched += bytes;
      owner_.stats_.hedged += report.hedged ? 1 : 0;
      owner_.sink_->OnPart(tag_, report, bytes);
    } else {
      owner_.stats_.bytes_from_memory += bytes;
    }
    const size_t index = asked_owner_[piece];
    FB_ASSERT(missing_bytes_[index] >= bytes);
    missing_bytes_[index] -= bytes;
    if (missing_bytes_[index] == 0) owner_.sink_->OnExtent(tag_, index);
  }

  void OnMissing(size_t piece, Piece rest) override {
    missing_owner_.push_back(asked_owner_[piece]);
    missing_.push_back(std::move(rest));
  }

  void OnFailed(size_t piece, Status status) override {
    ++owner_.stats_.failed;
    if (status_.ok()) status_ = std::move(status);
    // Kept, so that a retry asks for exactly this.
    failed_owner_.push_back(asked_owner_[piece]);
    failed_.push_back(std::move(asked_[piece]));
  }

  void OnTierDone() override {
    ticket_ = 0;
    if (!missing_.empty() && !cancelled_) {
      ++level_;
      FB_ASSERT(level_ < owner_.tiers_.size());
      AskTier();
      return;
    }
    if (status_.ok() && !missing_.empty()) status_ = Status(Code::kCancelled, "fetch cancelled");
    std::move(failed_.begin(), failed_.end(), std::back_inserter(missing_));
    missing_owner_.insert(missing_owner_.end(), failed_owner_.begin(), failed_owner_.end());
    failed_.clear();
    failed_owner_.clear();
    running_ = false;
    --owner_.running_;
    owner_.sink_->OnFetchDone(tag_, status_);  // may destroy this
  }

  bool running() const { return running_; }
  FetchedItem& item() { return item_; }

 private:
  void PushPieces(size_t index, const Extent& extent, SlabBuffer& buffer) {
    uint64_t at = extent.range.offset;
    while (at < extent.range.end) {
      const uint64_t end = std::min(extent.range.end, at + owner_.options_.part_bytes_max);
      missing_.push_back(
          {{extent.object, {at, end}}, buffer.Pieces(at - extent.range.offset, end - at)});
      missing_owner_.push_back(index);
      at = end;
    }
  }

  void AskTier() {
    const bool last_tier = level_ + 1 == owner_.tiers_.size();
    asked_ = std::exchange(missing_, {});
    asked_owner_ = std::exchange(missing_owner_, {});
    if (last_tier) owner_.stats_.gets += asked_.size();
    ticket_ = owner_.tiers_[level_]->StartRead(asked_, priority_, deadline_, this);
  }

  Fetcher& owner_;
  uint64_t tag_;
  FetchedItem item_;
  std::vector<uint64_t> missing_bytes_;  // per extent
  std::vector<Piece> asked_;             // of the tier that works now
  std::vector<size_t> asked_owner_;      // the extent each belongs to
  std::vector<Piece> missing_;
  std::vector<size_t> missing_owner_;
  std::vector<Piece> failed_;
  std::vector<size_t> failed_owner_;
  size_t level_ = 0;
  Tier::Ticket ticket_ = 0;
  Priority priority_ = Priority::kFar;
  Time deadline_ = kNever;
  Status status_;
  bool cancelled_ = false;
  bool running_ = false;
};

Fetcher::Fetcher(std::shared_ptr<SlabPool> pool, std::vector<Tier*> tiers, FetchSink* sink,
                 Options options)
    : pool_(std::move(pool)), tiers_(std::move(tiers)), sink_(sink), options_(options) {
  FB_ASSERT(!tiers_.empty());
}

Fetcher::~Fetcher() { FB_ASSERT(running_ == 0); }

uint64_t Fetcher::BytesFor(const std::vector<Extent>& extents) {
  uint64_t bytes = 0;
  for (const Extent& extent : extents) bytes += SlabsFor(extent.range.size()) * kSlabBytes;
  return bytes;
}

std::unique_ptr<Fetcher::Operation>& Fetcher::Find(uint64_t tag) {
  const auto it = operations_.find(tag);
  FB_ASSERT(it != operations_.end());
  return it->second;
}

void Fetcher::Start(uint64_t tag, const std::vector<Extent>& extents, Priority priority,
                    Time deadline) {
  auto [it, inserted] = operations_.emplace(tag, std::make_unique<Operation>(*this, tag, extents));
  FB_ASSERT(inserted);
  it->second->Ask(priority, deadline);
}

void Fetcher::Retry(uint64_t tag, Priority priority, Time deadline) {
  FB_ASSERT(!Find(tag)->running());
  Find(tag)->Ask(priority, deadline);
}

void Fetcher::Promote(uint64_t tag) { Find(tag)->Promote(); }
void Fetcher::Cancel(uint64_t tag) { Find(tag)->Cancel(); }
const FetchedItem& Fetcher::item(uint64_t tag) const {
  return const_cast<Fetcher*>(this)->Find(tag)->item();
}

FetchedItem Fetcher::Release(uint64_t tag) {
  FB_ASSERT(!Find(tag)->running());
  FetchedItem item = std::move(Find(tag)->item());
  operations_.erase(tag);
  return item;
}

uint64_t CoalesceCost::GapBytes() const {
  return static_cast<uint64_t>((first_byte_s * ttfb_share + request_cpu_s) *
                               connection_bytes_per_s);
}

}  // namespace forebay::fetch
