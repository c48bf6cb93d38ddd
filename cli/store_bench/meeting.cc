#include "meeting.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <thread>
#include <utility>

#include "numbers.h"

namespace forebay::cli {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(20);
constexpr auto kPollLongest = std::chrono::milliseconds(200);
constexpr auto kGoodbyeTimeout = std::chrono::seconds(60);
constexpr auto kQuiet = std::chrono::seconds(10);
constexpr auto kBetweenNotes = std::chrono::seconds(30);
constexpr size_t kNamedMost = 16;
constexpr uint64_t kMessageMax = 256ULL << 20;

struct Names {
  const char* rank;
  const char* world;
  const char* by;
  const char* only_with;  // another variable that must be set; null: none
};
constexpr Names kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "RANK and WORLD_SIZE", nullptr},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "Open MPI", nullptr},
    {"PMI_RANK", "PMI_SIZE", "PMI", nullptr},
    {"SLURM_PROCID", "SLURM_NTASKS", "Slurm", "SLURM_STEP_ID"},
};

bool ParseRank(const char* text, uint32_t* value) {
  const auto number = ParseNumber(text);
  if (!number || *number < 0 || *number > UINT32_MAX) return false;
  *value = static_cast<uint32_t>(*number);
  return true;
}

}  // namespace

Result<RankPlace> FindRank() {
  for (const Names& names : kLaunchers) {
    const char* rank = std::getenv(names.rank);
    const char* world = std::getenv(names.world);
    if (rank == nullptr || world == nullptr) continue;
    if (names.only_with != nullptr && std::getenv(names.only_with) == nullptr) continue;
    RankPlace place{.found_by = names.by};
    if (!ParseRank(rank, &place.rank) || !ParseRank(world, &place.world) ||
        place.rank >= place.world) {
      return Status(
          Code::kInvalidArgument,
          fmt::format("{}={} and {}={} are no rank and size", names.rank, rank, names.world, world),
          ErrorDetail{.from_settings = true});
    }
    return place;
  }
  return RankPlace{};
}

Meeting::Meeting(Store& store, std::string folder, const RankPlace& place,
                 std::function<bool()> keep_waiting,
                 std::function<void(const std::string&)> on_wait)
    : store_(store),
      folder_(folder.ends_with('/') ? std::move(folder) : folder + "/"),
      place_(place),
      keep_waiting_(std::move(keep_waiting)),
      on_wait_(std::move(on_wait)) {}

std::string Meeting::UriOf(uint32_t meeting, uint32_t rank) const {
  return fmt::format("{}forebay-meeting-{}-rank-{}", folder_, meeting, rank);
}

Status Meeting::Begin() {
  const std::string ending = fmt::format("-rank-{}", place_.rank);
  std::string found;
  Status listed = store_.List(folder_, false, [&](const ObjectStat& object) {
    if (object.uri.find("/forebay-meeting-") != std::string::npos && object.uri.ends_with(ending)) {
      found = object.uri;
    }
    return found.empty();
  });
  if (!listed.ok() && listed.code() != Code::kNotFound) return listed;
  if (found.empty()) return {};
  return Status(Code::kInvalidArgument,
                fmt::format("{} is there already: give this run a folder of its own", found));
}

Result<std::string> Meeting::Await(const std::string& uri, uint32_t rank,
                                   std::chrono::steady_clock::time_point give_up) {
  auto next_note = std::chrono::steady_clock::now() + kQuiet;
  for (auto pause = kPoll;; pause = std::min(pause * 2, kPollLongest)) {
    const Result<ObjectStat> there = store_.Stat(uri);
    if (there.ok()) {
      if (there->size > kMessageMax) return Status(Code::kDataLoss, uri + " is too large");
      std::string text(there->size, '\0');
      FB_RETURN_IF_ERROR(
          store_.ReadRange(uri, there->etag, 0, std::as_writable_bytes(std::span(text))));
      return text;
    }
    if (there.code() != Code::kNotFound) return there.status();
    if (!keep_waiting_()) return Status(Code::kCancelled, "the wait for other ranks was stopped");
    const auto now = std::chrono::steady_clock::now();
    if (now > give_up) return Status(Code::kDeadlineExceeded, "it did not come");
    if (now > next_note) {
      next_note = now + kBetweenNotes;
      on_wait_(fmt::format("waiting at {} for {}", folder_, Missing(rank)));
    }
    std::this_thread::sleep_for(pause);
  }
}

std::string Meeting::Missing(uint32_t first) {
  std::string text;
  size_t count = 0;
  for (uint32_t rank = first; rank < place_.world; ++rank) {
    if (store_.Stat(UriOf(meeting_, rank)).code() != Code::kNotFound) continue;
    if (++count <= kNamedMost) text += fmt::format("{}{}", count > 1 ? ", " : "", rank);
  }
  if (count > kNamedMost) text += fmt::format(" and {} more", count - kNamedMost);
  return fmt::format("rank{} {} of {}", count == 1 ? "" : "s", text, place_.world);
}

Result<std::vector<std::string>> Meeting::Gather(const std::string& mine,
                                                 std::chrono::seconds timeout) {
  const std::string own = UriOf(meeting_, place_.rank);
  FB_RETURN_IF_ERROR(store_.Put(own, std::as_bytes(std::span(mine))).status());
  const auto give_up = std::chrono::steady_clock::now() + timeout;
  std::vector<std::string> all(place_.world);
  for (uint32_t rank = 0; rank < place_.world; ++rank) {
    Result<std::string> said = Await(UriOf(meeting_, rank), rank, give_up);
    if (said.code() == Code::kDeadlineExceeded) {
      return Status(Code::kDeadlineExceeded, fmt::format("{} did not come to {} within {} s",
                                                         Missing(rank), folder_, timeout.count()));
    }
    FB_ASSIGN_OR_RETURN(all[rank], std::move(said));
  }
  // All have come to this meeting, so all have read what was said in the one before.
  if (meeting_ > 0) (void)store_.Delete(UriOf(meeting_ - 1, place_.rank));
  ++meeting_;
  return all;
}

void Meeting::End() {
  // Whoever says goodbye has read all that there was; only then may the last of it go.
  const auto goodbye = [this](uint32_t rank) { return UriOf(meeting_, rank); };
  if (place_.rank != 0) {
    (void)store_.Put(goodbye(place_.rank), {});
    return;
  }
  const auto give_up = std::chrono::steady_clock::now() + kGoodbyeTimeout;
  for (uint32_t rank = 1; rank < place_.world; ++rank) {
    if (!Await(goodbye(rank), rank, give_up).ok()) return;
  }
  for (uint32_t rank = 0; rank < place_.world; ++rank) {
    (void)store_.Delete(UriOf(meeting_ - 1, rank));
    if (rank > 0) (void)store_.Delete(goodbye(rank));
  }
}

}  // namespace forebay::cli
