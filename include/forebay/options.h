// How to reach object stores. Facts, not knobs; every default is safe.
#pragma once

#include <cstdint>
#include <string>

#include "forebay/status.h"

namespace forebay {

// Empty strings mean: as the AWS_* environment and profile files say.
struct StoreOptions {
  std::string endpoint_url;  // "http://127.0.0.1:8333"; else AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL
  std::string region;        // else AWS_REGION, AWS_DEFAULT_REGION, profile, us-east-1
  std::string profile;       // else AWS_PROFILE
  std::string ca_bundle;     // PEM file; else AWS_CA_BUNDLE, the system's
  bool no_sign_request = false;  // anonymous
  bool request_payer = false;
  bool verify_ssl = true;
  // "auto": virtual-host style, but path style for custom endpoints and buckets with dots;
  // "path"; "virtual".
  std::string addressing_style = "auto";
  int max_attempts = 0;                 // per request, first included; 0: AWS_MAX_ATTEMPTS, else 5
  int64_t request_timeout_ms = 60'000;  // all attempts of a request; longer by bytes moved
  // Bytes a second that S3 may take, reading and writing, of all of this user's processes on the
  // node together, each of which has to say so; 0: FOREBAY_NODE_BANDWIDTH ("2.5GB"), else no limit.
  uint64_t node_bandwidth = 0;

  FOREBAY_API Status Validate() const;
};

// The level of the log on stderr, of the whole process: "error", "warn" (at first), "info",
// "debug" or "trace". Errors: kInvalidArgument for another name.
FOREBAY_API Status ConfigureLog(const std::string& level);

// Kills the programs that are being run for credentials, with what they have started.
// Async-signal-safe: for the handler of a signal that ends the process. exit() does it by itself.
FOREBAY_API void EndPrograms();

}  // namespace forebay
