#include "testing/faults/plan.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace forebay::faults {
namespace {

using Clock = Plan::Clock;
const Clock::time_point kStart{};

PlanSettings Settings(std::string_view json) {
  PlanSettings settings;
  const Status applied = ApplyRulesJson(json, settings);
  EXPECT_TRUE(applied.ok()) << applied.ToString();
  return settings;
}

// The names of the actions that each of `count` equal requests meets, as "x" or "-".
std::string Pattern(Plan& plan, int count, RequestFacts request = {"GET", "/b/k", true}) {
  std::string pattern;
  for (int i = 0; i < count; ++i) {
    pattern += plan.Decide(request, kStart).names.empty() ? '-' : 'x';
  }
  return pattern;
}

std::string PatternOf(const std::string& match, int count,
                      RequestFacts request = {"GET", "/b/k", true}) {
  Plan plan(Settings(R"({"rules":[{"match":)" + match + R"(,"actions":[{"do":"change_etag"}]}]})"),
            kStart);
  return Pattern(plan, count, request);
}

TEST(Plan, the_same_seed_draws_the_same_latencies_whatever_else_happens) {
  const auto draws = [](uint64_t seed, double scale, const char* rules) {
    PlanSettings settings = Settings(rules);
    settings.seed = seed;
    settings.latency_scale = scale;
    settings.latency = *ParseLatency("lognormal:median=130ms,p99=340ms");
    Plan plan(settings, kStart);
    std::vector<double> drawn;
    drawn.reserve(50);
    for (int i = 0; i < 50; ++i) {
      drawn.push_back(plan.Decide({"GET", "/b/k", true}, kStart).first_byte_s / scale);
    }
    return drawn;
  };
  const auto first = draws(7, 1, "{}");
  EXPECT_EQ(first, draws(7, 1, "{}"));
  EXPECT_EQ(first, draws(7, 2, R"({"rules":[{"actions":[{"do":"slow_down"}],
                                  "match":{"probability":0.5}}]})"));
  EXPECT_NE(first, draws(8, 1, "{}"));
}

TEST(Plan, latency_is_for_the_chosen_methods_only) {
  PlanSettings settings = Settings(R"({"latency":"constant:10ms"})");
  Plan gets(settings, kStart);
  EXPECT_TRUE(gets.Decide({"GET", "/b/k", false}, kStart).has_latency);
  EXPECT_FALSE(gets.Decide({"HEAD", "/b/k", false}, kStart).has_latency);
  settings.methods = {"HEAD", "PUT"};
  Plan others(settings, kStart);
  EXPECT_FALSE(others.Decide({"GET", "/b/k", false}, kStart).has_latency);
  EXPECT_EQ(others.Decide({"PUT", "/b/k", false}, kStart).first_byte_s, 0.010);
}

TEST(Plan, a_rule_can_give_its_requests_a_latency_of_their_own) {
  Plan plan(Settings(R"({"latency":"constant:10ms","latency_scale":2,"rules":[
      {"match":{"key":"slow/*"},"actions":[{"do":"latency","of":"constant:1s"}]}]})"),
            kStart);
  EXPECT_DOUBLE_EQ(plan.Decide({"GET", "/b/fast", false}, kStart).first_byte_s, 0.02);
  EXPECT_DOUBLE_EQ(plan.Decide({"GET", "/b/slow/1", false}, kStart).first_byte_s, 2);
  EXPECT_DOUBLE_EQ(plan.Decide({"PUT", "/b/slow/1", false}, kStart).first_byte_s, 2);
}

TEST(Plan, rules_count_the_requests_that_match) {
  EXPECT_EQ(PatternOf("{}", 4), "xxxx");
  EXPECT_EQ(PatternOf(R"({"nth":2})", 5), "-x---");
  EXPECT_EQ(PatternOf(R"({"every":3})", 7), "--x--x-");
  EXPECT_EQ(PatternOf(R"({"limit":2})", 5), "xx---");
  EXPECT_EQ(PatternOf(R"({"from_request":2,"until_request":3})", 5), "-xx--");
  EXPECT_EQ(PatternOf(R"({"probability":0})", 5), "-----");
}

TEST(Plan, rules_match_what_they_name) {
  EXPECT_EQ(PatternOf(R"({"method":"GET","bucket":"b"})", 1), "x");
  EXPECT_EQ(PatternOf(R"({"method":"PUT"})", 1), "-");
  EXPECT_EQ(PatternOf(R"({"bucket":"c"})", 1), "-");
  EXPECT_EQ(PatternOf(R"({"range":false})", 1), "-");
  EXPECT_EQ(PatternOf(R"({"range":true})", 1), "x");
  const RequestFacts video{"GET", "/b/scene%201/front.mp4?versionId=1", false};
  EXPECT_EQ(PatternOf(R"({"key":"*.mp4"})", 1, video), "x");
  EXPECT_EQ(PatternOf(R"({"key":"*.jpg"})", 1, video), "-");
  EXPECT_EQ(PatternOf(R"({"key_prefix":"scene 1/"})", 1, video), "x");
  EXPECT_EQ(PatternOf(R"({"key_prefix":"front"})", 1, video), "-");
  EXPECT_EQ(PatternOf(R"j({"key_regex":"^scene [0-9]+/(front|left)"})j", 1, video), "x");
  EXPECT_EQ(PatternOf(R"({"key_regex":"^front"})", 1, video), "-");
  const RequestFacts list{"GET", "/b?list-type=2&prefix=x", false};
  EXPECT_EQ(PatternOf(R"({"list":true})", 1, list), "x");
  EXPECT_EQ(PatternOf(R"({"list":false})", 1, list), "-");
}

TEST(Plan, probability_is_met_and_depends_on_the_seed) {
  PlanSettings settings = Settings(
      R"({"seed":1,"rules":[{"match":{"probability":0.25},"actions":[{"do":"change_etag"}]}]})");
  Plan first(settings, kStart);
  Plan same(settings, kStart);
  settings.seed = 2;
  Plan other(settings, kStart);
  const std::string pattern = Pattern(first, 4000);
  const auto hits = std::count(pattern.begin(), pattern.end(), 'x');
  EXPECT_NEAR(static_cast<double>(hits), 1000, 120);
  EXPECT_EQ(pattern, Pattern(same, 4000));
  EXPECT_NE(pattern, Pattern(other, 4000));
}

TEST(Plan, rules_hold_for_a_span_of_time_since_they_were_loaded) {
  const auto at = [](int seconds) { return kStart + std::chrono::seconds(seconds); };
  Plan plan(Settings(R"({"rules":[{"match":{"from_s":10,"until_s":20},
                                   "actions":[{"do":"change_etag"}]}]})"),
            at(100));
  const auto hit = [&](int seconds) {
    return plan.Decide({"GET", "/b/k", true}, at(seconds)).changed_etag;
  };
  EXPECT_FALSE(hit(109));
  EXPECT_TRUE(hit(110));
  EXPECT_TRUE(hit(119));
  EXPECT_FALSE(hit(120));
  plan.Reset(at(200));
  EXPECT_TRUE(hit(215));
}

TEST(Plan, actions_of_all_matching_rules_add_up_until_a_last_one) {
  const std::string rules = R"({"rules":[
      {"actions":[{"do":"stall","at":50,"for":"1s"},{"do":"flip_byte","at":10}]},
      {"last":true,"actions":[{"do":"reset","at":50}]},
      {"actions":[{"do":"change_etag"}]}]})";
  Plan plan(Settings(rules), kStart);
  const Decision decision = plan.Decide({"GET", "/b/k", true}, kStart);
  EXPECT_EQ(decision.names, (std::vector<std::string>{"stall", "flip_byte", "reset"}));
  ASSERT_EQ(decision.events.size(), 3U);
  EXPECT_EQ(decision.events[0].kind, BodyEvent::Kind::kFlip);
  EXPECT_EQ(decision.events[1].kind, BodyEvent::Kind::kStall);
  EXPECT_EQ(decision.events[2].kind, BodyEvent::Kind::kReset);
  EXPECT_FALSE(decision.changed_etag);
}

TEST(Plan, refused_connections_are_counted_apart_from_requests) {
  Plan plan(Settings(R"({"rules":[{"match":{"nth":2},"actions":[{"do":"refuse_connection"}]}]})"),
            kStart);
  EXPECT_FALSE(plan.Refuses(kStart));
  EXPECT_TRUE(plan.Decide({"GET", "/b/k", true}, kStart).names.empty());
  EXPECT_TRUE(plan.Refuses(kStart));
  EXPECT_FALSE(plan.Refuses(kStart));
}

TEST(Plan, new_rules_replace_what_they_name_and_leave_the_rest) {
  Plan plan(Settings(R"({"latency":"constant:1s","rules":[{"actions":[{"do":"change_etag"}]}]})"),
            kStart);
  ASSERT_TRUE(plan.Apply(R"({"latency_scale":3})", kStart).ok());
  Decision decision = plan.Decide({"GET", "/b/k", true}, kStart);
  EXPECT_DOUBLE_EQ(decision.first_byte_s, 3);
  EXPECT_TRUE(decision.changed_etag);
  ASSERT_TRUE(plan.Apply(R"({"rules":[]})", kStart).ok());
  decision = plan.Decide({"GET", "/b/k", true}, kStart);
  EXPECT_DOUBLE_EQ(decision.first_byte_s, 3);
  EXPECT_FALSE(decision.changed_etag);
  EXPECT_EQ(decision.number, 2U);
  EXPECT_FALSE(plan.Apply(R"({"latency":"constant:2s","nonsense":1})", kStart).ok());
  EXPECT_DOUBLE_EQ(plan.Decide({"GET", "/b/k", true}, kStart).first_byte_s, 3);
}

TEST(Rules, what_is_not_understood_is_refused_with_its_place) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "not a JSON object"},
      {"[]", "not a JSON object"},
      {R"({"rules":{}})", "\"rules\" must be a list"},
      {R"({"rule":[]})", "\"rule\" is not known"},
      {R"({"seed":-1})", "\"seed\""},
      {R"({"latency":"soon"})", "\"latency\""},
      {R"({"methods":"GET"})", "methods"},
      {R"({"methods":["GTE"]})", "\"GTE\" is no method"},
      {R"({"latency_scale":-1})", "latency_scale"},
      {R"({"rules":[{}]})", "rules[0]: \"actions\" is missing"},
      {R"({"rules":[{"actions":[{"do":"explode"}]}]})", "rules[0].actions[0]: \"explode\""},
      {R"({"rules":[{"actions":[{"do":"stall","at":1}]}]})", "\"for\" is missing"},
      {R"({"rules":[{"actions":[{"do":"reset"}]}]})", "\"at\" is missing"},
      {R"({"rules":[{"actions":[{"do":"reset","at":-1}]}]})", "\"at\" must be"},
      {R"({"rules":[{"actions":[{"do":"close","at":1}]}]})", "\"at\" is not known here"},
      {R"({"rules":[{"actions":[{"do":"drip","bytes_per_s":0}]}]})", "bytes_per_s"},
      {R"({"rules":[{"actions":[{"do":"status"}]}]})", "\"status\" is missing"},
      {R"({"rules":[{"actions":[{"do":"status","status":99}]}]})", "\"status\""},
      {R"({"rules":[{"actions":[{"do":"header","name":"A\r\nB","value":""}]}]})", "one line"},
      {R"({"rules":[{"match":{"probability":2},"actions":[]}]})", "probability"},
      {R"({"rules":[{"match":{"nth":0},"actions":[]}]})", "\"nth\" must be a whole number, 1"},
      {R"({"rules":[{"match":{"every":0},"actions":[]}]})", "\"every\" must be"},
      {R"({"rules":[{"match":{"limit":0},"actions":[]}]})", "\"limit\" must be"},
      {R"({"rules":[{"match":{"from_request":0},"actions":[]}]})", "\"from_request\" must be"},
      {R"({"rules":[{"match":{"from_request":5,"until_request":4},"actions":[]}]})",
       "\"until_request\" is before"},
      {R"({"rules":[{"match":{"from_s":5,"until_s":5},"actions":[]}]})", "\"until_s\" is not"},
      {R"({"rules":[{"match":{"key_regex":"("},"actions":[]}]})", "key_regex"},
      {R"({"rules":[{"match":{"nht":2},"actions":[]}]})", "rules[0].match: \"nht\""},
      {R"({"rules":[{"actions":[{"do":"refuse_connection"},{"do":"close"}]}]})", "only action"},
  };
  for (const auto& [json, expected] : cases) {
    PlanSettings settings;
    const Status status = ApplyRulesJson(json, settings);
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << json;
    if (!status.ok()) {
      EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
    }
  }
}

}  // namespace
}  // namespace forebay::faults
