#include "store/sync_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <optional>
#include <set>
#include <utility>

#include "base/assert.h"
#include "base/mutex.h"

namespace forebay::store {
namespace {

// The store keeps the deadline itself; the waiter only steps in when it does not.
constexpr Duration kGrace = std::chrono::seconds(1);
constexpr uint64_t kMaxParts = 10'000;
constexpr size_t kPartsInFlight = 4;

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
  store->executor().Post(
      [store, start, box, delivery = Delivery<T>(box), request = std::move(request)]() mutable {
        box->op = (store->*start)(std::move(request), Callback<T>(std::move(delivery)));
        if (box->cancel_wanted) store->Cancel(box->op);
      });
  if (!box->WaitUntil(deadline + kGrace)) {
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
  return box->Wait();
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

Status SyncStore::ListAll(std::string prefix, const std::function<bool(const ObjectInfo&)>& visit,
                          RequestOptions options) const {
  ListRequest request{.prefix = std::move(prefix),
                      .delimiter = "",
                      .continuation_token = "",
                      .start_after = "",
                      .max_keys = 1000,
                      .options = options};
  for (;;) {
    FB_ASSIGN_OR_RETURN(const ListPage page, List(request));
    for (const ObjectInfo& object : page.objects) {
      if (!visit(object)) return {};
    }
    if (page.next_token.empty()) return {};
    if (page.next_token == request.continuation_token) {
      return Status(Code::kDataLoss, "the listing repeats its continuation token",
                    ErrorDetail{.uri = store_->root_uri() + "/" + request.prefix});
    }
    request.continuation_token = page.next_token;
  }
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
std::vector<ByteView> Slice(const std::vector<ByteView>& body, uint64_t offset, uint64_t length) {
  std::vector<ByteView> out;
  for (const ByteView piece : body) {
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

// The parts of one upload: at most kPartsInFlight at a time, none started after a failure. Lives
// on the executor's thread; kept alive by the callbacks of what is in flight.
class PartSender : public std::enable_shared_from_this<PartSender> {
 public:
  struct Plan {
    PutRequest put;
    std::string upload_id;
    uint64_t size = 0;
    uint64_t part_bytes = 0;
    Duration timeout{};  // of a part, when the put has no deadline
  };

  PartSender(ObjectStore* store, Plan plan, Delivery<std::vector<std::string>> done)
      : store_(store), plan_(std::move(plan)), done_(std::move(done)) {
    etags_.resize((plan_.size + plan_.part_bytes - 1) / plan_.part_bytes);
  }

  void Advance() {
    while (status_.ok() && next_ < etags_.size() && ops_.size() < kPartsInFlight) StartNext();
    if (!ops_.empty()) return;
    if (status_.ok()) {
      done_(std::move(etags_));
    } else {
      done_(std::move(status_));
    }
  }

 private:
  void StartNext() {
    const size_t index = next_++;
    PartRequest part{.key = plan_.put.key,
                     .upload_id = plan_.upload_id,
                     .part_number = static_cast<int>(index + 1),
                     .body = Slice(plan_.put.body, index * plan_.part_bytes, plan_.part_bytes),
                     .options = plan_.put.options};
    if (part.options.deadline == kNever) {
      part.options.deadline = store_->executor().Now() + plan_.timeout;
    }
    // A callback never runs inside its start, so `ops_` has the entry before it is removed.
    const auto slot = std::make_shared<ObjectStore::OpId>(0);
    *slot = store_->StartPutPart(
        std::move(part), [self = shared_from_this(), index, slot](Result<PutResult> result) {
          self->ops_.erase(*slot);
          self->Finished(index, std::move(result));
        });
    ops_.insert(*slot);
  }

  void Finished(size_t index, Result<PutResult> result) {
    if (result.ok()) {
      etags_[index] = std::move(result->etag);
    } else if (status_.ok()) {
      status_ = std::move(result).status().WithContext(fmt::format("part {}", index + 1));
      for (const ObjectStore::OpId op : ops_) store_->Cancel(op);
    }
    Advance();
  }

  ObjectStore* store_;
  Plan plan_;
  Delivery<std::vector<std::string>> done_;
  std::vector<std::string> etags_;
  size_t next_ = 0;
  std::set<ObjectStore::OpId> ops_;
  Status status_;
};

}  // namespace

Result<PutResult> SyncStore::PutLarge(PutRequest request, uint64_t part_bytes) const {
  uint64_t size = 0;
  for (const ByteView piece : request.body) size += piece.size();
  // Only a single put can be conditional.
  if (size <= part_bytes || request.if_none_match) return Put(std::move(request));
  part_bytes = std::max(part_bytes, (size + kMaxParts - 1) / kMaxParts);
  UploadRequest upload{.key = request.key,
                       .upload_id = "",
                       .part_etags = {},
                       .content_type = request.content_type,
                       .options = request.options};
  FB_ASSIGN_OR_RETURN(upload.upload_id, CreateUpload(upload));
  auto box = std::make_shared<Mailbox<std::vector<std::string>>>();
  ObjectStore* store = store_.get();
  PartSender::Plan plan{.put = std::move(request),
                        .upload_id = upload.upload_id,
                        .size = size,
                        .part_bytes = part_bytes,
                        .timeout = default_timeout_};
  store->executor().Post(
      [store, plan = std::move(plan), done = Delivery<std::vector<std::string>>(box)]() mutable {
        std::make_shared<PartSender>(store, std::move(plan), std::move(done))->Advance();
      });
  Result<std::vector<std::string>> etags = box->Wait();
  Status status = etags.status();
  if (status.ok()) {
    upload.part_etags = *std::move(etags);
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
