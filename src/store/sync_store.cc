#include "store/sync_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"
#include "store/part_size.h"

namespace forebay::store {
namespace {

// The store keeps the deadline itself; the waiter only steps in when it does not.
constexpr Duration kGrace = std::chrono::seconds(1);
constexpr size_t kPartsInFlight = 4;
constexpr uint64_t kSlowestBytesPerSecond = 16 << 10;
constexpr uint64_t kLongestSeconds = 100 * 86'400;

// Where a callback leaves its result and a thread waits for it.
template <class T>
class Mailbox {
 public:
  void Deliver(Result<T> result) {
    const MutexLock lock(mutex_);
    if (!result_) result_.emplace(std::move(result));
    arrived_.notify_all();
  }
  // False: not before `deadline`.
  bool WaitUntil(Time deadline) {
    mutex_.lock();
    while (!result_ && deadline > std::chrono::steady_clock::now()) {
      arrived_.wait_until(mutex_, deadline);
    }
    const bool arrived = result_.has_value();
    mutex_.unlock();
    return arrived;
  }
  Result<T> Wait() {
    mutex_.lock();
    while (!result_) arrived_.wait(mutex_);
    Result<T> result = *std::move(result_);
    mutex_.unlock();
    return result;
  }
  // Executor's thread only.
  ObjectStore::OpId op = 0;
  bool cancel_wanted = false;

 private:
  Mutex mutex_;
  std::condition_variable_any arrived_;
  std::optional<Result<T>> result_ FB_GUARDED_BY(mutex_);
};

// Delivers exactly once, also when the executor stops and destroys the callback unrun.
template <class T>
class Delivery {
 public:
  explicit Delivery(std::shared_ptr<Mailbox<T>> box) : box_(std::move(box)) {}
  Delivery(Delivery&&) noexcept = default;
  Delivery& operator=(Delivery&&) = delete;
  ~Delivery() {
    if (box_) box_->Deliver(Status(Code::kCancelled, "the store was closed"));
  }
  void operator()(Result<T> result) { std::exchange(box_, nullptr)->Deliver(std::move(result)); }

 private:
  std::shared_ptr<Mailbox<T>> box_;
};

}  // namespace

template <class T, class Request>
Result<T> SyncStore::Run(Request request,
                         ObjectStore::OpId (ObjectStore::*start)(Request, Callback<T>)) const {
  FB_ASSERT(!store_->executor().InThread());
  RequestOptions& options = request.options;
  if (options.deadline == kNever) options.deadline = store_->executor().Now() + default_timeout_;
  const Time deadline = options.deadline;
  auto box = std::make_shared<Mailbox<T>>();
  ObjectStore* store = store_.get();
  store->executor().Post([store, start, box, active = active_, delivery = Delivery<T>(box),
                          request = std::move(request)]() mutable {
    // A callback never runs inside its start, so the box knows the operation before it ends.
    box->op =
        (store->*start)(std::move(request),
                        [box, active, delivery = std::move(delivery)](Result<T> result) mutable {
                          active->ops.erase(box->op);
                          delivery(std::move(result));
                        });
    active->ops.insert(box->op);
    if (box->cancel_wanted || active->cancelled) store->Cancel(box->op);
  });
  if (box->WaitUntil(deadline + kGrace)) return box->Wait();
  store->executor().Post([store, box] {
    box->cancel_wanted = true;
    if (box->op != 0) store->Cancel(box->op);
  });
  Result<T> late = box->Wait();
  if (!late.ok() && late.code() == Code::kCancelled) {
    return Status(Code::kDeadlineExceeded, "the operation was given up at its deadline",
                  late.status().detail());
  }
  return late;
}

void SyncStore::CancelAll() const {
  ObjectStore* store = store_.get();
  store->executor().Post([store, active = active_] {
    active->cancelled = true;
    for (const ObjectStore::OpId op : active->ops) store->Cancel(op);
    for (const auto& weak : active->lists) {
      if (const auto list = weak.lock()) list->Cancel();
    }
  });
}

RequestOptions SyncStore::TransferOptions(uint64_t bytes) const {
  const uint64_t seconds = std::min<uint64_t>(bytes / kSlowestBytesPerSecond, kLongestSeconds);
  return {.deadline = store_->executor().Now() + default_timeout_ + std::chrono::seconds(seconds),
          .priority = Priority::kBulk};
}

Result<ReadResult> SyncStore::Read(ReadRequest request) const {
  return Run<ReadResult>(std::move(request), &ObjectStore::StartRead);
}

Result<ObjectInfo> SyncStore::Head(std::string key, RequestOptions options) const {
  return Run<ObjectInfo>(HeadRequest{.key = std::move(key), .options = options},
                         &ObjectStore::StartHead);
}

Result<ListPage> SyncStore::List(ListRequest request) const {
  return Run<ListPage>(std::move(request), &ObjectStore::StartList);
}

namespace {

// A listing's pages on their way from the executor to the thread that waits for them.
class PageQueue {
 public:
  void Push(ListPage page) {
    const MutexLock lock(mutex_);
    pages_.push_back(std::move(page));
    changed_.notify_all();
  }
  void End(Status status) {
    const MutexLock lock(mutex_);
    if (!end_) end_ = std::move(status);
    changed_.notify_all();
  }
  // The next page, or none: then `end` is how it ended.
  std::optional<ListPage> Pop(Status& end) {
    mutex_.lock();
    while (pages_.empty() && !end_) changed_.wait(mutex_);
    std::optional<ListPage> page;
    if (pages_.empty()) {
      end = *end_;
    } else {
      page = std::move(pages_.front());
      pages_.pop_front();
    }
    mutex_.unlock();
    return page;
  }
  // Executor's thread only.
  std::weak_ptr<ParallelList> list;

 private:
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<ListPage> pages_ FB_GUARDED_BY(mutex_);  // bounded by what the listing keeps ahead
  std::optional<Status> end_ FB_GUARDED_BY(mutex_);
};

// Ends the queue exactly once, also when the executor stops and destroys it unrun.
class QueueEnd {
 public:
  explicit QueueEnd(std::shared_ptr<PageQueue> queue) : queue_(std::move(queue)) {}
  QueueEnd(QueueEnd&&) noexcept = default;
  QueueEnd& operator=(QueueEnd&&) = delete;
  ~QueueEnd() {
    if (queue_) queue_->End(Status(Code::kCancelled, "the store was closed"));
  }
  void operator()(Status status) { std::exchange(queue_, nullptr)->End(std::move(status)); }

 private:
  std::shared_ptr<PageQueue> queue_;
};

}  // namespace

Status SyncStore::ListAll(std::string prefix, const std::function<bool(const ObjectInfo&)>& visit,
                          RequestOptions options,
                          const std::function<void(const ListSkip&)>& on_skip) const {
  ObjectStore* store = store_.get();
  FB_ASSERT(!store->executor().InThread());
  const auto queue = std::make_shared<PageQueue>();
  store->executor().Post(
      [store, queue, active = active_, prefix = std::move(prefix),
       settings = ParallelListOptions{.page_timeout = default_timeout_, .request = options},
       end = QueueEnd(queue)]() mutable {
        const auto list = ParallelList::Start(
            store, std::move(prefix), settings,
            [queue](ListPage page) { queue->Push(std::move(page)); }, std::move(end));
        queue->list = list;
        std::erase_if(active->lists, [](const auto& one) { return one.expired(); });
        active->lists.push_back(list);
        if (active->cancelled) list->Cancel();
      });
  const auto tell = [&](auto what) {
    store->executor().Post([queue, what] {
      if (const auto list = queue->list.lock()) what(*list);
    });
  };
  Status end;
  bool more = true;
  while (const std::optional<ListPage> page = queue->Pop(end)) {
    for (const ObjectInfo& object : page->objects) more = more && visit(object);
    if (more && on_skip) std::ranges::for_each(page->skipped, on_skip);
    const size_t keys = page->objects.size();
    if (more) {
      tell([keys](ParallelList& list) { list.Consumed(keys); });
    } else {
      tell([](ParallelList& list) { list.Cancel(); });
    }
  }
  return more ? end : Status();
}

Result<PutResult> SyncStore::Put(PutRequest request) const {
  return Run<PutResult>(std::move(request), &ObjectStore::StartPut);
}

Status SyncStore::Delete(std::string key, RequestOptions options) const {
  return Run<Unit>(HeadRequest{.key = std::move(key), .options = options},
                   &ObjectStore::StartDelete)
      .status();
}

Result<std::string> SyncStore::CreateUpload(UploadRequest request) const {
  return Run<std::string>(std::move(request), &ObjectStore::StartCreateUpload);
}

Result<PutResult> SyncStore::PutPart(PartRequest request) const {
  return Run<PutResult>(std::move(request), &ObjectStore::StartPutPart);
}

Result<PutResult> SyncStore::CompleteUpload(UploadRequest request) const {
  return Run<PutResult>(std::move(request), &ObjectStore::StartCompleteUpload);
}

Status SyncStore::AbortUpload(UploadRequest request) const {
  return Run<Unit>(std::move(request), &ObjectStore::StartAbortUpload).status();
}

namespace {

// [offset, offset + length) of a body that comes in pieces.
template <class Bytes>
std::vector<Bytes> Slice(const std::vector<Bytes>& body, uint64_t offset, uint64_t length) {
  std::vector<Bytes> out;
  for (const Bytes piece : body) {
    if (offset >= piece.size()) {
      offset -= piece.size();
      continue;
    }
    const uint64_t take = std::min<uint64_t>(piece.size() - offset, length);
    if (take > 0) out.push_back(piece.subspan(offset, take));
    length -= take;
    offset = 0;
    if (length == 0) break;
  }
  return out;
}

// Operations 0 .. count - 1 of one transfer: a few at a time, none started after a failure. Lives
// on the executor's thread; kept alive by the callbacks of what is in flight.
class Fan : public std::enable_shared_from_this<Fan> {
 public:
  using OnDone = std::move_only_function<void(Status)>;
  using Start = std::move_only_function<ObjectStore::OpId(size_t index, OnDone on_done)>;

  Fan(ObjectStore* store, size_t count, Start start, Delivery<Unit> done)
      : store_(store), count_(count), start_(std::move(start)), done_(std::move(done)) {}

  void Advance() {
    while (status_.ok() && next_ < count_ && ops_.size() < kPartsInFlight) StartNext();
    if (!ops_.empty()) return;
    if (status_.ok()) {
      done_(Unit{});
    } else {
      done_(std::move(status_));
    }
  }

 private:
  void StartNext() {
    const size_t index = next_++;
    // A callback never runs inside its start, so `ops_` has the entry before it is removed.
    const auto op = std::make_shared<ObjectStore::OpId>(0);
    *op = start_(index, [self = shared_from_this(), index, op](Status status) {
      self->ops_.erase(*op);
      self->Finished(index, std::move(status));
    });
    ops_.insert(*op);
  }

  void Finished(size_t index, Status status) {
    if (!status.ok() && status_.ok()) {
      status_ = std::move(status).WithContext(fmt::format("part {}", index + 1));
      for (const ObjectStore::OpId op : ops_) store_->Cancel(op);
    }
    Advance();
  }

  ObjectStore* store_;
  size_t count_;
  Start start_;
  Delivery<Unit> done_;
  size_t next_ = 0;
  std::set<ObjectStore::OpId> ops_;
  Status status_;
};

// Runs a fan to its end from outside the executor.
Status RunFan(ObjectStore* store, size_t count, Fan::Start start) {
  auto box = std::make_shared<Mailbox<Unit>>();
  store->executor().Post(
      [store, count, start = std::move(start), done = Delivery<Unit>(box)]() mutable {
        std::make_shared<Fan>(store, count, std::move(start), std::move(done))->Advance();
      });
  return box->Wait().status();
}

template <class Bytes>
uint64_t TotalSize(const std::vector<Bytes>& pieces) {
  uint64_t size = 0;
  for (const Bytes piece : pieces) size += piece.size();
  return size;
}

}  // namespace

Status SyncStore::ReadLarge(ReadRequest request, uint64_t part_bytes) const {
  if (request.range.size() <= part_bytes) return Read(std::move(request)).status();
  FB_ASSERT(TotalSize(request.target) == request.range.size());
  if (request.etag.empty()) {
    FB_ASSIGN_OR_RETURN(const ObjectInfo info, Head(request.key, request.options));
    request.etag = info.etag;
  }
  ObjectStore* store = store_.get();
  const uint64_t size = request.range.size();
  const size_t count = (size + part_bytes - 1) / part_bytes;
  return RunFan(
      store, count,
      [store, request = std::move(request), part_bytes, size, timeout = default_timeout_](
          size_t index, Fan::OnDone on_done) {
        ReadRequest part = request;
        const uint64_t begin = index * part_bytes;
        const uint64_t length = std::min(part_bytes, size - begin);
        part.range = {request.range.offset + begin, request.range.offset + begin + length};
        part.target = Slice(request.target, begin, length);
        if (part.options.deadline == kNever) {
          part.options.deadline = store->executor().Now() + timeout;
        }
        return store->StartRead(std::move(part),
                                [on_done = std::move(on_done)](Result<ReadResult> result) mutable {
                                  on_done(std::move(result).status());
                                });
      });
}

Result<PutResult> SyncStore::PutLarge(PutRequest request, uint64_t part_bytes) const {
  const uint64_t size = TotalSize(request.body);
  FB_ASSIGN_OR_RETURN(part_bytes, PartBytesFor(size, part_bytes));
  if (size <= part_bytes) return Put(std::move(request));
  // In vain if it is there; and not every store keeps the condition when it completes an upload.
  if (request.if_none_match && Head(request.key, request.options).ok()) {
    return Status(Code::kPreconditionFailed, "the key exists already",
                  ErrorDetail{.uri = store_->root_uri() + "/" + request.key});
  }
  UploadRequest upload{.key = request.key,
                       .upload_id = "",
                       .part_etags = {},
                       .content_type = request.content_type,
                       .if_none_match = request.if_none_match,
                       .if_match = request.if_match,
                       .options = request.options};
  FB_ASSIGN_OR_RETURN(upload.upload_id, CreateUpload(upload));
  ObjectStore* store = store_.get();
  const size_t count = (size + part_bytes - 1) / part_bytes;
  const auto etags = std::make_shared<std::vector<std::string>>(count);
  Status status =
      RunFan(store, count,
             [store, request = std::move(request), id = upload.upload_id, part_bytes, etags,
              timeout = default_timeout_](size_t index, Fan::OnDone on_done) {
               PartRequest part{.key = request.key,
                                .upload_id = id,
                                .part_number = static_cast<int>(index + 1),
                                .body = Slice(request.body, index * part_bytes, part_bytes),
                                .options = request.options};
               if (part.options.deadline == kNever) {
                 part.options.deadline = store->executor().Now() + timeout;
               }
               return store->StartPutPart(
                   std::move(part),
                   [etags, index, on_done = std::move(on_done)](Result<PutResult> result) mutable {
                     if (result.ok()) (*etags)[index] = std::move(result->etag);
                     on_done(std::move(result).status());
                   });
             });
  if (status.ok()) {
    upload.part_etags = *etags;
    Result<PutResult> result = CompleteUpload(upload);
    if (result.ok()) return result;
    status = std::move(result).status();
  }
  // Best effort: the failure that led here is what the caller must see.
  upload.options.deadline = kNever;
  upload.part_etags.clear();
  AbortUpload(upload).ok();
  return status;
}

}  // namespace forebay::store
