#include "feed/feeder.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/log.h"

namespace forebay::feed {
namespace {

// Asking again cannot help.
bool IsPermanent(Code code) {
  return code == Code::kNotFound || code == Code::kPermissionDenied ||
         code == Code::kPreconditionFailed || code == Code::kInvalidArgument ||
         code == Code::kUnimplemented;
}

// The sample itself is bad, rather than the way to it.
bool IsBadSample(Code code) {
  return code == Code::kDataLoss || code == Code::kNotFound || code == Code::kPreconditionFailed ||
         code == Code::kInvalidArgument || code == Code::kUnimplemented;
}

constexpr uint64_t kSubstitutesMax = 100;  // in a row, for one place
constexpr double kCostWindow = 64;         // parts over which the first byte is averaged

uint64_t WholeSlabs(uint64_t bytes) { return SlabsFor(bytes) * kSlabBytes; }

}  // namespace

Feeder::Feeder(const Dataset& dataset, Sampler& sampler, plan::Planner& planner, DecodePool& decode,
               std::shared_ptr<OutputPool> outputs, Executor& coordinator, const Options& options,
               OnGroup on_group)
    : dataset_(dataset),
      sampler_(sampler),
      planner_(planner),
      decode_(decode),
      outputs_(std::move(outputs)),
      coordinator_(coordinator),
      options_(options),
      on_group_(std::move(on_group)),
      budget_(options.memory_bytes),
      alive_(std::make_shared<std::atomic<bool>>(true)),
      ring_(options.capacity) {}

Feeder::~Feeder() { FB_ASSERT(slots_used_ == 0); }

void Feeder::Attach(fetch::Fetcher* fetcher, fetch::MemoryTier* memory) {
  fetcher_ = fetcher;
  memory_ = memory;
}

uint64_t Feeder::RawBytes(const plan::WorkItem& item) const {
  return fetch::Fetcher::BytesFor(item.extents);
}

// Strictly in sequence order: granting whatever fits would starve the head.
bool Feeder::Grant(const plan::PlanItem& next) {
  if (SlotOf(next.sequence).state != State::kFree) return false;
  const uint64_t output = next.item.starts_group ? WholeSlabs(next.item.group_output_bytes) : 0;
  return budget_.TryReserve(RawBytes(next.item) + output);
}

void Feeder::Pump() {
  if (pumping_ || closing_) return;
  pumping_ = true;
  while (true) {
    const Result<const plan::PlanItem*> next = planner_.Peek(coordinator_.Now());
    FB_ASSERT(next.ok());  // the sampler turns failures into items
    if (*next == nullptr || !Grant(**next)) break;
    StartItem(planner_.Pop());
  }
  pumping_ = false;
}

Feeder::Group& Feeder::GroupFor(const plan::PlanItem& planned, const SampleWork& work) {
  Group& group = groups_[planned.item.group];
  if (planned.item.starts_group) {
    group.number = planned.item.group;
    group.output_bytes = WholeSlabs(planned.item.group_output_bytes);
    ReadyGroup& ready = group.ready;
    ready.generation = generation_;
    ready.group = group.number;
    ready.epoch = work.epoch;
    ready.position = work.batch_position;
    ready.global_samples = work.batch_samples;
    ready.rows = work.rows;
    ready.samples.resize(work.rows);
    ready.sources.resize(work.rows);
    ready.pads.resize(work.rows);
    ready.layout = work.layout;
    ready.block = outputs_->Take(std::max<uint64_t>(planned.item.group_output_bytes, 1));
  }
  ++group.items;
  group.complete = planned.item.ends_group;
  group.sequences.push_back(planned.sequence);
  return group;
}

void Feeder::StartItem(plan::PlanItem planned) {
  Slot& slot = SlotOf(planned.sequence);
  FB_ASSERT(slot.state == State::kFree);
  ++slots_used_;
  slot.sequence = planned.sequence;
  slot.work = std::static_pointer_cast<SampleWork>(planned.item.work);
  slot.group = &GroupFor(planned, *slot.work);
  slot.raw_bytes = RawBytes(planned.item);
  slot.item = std::move(planned.item);
  slot.group->ready.pads[slot.work->row] = slot.work->pad;
  const auto priority = static_cast<store::Priority>(planned.urgency);
  slot.demanded = priority == store::Priority::kDemand;
  Begin(slot, priority);
}

// From a planned sample to its fetch; also for a substitute in the same slot.
void Feeder::Begin(Slot& slot, store::Priority priority) {
  const SampleWork& work = *slot.work;
  slot.group->ready.samples[work.row] = static_cast<int64_t>(work.place.sample);
  slot.group->ready.sources[work.row] = static_cast<int32_t>(work.place.source);
  slot.asked = coordinator_.Now();
  slot.status = work.plan_status;
  slot.state = State::kFetching;
  slot.missing.clear();
  for (const DecodeUnit& unit : work.plan.units) slot.missing.push_back(unit.extent_count);
  slot.units_left = work.plan.units.size();
  if (!slot.status.ok()) {
    FinishIfOver(slot);
    return;
  }
  if (!slot.item.extents.empty()) {
    slot.in_fetcher = slot.fetching = true;
    fetcher_->Start(slot.sequence, slot.item.extents, priority,
                    coordinator_.Now() + options_.fetch_timeout);
  } else {
    OnFetched(slot);
  }
  for (size_t unit = 0; unit < work.plan.units.size(); ++unit) {
    if (slot.missing[unit] == 0) StartUnit(slot, unit);
  }
  if (slot.item.extents.empty()) FinishIfOver(slot);
}

void Feeder::OnExtent(uint64_t tag, size_t index) {
  Slot& slot = SlotOf(tag);
  if (slot.group == nullptr || !slot.status.ok()) return;
  const std::vector<DecodeUnit>& units = slot.work->plan.units;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    if (index < units[unit].first_extent) continue;
    if (index >= units[unit].first_extent + units[unit].extent_count) continue;
    if (--slot.missing[unit] == 0) StartUnit(slot, unit);
  }
}

void Feeder::OnPart(uint64_t tag, const fetch::PieceReport& report, uint64_t bytes) {
  (void)bytes;
  Slot& slot = SlotOf(tag);
  if (slot.group == nullptr) {
    ++stats_.parts_wasted;
    return;
  }
  ++slot.parts;
  ++slot.group->parts;
  const bool late = planner_.head_waiting() && slot.group->number == planner_.head_group();
  ++(late ? stats_.parts_late : stats_.parts_useful);
  planner_.runway().OnPart(report.total, report.attempts > 1 || report.hedged);
  // What a gap between two ranges may cost follows the latency that a GET of its own would have.
  const double first_byte_s = std::chrono::duration<double>(report.first_byte).count();
  cost_.first_byte_s += (first_byte_s - cost_.first_byte_s) / kCostWindow;
  sampler_.set_gap_bytes(cost_.GapBytes());
}

void Feeder::StartUnit(Slot& slot, size_t unit) {
  const DecodeUnit& range = slot.work->plan.units[unit];
  std::vector<std::shared_ptr<SlabBuffer>> buffers;
  if (range.extent_count > 0) {
    const fetch::FetchedItem& item = fetcher_->item(slot.sequence);
    const auto first = item.buffers.begin() + static_cast<std::ptrdiff_t>(range.first_extent);
    buffers.assign(first, first + static_cast<std::ptrdiff_t>(range.extent_count));
  }
  ++slot.decoding;
  slot.state = State::kDecoding;
  const auto aside = slot.group->aside.find(slot.work->row);
  const bool apart = aside != slot.group->aside.end();
  auto job = [work = slot.work, unit, range, buffers = std::move(buffers), alive = alive_,
              block = apart ? aside->second.block : slot.group->ready.block,
              layout = apart ? aside->second.layout : slot.group->ready.layout,
              row = apart ? 0 : slot.work->row](SampleDecoder& decoder) -> Status {
    if (!*alive) return Status(Code::kCancelled, "dropped");
    std::vector<MutableBytes> arrays;
    for (size_t i = 0; i < layout->arrays(); ++i) {
      arrays.push_back(layout->RowOf(block.get(), i, row));
    }
    const UnitBytes of_unit{
        std::span(work->plan.extents).subspan(range.first_extent, range.extent_count), buffers};
    return decoder.Decode(work->plan, unit, of_unit, arrays);
  };
  decode_.Submit(slot.sequence, std::move(job),
                 [this, sequence = slot.sequence](Status status, Duration busy) {
                   OnDecoded(sequence, std::move(status), busy);
                 });
}

void Feeder::OnDecoded(uint64_t sequence, Status status, Duration busy) {
  Slot& slot = SlotOf(sequence);
  FB_ASSERT(slot.sequence == sequence && slot.decoding > 0);
  --slot.decoding;
  stats_.decode_busy += busy;
  if (slot.group != nullptr) {
    slot.group->decode += busy;
    --slot.units_left;
    if (!status.ok()) FailSlot(slot, std::move(status));
  }
  FinishIfOver(slot);
  Pump();
}

void Feeder::OnFetched(Slot& slot) {
  Group& group = *slot.group;
  ++group.items_fetched;
  group.fetch = std::max(group.fetch, coordinator_.Now() - slot.asked);
  if (!group.complete || group.items_fetched < group.items) return;
  if (group.parts > 0) {
    planner_.runway().OnGroupFetched(group.fetch, static_cast<int>(group.parts));
  }
  if (planner_.head_waiting() && group.number == planner_.head_group()) {
    head_fetched_at_ = coordinator_.Now();
  }
}

void Feeder::OnFetchDone(uint64_t tag, Status status) {
  Slot& slot = SlotOf(tag);
  slot.fetching = false;
  if (slot.group == nullptr) {
    FinishIfOver(slot);
    return;
  }
  if (status.ok()) {
    OnFetched(slot);
  } else {
    ++stats_.parts_failed;
    if (IsPermanent(status.code()) || slot.demanded || !slot.status.ok()) {
      FailSlot(slot, std::move(status));
    } else if (slot.group->number == planner_.head_group()) {
      RetryAtDemand(slot);
    } else {
      slot.state = State::kFetchFailed;  // asked for again when it is the head
    }
  }
  FinishIfOver(slot);
  Pump();
}

void Feeder::RetryAtDemand(Slot& slot) {
  ++stats_.demand_retries;
  slot.demanded = slot.fetching = true;
  slot.state = State::kFetching;
  fetcher_->Retry(slot.sequence, store::Priority::kDemand,
                  coordinator_.Now() + options_.fetch_timeout);
}

void Feeder::FailSlot(Slot& slot, Status status) {
  if (slot.status.ok()) {
    slot.status = std::move(status).WithContext(fmt::format(
        "sample {} ({})", slot.work->sample, dataset_.DescribeSample(slot.work->sample)));
  }
  if (slot.fetching) fetcher_->Cancel(slot.sequence);
}

void Feeder::FinishIfOver(Slot& slot) {
  if (slot.fetching || slot.decoding > 0) return;
  if (slot.group == nullptr) {
    Free(slot, false);
    CheckClosed();
    return;
  }
  if (slot.status.ok() && (slot.units_left > 0 || slot.state == State::kFetchFailed)) return;
  if (!slot.status.ok() && TrySubstitute(slot)) return;
  Group& group = *slot.group;
  if (!slot.status.ok() && group.ready.status.ok()) group.ready.status = slot.status;
  ++group.items_done;
  Free(slot, slot.status.ok());
  HandOnReadyGroups();
}

// A pure function names the substitute, so that ranks stay in step and a rewind repeats it.
bool Feeder::TrySubstitute(Slot& slot) {
  const uint64_t sample = slot.work->sample;
  if (!IsBadSample(slot.status.code()) || slot.work->attempt >= kSubstitutesMax) return false;
  // The allowance is of different samples: one that is met again, in another epoch, is no news.
  if (!bad_samples_.contains(sample)) {
    if (static_cast<int64_t>(bad_samples_.size()) >= options_.skip_max) return false;
    bad_samples_.insert(sample);
    Log(LogLevel::kWarn, fmt::format("replaced: {}", slot.status.ToString()));
  }
  ++stats_.substitutes;
  slot.group->ready.skipped.push_back(slot.work->position);
  slot.group->ready.replaced.push_back(sample);
  if (slot.in_fetcher) (void)fetcher_->Release(slot.sequence);
  slot.in_fetcher = false;
  plan::WorkItem item = sampler_.Substitute(*slot.work);
  const uint64_t raw = RawBytes(item);
  // Its own reservation grows or shrinks. A larger one that does not fit waits for nobody: one
  // sample over the budget is bounded, and waiting here could starve the head.
  budget_.Release(slot.raw_bytes);
  budget_.ForceReserve(raw);
  slot.raw_bytes = raw;
  slot.work = std::static_pointer_cast<SampleWork>(item.work);
  slot.item.extents = std::move(item.extents);
  PlaceSubstitute(slot);
  slot.demanded = slot.group->number == planner_.head_group();
  Begin(slot, slot.demanded ? store::Priority::kDemand : store::Priority::kSoon);
  return true;
}

// Where samples differ in size, so may a substitute from what was planned for its row. It is then
// decoded aside; its memory is one sample over the budget, as its raw bytes may be.
void Feeder::PlaceSubstitute(Slot& slot) {
  Group& group = *slot.group;
  const uint64_t row = slot.work->row;
  if (const auto old = group.aside.find(row); old != group.aside.end()) {
    const uint64_t bytes = WholeSlabs(old->second.layout->bytes());
    budget_.Release(bytes);
    group.output_bytes -= bytes;
    group.aside.erase(old);
  }
  const std::vector<uint64_t>& sizes = slot.work->plan.ragged_bytes;
  const BatchLayout& planned = *group.ready.layout;
  bool fits = true;
  for (size_t i = 0, ragged = 0; i < planned.arrays() && !sizes.empty(); ++i) {
    if (!dataset_.arrays()[i].ragged()) continue;
    const auto& offsets = planned.OffsetsOf(i);
    fits = fits && static_cast<uint64_t>(offsets[row + 1] - offsets[row]) == sizes[ragged];
    ++ragged;
  }
  if (fits) return;
  auto layout = std::make_shared<const BatchLayout>(dataset_.arrays(), 1, sizes);
  const uint64_t bytes = WholeSlabs(layout->bytes());
  budget_.ForceReserve(bytes);
  group.output_bytes += bytes;
  group.aside[row] = {outputs_->Take(std::max<uint64_t>(layout->bytes(), 1)), std::move(layout)};
}

// The one case in which this thread copies a batch: rare, and the rows would have to move anyway.
void Feeder::LayOutAnew(Group& group) {
  const std::vector<SampleArray>& arrays = dataset_.arrays();
  ReadyGroup& ready = group.ready;
  const auto from = [&](uint64_t row, size_t i) {
    const auto aside = group.aside.find(row);
    return aside == group.aside.end()
               ? ready.layout->RowOf(ready.block.get(), i, row)
               : aside->second.layout->RowOf(aside->second.block.get(), i, 0);
  };
  std::vector<uint64_t> sizes;
  for (uint64_t row = 0; row < ready.rows; ++row) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      if (arrays[i].ragged()) sizes.push_back(from(row, i).size());
    }
  }
  auto layout = std::make_shared<const BatchLayout>(arrays, ready.rows, sizes);
  const uint64_t bytes = WholeSlabs(layout->bytes());
  budget_.ForceReserve(bytes);
  auto block = outputs_->Take(std::max<uint64_t>(layout->bytes(), 1));
  for (uint64_t row = 0; row < ready.rows; ++row) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const MutableBytes source = from(row, i);
      if (source.empty()) continue;
      std::memcpy(layout->RowOf(block.get(), i, row).data(), source.data(), source.size());
    }
  }
  ready.block = std::move(block);
  ready.layout = std::move(layout);
  group.aside.clear();
  budget_.Release(group.output_bytes);
  group.output_bytes = bytes;
}

// The slot's raw bytes are over: they leave the budget, and delivered ones are offered to memory.
void Feeder::Free(Slot& slot, bool delivered) {
  if (slot.in_fetcher) {
    fetch::FetchedItem item = fetcher_->Release(slot.sequence);
    if (delivered) {
      for (const Extent& extent : item.extents) stats_.bytes_used += extent.range.size();
      if (memory_ != nullptr) {
        const uint64_t next_use = sampler_.NextUse(*slot.work);
        for (size_t i = 0; i < item.extents.size(); ++i) {
          memory_->Offer(item.extents[i], std::move(item.buffers[i]), next_use);
        }
      }
    } else if (slot.group != nullptr) {
      stats_.parts_wasted += slot.parts;
    }
  }
  if (delivered) ++stats_.samples;
  budget_.Release(slot.raw_bytes);
  --slots_used_;
  slot = Slot{};
}

void Feeder::HandOnReadyGroups() {
  while (!groups_.empty()) {
    const auto first = groups_.begin();
    Group& group = first->second;
    if (!group.complete || group.items_done < group.items) return;
    if (group.ready.status.ok()) {
      planner_.runway().OnGroupDecoded(group.decode);
      if (!group.aside.empty()) LayOutAnew(group);
    }
    handed_on_bytes_.push_back(group.output_bytes);
    ++stats_.groups;
    ReadyGroup ready = std::move(group.ready);
    groups_.erase(first);
    on_group_(std::move(ready));
  }
}

void Feeder::HeadWaiting(uint64_t generation) {
  if (generation != generation_ || closing_) return;
  if (planner_.HeadWaiting()) {
    head_waiting_since_ = coordinator_.Now();
    head_fetched_at_ = {};
  }
  DemandHead();
  Pump();
  CheckHeadLater();
}

void Feeder::DemandHead() {
  const auto head = groups_.find(planner_.head_group());
  if (head == groups_.end()) return;
  for (const uint64_t sequence : head->second.sequences) {
    Slot& slot = SlotOf(sequence);
    if (slot.sequence != sequence || slot.group != &head->second) continue;
    if (slot.state == State::kFetchFailed) {
      RetryAtDemand(slot);
    } else if (slot.fetching) {
      fetcher_->Promote(sequence);
    }
  }
}

void Feeder::CheckHeadLater() {
  if (head_timer_ != 0) return;
  head_timer_ = coordinator_.PostAt(coordinator_.Now() + options_.head_check, [this] {
    head_timer_ = 0;
    if (!planner_.head_waiting() || closing_) return;
    DemandHead();
    CheckHeadLater();
  });
}

void Feeder::Taken(uint64_t generation, Duration step, Duration wait) {
  if (generation != generation_ || closing_) return;
  FB_ASSERT(!handed_on_bytes_.empty());
  budget_.Release(handed_on_bytes_.front());
  handed_on_bytes_.pop_front();
  stats_.stall += wait;
  if (groups_taken_++ == 0) stats_.stall_first = wait;
  if (planner_.head_waiting() && head_fetched_at_ > head_waiting_since_) {
    stats_.stall_fetch += std::min(wait, head_fetched_at_ - head_waiting_since_);
  }
  planner_.OnTaken(coordinator_.Now(), step, wait);
  // The new head's failed prefetches are asked for again at once.
  const auto head = groups_.find(planner_.head_group());
  if (head != groups_.end()) {
    for (const uint64_t sequence : head->second.sequences) {
      Slot& slot = SlotOf(sequence);
      if (slot.group == &head->second && slot.state == State::kFetchFailed) RetryAtDemand(slot);
    }
  }
  Pump();
}

void Feeder::DropAll() {
  *alive_ = false;
  alive_ = std::make_shared<std::atomic<bool>>(true);
  for (auto& [number, group] : groups_) budget_.Release(group.output_bytes);
  for (const uint64_t bytes : handed_on_bytes_) budget_.Release(bytes);
  handed_on_bytes_.clear();
  for (Slot& slot : ring_) {
    if (slot.state == State::kFree || slot.group == nullptr) continue;
    stats_.parts_wasted += slot.parts;
    slot.group = nullptr;
    if (slot.fetching) fetcher_->Cancel(slot.sequence);
    FinishIfOver(slot);
  }
  groups_.clear();
}

void Feeder::Restart(uint64_t generation, uint64_t epoch, uint64_t position) {
  if (closing_) return;
  DropAll();
  generation_ = generation;
  sampler_.Seek(epoch, position);
  planner_.Restart();
  Pump();
}

void Feeder::Close(Task on_closed) {
  FB_ASSERT(!closing_);
  closing_ = true;
  if (head_timer_ != 0) coordinator_.CancelTimer(head_timer_);
  head_timer_ = 0;
  on_closed_ = std::move(on_closed);
  DropAll();
  CheckClosed();
}

void Feeder::CheckClosed() {
  if (closing_ && slots_used_ == 0 && on_closed_) std::exchange(on_closed_, nullptr)();
}

}  // namespace forebay::feed
