// The fault plan: settings and rules, and the deterministic decision for each request.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "forebay/status.h"
#include "testing/faults/decision.h"
#include "testing/faults/latency.h"

namespace forebay::faults {

struct Match {
  std::string method;    // "" : any
  std::string key_glob;  // fnmatch, where * also crosses slashes
  std::string key_prefix;
  std::string bucket;
  std::optional<std::regex> key_regex;  // searched
  std::optional<bool> range;
  std::optional<bool> list;
  double from_s = 0;           // since the rules were loaded
  double until_s = 0;          // 0: no end
  uint64_t from_request = 0;   // counted from 1 since the rules were loaded
  uint64_t until_request = 0;  // inclusive; 0: no end
  // Of the requests that match all of the above:
  uint64_t nth = 0;    // just that one, from 1
  uint64_t every = 0;  // the every-th, 2 x every-th, ...
  uint64_t limit = 0;  // the first so many; 0: all
  double probability = 1;
};

struct Action {
  std::string name;
  std::optional<Latency> latency;
  Decision effect;  // only the fields that this action sets
};

struct Rule {
  std::string name;
  Match match;
  bool on_connection = false;  // refuse_connection: matched against connections, not requests
  bool last = false;           // no later rule is looked at
  std::vector<Action> actions;
};

struct PlanSettings {
  uint64_t seed = 0;
  Latency latency;
  double latency_scale = 1;
  std::vector<std::string> methods = {"GET"};  // to which `latency` applies
  std::vector<Rule> rules;
};

// Applies the JSON text of a rules file to `settings`: what the text does not name stays. Unknown
// names are refused. kInvalidArgument tells where.
Status ApplyRulesJson(std::string_view json, PlanSettings& settings);

// Thread-safe. Decision number n is a pure function of (settings, n, the requests before it): the
// random numbers depend on (seed, n) alone.
class Plan {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Plan(PlanSettings settings, Clock::time_point now);

  Decision Decide(const RequestFacts& request, Clock::time_point now) FB_EXCLUDES(mutex_);
  // For an accepted connection: true when it must be refused.
  bool Refuses(Clock::time_point now) FB_EXCLUDES(mutex_);
  // Counters and times of all rules start again.
  Status Apply(std::string_view json, Clock::time_point now) FB_EXCLUDES(mutex_);
  // Request numbers, counters and times start again.
  void Reset(Clock::time_point now) FB_EXCLUDES(mutex_);
  double latency_scale() const FB_EXCLUDES(mutex_);

 private:
  struct Subject;
  bool Matches(size_t index, const Subject& subject) FB_REQUIRES(mutex_);
  void StartRules(Clock::time_point now) FB_REQUIRES(mutex_);

  mutable Mutex mutex_;
  PlanSettings settings_ FB_GUARDED_BY(mutex_);
  std::vector<uint64_t> matched_ FB_GUARDED_BY(mutex_);  // per rule
  uint64_t requests_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t connections_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t rules_requests_ FB_GUARDED_BY(mutex_) = 0;  // since the rules were loaded
  uint64_t rules_connections_ FB_GUARDED_BY(mutex_) = 0;
  Clock::time_point rules_start_ FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::faults
