#include "store/s3/core.h"

#include <fmt/core.h>

#include <array>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "base/log.h"
#include "store/s3/operation.h"

namespace forebay::store::s3 {
namespace {

// In the order in which they are tried.
constexpr std::array kOfBuckets{ChecksumKind::kCrc64Nvme, ChecksumKind::kCrc32c,
                                ChecksumKind::kNone};
constexpr std::array kOfDirectories{ChecksumKind::kCrc32c, ChecksumKind::kCrc64Nvme,
                                    ChecksumKind::kNone};

S3StoreOptions WithClock(S3StoreOptions options) {
  if (!options.clock) options.clock = ClockOffset::OfProcess();
  return options;
}

}  // namespace

std::shared_ptr<ClockOffset> ClockOffset::OfProcess() {
  static const auto offset = std::make_shared<ClockOffset>();
  return offset;
}

void Facts::Keep(const std::string& name, std::string fact) {
  if (facts_.size() >= kMost && !facts_.contains(name)) facts_.clear();
  facts_[name] = std::move(fact);
}

const std::string& Facts::Find(const std::string& name) const {
  static const std::string unknown;
  const auto found = facts_.find(name);
  return found == facts_.end() ? unknown : found->second;
}

Core::Core(S3StoreOptions given, Endpoint where, net::HttpTransport& http,
           std::shared_ptr<CredentialsProvider> signs, std::string_view token_header)
    : options(WithClock(std::move(given))),
      root_uri("s3://" + options.bucket),
      transport(http),
      credentials(http.executor(), std::move(signs)),
      endpoint_(std::move(where)),
      token_header_(token_header) {
  signer_.emplace(endpoint_.region, endpoint_.service);
}

Core::~Core() = default;

Core::Place* Core::Find(ObjectStore::OpId id) {
  const auto at = static_cast<uint32_t>(id);
  if (at >= operations_.size()) return nullptr;
  Place& place = operations_[at];
  return place.operation != nullptr && place.uses == id >> 32 ? &place : nullptr;
}

ObjectStore::OpId Core::Start(std::unique_ptr<Operation> operation) {
  FB_ASSERT(transport.executor().InThread());
  if (free_places_.empty()) {
    free_places_.push_back(static_cast<uint32_t>(operations_.size()));
    operations_.emplace_back();
  }
  const uint32_t at = free_places_.back();
  free_places_.pop_back();
  Place& place = operations_[at];
  const ObjectStore::OpId id = ObjectStore::OpId{++place.uses} << 32 | at;
  place.operation = std::move(operation);
  Operation& op = *place.operation;
  op.Launch(id);
  return id;
}

void Core::Cancel(ObjectStore::OpId id) {
  FB_ASSERT(transport.executor().InThread());
  Place* place = Find(id);
  if (place == nullptr) return;
  Operation& op = *place->operation;
  if (op.ticket_ != 0) {
    credentials.Cancel(std::exchange(op.ticket_, 0));
    op.FinishLater(Status(Code::kCancelled, "the request was cancelled"));
  } else {
    transport.Cancel(op.request_id_);
  }
}

std::unique_ptr<Operation> Core::Take(ObjectStore::OpId id) {
  Place* place = Find(id);
  FB_ASSERT(place != nullptr);
  free_places_.push_back(static_cast<uint32_t>(id));
  return std::move(place->operation);
}

bool Core::MoveTo(const std::string& region) {
  if (!IsRegionName(region) || region == endpoint_.region || !endpoint_.region_follows)
    return false;
  Result<Endpoint> moved = ResolveEndpoint(options.EndpointFor(region));
  if (!moved.ok()) return false;
  Log(LogLevel::kInfo, fmt::format("{} is in region {}, not {}: setting it saves a round trip",
                                   root_uri, region, endpoint_.region));
  endpoint_ = *std::move(moved);
  signer_.emplace(endpoint_.region, endpoint_.service);
  ++moves_;
  return true;
}

int64_t Core::LocalTime() const {
  return options.unix_time_s ? options.unix_time_s() : ::time(nullptr);
}

bool Core::SaysSupported(const std::string& setting) const {
  if (!setting.empty()) return setting == "when_supported";
  return endpoint_.is_aws;
}

bool Core::AsksForChecksums() const { return SaysSupported(options.config.response_checksum); }

ChecksumKind Core::checksum() const {
  if (!SaysSupported(options.config.request_checksum)) return ChecksumKind::kNone;
  return (endpoint_.directory_bucket ? kOfDirectories : kOfBuckets)[refused_checksums_];
}

ChecksumKind Core::ChecksumOfUpload(const std::string& id) const {
  const std::string& named = upload_checksums.Find(id);
  return named.empty() ? checksum() : ChecksumNamed(named);
}

void Core::RefuseChecksum(ChecksumKind kind) {
  if (kind == ChecksumKind::kNone || kind != checksum()) return;  // another was told the same
  ++refused_checksums_;
  const ChecksumKind next = checksum();
  Log(LogLevel::kInfo,
      fmt::format("{} takes no {} with a write: {} from now on", root_uri, ChecksumName(kind),
                  next == ChecksumKind::kNone ? "no checksum" : ChecksumName(next)));
}

}  // namespace forebay::store::s3
