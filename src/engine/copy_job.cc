#include "engine/copy_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "sys/limits.h"
#include "sys/stream_file.h"

namespace forebay::engine {
namespace {

// Enough requests in flight for small objects at S3's latency; long parts are held back by the
// budget of buffers.
constexpr size_t kThreads = 32;
// Of a thread: a connection or a source's file, and of the two parts it has in flight file and
// folder each, while a third is opened.
constexpr size_t kFilesOfThread = 7;
// Of everything else: the listing's 16 requests, loops, what the program has open.
constexpr size_t kFilesOfOthers = 36;
constexpr uint64_t kBufferLimitBytes = kCopyBytesInFlight;
constexpr uint64_t kStreamBytes = 8ULL << 20;
constexpr size_t kMaxFailures = 100;

// As many as may have open what they need.
size_t Threads() {
  const uint64_t files = sys::OpenFiles().soft;
  if (files == 0) return kThreads;
  const uint64_t left = files - std::min<uint64_t>(files, kFilesOfOthers);
  return std::clamp<size_t>(left / kFilesOfThread, 1, kThreads);
}

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
    : source_(source), target_(target), threads_(Threads()) {}

CopyJob::~CopyJob() {
  if (pool_) pool_->Stop();
}

Status CopyJob::Start() {
  if (pool_) return {};
  FB_ASSIGN_OR_RETURN(
      pool_,
      sys::WorkPool::Make({.name = "fb-copy", .threads = threads_, .queue_limit = 2 * threads_}));
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
  counts_writes_ = destination_->tells_writes();
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
  FB_RETURN_IF_ERROR(WaitBelow(2 * threads_));
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
  FB_RETURN_IF_ERROR(WaitBelow(2 * threads_));
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
  if (range.empty()) return copy.sink->Write(index, {}, nullptr);
  std::unique_ptr<std::byte[]> buffer = TakeBuffer(range.size());
  const MutableBytes bytes(buffer.get(), range.size());
  Status status = Fetch(copy.info, range, bytes);
  if (status.ok()) status = Write(*copy.sink, index, bytes);
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
  std::optional<Counted> counted;
  if (!counts_writes_) counted.emplace(*under_way_, &progress.bytes);
  return source_
      ->Read({.key = object.key,
              .etag = object.etag,
              .range = range,
              .target = {into},
              .progress = &progress,
              .options = source_->TransferOptions(kCopyBytesInFlight)})
      .status();
}

Status CopyJob::Write(CopySink& sink, uint64_t index, ByteView bytes) {
  store::WriteProgress progress;
  std::optional<Counted> counted;
  if (counts_writes_) counted.emplace(*under_way_, &progress.bytes);
  return sink.Write(index, bytes, &progress);
}

CopyJob::Counted::Counted(UnderWay& all, const uint64_t* counter) : all_(all), counter_(counter) {
  const MutexLock lock(all_.mutex);
  all_.counters[counter_] = 0;
}

CopyJob::Counted::~Counted() {
  const MutexLock lock(all_.mutex);
  all_.counters.erase(counter_);
}

uint64_t CopyJob::BytesUnderWay() {
  // They are written on the store's own thread.
  (counts_writes_ ? target_ : source_)->async().executor().Post([all = under_way_] {
    const MutexLock lock(all->mutex);
    for (auto& [counter, bytes] : all->counters) bytes = *counter;
  });
  const MutexLock lock(under_way_->mutex);
  uint64_t sum = 0;
  for (const auto& [counter, bytes] : under_way_->counters) sum += bytes;
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
