#include "net/shared_lookup.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <thread>

#include "base/hash.h"
#include "sys/shared_file.h"

namespace forebay::net {
namespace {

using Answer = Result<std::vector<sys::IpAddress>>;

constexpr int64_t kAnswerFreshMs = 10'000;
constexpr int64_t kFailureFreshMs = 1'000;
constexpr std::chrono::seconds kLockPatience(6);  // a lookup's first timeout and a little
constexpr std::chrono::milliseconds kFirstPause(2);
constexpr std::chrono::milliseconds kLongestPause(50);
constexpr size_t kMaxAddresses = 128;

int64_t NowMs() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
}

// A line "1 TIME", then one address a line, or one line "failed: WHY".
std::string Format(const Answer& answer) {
  std::string text = fmt::format("1 {}\n", NowMs());
  if (!answer.ok()) return text + fmt::format("failed: {}\n", answer.status().message());
  for (const sys::IpAddress& ip : *answer) text += ip.ToString() + "\n";
  return text;
}

std::optional<Answer> Parse(std::string_view text) {
  const auto line = [&text] {
    const size_t end = text.find('\n');
    const std::string_view first = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    return first;
  };
  const std::string_view head = line();
  if (!head.starts_with("1 ")) return std::nullopt;
  int64_t at = 0;
  std::from_chars(head.data() + 2, head.data() + head.size(), at);
  const int64_t age = NowMs() - at;
  if (text.starts_with("failed: ")) {
    if (age < 0 || age > kFailureFreshMs) return std::nullopt;
    return Status(Code::kUnavailable, std::string(line().substr(8)));
  }
  if (age < 0 || age > kAnswerFreshMs) return std::nullopt;
  std::vector<sys::IpAddress> addresses;
  while (!text.empty() && addresses.size() < kMaxAddresses) {
    const std::optional<sys::IpAddress> ip = sys::ParseIpAddress(line());
    if (!ip) return std::nullopt;
    addresses.push_back(*ip);
  }
  if (addresses.empty()) return std::nullopt;
  return addresses;
}

std::optional<Answer> ReadAnswer(const sys::SharedFile& file) {
  const Result<std::string> text = file.Read();
  return text.ok() ? Parse(*text) : std::nullopt;
}

}  // namespace

Answer LookUpShared(const std::string& host, const std::string& runtime_dir,
                    const BlockingLookup& look_up) {
  const Result<sys::SharedFile> file =
      sys::SharedFile::Open(runtime_dir, "dns-" + HashBytes(AsBytes(host)).ToHex());
  if (!file.ok()) return look_up(host);
  const auto give_up = std::chrono::steady_clock::now() + kLockPatience;
  for (auto pause = kFirstPause;; pause = std::min(pause * 2, kLongestPause)) {
    if (auto known = ReadAnswer(*file)) return *std::move(known);
    const auto lock = file->TryLock();
    if (!lock.ok()) return look_up(host);
    if (lock->has_value()) {
      // Whoever had it before may have written in between.
      if (auto known = ReadAnswer(*file)) return *std::move(known);
      Answer answer = look_up(host);
      // An interface's number means nothing in its text.
      const bool plain = !answer.ok() ||
                         std::ranges::all_of(*answer, [](const auto& ip) { return ip.scope == 0; });
      if (plain) (void)file->Write(**lock, Format(answer));  // else each looks up for itself
      return answer;
    }
    if (std::chrono::steady_clock::now() >= give_up) return look_up(host);
    std::this_thread::sleep_for(pause);
  }
}

}  // namespace forebay::net
