// The rules file: JSON text -> PlanSettings.
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "testing/faults/plan.h"

namespace forebay::faults {
namespace {

using Json = nlohmann::json;

Status Bad(std::string what) { return {Code::kInvalidArgument, std::move(what)}; }

// One JSON object whose members are taken one by one; what is left over at Finish is unknown.
class Members {
 public:
  Members(const Json& object, std::string where) : object_(object), where_(std::move(where)) {}

  const Json* Take(const char* name) {
    taken_.emplace_back(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  void Text(const char* name, std::string& into) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(name, "must be a string");
    into = value->get<std::string>();
  }
  void Count(const char* name, uint64_t& into) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_number_unsigned()) return Fail(name, "must be a whole number, 0 or more");
    into = value->get<uint64_t>();
  }
  // Leaving it out is what 0 would mean.
  void Positive(const char* name, uint64_t& into) {
    Count(name, into);
    if (object_.contains(name) && into == 0) Fail(name, "must be a whole number, 1 or more");
  }
  void Signed(const char* name, int64_t& into) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_number_integer()) return Fail(name, "must be a whole number");
    into = value->get<int64_t>();
  }
  void Number(const char* name, double least, double most, double& into) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_number() || value->get<double>() < least || value->get<double>() > most) {
      return Fail(name, fmt::format("must be a number from {} to {}", least, most));
    }
    into = value->get<double>();
  }
  void Flag(const char* name, std::optional<bool>& into) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_boolean()) return Fail(name, "must be true or false");
    into = value->get<bool>();
  }
  void Duration(const char* name, double& into) {
    const Json* value = Take(name);
    if (value == nullptr) return;
    if (!value->is_string()) return Fail(name, "must be a duration such as \"2s\"");
    const auto seconds = ParseDuration(value->get<std::string>());
    if (!seconds.ok()) return Fail(name, seconds.status().message());
    into = *seconds;
  }
  void Fail(std::string_view name, std::string_view why) {
    if (status_.ok()) status_ = Bad(fmt::format("{}: \"{}\" {}", where_, name, why));
  }
  void Require(const char* name) {
    if (!object_.contains(name)) Fail(name, "is missing");
  }
  Status Finish() {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(taken_.begin(), taken_.end(), name) == taken_.end()) {
        Fail(name, "is not known here");
      }
    }
    return status_;
  }

 private:
  const Json& object_;
  std::string where_;
  std::vector<std::string_view> taken_;
  Status status_;
};

Result<Match> ReadMatch(const Json& json, const std::string& where) {
  if (!json.is_object()) return Bad(where + ": must be an object");
  Members members(json, where);
  Match match;
  std::string regex;
  members.Text("method", match.method);
  members.Text("bucket", match.bucket);
  members.Text("key", match.key_glob);
  members.Text("key_prefix", match.key_prefix);
  members.Text("key_regex", regex);
  members.Flag("range", match.range);
  members.Flag("list", match.list);
  members.Number("from_s", 0, 1e9, match.from_s);
  members.Number("until_s", 0, 1e9, match.until_s);
  members.Positive("from_request", match.from_request);
  members.Positive("until_request", match.until_request);
  members.Positive("nth", match.nth);
  members.Positive("every", match.every);
  members.Positive("limit", match.limit);
  if (match.until_request > 0 && match.until_request < match.from_request) {
    members.Fail("until_request", "is before \"from_request\": no request would match");
  }
  if (match.until_s > 0 && match.until_s <= match.from_s) {
    members.Fail("until_s", "is not after \"from_s\": no request would match");
  }
  members.Number("probability", 0, 1, match.probability);
  if (!regex.empty()) {
    try {
      match.key_regex.emplace(regex, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error&) {
      members.Fail("key_regex", "is no regular expression");
    }
  }
  FB_RETURN_IF_ERROR(members.Finish());
  return match;
}

void ReadBodyEvent(Members& members, BodyEvent::Kind kind, Action& action) {
  BodyEvent event{kind};
  members.Require("at");
  members.Count("at", event.offset);
  if (kind == BodyEvent::Kind::kStall) {
    members.Require("for");
    members.Duration("for", event.seconds);
  }
  action.effect.events.push_back(event);
}

void ReadError(Members& members, Action& action, int status, const char* code) {
  uint64_t number = static_cast<uint64_t>(status);
  action.effect.error_code = code;
  if (status == 0) members.Require("status");
  members.Count("status", number);
  members.Text("code", action.effect.error_code);
  if (number < 200 || number > 599) members.Fail("status", "must be from 200 to 599");
  action.effect.status = static_cast<int>(number);
}

void ReadHeader(Members& members, Action& action) {
  Field field;
  members.Require("name");
  members.Text("name", field.name);
  members.Text("value", field.value);
  const auto broken = [](const std::string& text) {
    return text.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos;
  };
  if (field.name.empty() || broken(field.name) || broken(field.value)) {
    members.Fail("name", "and \"value\" must be one line, the name not empty");
  }
  action.effect.extra_fields.push_back(field);
}

void ReadDuplicates(Members& members, Action& action) {
  const Json* names = members.Take("names");
  if (names == nullptr) {
    action.effect.duplicate_fields = {"ETag", "Content-Length", "Content-Range"};
    return;
  }
  if (!names->is_array()) return members.Fail("names", "must be a list of header names");
  for (const auto& name : *names) {
    if (!name.is_string()) return members.Fail("names", "must be a list of header names");
    action.effect.duplicate_fields.push_back(name.get<std::string>());
  }
}

void ReadLatency(Members& members, const char* name, std::optional<Latency>& into) {
  std::string text;
  members.Text(name, text);
  if (text.empty()) return;
  const auto latency = ParseLatency(text);
  if (!latency.ok()) return members.Fail(name, latency.status().message());
  into = *latency;
}

// True when `name` is an action that acts on the body at an offset, or on its pace.
bool ReadBodyAction(const std::string& name, Members& members, Action& action) {
  using Kind = BodyEvent::Kind;
  if (name == "stall") {
    ReadBodyEvent(members, Kind::kStall, action);
  } else if (name == "reset") {
    ReadBodyEvent(members, Kind::kReset, action);
  } else if (name == "short_body") {
    ReadBodyEvent(members, Kind::kFinish, action);
  } else if (name == "flip_byte") {
    ReadBodyEvent(members, Kind::kFlip, action);
  } else if (name == "drip") {
    members.Require("bytes_per_s");
    members.Number("bytes_per_s", 1, 1e12, action.effect.drip_bytes_per_s);
  } else {
    return false;
  }
  return true;
}

bool ReadHeadAction(const std::string& name, Members& members, Action& action) {
  if (name == "latency") {
    members.Require("of");
    ReadLatency(members, "of", action.latency);
  } else if (name == "slow_down") {
    ReadError(members, action, 503, "SlowDown");
  } else if (name == "internal_error") {
    ReadError(members, action, 500, "InternalError");
  } else if (name == "status") {
    ReadError(members, action, 0, "InternalError");
  } else if (name == "error_in_200") {
    action.effect.error_in_200 = true;
    action.effect.error_code = "InternalError";
    members.Text("code", action.effect.error_code);
  } else if (name == "wrong_content_range") {
    action.effect.content_range_shift = 1;
    members.Signed("shift", action.effect.content_range_shift);
  } else if (name == "change_etag") {
    action.effect.changed_etag = true;
  } else if (name == "ignore_range") {
    action.effect.ignore_range = true;
  } else if (name == "gzip_header") {
    action.effect.extra_fields.push_back({"Content-Encoding", "gzip"});
  } else if (name == "header") {
    ReadHeader(members, action);
  } else if (name == "duplicate_headers") {
    ReadDuplicates(members, action);
  } else if (name == "close") {
    std::optional<bool> announce;
    members.Flag("announce", announce);
    action.effect.close = true;
    action.effect.announce_close = announce.value_or(false);
  } else if (name != "refuse_connection") {
    return false;
  }
  return true;
}

Result<Action> ReadAction(const Json& json, const std::string& where) {
  if (!json.is_object()) return Bad(where + ": must be an object");
  Members members(json, where);
  Action action;
  members.Require("do");
  members.Text("do", action.name);
  if (!ReadBodyAction(action.name, members, action) &&
      !ReadHeadAction(action.name, members, action)) {
    members.Fail(action.name, "is no known action");
  }
  FB_RETURN_IF_ERROR(members.Finish());
  return action;
}

Result<Rule> ReadRule(const Json& json, const std::string& where) {
  if (!json.is_object()) return Bad(where + ": must be an object");
  Members members(json, where);
  Rule rule;
  std::optional<bool> last;
  members.Text("name", rule.name);
  members.Flag("last", last);
  rule.last = last.value_or(false);
  if (const Json* match = members.Take("match")) {
    FB_ASSIGN_OR_RETURN(rule.match, ReadMatch(*match, where + ".match"));
  }
  members.Require("actions");
  const Json* actions = members.Take("actions");
  if (actions != nullptr && !actions->is_array()) members.Fail("actions", "must be a list");
  FB_RETURN_IF_ERROR(members.Finish());
  for (size_t i = 0; i < actions->size(); ++i) {
    FB_ASSIGN_OR_RETURN(Action action,
                        ReadAction((*actions)[i], fmt::format("{}.actions[{}]", where, i)));
    rule.on_connection = rule.on_connection || action.name == "refuse_connection";
    rule.actions.push_back(std::move(action));
  }
  if (rule.on_connection && rule.actions.size() > 1) {
    return Bad(where + ": \"refuse_connection\" must be a rule's only action");
  }
  return rule;
}

Status ReadMethods(const Json& json, PlanSettings& settings) {
  settings.methods.clear();
  for (const auto& method : json) {
    if (!method.is_string()) return Bad("\"methods\" must be a list of strings");
    settings.methods.push_back(method.get<std::string>());
    constexpr std::string_view kKnown[] = {"GET", "HEAD", "PUT", "POST", "DELETE"};
    if (std::ranges::find(kKnown, settings.methods.back()) == std::end(kKnown)) {
      return Bad("\"methods\": \"" + settings.methods.back() + "\" is no method");
    }
  }
  return {};
}

}  // namespace

Status ApplyRulesJson(std::string_view text, PlanSettings& settings) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false, /*comments=*/true);
  if (!json.is_object()) return Bad("the rules are not a JSON object");
  Members members(json, "rules file");
  std::optional<Latency> latency;
  members.Count("seed", settings.seed);
  members.Number("latency_scale", 0, 1e6, settings.latency_scale);
  ReadLatency(members, "latency", latency);
  if (latency) settings.latency = *latency;
  if (const Json* methods = members.Take("methods")) {
    if (!methods->is_array()) return Bad("\"methods\" must be a list of strings");
    FB_RETURN_IF_ERROR(ReadMethods(*methods, settings));
  }
  const Json* rules = members.Take("rules");
  FB_RETURN_IF_ERROR(members.Finish());
  if (rules == nullptr) return {};
  if (!rules->is_array()) return Bad("\"rules\" must be a list");
  settings.rules.clear();
  for (size_t i = 0; i < rules->size(); ++i) {
    FB_ASSIGN_OR_RETURN(Rule rule, ReadRule((*rules)[i], fmt::format("rules[{}]", i)));
    settings.rules.push_back(std::move(rule));
  }
  return {};
}

}  // namespace forebay::faults
