#include "testing/faults/plan.h"

#include <fnmatch.h>

#include <algorithm>

#include "base/random.h"

namespace forebay::faults {

ObjectName NameOf(std::string_view target) {
  std::string_view path = target.substr(0, target.find_first_of("?#"));
  if (path.starts_with('/')) path.remove_prefix(1);
  const size_t slash = path.find('/');
  ObjectName name;
  name.bucket = PercentDecode(path.substr(0, slash), false);
  if (slash != std::string_view::npos) name.key = PercentDecode(path.substr(slash + 1), false);
  return name;
}

namespace {

constexpr size_t kMaxRegexText = 1024;  // S3's longest key

bool IsList(std::string_view target) {
  const size_t query = target.find('?');
  return query != std::string_view::npos &&
         target.substr(query).find("list-type=2") != std::string_view::npos;
}

bool MatchesRequest(const Match& match, const RequestFacts& request, const ObjectName& name) {
  if (!match.method.empty() && match.method != request.method) return false;
  if (match.range && *match.range != request.has_range) return false;
  if (match.list && *match.list != IsList(request.target)) return false;
  if (!match.bucket.empty() && match.bucket != name.bucket) return false;
  if (!name.key.starts_with(match.key_prefix)) return false;
  if (!match.key_glob.empty() && fnmatch(match.key_glob.c_str(), name.key.c_str(), 0) != 0) {
    return false;
  }
  if (!match.key_regex) return true;
  // The library recurses along the text.
  return name.key.size() <= kMaxRegexText && std::regex_search(name.key, *match.key_regex);
}

void AddEffect(const Action& action, Decision& decision) {
  const Decision& effect = action.effect;
  if (effect.status != 0) {
    decision.status = effect.status;
    decision.error_code = effect.error_code;
  }
  if (effect.drip_bytes_per_s > 0) decision.drip_bytes_per_s = effect.drip_bytes_per_s;
  if (effect.content_range_shift != 0) decision.content_range_shift = effect.content_range_shift;
  decision.changed_etag |= effect.changed_etag;
  decision.ignore_range |= effect.ignore_range;
  decision.error_in_200 |= effect.error_in_200;
  if (effect.error_in_200) decision.error_code = effect.error_code;
  decision.close |= effect.close;
  decision.announce_close |= effect.announce_close;
  auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  append(decision.extra_fields, effect.extra_fields);
  append(decision.events, effect.events);
  append(decision.duplicate_fields, effect.duplicate_fields);
  decision.names.push_back(action.name);
}

int Rank(BodyEvent::Kind kind) { return static_cast<int>(kind); }

}  // namespace

// A request or a connection, as rules see it.
struct Plan::Subject {
  const RequestFacts* request;  // null: a connection
  const ObjectName* name;
  uint64_t number;        // keys the random numbers
  uint64_t rules_number;  // since the rules were loaded
  double elapsed_s;
};

Plan::Plan(PlanSettings settings, Clock::time_point now) : settings_(std::move(settings)) {
  const MutexLock lock(mutex_);
  StartRules(now);
}

void Plan::StartRules(Clock::time_point now) {
  matched_.assign(settings_.rules.size(), 0);
  rules_requests_ = 0;
  rules_connections_ = 0;
  rules_start_ = now;
}

bool Plan::Matches(size_t index, const Subject& subject) {
  const Rule& rule = settings_.rules[index];
  const Match& match = rule.match;
  if (rule.on_connection != (subject.request == nullptr)) return false;
  if (subject.elapsed_s < match.from_s) return false;
  if (match.until_s > 0 && subject.elapsed_s >= match.until_s) return false;
  if (subject.rules_number < match.from_request) return false;
  if (match.until_request > 0 && subject.rules_number > match.until_request) return false;
  if (subject.request != nullptr && !MatchesRequest(match, *subject.request, *subject.name)) {
    return false;
  }
  const uint64_t count = ++matched_[index];
  if (match.nth > 0 && count != match.nth) return false;
  if (match.every > 0 && count % match.every != 0) return false;
  if (match.limit > 0 && count > match.limit) return false;
  if (match.probability >= 1) return true;
  const uint64_t key =
      DeriveKey(DeriveKey(settings_.seed, HashName("rule") + index), subject.number);
  return Random(key).NextDouble() < match.probability;
}

Decision Plan::Decide(const RequestFacts& request, Clock::time_point now) {
  const ObjectName name = NameOf(request.target);
  const MutexLock lock(mutex_);
  Decision decision;
  decision.number = ++requests_;
  const double elapsed_s = std::chrono::duration<double>(now - rules_start_).count();
  const Subject subject{&request, &name, decision.number, ++rules_requests_, elapsed_s};
  const Latency* latency = nullptr;
  const auto& methods = settings_.methods;
  if (std::find(methods.begin(), methods.end(), request.method) != methods.end()) {
    latency = &settings_.latency;
  }
  for (size_t i = 0; i < settings_.rules.size(); ++i) {
    if (!Matches(i, subject)) continue;
    for (const Action& action : settings_.rules[i].actions) {
      AddEffect(action, decision);
      if (action.latency) latency = &*action.latency;
    }
    if (settings_.rules[i].last) break;
  }
  if (latency != nullptr && latency->kind != Latency::Kind::kNone) {
    Random random(DeriveKey(DeriveKey(settings_.seed, HashName("latency")), decision.number));
    decision.first_byte_s = latency->Draw(random) * settings_.latency_scale;
    decision.has_latency = true;
  }
  std::stable_sort(decision.events.begin(), decision.events.end(),
                   [](const BodyEvent& a, const BodyEvent& b) {
                     return std::pair(a.offset, Rank(a.kind)) < std::pair(b.offset, Rank(b.kind));
                   });
  return decision;
}

bool Plan::Refuses(Clock::time_point now) {
  const MutexLock lock(mutex_);
  const double elapsed_s = std::chrono::duration<double>(now - rules_start_).count();
  const Subject subject{nullptr, nullptr, ++connections_, ++rules_connections_, elapsed_s};
  bool refused = false;
  for (size_t i = 0; i < settings_.rules.size(); ++i) {
    if (Matches(i, subject)) refused = true;
  }
  return refused;
}

Status Plan::Apply(std::string_view json, Clock::time_point now) {
  PlanSettings changed;
  {
    const MutexLock lock(mutex_);
    changed = settings_;
  }
  FB_RETURN_IF_ERROR(ApplyRulesJson(json, changed));
  const MutexLock lock(mutex_);
  settings_ = std::move(changed);
  StartRules(now);
  return {};
}

void Plan::Reset(Clock::time_point now) {
  const MutexLock lock(mutex_);
  requests_ = 0;
  connections_ = 0;
  StartRules(now);
}

double Plan::latency_scale() const {
  const MutexLock lock(mutex_);
  return settings_.latency_scale;
}

}  // namespace forebay::faults
