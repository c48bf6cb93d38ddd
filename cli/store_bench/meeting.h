// The ranks of a launched job, who meet in a shared folder or prefix: files there, one a rank and a
// meeting. What each has to say is small, and waiting is polling: it serves a benchmark's cells,
// which take seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "forebay/store.h"

namespace forebay::cli {

struct RankPlace {
  uint32_t rank = 0, world = 1;
  std::string found_by;  // "torchrun's RANK", ...; "" alone
};
// From RANK and WORLD_SIZE, Open MPI's, PMI's, or Slurm's variables inside a job step. Errors:
// kInvalidArgument, naming the variables that make no sense.
Result<RankPlace> FindRank();

class Meeting {
 public:
  // `folder`: URI of an empty or a new place. `keep_waiting` false: the wait ends with kCancelled.
  // `on_wait`: told who is waited for, now and then, once that takes long.
  Meeting(Store& store, std::string folder, const RankPlace& place,
          std::function<bool()> keep_waiting, std::function<void(const std::string&)> on_wait);

  // Errors: kInvalidArgument when files of this rank are there already: the folder holds another
  // run's.
  Status Begin();
  // What all ranks have to say, by rank; returns once all have said it. Every rank calls this in
  // the same order. Errors: kDeadlineExceeded, naming all who are missing.
  Result<std::vector<std::string>> Gather(const std::string& mine, std::chrono::seconds timeout);
  // The last thing, after a Gather: the first rank removes what is left once all others have come
  // here too. Best effort.
  void End();

 private:
  Result<std::string> Await(const std::string& uri, uint32_t rank,
                            std::chrono::steady_clock::time_point give_up);
  // "rank 3 of 8", "ranks 3, 5 of 8": of `first` and those behind it.
  std::string Missing(uint32_t first);
  std::string UriOf(uint32_t meeting, uint32_t rank) const;

  Store& store_;
  const std::string folder_;
  const RankPlace place_;
  const std::function<bool()> keep_waiting_;
  const std::function<void(const std::string&)> on_wait_;
  uint32_t meeting_ = 0;
};

}  // namespace forebay::cli
