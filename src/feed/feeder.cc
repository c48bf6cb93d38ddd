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

// What has to be reserved for an item's raw bytes: not what other items hold already.
uint64_t Feeder::NewRawBytes(const plan::WorkItem& item) const {
  if (!dataset_.shares_extents()) return fetch::Fetcher::BytesFor(item.extents);
  uint64_t bytes = 0;
  for (const Extent& extent : item.extents) {
    if (!held_extents_.contains(extent)) bytes += WholeSlabs(extent.range.size());
  }
  return bytes;
}

// The reservation, NewRawBytes of the slot's item, has been made.
void Feeder::HoldRaw(Slot& slot) {
  if (!dataset_.shares_extents()) {
    slot.raw_bytes = fetch::Fetcher::BytesFor(slot.item.extents);
    return;
  }
  for (const Extent& extent : slot.item.extents) ++held_extents_[extent];
}

void Feeder::ReleaseRaw(Slot& slot) {
  budget_.Release(std::exchange(slot.raw_bytes, 0));
  if (!dataset_.shares_extents()) return;
  for (const Extent& extent : slot.item.extents) {
    const auto held = held_extents_.find(extent);
    if (--held->second > 0) continue;
    budget_.Release(WholeSlabs(extent.range.size()));
    held_extents_.erase(held);
  }
}

// Strictly in sequence order: granting whatever fits would starve the head.
bool Feeder::Grant(const plan::PlanItem& next) {
  if (SlotOf(next.sequence).state != State::kFree) return false;
  const uint64_t output = next.item.starts_group ? WholeSlabs(next.item.group_output_bytes) : 0;
  return budget_.TryReserve(NewRawBytes(next.item) + output);
}

void Feeder::Pump() {
  if (pumping_ || closing_) return;
  pumping_ = true;
  bool started = false;
  while (true) {
    const Result<const plan::PlanItem*> next = planner_.Peek(coordinator_.Now());
    FB_ASSERT(next.ok());  // the sampler turns failures into items
    if (*next == nullptr || !Grant(**next)) break;
    StartItem(planner_.Pop());
    started = true;
  }
  if (started && options_.keep_idle) {
    options_.keep_idle(budget_.limit() - std::min(budget_.limit(), budget_.used()));
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
    ready.rows = work.batch_rows;
    ready.samples.resize(work.batch_rows);
    ready.sources.resize(work.batch_rows);
    ready.pads.resize(work.batch_rows);
    ready.layout = work.layout;
    ready.block = outputs_->Take(std::max<uint64_t>(work.layout->bytes(), 1));
    if (dataset_.sizes_late()) {
      const auto ragged = std::ranges::count_if(dataset_.arrays(), &SampleArray::ragged);
      group.late = std::make_shared<LateRows>(ready.rows, static_cast<size_t>(ragged));
    }
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
  slot.item = std::move(planned.item);
  const uint64_t reserved = NewRawBytes(slot.item);
  if (dataset_.Shorten(&slot.work->plan)) {
    slot.item.extents = slot.work->plan.extents;
    budget_.Release(reserved);
    budget_.ForceReserve(NewRawBytes(slot.item));
  }
  HoldRaw(slot);
  const SampleRows& rows = slot.work->rows;
  for (size_t i = 0; !rows.stretch() && i < rows.size(); ++i) {  // no stretch has pads
    const SampleRow row = rows[i];
    slot.group->ready.pads[row.row] = row.pad;
  }
  const auto priority = static_cast<store::Priority>(planned.urgency);
  slot.demanded = priority == store::Priority::kDemand;
  Begin(slot, priority);
}

void Feeder::NoteSamples(const SampleRows& rows, ReadyGroup& ready) {
  if (const Stretch* stretch = rows.stretch(); stretch && rows.picked().empty()) {
    std::memcpy(ready.samples.data(), stretch->samples.data(),
                stretch->samples.size() * sizeof(uint64_t));
    return;
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const SampleRow row = rows[i];
    ready.samples[row.row] = static_cast<int64_t>(row.place.sample);
    ready.sources[row.row] = static_cast<int32_t>(row.place.source);
  }
}

// From a planned sample to its fetch; also for a substitute in the same slot.
void Feeder::Begin(Slot& slot, store::Priority priority) {
  const SampleWork& work = *slot.work;
  NoteSamples(work.rows, slot.group->ready);
  slot.asked = coordinator_.Now();
  slot.status = work.plan_status;
  slot.bad_row = work.plan_bad_row;
  slot.state = State::kFetching;
  slot.missing.clear();
  for (const DecodeUnit& unit : work.plan.units) slot.missing.push_back(unit.extent_count);
  slot.units_left = work.plan.units.size();
  if (!slot.status.ok()) {
    FinishIfOver(slot);
    return;
  }
  for (size_t unit = 0; unit < work.plan.units.size(); ++unit) {
    if (slot.missing[unit] == 0) StartUnit(slot, unit);
  }
  if (slot.item.extents.empty()) {
    OnFetched(slot);
    FinishIfOver(slot);
    return;
  }
  slot.in_fetcher = true;
  TakeStarted(slot, fetcher_->Start(slot.sequence, slot.item.extents, priority,
                                    coordinator_.Now() + options_.fetch_timeout));
}

// Some of it may be there already, where items share extents.
void Feeder::TakeStarted(Slot& slot, const fetch::Fetcher::Started& started) {
  slot.fetching = started.running;
  for (const size_t index : started.whole) OnExtent(slot.sequence, index);
  if (started.running) return;
  OnFetched(slot);
  FinishIfOver(slot);
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
  auto bad_row = std::make_shared<size_t>(0);
  auto job = [work = slot.work, unit, range, buffers = std::move(buffers), alive = alive_,
              targets = TargetsOf(slot, range), bad_row](SampleDecoder& decoder) -> Status {
    if (!*alive) return Status(Code::kCancelled, "dropped");
    const UnitBytes of_unit{
        std::span(work->plan.extents).subspan(range.first_extent, range.extent_count), buffers};
    return decoder.Decode(work->plan, unit, of_unit, targets.rows, bad_row.get());
  };
  decode_.Submit(slot.sequence, std::move(job),
                 [this, sequence = slot.sequence, first = range.first_row, bad_row](Status status,
                                                                                    Duration busy) {
                   OnDecoded(sequence, std::move(status), first + *bad_row, busy);
                 });
}

// Holds what the rows point into: the group may be dropped while the job runs.
Feeder::Targets Feeder::TargetsOf(const Slot& slot, const DecodeUnit& unit) const {
  const ReadyGroup& ready = slot.group->ready;
  Targets targets{{}, {ready.block, slot.work->layout, slot.group->late}};
  if (const Stretch* stretch = slot.work->rows.stretch()) {  // none of them is a substitute
    const std::span<const uint32_t> picked = slot.work->rows.picked();
    targets.rows = RowTargets(RowTargets::OfBatch{
        .common = {.identity = {.seed = sampler_.seed(), .epoch = stretch->epoch},
                   .block = ready.block.get(),
                   .layout = slot.work->layout.get(),
                   .late = slot.group->late.get()},
        .samples = stretch->samples,
        .rows = picked.empty() ? picked : picked.subspan(unit.first_row, unit.row_count),
        .first = unit.first_row,
        .count = unit.row_count});
    return targets;
  }
  std::vector<RowTarget> listed;
  listed.reserve(unit.row_count);
  for (size_t i = unit.first_row; i < unit.first_row + unit.row_count; ++i) {
    const SampleRow row = slot.work->rows[i];
    RowTarget target{.identity = {.seed = sampler_.seed(),
                                  .epoch = row.place.source_epoch,
                                  .sample = row.place.sample,
                                  .occurrence = row.pad ? 1U : 0U},
                     .late = slot.group->late.get()};
    const auto& asides = slot.group->aside;
    const auto aside = asides.empty() ? asides.end() : asides.find(row.row);
    if (aside == asides.end()) {
      target.block = ready.block.get();
      target.layout = slot.work->layout.get();
      target.row = row.row;
    } else {
      target.block = aside->second.block.get();
      target.layout = aside->second.layout.get();
      targets.keep.push_back(aside->second.block);
      targets.keep.push_back(aside->second.layout);
    }
    listed.push_back(target);
  }
  targets.rows = RowTargets(std::move(listed));
  return targets;
}

void Feeder::OnDecoded(uint64_t sequence, Status status, size_t row, Duration busy) {
  Slot& slot = SlotOf(sequence);
  FB_ASSERT(slot.sequence == sequence && slot.decoding > 0);
  --slot.decoding;
  stats_.decode_busy += busy;
  if (slot.group != nullptr) {
    slot.group->decode += busy;
    --slot.units_left;
    if (!status.ok()) FailSlot(slot, std::move(status), row);
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
    // What would end the run is looked at again when the consumer comes for it; what is replaced
    // is not: that would make it wait.
    const bool replaced = options_.skip_max > 0 && IsPermanent(status.code());
    if (replaced || slot.demanded || !slot.status.ok()) {
      FailSlot(slot, std::move(status), FirstRowWithout(slot));
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
  slot.demanded = true;
  slot.state = State::kFetching;
  TakeStarted(slot, fetcher_->Retry(slot.sequence, store::Priority::kDemand,
                                    coordinator_.Now() + options_.fetch_timeout));
}

// The first row some of whose bytes have not come.
size_t Feeder::FirstRowWithout(const Slot& slot) {
  const std::vector<DecodeUnit>& units = slot.work->plan.units;
  for (size_t unit = 0; unit < units.size(); ++unit) {
    if (slot.missing[unit] > 0) return units[unit].first_row;
  }
  return 0;
}

void Feeder::FailSlot(Slot& slot, Status status, size_t row) {
  if (slot.status.ok()) {
    const uint64_t sample = slot.work->rows[row].sample;
    slot.bad_row = row;
    slot.status = std::move(status).WithContext(
        fmt::format("sample {} ({})", sample, dataset_.DescribeSample(sample)));
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
  const SampleRow bad = slot.work->rows[slot.bad_row];
  const uint64_t sample = bad.sample;
  if (!IsBadSample(slot.status.code()) || bad.attempt >= kSubstitutesMax) return false;
  // The allowance is of different samples: one that is met again, in another epoch, is no news.
  if (!bad_samples_.contains(sample)) {
    if (static_cast<int64_t>(bad_samples_.size()) >= options_.skip_max) {
      if (options_.skip_max > 0) {
        slot.status =
            std::move(slot.status)
                .WithContext(fmt::format("{} samples have been replaced, as many as may be",
                                         bad_samples_.size()));
      }
      return false;
    }
    bad_samples_.insert(sample);
    Log(LogLevel::kWarn, fmt::format("replaced: {}", slot.status.ToString()));
  }
  ++stats_.substitutes;
  slot.group->ready.skipped.push_back(bad.position);
  slot.group->ready.replaced.push_back(sample);
  if (slot.in_fetcher) (void)fetcher_->Release(slot.sequence);
  slot.in_fetcher = false;
  const size_t row = slot.bad_row;
  plan::WorkItem item = sampler_.Substitute(*slot.work, row);
  // Its own reservation grows or shrinks. A larger one that does not fit waits for nobody: one
  // sample over the budget is bounded, and waiting here could starve the head.
  ReleaseRaw(slot);
  slot.work = std::static_pointer_cast<SampleWork>(item.work);
  slot.item.extents = std::move(item.extents);
  budget_.ForceReserve(NewRawBytes(slot.item));
  HoldRaw(slot);
  PlaceSubstitute(slot, row);
  slot.demanded = slot.group->number == planner_.head_group();
  Begin(slot, slot.demanded ? store::Priority::kDemand : store::Priority::kSoon);
  return true;
}

// Where samples differ in size, so may a substitute from what was planned for its row. It is then
// decoded aside; its memory is one sample over the budget, as its raw bytes may be.
void Feeder::PlaceSubstitute(Slot& slot, size_t of_work) {
  Group& group = *slot.group;
  const uint64_t row = slot.work->rows[of_work].row;
  if (const auto old = group.aside.find(row); old != group.aside.end()) {
    const uint64_t bytes = WholeSlabs(old->second.layout->bytes());
    budget_.Release(bytes);
    group.output_bytes -= bytes;
    group.aside.erase(old);
  }
  const size_t ragged_arrays = slot.work->plan.ragged_bytes.size() / slot.work->rows.size();
  const auto sizes =
      std::span(slot.work->plan.ragged_bytes).subspan(of_work * ragged_arrays, ragged_arrays);
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

// What decoding found is put together here, once for every byte: this thread's one copy of payload
// beside the memory tier's.
void Feeder::LayOutLate(Group& group) {
  const std::vector<SampleArray>& arrays = dataset_.arrays();
  ReadyGroup& ready = group.ready;
  const std::vector<uint64_t> sizes = group.late->Sizes();
  auto layout = std::make_shared<const BatchLayout>(arrays, ready.rows, sizes);
  const uint64_t bytes = WholeSlabs(layout->bytes());
  budget_.ForceReserve(bytes);
  auto block = outputs_->Take(std::max<uint64_t>(layout->bytes(), 1));
  for (size_t i = 0, ragged = 0; i < arrays.size(); ++i) {
    if (!arrays[i].ragged()) {
      std::memcpy(block.get() + layout->FirstOf(i), ready.block.get() + ready.layout->FirstOf(i),
                  layout->BytesOf(i));
      continue;
    }
    for (uint64_t row = 0; row < ready.rows; ++row) {
      const ByteView from = group.late->At(row, ragged);
      if (from.empty()) continue;
      std::memcpy(layout->RowOf(block.get(), i, row).data(), from.data(), from.size());
    }
    ++ragged;
  }
  ready.block = std::move(block);
  ready.layout = std::move(layout);
  group.late.reset();
  budget_.Release(group.output_bytes);
  group.output_bytes = bytes;
}

// The slot's raw bytes are over: they leave the budget, and delivered ones are offered to memory.
void Feeder::Free(Slot& slot, bool delivered) {
  if (slot.in_fetcher) {
    fetch::FetchedItem item = fetcher_->Release(slot.sequence);
    if (delivered) {
      const uint64_t used = slot.work->plan.used_bytes;
      stats_.bytes_used += used;
      for (const Extent& extent : item.extents) {
        stats_.bytes_used += used == 0 ? extent.range.size() : 0;
      }
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
  if (delivered) stats_.samples += slot.work->rows.size();
  ReleaseRaw(slot);
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
      if (group.late) LayOutLate(group);
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
