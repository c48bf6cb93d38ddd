#include "fetch/fetcher.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/assert.h"

namespace forebay::fetch {

// One item's fetch: a small state machine over the tiers. Tier `level_` works on `asked_`; what it
// lacks gathers in `missing_` for the next one. What another operation fetches is waited for.
class Fetcher::Operation : public TierSink {
 public:
  Operation(Fetcher& owner, uint64_t tag, const std::vector<Extent>& extents)
      : owner_(owner),
        tag_(tag),
        missing_bytes_(extents.size()),
        waits_(extents.size()),
        told_(extents.size()) {
    item_.extents = extents;
    item_.buffers.resize(extents.size());
    for (size_t i = 0; i < extents.size(); ++i) {
      if (owner.options_.share && JoinShared(i)) continue;
      item_.buffers[i] = std::make_shared<SlabBuffer>(owner.pool_->Take(extents[i].range.size()));
      missing_bytes_[i] = extents[i].range.size();
      PushPieces(i);
    }
  }

  Started Ask(Priority priority, Time deadline) {
    status_ = {};
    priority_ = priority;
    deadline_ = deadline;
    cancelled_ = false;
    level_ = 0;
    Claim();
    Started started;
    for (size_t i = 0; i < missing_bytes_.size(); ++i) {
      if (missing_bytes_[i] > 0 || told_[i]) continue;
      told_[i] = true;
      started.whole.push_back(i);
    }
    started.running = !missing_.empty() || waiting_ > 0;
    if (!started.running) return started;
    running_ = true;
    ++owner_.running_;
    if (!missing_.empty()) AskTier();
    return started;
  }

  void Promote() {
    priority_ = Priority::kDemand;
    if (ticket_ != 0) owner_.tiers_[level_]->Promote(ticket_);
    for (size_t i = 0; i < waits_.size() && waiting_ > 0; ++i) {
      if (!waits_[i]) continue;
      const auto shared = owner_.shared_.find(item_.extents[i]);
      if (shared == owner_.shared_.end() || shared->second.fetching == 0) continue;
      owner_.Promote(shared->second.fetching - 1);
    }
  }

  // What it only waits for ends when that does.
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
    if (missing_bytes_[index] > 0) return;
    told_[index] = true;
    owner_.sink_->OnExtent(tag_, index);
    Tell(index, {});
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
    // Whoever waits for what did not come has to see to it.
    const std::set<size_t> left(missing_owner_.begin(), missing_owner_.end());
    for (const size_t i : left) Tell(i, status_);
    EndIfOver();
  }

  // What it waited for is there, or failed. May destroy this.
  void OnShared(size_t index, const Status& status) {
    if (!waits_[index]) return;
    waits_[index] = false;
    --waiting_;
    if (status.ok()) {
      missing_bytes_[index] = 0;
      told_[index] = true;
      owner_.sink_->OnExtent(tag_, index);
    } else {
      unclaimed_.push_back(index);
      if (status_.ok()) status_ = status;
    }
    EndIfOver();
  }

  bool running() const { return running_; }
  FetchedItem& item() { return item_; }

 private:
  // Whether somebody has it or fetches it.
  bool JoinShared(size_t i) {
    const auto it = owner_.shared_.find(item_.extents[i]);
    if (it == owner_.shared_.end()) return false;
    Shared& shared = it->second;
    item_.buffers[i] = shared.buffer.lock();
    if (!item_.buffers[i] || (!shared.whole && shared.fetching == 0)) return false;
    if (shared.whole) {
      owner_.stats_.bytes_from_memory += item_.extents[i].range.size();
      return true;
    }
    missing_bytes_[i] = item_.extents[i].range.size();
    Wait(i, shared);
    return true;
  }

  void Wait(size_t i, Shared& shared) {
    shared.waiting.emplace_back(tag_, i);
    waits_[i] = true;
    ++waiting_;
  }

  // Whoever fetches a shared extent says so; what somebody else has or fetches is not asked for.
  void Claim() {
    if (!owner_.options_.share) return;
    const std::set<size_t> failed(unclaimed_.begin(), unclaimed_.end());
    std::set<size_t> open(missing_owner_.begin(), missing_owner_.end());
    open.insert(failed.begin(), failed.end());
    unclaimed_.clear();
    for (const size_t i : open) {
      Shared& shared = owner_.shared_[item_.extents[i]];
      const bool same = shared.buffer.lock() == item_.buffers[i];
      const bool others = shared.fetching != 0 && shared.fetching != tag_ + 1;
      if (same && (shared.whole || others)) {
        DropPieces(i);
        missing_bytes_[i] = shared.whole ? 0 : item_.extents[i].range.size();
        if (!shared.whole) Wait(i, shared);
        continue;
      }
      if (failed.contains(i)) {
        missing_bytes_[i] = item_.extents[i].range.size();
        PushPieces(i);
      }
      if (others) continue;  // into another buffer: this one is fetched for itself
      shared.buffer = item_.buffers[i];
      shared.whole = false;
      shared.fetching = tag_ + 1;
    }
  }

  void DropPieces(size_t i) {
    std::vector<Piece> kept;
    std::vector<size_t> kept_owner;
    for (size_t k = 0; k < missing_.size(); ++k) {
      if (missing_owner_[k] == i) continue;
      kept.push_back(std::move(missing_[k]));
      kept_owner.push_back(missing_owner_[k]);
    }
    missing_ = std::move(kept);
    missing_owner_ = std::move(kept_owner);
  }

  // Of an extent that is this operation's to fetch.
  void Tell(size_t i, const Status& status) {
    if (!owner_.options_.share) return;
    const auto shared = owner_.shared_.find(item_.extents[i]);
    if (shared == owner_.shared_.end() || shared->second.fetching != tag_ + 1) return;
    owner_.TellWaiting(shared->second, status);
  }

  void EndIfOver() {
    if (!running_ || ticket_ != 0 || waiting_ > 0) return;
    if (GivenUpByOthers() && AskAgain()) return;
    running_ = false;
    --owner_.running_;
    owner_.sink_->OnFetchDone(tag_, status_);  // may destroy this
  }

  // Who fetched what this one waited for was cancelled, for a reason of its own: that is no
  // failure.
  bool GivenUpByOthers() const {
    return status_.code() == Code::kCancelled && !cancelled_ && !unclaimed_.empty();
  }

  // False: everything is there by now.
  bool AskAgain() {
    status_ = {};
    level_ = 0;
    Claim();
    for (size_t i = 0; i < missing_bytes_.size(); ++i) {
      if (missing_bytes_[i] > 0 || told_[i]) continue;
      told_[i] = true;
      owner_.sink_->OnExtent(tag_, i);
    }
    if (!missing_.empty()) AskTier();
    return ticket_ != 0 || waiting_ > 0;
  }

  void PushPieces(size_t index) {
    const Extent& extent = item_.extents[index];
    SlabBuffer& buffer = *item_.buffers[index];
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
  std::vector<bool> waits_;              // per extent: another operation fetches it
  size_t waiting_ = 0;                   // of those
  std::vector<bool> told_;               // per extent: it is whole, and the sink knows
  std::vector<size_t> unclaimed_;        // extents that another operation failed to fetch
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

Fetcher::Started Fetcher::Start(uint64_t tag, const std::vector<Extent>& extents, Priority priority,
                                Time deadline) {
  auto [it, inserted] = operations_.emplace(tag, std::make_unique<Operation>(*this, tag, extents));
  FB_ASSERT(inserted);
  return it->second->Ask(priority, deadline);
}

Fetcher::Started Fetcher::Retry(uint64_t tag, Priority priority, Time deadline) {
  FB_ASSERT(!Find(tag)->running());
  return Find(tag)->Ask(priority, deadline);
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
  if (options_.share) Forget();
  return item;
}

// It is whole, or its fetch is over with this error.
void Fetcher::TellWaiting(Shared& shared, const Status& status) {
  shared.whole = status.ok();
  shared.fetching = 0;
  for (const auto& [tag, index] : std::exchange(shared.waiting, {})) {
    const auto operation = operations_.find(tag);
    if (operation != operations_.end()) operation->second->OnShared(index, status);
  }
}

// Where nobody holds an extent's buffer there is nothing to share. Buffers outlive their items
// where a tier keeps them, so now and then all are looked at.
void Fetcher::Forget() {
  if (shared_.size() < purge_at_) return;
  std::erase_if(shared_, [](const auto& entry) {
    return entry.second.buffer.expired() && entry.second.fetching == 0;
  });
  purge_at_ = std::max<size_t>(1024, 2 * shared_.size());
}

uint64_t CoalesceCost::GapBytes() const {
  return static_cast<uint64_t>((first_byte_s * ttfb_share + request_cpu_s) *
                               connection_bytes_per_s);
}

}  // namespace forebay::fetch
