// The composition root of stores: one event loop, one transport, and one ObjectStore per bucket or
// root. What the AWS_* variables and the profile say is read when the first bucket is opened.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "forebay/options.h"
#include "net/http.h"
#include "store/admission.h"
#include "store/meter_store.h"
#include "store/object_store.h"
#include "store/s3/credentials.h"
#include "store/uri.h"
#include "sys/event_loop.h"
#include "sys/thread.h"

namespace forebay::engine {

// What the product leaves as it is; a benchmark does not.
struct StoreTuning {
  bool bare = false;          // no limit of requests in flight, no second ones
  size_t disk_threads = 8;    // blocking reads and writes of files
  bool direct_reads = false;  // of files, past the page cache
};

// Thread-safe. The stores it gives out keep the set alive; the last of them must not be let go on
// the io loop's own thread.
class StoreSet : public std::enable_shared_from_this<StoreSet> {
 public:
  // Errors: kInvalidArgument (options, environment, profile files).
  static Result<std::shared_ptr<StoreSet>> Make(const StoreOptions& options,
                                                const StoreTuning& tuning = {});
  ~StoreSet();
  StoreSet(const StoreSet&) = delete;
  StoreSet& operator=(const StoreSet&) = delete;

  // The store that holds uri.key: of its bucket; of a file, the one rooted at "/". The same store
  // for the same bucket. Errors: kPermissionDenied (no credentials for S3), kInvalidArgument
  // (AWS settings, bucket).
  Result<std::shared_ptr<store::ObjectStore>> StoreFor(const store::Uri& uri) FB_EXCLUDES(mutex_);
  // What each store has done so far, by root URI. Any thread; waits for the io loop's turn.
  std::map<std::string, store::StoreCounters> Counters() FB_EXCLUDES(mutex_);
  sys::EventLoop& io_loop() { return *loop_; }
  const StoreOptions& options() const { return options_; }

 private:
  StoreSet(StoreOptions options, const StoreTuning& tuning)
      : options_(std::move(options)), tuning_(tuning) {}
  Result<std::unique_ptr<store::ObjectStore>> MakeFileStore() FB_REQUIRES(mutex_);
  Result<std::shared_ptr<store::ObjectStore>> MakeBucketStore(const std::string& bucket)
      FB_REQUIRES(mutex_);
  std::shared_ptr<store::ObjectStore> Metered(std::shared_ptr<store::ObjectStore> store)
      FB_REQUIRES(mutex_);
  std::shared_ptr<store::ObjectStore> Share(store::ObjectStore* store);

  StoreOptions options_;
  const StoreTuning tuning_;
  std::unique_ptr<sys::EventLoop> loop_;
  Mutex mutex_;
  // Made when the first store needs them.
  std::unique_ptr<sys::WorkPool> disk_ FB_GUARDED_BY(mutex_);
  std::optional<store::s3::AwsConfig> aws_ FB_GUARDED_BY(mutex_);
  std::unique_ptr<net::HttpTransport> transport_ FB_GUARDED_BY(mutex_);
  std::shared_ptr<store::Admission> admission_ FB_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<store::MeterStore>> meters_ FB_GUARDED_BY(mutex_);
  // By root URI. Never removed while the set lives.
  std::map<std::string, std::shared_ptr<store::ObjectStore>> stores_ FB_GUARDED_BY(mutex_);
};

}  // namespace forebay::engine
