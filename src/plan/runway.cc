#include "plan/runway.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "order/permutation.h"

namespace forebay::plan {
namespace {

constexpr int kReplayGroups = 256;
// The wait that may be left, as a share of what a reader without prefetch would wait.
constexpr double kToleratedShare = 0.001;
// Latencies of so many parts are compared with the window's to see a change of regime.
constexpr size_t kRecentParts = 14;
constexpr double kShiftSigmas = 4.0;
constexpr int kFirstDepth = 4;
// Where GETs fail or get lost, what was measured so far does not show the worst of it (two in a
// row, for one part): one batch more is for that.
constexpr double kAgainWindow = 512;  // parts
constexpr double kAgainShare = 0.0015;
constexpr int kBonusMax = 4;
constexpr int kCleanStepsToForget = 64;
// Trying all depths takes longer than a short step; what is measured tells nothing new so soon.
constexpr double kDecideEvery_s = 0.05;

double Seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

// Acklam's rational approximation of the inverse normal distribution (relative error < 1.2e-9).
double InverseNormal(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  constexpr double kLow = 0.02425;
  if (p < kLow || p > 1 - kLow) {
    const double q = std::sqrt(-2 * std::log(p < kLow ? p : 1 - p));
    const double x = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
                     ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
    return p < kLow ? x : -x;
  }
  const double q = p - 0.5;
  const double r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
}

}  // namespace

void Runway::Series::Add(double value) {
  if (values.size() == capacity) values.erase(values.begin());
  values.push_back(value);
}

double Runway::Series::Mean() const {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void Runway::Series::KeepLast(size_t n) {
  if (values.size() > n)
    values.erase(values.begin(), values.end() - static_cast<std::ptrdiff_t>(n));
}

Runway::Runway(const RunwayOptions& options)
    : options_(options),
      depth_(options.fixed_s == 0 ? 0 : std::min(kFirstDepth, options.depth_max)) {}

double Runway::step_s() const {
  if (!step_s_.values.empty()) return step_s_.Mean();
  // Nobody knows yet; no consumer is lastingly faster than decoding.
  return std::max(decode_s_.Mean() / options_.decode_threads, 0.05);
}

void Runway::OnPart(Duration total, bool again) {
  again_share_ += ((again ? 1 : 0) - again_share_) / kAgainWindow;
  part_log_s_.Add(std::log(std::max(Seconds(total), 1e-5)));
  if (options_.fixed_s >= 0) return;
  if (LatencyShifted()) {
    part_log_s_.KeepLast(kRecentParts);
    fetch_s_.KeepLast(1);
    bonus_ = 0;
    Decide();
  }
}

void Runway::OnGroupFetched(Duration fetch, int parts) {
  fetch_s_.Add(Seconds(fetch));
  parts_per_group_ = std::max(parts, 1);
  if (fetch_s_.values.size() <= 8) Decide();
}

void Runway::OnGroupDecoded(Duration decode) {
  decode_s_.Add(Seconds(decode));
  if (decode_s_.values.size() <= 2) Decide();
}

void Runway::OnStep(Duration step, Duration wait) {
  ++steps_;
  step_s_.Add(Seconds(step));
  recent_wait_s_ += (Seconds(wait) - recent_wait_s_) / 16;
  // The model was too hopeful when 2% of the unhidden wait stays for a while.
  const double off_wait_s = fetch_s_.Mean() + decode_s_.Mean() / options_.decode_threads;
  if (options_.fixed_s < 0 && steps_ > 4 && recent_wait_s_ > 0.02 * off_wait_s) {
    if (bonus_ < kBonusMax && ++clean_steps_ >= 4) {
      ++bonus_;
      clean_steps_ = 0;
    }
  } else if (++clean_steps_ >= kCleanStepsToForget && bonus_ > 0) {
    --bonus_;
    clean_steps_ = 0;
  }
  since_decided_s_ += Seconds(step + wait);
  if (steps_ <= 8 || (steps_ % 4 == 0 && since_decided_s_ >= kDecideEvery_s)) Decide();
}

Runway::LatencyFit Runway::Fit() const {
  const std::vector<double>& logs = part_log_s_.values;
  if (logs.size() < 4) return {};
  const auto n = static_cast<double>(logs.size());
  const double mean = part_log_s_.Mean();
  double squares = 0;
  for (const double value : logs) squares += (value - mean) * (value - mean);
  const double sigma = std::sqrt(squares / (n - 1));
  // Few samples say little about the tail: both estimates are raised by their standard errors.
  return {mean + sigma / std::sqrt(n), sigma * (1 + 1 / std::sqrt(2 * n)), true};
}

bool Runway::LatencyShifted() const {
  const std::vector<double>& logs = part_log_s_.values;
  if (logs.size() < 3 * kRecentParts) return false;
  const size_t old_count = logs.size() - kRecentParts;
  const auto old_n = static_cast<double>(old_count);
  const double old_mean = std::accumulate(logs.begin(), logs.end() - kRecentParts, 0.0) / old_n;
  double squares = 0;
  for (size_t i = 0; i < old_count; ++i) squares += (logs[i] - old_mean) * (logs[i] - old_mean);
  const double sigma = std::max(std::sqrt(squares / (old_n - 1)), 0.05);
  const double recent = std::accumulate(logs.end() - kRecentParts, logs.end(), 0.0) / kRecentParts;
  return std::abs(recent - old_mean) > kShiftSigmas * sigma / std::sqrt(kRecentParts);
}

// Every quantile of the slowest of parts_per_group_ standard normals once, in a scattered order.
void Runway::SpreadSlowest() {
  if (slowest_of_ == parts_per_group_) return;
  slowest_of_ = parts_per_group_;
  slowest_z_.clear();
  const order::Permutation scatter(kReplayGroups, 1);
  slowest_z_.reserve(kReplayGroups);
  for (int i = 0; i < kReplayGroups; ++i) {
    const double u =
        (static_cast<double>(scatter.At(static_cast<uint64_t>(i))) + 0.5) / kReplayGroups;
    slowest_z_.push_back(InverseNormal(std::pow(u, 1.0 / parts_per_group_)));
  }
}

std::vector<double> Runway::FittedFetches() const {
  const LatencyFit fit = Fit();
  std::vector<double> fetches;
  if (!fit.valid) return fetches;
  fetches.reserve(slowest_z_.size());
  for (const double z : slowest_z_) fetches.push_back(std::exp(fit.mu + fit.sigma * z));
  return fetches;
}

double Runway::MeanWait(const std::vector<double>& fetch_s, int depth) const {
  const auto d = static_cast<size_t>(depth);
  const size_t skipped = d + 2;  // the start always waits
  const size_t n = skipped + kReplayGroups;
  const double step = step_s();
  std::vector<double> take(n, 0);
  double ready = 0;
  double wait = 0;
  for (size_t g = 0; g < n; ++g) {
    const double asked = g >= d ? take[g - d] : 0;
    const double decode = decode_s_.values.empty() ? 0
                                                   : decode_s_.values[g % decode_s_.values.size()] /
                                                         options_.decode_threads;
    ready = std::max(asked + fetch_s[g % fetch_s.size()], ready) + decode;
    const double due = g > 0 ? take[g - 1] + step : 0;
    take[g] = std::max(due, ready);
    if (g >= skipped) wait += std::max(0.0, ready - due);
  }
  return wait / kReplayGroups;
}

double Runway::OffWait(const std::vector<double>& fetch_s) const {
  return std::accumulate(fetch_s.begin(), fetch_s.end(), 0.0) /
             static_cast<double>(std::max<size_t>(fetch_s.size(), 1)) +
         decode_s_.Mean() / options_.decode_threads;
}

int Runway::LeastDepth(const std::vector<double>& fetch_s, double* wait_below) const {
  // What no depth hides (decoding slower than the step) does not count against a depth.
  const double floor = MeanWait(fetch_s, options_.depth_max);
  const double tolerated = floor + kToleratedShare * OffWait(fetch_s);
  double wait = 0;
  for (int depth = 1; depth < options_.depth_max; ++depth) {
    const double below = wait;
    wait = MeanWait(fetch_s, depth);
    if (wait <= tolerated) {
      if (wait_below != nullptr) *wait_below = below;
      return depth;
    }
  }
  return options_.depth_max;
}

void Runway::Decide() {
  if (options_.fixed_s == 0) return;
  since_decided_s_ = 0;
  DecideFromMeasured();
  // Until a step was measured nobody knows how many batches a second is; memory taken for a guess
  // would stay taken.
  if (step_s_.values.empty()) depth_ = std::min({depth_, kFirstDepth, options_.depth_max});
}

void Runway::DecideFromMeasured() {
  if (options_.fixed_s > 0) {
    const double groups = std::ceil(options_.fixed_s / std::max(step_s(), 1e-4) - 1e-6);
    depth_ = static_cast<int>(std::clamp(groups, 1.0, static_cast<double>(options_.depth_max)));
    return;
  }
  SpreadSlowest();
  const std::vector<double> fitted = FittedFetches();
  if (fitted.empty()) return;
  double wait_below = 0;
  int depth = LeastDepth(fitted, &wait_below);
  if (fetch_s_.values.size() >= 16) depth = std::max(depth, LeastDepth(fetch_s_.values, nullptr));
  wait_one_less_s_ = wait_below;
  const int for_failures = again_share_ > kAgainShare ? 1 : 0;
  depth_ = std::min(depth + bonus_ + for_failures, options_.depth_max);
}

std::string Runway::Explain() const {
  if (options_.fixed_s == 0) return "off: nothing is fetched ahead";
  if (options_.fixed_s > 0) {
    return fmt::format("fixed at {:.3g} s: {} batches of {:.0f} ms", options_.fixed_s, depth_,
                       step_s() * 1e3);
  }
  const LatencyFit fit = Fit();
  if (!fit.valid) return fmt::format("{} batches until latencies are measured", depth_);
  const double inverse = 1.0 / parts_per_group_;
  const double p50 = std::exp(fit.mu + fit.sigma * InverseNormal(std::pow(0.5, inverse)));
  const double p99 = std::exp(fit.mu + fit.sigma * InverseNormal(std::pow(0.99, inverse)));
  return fmt::format(
      "{:.2f} s = {} batches of {:.0f} ms: slowest of {} GETs {:.0f} ms (p50) {:.0f} ms (p99), "
      "decode {:.0f} ms on {} threads; one batch less would wait {:.1f} ms a step{}",
      runway_s(), depth_, step_s() * 1e3, parts_per_group_, p50 * 1e3, p99 * 1e3,
      decode_s_.Mean() * 1e3, options_.decode_threads, wait_one_less_s_ * 1e3,
      bonus_ > 0 ? fmt::format("; {} added after waits", bonus_) : "");
}

}  // namespace forebay::plan
