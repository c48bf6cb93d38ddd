// ObjectStore over the S3 API: one bucket, a single attempt for each operation. Retries, limits and
// meters are decorators around it; see MakeS3Store's users in engine/.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"
#include "store/admission.h"
#include "store/meter_store.h"
#include "store/object_store.h"
#include "store/s3/credentials.h"
#include "store/s3/credentials_provider.h"
#include "store/s3/endpoint.h"
#include "store/stack.h"

namespace forebay::store::s3 {

// How far the servers' clock is ahead of this machine's, as they told when they refused a request.
// Any thread.
class ClockOffset {
 public:
  int64_t offset_s() const { return offset_s_.load(std::memory_order_relaxed); }
  void Set(int64_t offset_s) { offset_s_.store(offset_s, std::memory_order_relaxed); }
  // The one that all stores of the process share.
  static std::shared_ptr<ClockOffset> OfProcess();

 private:
  std::atomic<int64_t> offset_s_ = 0;
};

struct S3StoreOptions {
  std::string bucket;
  AwsConfig config;  // max_attempts and ca_bundle are for others
  bool request_payer = false;
  Duration connect_timeout = std::chrono::seconds(3);
  Duration first_byte_timeout = std::chrono::seconds(10);
  Duration stall_timeout = std::chrono::seconds(10);
  // Unix seconds, for signing. Tests give their own; null: the system's clock.
  std::function<int64_t()> unix_time_s;
  std::shared_ptr<ClockOffset> clock;  // null: the process's

  // The bucket's endpoint if it is in `region`.
  EndpointOptions EndpointFor(const std::string& region) const;
};

// Shares `transport` (and its executor) with other stores; both must outlive the store. Destroy it
// on the executor's thread once nothing is in flight, or after the executor has stopped.
Result<std::shared_ptr<ObjectStore>> MakeS3Store(S3StoreOptions options,
                                                 net::HttpTransport& transport);

// What users get: the same bucket behind all of store/stack.h. `config` comes from
// LoadAwsConfig(options, ..). `admission` is shared by the stores of one transport; null: its own.
Result<std::shared_ptr<MeterStore>> MakeS3Stack(const StoreOptions& options,
                                                const AwsConfig& config, const std::string& bucket,
                                                net::HttpTransport& transport,
                                                StackOptions stack = {});

}  // namespace forebay::store::s3
