// ObjectStore over the S3 API: one bucket, a single attempt for each operation. Retries, limits and
// meters are decorators around it; see MakeS3Store's users in engine/.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "net/http.h"
#include "store/meter_store.h"
#include "store/object_store.h"
#include "store/s3/credentials.h"
#include "store/s3/credentials_provider.h"

namespace forebay::store::s3 {

struct S3StoreOptions {
  std::string bucket;
  AwsConfig config;  // max_attempts and ca_bundle are for others
  bool request_payer = false;
  Duration connect_timeout = std::chrono::seconds(3);
  Duration first_byte_timeout = std::chrono::seconds(10);
  Duration stall_timeout = std::chrono::seconds(10);
  // Unix seconds, for signing. Tests give their own; null: the system's clock.
  std::function<int64_t()> unix_time_s;
};

// Shares `transport` (and its executor) with other stores; both must outlive the store. Destroy it
// on the executor's thread once nothing is in flight, or after the executor has stopped.
Result<std::shared_ptr<ObjectStore>> MakeS3Store(S3StoreOptions options,
                                                 net::HttpTransport& transport);

// What users get: the same bucket behind all of store/stack.h. `config` comes from
// LoadAwsConfig(options, ..).
Result<std::shared_ptr<MeterStore>> MakeS3Stack(const StoreOptions& options,
                                                const AwsConfig& config, const std::string& bucket,
                                                net::HttpTransport& transport);

}  // namespace forebay::store::s3
