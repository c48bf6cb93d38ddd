#include "engine/copy_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "sys/stream_file.h"

namespace forebay::engine {
namespace {

// Enough requests in flight for small objects at S3's latency; long parts are held back by the
// budget of buffers.
constexpr size_t kThreads = 32;
constexpr size_t kInFlightLimit = 2 * kThreads;
constexpr uint64_t kBufferLimitBytes = kCopyBytesInFlight;
constexpr uint64_t kStreamBytes = 8ULL << 20;
constexpr size_t kMaxFailures = 100;

}  // namespace

// An object of several parts. Shared by the tasks of its parts; the last of them ends it.
struct CopyJob::ObjectCopy {
  store::ObjectInfo info;
  std::unique_ptr<CopySink> sink;
  std::atomic<uint64_t> parts_left{0};
  std::atomic<bool> failed{false};
  Mutex mutex;
  Status status FB_GUARDED_BY(mutex);  // the first failure
};

CopyJob::CopyJob(store::SyncStore* source, store::SyncStore* target)
    : source_(source), target_(target) {}

CopyJob::~CopyJob() {
  if (pool_) pool_->Stop();
}

Status CopyJob::Start() {
  if (pool_) return {};
  FB_ASSIGN_OR_RETURN(
      pool_,
      sys::WorkPool::Make({.name = "fb-copy", .threads = kThreads, .queue_limit = kInFlightLimit}));
  return {};
}

CopyProgress CopyJob::Progress() {
  const uint64_t under_way = BytesUnderWay();
  const MutexLock lock(mutex_);
  CopyProgress progress = progress_;
  progress.bytes_done = std::min(bytes_done_ + under_way, progress.bytes_total);
  progress.objects_done = report_.objects_copied + report_.objects_skipped + report_.objects_failed;
  return progress;
}

void CopyJob::SetDestination(std::unique_ptr<CopyDestination> destination) {
  destination_ = std::move(destination);
}

void CopyJob::Cancel() {
  cancelled_ = true;
  source_->CancelAll();
  target_->CancelAll();
}

void CopyJob::LeaveOut(const store::ListSkip& skip) {
  const MutexLock lock(mutex_);
  ++report_.objects_left_out;
  if (report_.left_out.size() >= kMaxFailures) return;
  report_.left_out.push_back({source_->async().root_uri() + "/" + skip.key, skip.why});
}

Status CopyJob::WaitBelow(size_t limit) {
  {
    const MutexLock lock(mutex_);
    while (in_flight_ >= limit) changed_.wait(mutex_);
  }
  return cancelled_ ? Status(Code::kCancelled, "the copy was stopped") : Status();
}

Status CopyJob::Submit(Task task) {
  FB_RETURN_IF_ERROR(WaitBelow(kInFlightLimit));
  {
    const MutexLock lock(mutex_);
    ++in_flight_;
  }
  forebay::Task wrapped = [this, task = std::move(task)]() mutable {
    task();
    const MutexLock lock(mutex_);
    --in_flight_;
    changed_.notify_all();
  };
  // The queue holds all that may be in flight, so it is full only when the pool has stopped.
  return pool_->Submit(std::move(wrapped));
}

PartSource CopyJob::SourceOf(const store::ObjectInfo& object) const {
  return {.uri = source_->async().root_uri() + "/" + object.key,
          .etag = object.etag,
          .size = object.size};
}

Status CopyJob::Add(const store::ObjectInfo& object, const std::string& name) {
  FB_RETURN_IF_ERROR(Start());
  {
    const MutexLock lock(mutex_);
    ++progress_.objects_total;
    progress_.bytes_total += object.size;
  }
  if (object.size <= destination_->part_bytes()) {
    return Submit([this, object, name] { CopyWhole(object, name); });
  }
  FB_RETURN_IF_ERROR(WaitBelow(kInFlightLimit));
  auto copy = std::make_shared<ObjectCopy>();
  copy->info = object;
  Result<std::unique_ptr<CopySink>> sink = destination_->Begin(name, SourceOf(object));
  if (!sink.ok() || (*sink)->already_there()) {
    if (sink.ok()) bytes_done_ += object.size;
    Count(object, sink.status(), sink.ok());
    return {};
  }
  copy->sink = *std::move(sink);
  // One more than there are parts: this thread's, so that no part ends the object too early.
  copy->parts_left = copy->sink->part_count() + 1;
  for (uint64_t i = 0; i < copy->sink->part_count(); ++i) {
    if (copy->sink->done(i) || copy->failed) {
      bytes_done_ += copy->sink->part(i).size();
      EndPart(*copy, {});
      continue;
    }
    Status status = Submit([this, copy, i] { EndPart(*copy, CopyPart(*copy, i)); });
    if (!status.ok()) EndPart(*copy, std::move(status));
  }
  EndPart(*copy, {});
  return {};
}

void CopyJob::CopyWhole(const store::ObjectInfo& object, const std::string& name) {
  if (cancelled_) return Count(object, Status(Code::kCancelled, "the copy was stopped"), false);
  ObjectCopy copy;
  copy.info = object;
  Result<std::unique_ptr<CopySink>> sink = destination_->Begin(name, SourceOf(object));
  if (!sink.ok()) return Count(object, std::move(sink).status(), false);
  copy.sink = *std::move(sink);
  if (copy.sink->already_there()) {
    bytes_done_ += object.size;
    return Count(object, {}, true);
  }
  Status status;
  for (uint64_t i = 0; status.ok() && i < copy.sink->part_count(); ++i) {
    if (copy.sink->done(i)) {
      bytes_done_ += copy.sink->part(i).size();
    } else {
      status = CopyPart(copy, i);
    }
  }
  EndObject(copy, std::move(status));
}

Status CopyJob::CopyPart(ObjectCopy& copy, uint64_t index) {
  if (cancelled_) return Status(Code::kCancelled, "the copy was stopped");
  if (copy.failed) return {};  // by another part, which says why
  const ByteRange range = copy.sink->part(index);
  if (range.empty()) return copy.sink->Write(index, {});
  std::unique_ptr<std::byte[]> buffer = TakeBuffer(range.size());
  const MutableBytes bytes(buffer.get(), range.size());
  Status status = Fetch(copy.info, range, bytes);
  if (status.ok()) status = copy.sink->Write(index, bytes);
  GiveBuffer(std::move(buffer), range.size());
  if (status.ok()) bytes_done_ += range.size();
  return status;
}

Result<CopyReport> CopyJob::Stream(const store::ObjectInfo& object, const std::string& path) {
  {
    const MutexLock lock(mutex_);
    progress_ = {.bytes_total = object.size, .objects_total = 1};
  }
  FB_ASSIGN_OR_RETURN(sys::StreamFile file,
                      sys::StreamFile::Open(path, [this] { return cancelled_.load(); }));
  std::vector<std::byte> buffer(std::min(kStreamBytes, object.size));
  for (uint64_t at = 0; at < object.size; at += buffer.size()) {
    buffer.resize(std::min<uint64_t>(buffer.size(), object.size - at));
    FB_RETURN_IF_ERROR(Fetch(object, {at, at + buffer.size()}, buffer));
    FB_RETURN_IF_ERROR(file.Write(buffer));
    bytes_done_ += buffer.size();
  }
  return CopyReport{.objects_copied = 1, .bytes_copied = object.size};
}

Status CopyJob::Fetch(const store::ObjectInfo& object, ByteRange range, MutableBytes into) {
  store::ReadProgress progress;
  {
    const MutexLock lock(reads_->mutex);
    reads_->running[&progress] = 0;
  }
  Status status = source_
                      ->Read({.key = object.key,
                              .etag = object.etag,
                              .range = range,
                              .target = {into},
                              .progress = &progress,
                              .options = source_->TransferOptions(kCopyBytesInFlight)})
                      .status();
  const MutexLock lock(reads_->mutex);
  reads_->running.erase(&progress);
  return status;
}

uint64_t CopyJob::BytesUnderWay() {
  // They are written on the store's own thread.
  source_->async().executor().Post([reads = reads_] {
    const MutexLock lock(reads->mutex);
    for (auto& [progress, bytes] : reads->running) bytes = progress->bytes;
  });
  const MutexLock lock(reads_->mutex);
  uint64_t sum = 0;
  for (const auto& [progress, bytes] : reads_->running) sum += bytes;
  return sum;
}

void CopyJob::EndPart(ObjectCopy& copy, Status status) {
  if (!status.ok()) {
    copy.failed = true;
    const MutexLock lock(copy.mutex);
    if (copy.status.ok()) copy.status = std::move(status);
  }
  if (copy.parts_left.fetch_sub(1) != 1) return;
  Status first;
  {
    const MutexLock lock(copy.mutex);
    first = std::move(copy.status);
  }
  EndObject(copy, std::move(first));
}

void CopyJob::EndObject(ObjectCopy& copy, Status status) {
  if (status.ok()) {
    status = copy.sink->Finish();
  } else {
    copy.sink->Abandon();
  }
  Count(copy.info, std::move(status), false);
}

void CopyJob::Count(const store::ObjectInfo& object, Status status, bool skipped) {
  const MutexLock lock(mutex_);
  if (status.ok()) {
    ++(skipped ? report_.objects_skipped : report_.objects_copied);
    if (!skipped) report_.bytes_copied += object.size;
    return;
  }
  ++report_.objects_failed;
  if (report_.failures.size() >= kMaxFailures) return;
  report_.failures.push_back(
      std::move(status).WithDetail({.uri = SourceOf(object).uri}).WithContext("copying"));
}

Result<CopyReport> CopyJob::Finish() {
  FB_RETURN_IF_ERROR(WaitBelow(1));
  const MutexLock lock(mutex_);
  return std::move(report_);
}

std::unique_ptr<std::byte[]> CopyJob::TakeBuffer(uint64_t bytes) {
  {
    const MutexLock lock(mutex_);
    // One that is longer than the limit gets its turn alone.
    while (buffer_bytes_ != 0 && buffer_bytes_ + bytes > kBufferLimitBytes) changed_.wait(mutex_);
    buffer_bytes_ += bytes;
    if (bytes == destination_->part_bytes() && !spare_.empty()) {
      std::unique_ptr<std::byte[]> buffer = std::move(spare_.back());
      spare_.pop_back();
      return buffer;
    }
  }
  return std::make_unique_for_overwrite<std::byte[]>(bytes);
}

void CopyJob::GiveBuffer(std::unique_ptr<std::byte[]> buffer, uint64_t bytes) {
  const MutexLock lock(mutex_);
  buffer_bytes_ -= bytes;
  if (bytes == destination_->part_bytes()) spare_.push_back(std::move(buffer));
  changed_.notify_all();
}

}  // namespace forebay::engine
