// Diagnose of include/forebay/doctor.h.
#include <fmt/core.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/bytes.h"
#include "engine/doctor.h"
#include "engine/open_catalog.h"
#include "engine/store_set.h"
#include "store/admission.h"
#include "store/s3/s3_store.h"
#include "sys/thread.h"

namespace forebay {
namespace engine {
namespace {

using Level = Finding::Level;

constexpr uint64_t kReadBytes = 64 * 1024;
constexpr int kReads = 16;
constexpr int kObjectsLookedAt = 1000;
constexpr uint64_t kFewFiles = 4096;

Duration Timeout() { return std::chrono::seconds(15); }

// The object itself, or one of the first below the prefix, the first that is large enough.
Result<store::ObjectInfo> FindObject(const store::SyncStore& store, const store::Uri& uri) {
  Status missing;
  if (!uri.key.empty() && !uri.key.ends_with('/')) {
    Result<store::ObjectInfo> object = store.Head(uri.key);
    if (object.ok() || object.code() != Code::kNotFound) return object;
    missing = object.status();
  }
  store::ObjectInfo found;
  int looked_at = 0;
  FB_RETURN_IF_ERROR(store.ListAll(PrefixOf(uri), [&](const store::ObjectInfo& object) {
    if (object.size > found.size || found.key.empty()) found = object;
    return found.size < kReadBytes && ++looked_at < kObjectsLookedAt;
  }));
  if (!found.key.empty()) return found;
  return missing.ok() ? Status(Code::kNotFound, "no object is below it") : missing;
}

Status ReadSome(const store::SyncStore& store, const store::ObjectInfo& object,
                std::vector<double>* seconds) {
  const uint64_t length = std::min(kReadBytes, object.size);
  std::vector<std::byte> buffer(length);
  std::mt19937_64 random(std::random_device{}());
  for (int i = 0; i < kReads; ++i) {
    const uint64_t places = object.size - length + 1;
    const uint64_t offset = random() % places / 4096 * 4096;
    const auto begin = std::chrono::steady_clock::now();
    FB_ASSIGN_OR_RETURN(const store::ReadResult read,
                        store.Read({.key = object.key,
                                    .etag = object.etag,
                                    .range = {offset, offset + length},
                                    .target = {buffer}}));
    const Duration whole = std::chrono::steady_clock::now() - begin;
    // The first has to connect: what a caller waits for is all of it.
    seconds->push_back(std::chrono::duration<double>(i == 0 ? whole : read.first_byte).count());
  }
  return {};
}

}  // namespace

void LookAtObjects(const store::SyncStore& store, const store::Uri& uri,
                   const OnFinding& on_finding) {
  const bool file = uri.scheme == store::Uri::Scheme::kFile;
  const Result<store::ObjectInfo> object = FindObject(store, uri);
  if (!object.ok()) {
    const bool empty = object.code() == Code::kNotFound && object.status().detail().uri.empty();
    on_finding({.check = "access",
                .level = empty ? Level::kWarning : Level::kFailure,
                .text = object.status().ToString(),
                .fix = empty ? "name an object, or a prefix that holds some, to see reads measured"
                             : FixFor(object.status()),
                .status = empty ? Status() : object.status()});
    return;
  }
  on_finding({.check = "access",
              .text = fmt::format("{}/{} is there, {}", store.async().root_uri(), object->key,
                                  FormatSize(object->size))});
  if (object->size == 0) return;
  std::vector<double> seconds;
  const Status read = ReadSome(store, *object, &seconds);
  if (!read.ok()) {
    on_finding({.check = "first byte",
                .level = Level::kFailure,
                .text = read.ToString(),
                .fix = FixFor(read),
                .status = read});
    return;
  }
  const double cold = seconds.front();
  seconds.erase(seconds.begin());
  on_finding(JudgeFirstBytes(cold, std::move(seconds), file));
}

void LookAtLimits(const OnFinding& on_finding) {
  on_finding(JudgeOpenFiles(sys::OpenFiles()));
  const double quota = sys::CpuQuota();
  const int cpus = sys::CpuCount();
  const bool tight = quota > 0 && quota < cpus;
  on_finding(
      {.check = "cpus",
       .level = tight ? Level::kNote : Level::kOk,
       .text = tight ? fmt::format("{} may be used, {:.1f} of them at a time", cpus, quota)
                     : fmt::format("{} may be used", cpus),
       .fix = tight ? "set decode_threads= to what the quota allows, or raise the quota" : ""});
  on_finding(
      {.check = "memory",
       .text = fmt::format("{} for this machine or container; a loader takes its memory= and "
                           "the batches that are held",
                           FormatSize(sys::MemoryLimitBytes()))});
  const store::LimitOptions limits;
  on_finding(
      {.check = "requests",
       .text = fmt::format("from {} up to {} in flight to a host, as more pays; {} kept for "
                           "demand",
                           limits.in_flight_first, limits.in_flight, limits.kept_for_demand)});
}

Finding JudgeOpenFiles(const sys::OpenFileLimit& limit) {
  const bool few = limit.soft < kFewFiles;
  return {
      .check = "open files",
      .level = few ? Level::kWarning : Level::kOk,
      .text = fmt::format("{} may be open, {} at most", limit.soft, limit.hard),
      .fix = few ? fmt::format("ulimit -n {} before the program, or LimitNOFILE= of its service",
                               std::min<uint64_t>(limit.hard, 65'536))
                 : ""};
}

Finding JudgeFirstBytes(double cold_s, std::vector<double> warm_s, bool file) {
  std::ranges::sort(warm_s);
  const double median = warm_s.empty() ? cold_s : warm_s[warm_s.size() / 2];
  const double slowest = warm_s.empty() ? cold_s : warm_s.back();
  // S3 takes 100 to 200 ms at the median where it is busy; a disk is far below that.
  const double slow = file ? 0.1 : 0.3;
  return {
      .check = "first byte",
      .level = median > slow ? Level::kWarning : Level::kOk,
      .text = fmt::format("{:.1f} ms the first time, then {:.1f} ms at the median, {:.1f} ms the "
                          "slowest of {}",
                          cold_s * 1e3, median * 1e3, slowest * 1e3, warm_s.size()),
      .fix = median > slow ? "look for another region or a proxy on the way; `forebay bench store` "
                             "shows the whole distribution"
                           : ""};
}

namespace {

// Where the store said more than its status does; "" elsewhere.
std::string FixForAnswer(const Status& status) {
  const std::string_view text = status.message();
  const auto says = [text](std::string_view code) { return text.contains(code); };
  if (says("SignatureDoesNotMatch")) {
    return "the secret key is not that of the access key: set AWS_SECRET_ACCESS_KEY anew, or a "
           "proxy on the way changes requests";
  }
  if (says("RequestTimeTooSkewed")) return "set this machine's clock: chronyc makestep, or ntpd";
  if (says("InvalidAccessKeyId")) return "the store does not know AWS_ACCESS_KEY_ID: set another";
  if (says("ExpiredToken") || says("InvalidToken")) return "get new credentials; these are over";
  return "";
}

}  // namespace

std::string FixFor(const Status& status) {
  const bool answered = status.detail().http_status != 0;
  if (answered) {
    if (std::string fix = FixForAnswer(status); !fix.empty()) return fix;
  } else if (status.detail().uri.starts_with("file:")) {
    if (status.code() == Code::kNotFound) return "check the path";
    if (status.code() == Code::kPermissionDenied) {
      return "let this user read the file and pass through its folders";
    }
  }
  switch (status.code()) {
    case Code::kPermissionDenied:
      return answered ? "allow s3:ListBucket on the bucket and "
                        "s3:GetObject on its objects to who signs; "
                        "--request-payer requester where the reader pays"
                      : "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY "
                        "or a profile, or attach a role; "
                        "--no-sign-request for public buckets";
    case Code::kNotFound:
      return "check the bucket's and the object's name, and --endpoint-url";
    case Code::kUnavailable:
      if (answered) return "the service is in trouble, or restarts: try again in a while";
      [[fallthrough]];
    case Code::kDeadlineExceeded:
      return "check --endpoint-url, routes, security groups and proxies on the way";
    case Code::kResourceExhausted:
      return "the store asks to slow down: spread keys over prefixes, or start fewer processes";
    case Code::kInvalidArgument:
      return !answered ? "check --endpoint-url; a certificate of your own needs --ca-bundle FILE"
                       : "check the region and the endpoint";
    default:
      return "run again with --log trace to see each request";
  }
}

namespace {

Status DiagnoseS3(const store::Uri& uri, const StoreOptions& options, const OnFinding& on_finding) {
  const auto fail = [&](const char* check, const Status& status, std::string fix) {
    on_finding({.check = check,
                .level = Level::kFailure,
                .text = status.ToString(),
                .fix = std::move(fix),
                .status = status});
  };
  const auto environment = store::s3::Environment::Process();
  auto config = store::s3::LoadAwsConfig(options, environment);
  Status loaded = config.status();
  if (loaded.ok()) {
    loaded = store::s3::OpenCredentials(*config, environment, options.verify_ssl);
  }
  if (!loaded.ok()) {
    const bool keys = loaded.code() == Code::kPermissionDenied;
    fail(keys ? "credentials" : "settings", loaded,
         keys ? FixFor(loaded) : "correct the setting that the text names");
    return {};
  }
  const store::s3::S3StoreOptions store_options{.bucket = uri.bucket, .config = *config};
  const auto endpoint = store::s3::ResolveEndpoint(store_options.EndpointFor(config->region));
  if (!endpoint.ok()) {
    fail("settings", endpoint.status(), "correct the setting that the text names");
    return {};
  }
  if (!LookAtSettings(options, *config, *endpoint, on_finding)) return {};
  const bool reached = LookAtPath(options, *config, *endpoint, on_finding);
  const bool signs = LookAtCredentials(*config, on_finding);
  if (!reached || !signs) return {};
  FB_ASSIGN_OR_RETURN(const auto stores, StoreSet::Make(options));
  auto store = stores->StoreFor(uri);
  if (!store.ok()) {
    fail("access", store.status(), FixFor(store.status()));
    return {};
  }
  LookAtObjects(store::SyncStore(*std::move(store), Timeout()), uri, on_finding);
  return {};
}

}  // namespace
}  // namespace engine

Status Diagnose(const std::string& uri, const StoreOptions& store,
                const std::function<void(const Finding&)>& on_finding) {
  FB_RETURN_IF_ERROR(store.Validate());
  FB_ASSIGN_OR_RETURN(const store::Uri parsed, store::ParseUri(uri));
  if (parsed.scheme == store::Uri::Scheme::kS3) {
    FB_RETURN_IF_ERROR(engine::DiagnoseS3(parsed, store, on_finding));
  } else {
    FB_ASSIGN_OR_RETURN(const auto stores, engine::StoreSet::Make(store));
    FB_ASSIGN_OR_RETURN(auto files, stores->StoreFor(parsed));
    engine::LookAtObjects(store::SyncStore(std::move(files), engine::Timeout()), parsed,
                          on_finding);
  }
  engine::LookAtLimits(on_finding);
  return {};
}

}  // namespace forebay
