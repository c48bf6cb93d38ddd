// Where credentials that end come from: each kind of place is a Source. All of this lives on one
// executor, which does nothing else: reading a token's file may take its time there.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "forebay/status.h"
#include "store/s3/credentials.h"
#include "store/s3/credentials/service_call.h"
#include "sys/process.h"

namespace forebay::store::s3 {

struct Fetched {
  Credentials credentials;
  int64_t expires_unix_s = 0;  // 0: never, as far as is known
};
using OnFetched = std::move_only_function<void(Result<Fetched>)>;

class Source {
 public:
  virtual ~Source() = default;
  // One at a time. `on_fetched` runs once, possibly inside this call; not at all when the executor
  // stops first. Errors: kPermissionDenied (refused, or something is missing: what, and what to do
  // about it), kUnavailable (asking again may help). No secret is in any message.
  virtual void Fetch(OnFetched on_fetched) = 0;
};

// What sources stand on; outlives them.
struct SourceContext {
  using OnRun = std::move_only_function<void(Result<sys::ProcessResult>)>;

  Executor& executor;
  ServiceCalls& http;
  Environment environment;
  std::function<int64_t()> unix_time_s;
  // Runs a program off the executor's thread and calls back on it.
  std::function<void(std::vector<std::string> argv, Duration limit, OnRun on_run)> run_program;
  // Replaces a small file of the user's, closed to others.
  std::function<Status(const std::string& path, const std::string& text)> write_file;
  // Where relative URIs of containers lead; tests give their own.
  std::string container_host = "http://169.254.170.2";
};

struct CredentialSpec;
// `spec` must say how to fetch (not kFixed).
std::unique_ptr<Source> MakeSource(const CredentialSpec& spec, SourceContext& context);

}  // namespace forebay::store::s3
