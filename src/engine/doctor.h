// The looks that Diagnose takes, apart from each other.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "forebay/doctor.h"
#include "store/s3/credentials.h"
#include "store/s3/endpoint.h"
#include "store/sync_store.h"
#include "store/uri.h"
#include "sys/limits.h"

namespace forebay::engine {

using OnFinding = std::function<void(const Finding&)>;

// Pure: what the numbers mean.
Finding JudgeClock(double offset_s);
Finding JudgeOpenFiles(const sys::OpenFileLimit& limit);
Finding JudgeRegion(const std::string& configured, const std::string& told);
// `cold_s`: the first read, connecting included; `warm_s`: those after it.
Finding JudgeFirstBytes(double cold_s, std::vector<double> warm_s, bool file);
// What to do about a request that failed.
std::string FixFor(const Status& status);

// False: nothing beyond it can be looked at.
bool LookAtSettings(const StoreOptions& options, const store::s3::AwsConfig& config,
                    const store::s3::Endpoint& endpoint, const OnFinding& on_finding);
bool LookAtCredentials(const store::s3::AwsConfig& config, const OnFinding& on_finding);
// Names, the way there, its clock and region.
bool LookAtPath(const StoreOptions& options, const store::s3::AwsConfig& config,
                const store::s3::Endpoint& endpoint, const OnFinding& on_finding);
void LookAtObjects(const store::SyncStore& store, const store::Uri& uri,
                   const OnFinding& on_finding);
void LookAtLimits(const OnFinding& on_finding);

}  // namespace forebay::engine
