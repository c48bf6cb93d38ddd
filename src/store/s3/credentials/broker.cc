#include "store/s3/credentials/broker.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "store/s3/credentials/flat_json.h"

namespace forebay::store::s3 {
namespace {

constexpr char kVersion[] = "1";
constexpr int64_t kAdvisory = 15 * 60;
// Who gives credentials without an end says nothing about when others will be right: they serve the
// start of a job.
constexpr int64_t kEndless = 5 * 60;
constexpr int64_t kLongestBackoff = 60;
constexpr int64_t kOutageOver = 600;
// The holder of the lock may be slow, as the service is; stopped for good it must not hold us.
constexpr std::chrono::seconds kLockPatience(30);
constexpr std::chrono::milliseconds kFirstPause(5);
constexpr std::chrono::milliseconds kLongestPause(100);

}  // namespace

Broker::Broker(SourceContext& context, std::unique_ptr<Source> source,
               std::optional<sys::SharedFile> file)
    : context_(context), source_(std::move(source)), file_(std::move(file)) {}

void Broker::Fetch(std::string rejected, OnFetched on_fetched) {
  rejected_ = std::move(rejected);
  on_fetched_ = std::move(on_fetched);
  give_up_ = context_.executor.Now() + kLockPatience;
  pause_ = kFirstPause;
  if (file_) {
    Look();
  } else {
    Ask();
  }
}

Broker::Record Broker::ReadRecord() const {
  Record record;
  const Result<std::string> text = file_->Read();
  if (!text.ok()) return record;
  const Result<FlatJson> values = ParseFlatJson(*text);
  if (!values.ok() || TextOf(*values, "version") != kVersion) return record;
  record.fetched.credentials = {.access_key_id = TextOf(*values, "id"),
                                .secret_access_key = TextOf(*values, "secret"),
                                .session_token = TextOf(*values, "token")};
  record.fetched.expires_unix_s = NumberOf(*values, "expires");
  record.fetched_at = NumberOf(*values, "fetched_at");
  record.failures = static_cast<int>(std::clamp<int64_t>(NumberOf(*values, "failures"), 0, 1000));
  record.not_before = NumberOf(*values, "not_before");
  const int64_t code = NumberOf(*values, "code");
  record.code = code == static_cast<int64_t>(Code::kPermissionDenied) ? Code::kPermissionDenied
                                                                      : Code::kUnavailable;
  record.message = TextOf(*values, "message");
  return record;
}

void Broker::WriteRecord(const Record& record) {
  const Status status = file_->Write(
      *lock_, WriteFlatJson({{"version", kVersion},
                             {"id", record.fetched.credentials.access_key_id},
                             {"secret", record.fetched.credentials.secret_access_key},
                             {"token", record.fetched.credentials.session_token},
                             {"expires", std::to_string(record.fetched.expires_unix_s)},
                             {"fetched_at", std::to_string(record.fetched_at)},
                             {"failures", std::to_string(record.failures)},
                             {"not_before", std::to_string(record.not_before)},
                             {"code", std::to_string(static_cast<int>(record.code))},
                             {"message", record.message}}));
  if (!status.ok()) {
    Log(LogLevel::kInfo, "credentials are not shared with other processes: " + status.ToString());
  }
}

bool Broker::Usable(const Record& record) const {
  const Fetched& fetched = record.fetched;
  return !fetched.credentials.access_key_id.empty() &&
         !fetched.credentials.secret_access_key.empty() &&
         fetched.credentials.access_key_id != rejected_ &&
         (fetched.expires_unix_s == 0 || context_.unix_time_s() < fetched.expires_unix_s);
}

bool Broker::Fresh(const Record& record) const {
  const int64_t now = context_.unix_time_s();
  if (record.fetched_at > now + kAdvisory) return false;  // by a clock that was wrong
  if (record.fetched.expires_unix_s == 0) return now < record.fetched_at + kEndless;
  // RefreshOptions' window with the most jitter that any process adds: whoever wants to renew them
  // finds them stale.
  const int64_t life = record.fetched.expires_unix_s - record.fetched_at;
  const int64_t window = std::min(kAdvisory * 6 / 5, (std::max<int64_t>(0, life) * 3 + 9) / 10);
  return now < record.fetched.expires_unix_s - window;
}

bool Broker::EndFromRecord(const Record& record) {
  if (Usable(record) && Fresh(record)) {
    End(record.fetched);
    return true;
  }
  const int64_t now = context_.unix_time_s();
  if (now >= record.not_before || record.not_before > now + kLongestBackoff) return false;
  // Another process was turned away a moment ago.
  if (Usable(record)) {
    End(record.fetched);
  } else {
    End(Status(record.code, record.message));
  }
  return true;
}

void Broker::Look() {
  if (EndFromRecord(ReadRecord())) return;
  Result<std::optional<sys::FileLock>> lock = file_->TryLock();
  if (!lock.ok()) return Ask();
  lock_ = *std::move(lock);
  if (lock_) {
    // Whoever had it before may have written in between.
    if (!EndFromRecord(ReadRecord())) Ask();
    return;
  }
  const Time now = context_.executor.Now();
  if (now >= give_up_) return Ask();
  context_.executor.PostAt(now + pause_, [this] { Look(); });
  pause_ = std::min<Duration>(pause_ * 2, kLongestPause);
}

void Broker::Ask() {
  ++fetches_;
  source_->Fetch([this](Result<Fetched> fetched) { OnAsked(std::move(fetched)); });
}

void Broker::OnAsked(Result<Fetched> fetched) {
  if (!lock_) return End(std::move(fetched));
  Record record = ReadRecord();
  const int64_t now = context_.unix_time_s();
  if (fetched.ok()) {
    WriteRecord({.fetched = *fetched, .fetched_at = now});
    return End(std::move(fetched));
  }
  if (fetched.code() == Code::kCancelled) return End(std::move(fetched));
  const bool usable = Usable(record);
  if (!usable) record.fetched = {};
  // A refusal lasts until somebody changes something, and then they want to try at once.
  const bool passing = fetched.code() == Code::kUnavailable;
  if (!passing || record.not_before + kOutageOver < now) record.failures = 0;
  record.not_before = now + std::min(kLongestBackoff, int64_t{1} << std::min(record.failures, 10));
  ++record.failures;
  record.code = fetched.code();
  record.message = fetched.status().ToString();
  const std::string prefix = fmt::format("{}: ", CodeName(fetched.code()));
  if (record.message.starts_with(prefix)) record.message.erase(0, prefix.size());
  WriteRecord(record);
  if (usable) return End(std::move(record.fetched));
  End(std::move(fetched));
}

void Broker::End(Result<Fetched> result) {
  lock_.reset();
  std::exchange(on_fetched_, nullptr)(std::move(result));
}

}  // namespace forebay::store::s3
