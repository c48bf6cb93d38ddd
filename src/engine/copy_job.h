// One Store::Copy: objects and their parts on a pool of threads that read, then write, one part
// each; memory is bounded by a budget of buffers.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "engine/copy_sink.h"
#include "forebay/store.h"
#include "store/sync_store.h"
#include "sys/thread.h"

namespace forebay::engine {

class CopyJob {
 public:
  // Both must outlive the job, and be its own: cancelling cancels them as stores.
  CopyJob(store::SyncStore* source, store::SyncStore* target);
  ~CopyJob();

  bool has_destination() const { return destination_ != nullptr; }
  // Once, before the first Add.
  void SetDestination(std::unique_ptr<CopyDestination> destination);
  // Objects as a listing gives them; `name`: below the destination's prefix. Blocks while many are
  // in flight. Errors: kCancelled.
  Status Add(const store::ObjectInfo& object, const std::string& name);
  // One object in order into what is written, never replaced: a device, a FIFO. In place of all
  // else.
  Result<CopyReport> Stream(const store::ObjectInfo& object, const std::string& path)
      FB_EXCLUDES(mutex_);
  void LeaveOut(const store::ListSkip& skip) FB_EXCLUDES(mutex_);
  // Waits for all. Errors: kCancelled. A failed object is in the report.
  Result<CopyReport> Finish();

  // Any thread, both. What is in flight ends at once, and nothing begins any more.
  void Cancel();
  CopyProgress Progress() FB_EXCLUDES(mutex_);

 private:
  struct ObjectCopy;
  // What counts the bytes of parts under way, each with how many there were when that was last
  // asked for. Of a download what has been read, of an upload what has been written.
  struct UnderWay {
    Mutex mutex;
    std::map<const uint64_t*, uint64_t> counters FB_GUARDED_BY(mutex);
  };
  // A counter, while it is looked at.
  class Counted {
   public:
    Counted(UnderWay& all, const uint64_t* counter);
    ~Counted();
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

   private:
    UnderWay& all_;
    const uint64_t* counter_;
  };
  using Task = std::move_only_function<void()>;

  Status Start();
  // Until fewer than `limit` tasks are in flight.
  Status WaitBelow(size_t limit) FB_EXCLUDES(mutex_);
  Status Submit(Task task) FB_EXCLUDES(mutex_);
  void CopyWhole(const store::ObjectInfo& object, const std::string& name);
  Status CopyPart(ObjectCopy& copy, uint64_t index);
  Status Fetch(const store::ObjectInfo& object, ByteRange range, MutableBytes into);
  Status Write(CopySink& sink, uint64_t index, ByteView bytes);
  uint64_t BytesUnderWay();
  void EndPart(ObjectCopy& copy, Status status);
  void EndObject(ObjectCopy& copy, Status status) FB_EXCLUDES(mutex_);
  void Count(const store::ObjectInfo& object, Status status, bool skipped) FB_EXCLUDES(mutex_);
  PartSource SourceOf(const store::ObjectInfo& object) const;

  // Buffers of parts; TakeBuffer waits for room.
  std::unique_ptr<std::byte[]> TakeBuffer(uint64_t bytes) FB_EXCLUDES(mutex_);
  void GiveBuffer(std::unique_ptr<std::byte[]> buffer, uint64_t bytes) FB_EXCLUDES(mutex_);

  store::SyncStore* source_;
  store::SyncStore* target_;
  const size_t threads_;
  std::unique_ptr<CopyDestination> destination_;
  std::atomic<bool> cancelled_{false};
  std::atomic<uint64_t> bytes_done_{0};
  std::atomic<bool> counts_writes_{false};
  const std::shared_ptr<UnderWay> under_way_ = std::make_shared<UnderWay>();

  Mutex mutex_;
  std::condition_variable_any changed_;
  size_t in_flight_ FB_GUARDED_BY(mutex_) = 0;
  uint64_t buffer_bytes_ FB_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<std::byte[]>> spare_ FB_GUARDED_BY(mutex_);
  CopyReport report_ FB_GUARDED_BY(mutex_);
  CopyProgress progress_ FB_GUARDED_BY(mutex_);
  std::unique_ptr<sys::WorkPool> pool_;  // goes first
};

}  // namespace forebay::engine
