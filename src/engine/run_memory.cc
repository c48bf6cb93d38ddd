#include "engine/run_memory.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/slab_pool.h"

namespace forebay::engine {
namespace {

// Of the memory, what is kept of delivered extents for another use: one part in eight.
constexpr uint64_t kMemoryTierShare = 8;
// Pieces of shards that are in use beside those of a shuffle's windows.
constexpr uint64_t kOpenPieces = 4;
constexpr uint64_t kSpare = 8;

// Of a batch. A sample comes twice in one where an epoch ends in its middle (a tail that is padded,
// epochs that are cut elsewhere, mixtures): the rows are those of several epochs then, each with
// different samples, and by how sums of the largest grow, they take most when shared out evenly.
uint64_t LargestOutput(const LoaderOptions& options, const RunPlan& plan,
                       const std::vector<OpenedSource>& sources, const feed::Dataset& dataset) {
  const uint64_t rows = plan.slicing.batch_size;
  if (plan.external) return dataset.OutputBytesMax(1) * rows;  // whatever is supplied
  const bool whole = sources.size() == 1 && options.order.epoch_samples == 0 &&
                     options.order.tail != TailRule::kPad;
  const uint64_t epochs = whole ? 1 : 2 + rows / sources[0].dataset->sample_count();
  return dataset.OutputBytesMax((rows + epochs - 1) / epochs) * epochs;
}

// Pieces that a shuffle has open at a time.
uint64_t OpenPieces(const LoaderOptions& options, const RunPlan& plan) {
  if (options.order.shuffle != ShuffleKind::kBlocks) return kOpenPieces;
  const auto streams = static_cast<uint64_t>(options.order.blocks.streams);
  const uint64_t ranks = plan.slicing.world_size;
  return kOpenPieces +
         static_cast<uint64_t>(options.order.blocks.window) * ((streams + ranks - 1) / ranks);
}

// What is kept of tables, decoded. Of a shuffle that may come to any row next: all.
uint64_t DecodedBytes(const LoaderOptions& options, const RunPlan& plan,
                      const std::vector<OpenedSource>& sources) {
  const bool anywhere = options.order.shuffle == ShuffleKind::kGlobal || plan.external;
  const uint64_t most = options.memory_bytes / 2;
  uint64_t wanted = 0;
  for (const OpenedSource& source : sources) {
    if (source.tables == nullptr) continue;
    if (source.tables->decoded_is_guessed()) return most;  // pieces tell when they do not fit
    wanted += anywhere ? source.tables->decoded_bytes()
                       : source.tables->DecodedBytes(OpenPieces(options, plan));
  }
  wanted += wanted / kSpare;  // what is said of columns is said about
  if (wanted > most) {
    Log(LogLevel::kWarn,
        fmt::format(
            "the decoded columns that are in use at a time take {}, and memory={} leaves "
            "them {}: parts of tables are read and decoded more than once; {}, or more memory, "
            "helps",
            FormatSize(wanted), FormatSize(options.memory_bytes), FormatSize(most),
            anywhere ? "a shuffle of blocks" : "a smaller window of the shuffle"));
  }
  return std::min(wanted, most);
}

// What is kept of samples as the ops make them, for the next epoch: of all sources of records
// together, or nothing where not all of it would find room.
uint64_t PreparedBytes(const LoaderOptions& options, const RunPlan& plan,
                       const std::vector<OpenedSource>& sources) {
  if (options.epochs == 1 || plan.external) return 0;
  uint64_t wanted = 0;
  for (const OpenedSource& source : sources) {
    if (source.records != nullptr) wanted += source.records->prepared_bytes();
  }
  wanted += wanted / kSpare;
  return wanted <= options.memory_bytes / 2 ? wanted : 0;
}

// What is kept of delivered extents. Of those that serve many samples: all that are in use at a
// time, so that none is fetched twice.
uint64_t KeptBytes(const LoaderOptions& options, const RunPlan& plan,
                   const std::vector<OpenedSource>& sources, const feed::Dataset& dataset) {
  if (!dataset.shares_extents()) {
    return options.epochs == 1 ? 0 : options.memory_bytes / kMemoryTierShare;
  }
  const uint64_t open = OpenPieces(options, plan);
  uint64_t wanted = 0;
  for (const OpenedSource& source : sources) {
    if (source.records != nullptr) wanted += open * source.records->chunk_bytes();
  }
  const uint64_t most = options.memory_bytes / 2;
  if (wanted > most) {
    Log(LogLevel::kWarn,
        fmt::format("the pieces of shards that are in use at a time take {}, and memory={} leaves "
                    "them {}: some are fetched more than once; a smaller window of the shuffle, or "
                    "more memory, helps",
                    FormatSize(wanted), FormatSize(options.memory_bytes), FormatSize(most)));
  }
  return std::min(wanted, most);
}

}  // namespace

Result<RunMemory> PlanMemory(const LoaderOptions& options, const RunPlan& plan,
                             const std::vector<OpenedSource>& sources,
                             const feed::Dataset& dataset) {
  const uint64_t output = SlabsFor(LargestOutput(options, plan, sources, dataset)) * kSlabBytes;
  const uint64_t needed = output + dataset.raw_bytes_max();
  RunMemory memory{.pieces = OpenPieces(options, plan)};
  uint64_t prepared = PreparedBytes(options, plan, sources);
  if (options.memory_bytes - prepared < needed) prepared = 0;
  memory.kept = KeptBytes(options, plan, sources, dataset);
  // An extent is of no more use when what comes of it is kept, but for its neighbours at that time.
  if (prepared > 0 && !dataset.shares_extents()) memory.kept = 0;
  if (options.memory_bytes - prepared < memory.kept + needed) memory.kept = 0;
  uint64_t decoded = DecodedBytes(options, plan, sources);
  const uint64_t rest = options.memory_bytes - prepared - memory.kept;
  decoded = std::min(decoded, rest - std::min(needed, rest));
  const auto tables = static_cast<uint64_t>(std::ranges::count_if(
      sources, [](const OpenedSource& source) { return source.tables != nullptr; }));
  memory.decoded = decoded / std::max<uint64_t>(tables, 1);
  const auto records = static_cast<uint64_t>(std::ranges::count_if(
      sources, [](const OpenedSource& source) { return source.records != nullptr; }));
  memory.prepared = prepared / std::max<uint64_t>(records, 1);
  memory.in_work = rest - decoded;
  if (memory.in_work < needed) {
    return Status(Code::kInvalidArgument,
                  fmt::format("memory of {} is too little: the largest batch needs {} ({} bytes)",
                              FormatSize(options.memory_bytes), FormatSize(needed), needed));
  }
  return memory;
}

}  // namespace forebay::engine
