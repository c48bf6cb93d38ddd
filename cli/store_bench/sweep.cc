#include "sweep.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <random>
#include <utility>

#include "output.h"
#include "signals.h"
#include "size.h"

namespace forebay::cli {
namespace {

constexpr auto kSlower = std::chrono::seconds(180);  // than the fastest, one rank may measure

// Measured where only one of the two was asked for.
const std::vector<uint64_t> kGetRanges = {4096, 65'536, 1ULL << 20, 8ULL << 20};
const std::vector<uint32_t> kGetDepths = {8, 32, 128};
const std::vector<uint64_t> kPutRanges = {65'536, 1ULL << 20, 8ULL << 20};
const std::vector<uint32_t> kPutDepths = {8, 32};
// The smallest range shows latencies, not rates.
constexpr Shape kSmall[] = {{4096, 8}, {4096, 32}, {4096, 128}};
constexpr size_t kFurtherCells = 12;
constexpr int kFurtherLooks = 3;         // at each of the best
constexpr size_t kConfirmingCells = 12;  // what that comes to
constexpr Shape kTypicalFurther{1ULL << 20, 64};
constexpr double kCellSeconds = 2.5;
constexpr uint64_t kCellBytes = 4ULL << 30;
constexpr uint64_t kCellPutBytes = 256ULL << 20;
constexpr uint64_t kCellRequestsMax = 65'536;

// One target a bucket, one for all files.
std::vector<std::vector<std::string>> Groups(const std::vector<std::string>& uris) {
  constexpr std::string_view kS3 = "s3://";
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const std::string& uri : uris) {
    const std::string root =
        uri.starts_with(kS3) ? uri.substr(0, uri.find('/', kS3.size())) : "file";
    auto found = std::ranges::find_if(groups, [&](const auto& g) { return g.first == root; });
    if (found == groups.end()) found = groups.insert(groups.end(), {root, {}});
    found->second.push_back(uri);
  }
  std::vector<std::vector<std::string>> out;
  for (auto& [root, members] : groups) out.push_back(std::move(members));
  return out;
}

}  // namespace

Status Sweep::Meet() {
  seed_ = options_.seed;
  if (seed_ == 0) seed_ = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  if (options_.nodes.empty()) return {};
  FB_ASSIGN_OR_RETURN(place_, FindRank());
  FB_ASSIGN_OR_RETURN(meeting_store_, Store::Open(context_.globals.store));
  meeting_ = std::make_unique<Meeting>(
      *meeting_store_, options_.nodes, place_, [] { return !Interrupted(); },
      [this](const std::string& who) { context_.Note(who); });
  FB_RETURN_IF_ERROR(meeting_->Begin());
  // All read from one draw of places: the first rank's.
  FB_ASSIGN_OR_RETURN(const std::vector<std::string> seeds,
                      meeting_->Gather(fmt::format("{}", seed_), options_.wait));
  seed_ = std::strtoull(seeds[0].c_str(), nullptr, 10);
  return {};
}

Status Sweep::Open(const std::vector<std::string>& uris) {
  const BenchOptions options{.seed = seed_,
                             .share = place_.rank,
                             .shares = place_.world,
                             .buffer_bytes = options_.buffer_bytes};
  for (const std::vector<std::string>& group : Groups(uris)) {
    FB_ASSIGN_OR_RETURN(auto bench,
                        StoreBench::Open(group, options_.put, context_.globals.store, options));
    targets_.push_back({.root = bench->root(),
                        .direct = bench->direct(),
                        .objects = bench->objects(),
                        .bytes = bench->bytes()});
    opened_.push_back({std::move(bench), targets_.size() - 1});
  }
  return {};
}

std::vector<Shape> Sweep::Asked() const {
  const auto& ranges = !options_.ranges.empty() ? options_.ranges
                       : options_.put           ? kPutRanges
                                                : kGetRanges;
  const auto& depths = !options_.depths.empty() ? options_.depths
                       : options_.put           ? kPutDepths
                                                : kGetDepths;
  std::vector<Shape> shapes;
  for (const uint64_t range : ranges) {
    for (const uint32_t depth : depths) shapes.push_back({range, depth});
  }
  // The largest first: what small reads leave of the data is in small pieces.
  std::ranges::stable_sort(shapes, std::greater<>(), &Shape::range_bytes);
  return shapes;
}

// Before anything is measured: what was asked for by number must fit.
Status Sweep::CheckRoom(const std::vector<Shape>& shapes) const {
  if (options_.requests == 0 || options_.put) return {};
  for (const SweepTarget& target : targets_) {
    uint64_t bytes = 0;
    for (const Shape& shape : shapes) bytes += shape.range_bytes * options_.requests * place_.world;
    if (bytes <= target.bytes) continue;
    return Status(
        Code::kResourceExhausted,
        fmt::format(
            "{} requests of {} cells and {} ranks are {}, more than the {} below {}: places "
            "would be read twice; --requests {} would fit",
            options_.requests, shapes.size(), place_.world, HumanSize(bytes),
            HumanSize(target.bytes), target.root,
            options_.requests * target.bytes / std::max<uint64_t>(bytes, 1)));
  }
  return {};
}

uint64_t Sweep::WantedFor(const Shape& shape) const {
  if (options_.put) {
    return std::clamp<uint64_t>(kCellPutBytes / shape.range_bytes, 4ULL * shape.in_flight, 1024);
  }
  return std::clamp<uint64_t>(kCellBytes / shape.range_bytes, 8ULL * shape.in_flight,
                              kCellRequestsMax);
}

uint64_t Sweep::RequestsFor(const Opened& opened, const Shape& shape,
                            std::span<const Shape> later) const {
  if (options_.requests > 0) {
    const uint64_t room = opened.bench->Room(shape.range_bytes) / place_.world;
    return options_.put || options_.requests <= room ? options_.requests : 0;
  }
  const uint64_t wanted = WantedFor(shape);
  if (options_.put) return wanted;
  // All cells still to come shrink alike when the data is too small for what they want.
  double bytes = static_cast<double>(wanted * shape.range_bytes);
  for (const Shape& one : later) bytes += static_cast<double>(WantedFor(one) * one.range_bytes);
  const uint64_t room = opened.bench->Room(shape.range_bytes) / place_.world;
  const double there = static_cast<double>(room * shape.range_bytes);
  const auto share =
      static_cast<uint64_t>(static_cast<double>(wanted) * std::min(1.0, there / bytes));
  const uint64_t least = 2ULL * shape.in_flight;
  return room < least ? 0 : std::max(share, least);
}

Result<BenchRun> Sweep::RunTogether(StoreBench& bench, const BenchCell& cell) {
  Progress progress(context_, fmt::format("{} x {}", ShortSize(cell.range_bytes), cell.in_flight));
  const auto on_progress = [&](const BenchProgress& now) {
    progress.Update(now.requests_done, cell.requests, false);
    return !Interrupted();
  };
  if (!meeting_) return bench.Run(cell, on_progress);
  FB_RETURN_IF_ERROR(meeting_->Gather("ready", options_.wait).status());
  Result<BenchRun> run = bench.Run(cell, on_progress);
  if (run.code() == Code::kCancelled) return run;
  const std::string mine = run.ok() ? FormatRun(*run) : "error " + run.status().ToString();
  FB_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      meeting_->Gather(mine, options_.wait + kSlower));
  std::vector<BenchRun> runs;
  for (uint32_t rank = 0; rank < place_.world; ++rank) {
    if (all[rank].starts_with("error ")) {
      return Status(Code::kUnavailable, fmt::format("rank {}: {}", rank, all[rank].substr(6)));
    }
    FB_ASSIGN_OR_RETURN(BenchRun one, ParseRun(all[rank]));
    runs.push_back(std::move(one));
  }
  BenchRun sum = AddRuns(runs);
  if (run.ok()) sum.failures = run->failures;
  return sum;
}

Status Sweep::Measure(Opened& opened, const Shape& shape, std::span<const Shape> later) {
  SweepTarget& target = targets_[opened.target];
  const auto leave_out = [&](std::string_view why) {
    target.notes.push_back(
        fmt::format("{} x {}: {}", ShortSize(shape.range_bytes), shape.in_flight, why));
  };
  if (!options_.put && shape.range_bytes > options_.buffer_bytes / shape.in_flight) {
    leave_out(fmt::format("more than {} of buffers; --memory gives more",
                          ShortSize(options_.buffer_bytes)));
    return {};
  }
  const uint64_t requests = RequestsFor(opened, shape, later);
  if (requests == 0) {
    const uint64_t room = opened.bench->Room(shape.range_bytes) / place_.world;
    leave_out(fmt::format("too little data to read no place twice: {} requests would fit{}", room,
                          room > 0 ? fmt::format(", --requests {} asks for them", room) : ""));
    return {};
  }
  const bool limited = options_.seconds > 0 || options_.requests > 0;
  const BenchCell cell{.put = options_.put,
                       .range_bytes = shape.range_bytes,
                       .in_flight = shape.in_flight,
                       .requests = requests,
                       .seconds = limited ? options_.seconds : kCellSeconds};
  FB_ASSIGN_OR_RETURN(BenchRun run, RunTogether(*opened.bench, cell));
  CellResult result{.target = target.root,
                    .op = options_.put ? "put" : "get",
                    .direct = target.direct,
                    .ranks = place_.world,
                    .cell = cell,
                    .run = std::move(run)};
  Summary summary = Summarize(result);
  if (on_cell_) on_cell_(result, summary);
  target.cells.push_back(std::move(result));
  target.summaries.push_back(std::move(summary));
  return {};
}

Status Sweep::MeasureEach(std::span<const Shape> shapes, std::span<const Shape> later) {
  std::vector<Shape> all(shapes.begin(), shapes.end());
  all.insert(all.end(), later.begin(), later.end());
  for (size_t i = 0; i < shapes.size(); ++i) {
    for (Opened& opened : opened_) {
      FB_RETURN_IF_ERROR(Measure(opened, shapes[i], std::span(all).subspan(i + 1)));
    }
  }
  return {};
}

Status Sweep::GoOn(Opened& opened, std::span<const Shape> later) {
  const ShapeLimits limits{.buffer_bytes = options_.buffer_bytes};
  SweepTarget& target = targets_[opened.target];
  for (size_t i = 0; i < kFurtherCells; ++i) {
    const std::optional<Shape> next = NextShape(MeasuredSoFar(target), limits);
    if (!next) break;
    const size_t cells = target.cells.size();
    std::vector<Shape> rest(kFurtherCells + kConfirmingCells - i - 1, *next);
    rest.insert(rest.end(), later.begin(), later.end());
    FB_RETURN_IF_ERROR(Measure(opened, *next, rest));
    if (target.cells.size() == cells) break;  // left out: what lies beyond would be too
  }
  return {};
}

std::vector<Measured> Sweep::MeasuredSoFar(const SweepTarget& target) {
  std::vector<Measured> measured;
  for (size_t c = 0; c < target.cells.size(); ++c) {
    measured.push_back(MeasuredOf(target.cells[c], target.summaries[c]));
  }
  return measured;
}

Status Sweep::Confirm(Opened& opened, std::span<const Shape> later) {
  SweepTarget& target = targets_[opened.target];
  const std::vector<Shape> finalists = Finalists(MeasuredSoFar(target));
  if (finalists.size() < 2) return {};
  std::vector<Shape> shapes;
  for (int look = 0; look < kFurtherLooks; ++look) {
    shapes.insert(shapes.end(), finalists.begin(), finalists.end());
  }
  const size_t looks = shapes.size();
  shapes.insert(shapes.end(), later.begin(), later.end());
  for (size_t i = 0; i < looks; ++i) {
    const std::span<const Shape> rest = std::span(shapes).subspan(i + 1);
    if (RequestsFor(opened, shapes[i], rest) == 0) break;
    FB_RETURN_IF_ERROR(Measure(opened, shapes[i], rest));
  }
  return {};
}

// What the search will ask for is not known yet: a place is kept for each of its cells.
Status Sweep::SearchBest() {
  const std::vector<Shape> first =
      FirstShapes(options_.put, {.buffer_bytes = options_.buffer_bytes});
  const std::span<const Shape> last = options_.put ? std::span<const Shape>() : kSmall;
  std::vector<Shape> asked = first;
  asked.insert(asked.end(), last.begin(), last.end());
  FB_RETURN_IF_ERROR(CheckRoom(asked));
  std::vector<Shape> later(kFurtherCells + kConfirmingCells, kTypicalFurther);
  later.insert(later.end(), last.begin(), last.end());
  FB_RETURN_IF_ERROR(MeasureEach(first, later));
  for (Opened& opened : opened_) FB_RETURN_IF_ERROR(GoOn(opened, last));
  for (Opened& opened : opened_) FB_RETURN_IF_ERROR(Confirm(opened, last));
  return MeasureEach(last, {});
}

Status Sweep::Run(const std::vector<std::string>& uris,
                  const std::function<void(const CellResult&, const Summary&)>& on_cell) {
  on_cell_ = on_cell;
  FB_RETURN_IF_ERROR(Meet());
  FB_RETURN_IF_ERROR(Open(uris));
  if (options_.ranges.empty() && options_.depths.empty()) {
    FB_RETURN_IF_ERROR(SearchBest());
  } else {
    const std::vector<Shape> shapes = Asked();
    FB_RETURN_IF_ERROR(CheckRoom(shapes));
    FB_RETURN_IF_ERROR(MeasureEach(shapes, {}));
  }
  if (meeting_) {
    FB_RETURN_IF_ERROR(meeting_->Gather("done", options_.wait).status());
    meeting_->End();
  }
  return {};
}

}  // namespace forebay::cli
