#include "store/file/file_store.h"

#include <fmt/core.h>

#include <utility>

#include "base/assert.h"
#include "store/file/detail/local_files.h"

namespace forebay::store {
namespace {

constexpr size_t kPriorities = 4;

// What the executor's thread and a pool's thread both see of one operation.
struct Shared {
  std::atomic<bool> cancelled{false};
};

class FileStore : public ObjectStore {
 public:
  FileStore(Executor* executor, sys::WorkPool* pool, std::unique_ptr<LocalFiles> files,
            std::string root_uri)
      : executor_(executor),
        pool_(pool),
        files_(std::move(files)),
        root_uri_(std::move(root_uri)),
        in_pool_limit_(pool->thread_count() * 2) {}

  OpId StartRead(ReadRequest request, Callback<ReadResult> on_done) override {
    uint64_t room = 0;
    for (const MutableBytes piece : request.target) room += piece.size();
    FB_ASSERT(room == request.range.size() && room > 0);
    const Time started = executor_->Now();
    const ErrorDetail detail = Detail(request.key, request.range);
    const RequestOptions options = request.options;
    return Start<ReadResult>(
        options, detail,
        [executor = executor_, started,
         on_done = std::move(on_done)](Result<ReadResult> result) mutable {
          if (result.ok()) result->total = result->first_byte = executor->Now() - started;
          on_done(std::move(result));
        },
        [request = std::move(request)](const LocalFiles& files, const Shared& shared) {
          return files.Read(request, shared.cancelled);
        });
  }

  OpId StartHead(HeadRequest request, Callback<ObjectInfo> on_done) override {
    return Start<ObjectInfo>(
        request.options, Detail(request.key), std::move(on_done),
        [key = request.key](const LocalFiles& files, const Shared&) { return files.Head(key); });
  }

  OpId StartList(ListRequest request, Callback<ListPage> on_done) override {
    return Start<ListPage>(
        request.options, Detail(request.prefix), std::move(on_done),
        [request](const LocalFiles& files, const Shared&) { return files.List(request); });
  }

  OpId StartPut(PutRequest request, Callback<PutResult> on_done) override {
    return Start<PutResult>(request.options, Detail(request.key), std::move(on_done),
                            [request](const LocalFiles& files, const Shared& shared) {
                              return files.Put(request, shared.cancelled);
                            });
  }

  OpId StartCreateUpload(UploadRequest request, Callback<std::string> on_done) override {
    return Start<std::string>(
        request.options, Detail(request.key), std::move(on_done),
        [request](const LocalFiles& files, const Shared&) { return files.CreateUpload(request); });
  }

  OpId StartPutPart(PartRequest request, Callback<PutResult> on_done) override {
    return Start<PutResult>(request.options, Detail(request.key), std::move(on_done),
                            [request](const LocalFiles& files, const Shared& shared) {
                              return files.PutPart(request, shared.cancelled);
                            });
  }

  OpId StartCompleteUpload(UploadRequest request, Callback<PutResult> on_done) override {
    return Start<PutResult>(request.options, Detail(request.key), std::move(on_done),
                            [request](const LocalFiles& files, const Shared&) {
                              return files.CompleteUpload(request);
                            });
  }

  OpId StartAbortUpload(UploadRequest request, Callback<Unit> on_done) override {
    return Start<Unit>(
        request.options, Detail(request.key), std::move(on_done),
        [request](const LocalFiles& files, const Shared&) { return files.AbortUpload(request); });
  }

  OpId StartDelete(HeadRequest request, Callback<Unit> on_done) override {
    return Start<Unit>(
        request.options, Detail(request.key), std::move(on_done),
        [key = request.key](const LocalFiles& files, const Shared&) { return files.Delete(key); });
  }

  void Cancel(OpId op) override {
    const auto found = running_.find(op);
    if (found != running_.end()) found->second->cancelled = true;
  }

  const std::string& root_uri() const override { return root_uri_; }
  Executor& executor() override { return *executor_; }

 private:
  ErrorDetail Detail(const std::string& key, ByteRange range = {}) const {
    ErrorDetail detail{.uri = root_uri_ + "/" + key, .attempt = 1};
    if (!range.empty()) {
      detail.offset = static_cast<int64_t>(range.offset);
      detail.end = static_cast<int64_t>(range.end);
    }
    return detail;
  }

  // `work` runs on the pool, its result goes to `on_done` on the executor. An operation that is
  // late or cancelled before its turn does not run; a call to the file system itself cannot be
  // interrupted, so a deadline is looked at again only when it returns.
  template <class T, class Work>
  OpId Start(const RequestOptions& options, ErrorDetail detail, Callback<T> on_done, Work work) {
    const OpId op = next_op_++;
    auto shared = std::make_shared<Shared>();
    running_.emplace(op, shared);
    Task task = [this, op, shared, deadline = options.deadline, detail = std::move(detail),
                 on_done = std::move(on_done), work = std::move(work)]() mutable {
      const auto timely = [&] { return executor_->Now() < deadline; };
      Result<T> result = Status(Code::kDeadlineExceeded, "the deadline passed");
      if (shared->cancelled) {
        result = Status(Code::kCancelled, "the operation was cancelled");
      } else if (timely()) {
        result = work(*files_, *shared);
      }
      if (!result.ok()) result = std::move(result).status().WithDetail(detail);
      executor_->Post(
          [this, op, on_done = std::move(on_done), result = std::move(result)]() mutable {
            Returned(op);
            on_done(std::move(result));
          });
    };
    waiting_[static_cast<size_t>(options.priority) % kPriorities].push_back(std::move(task));
    Submit();
    return op;
  }

  void Returned(OpId op) {
    running_.erase(op);
    --in_pool_;
    Submit();
  }

  // The pool takes tasks in order, so only a few are handed over: what is urgent goes first.
  void Submit() {
    for (auto& queue : waiting_) {
      while (!queue.empty() && in_pool_ < in_pool_limit_) {
        if (!pool_->TrySubmit(queue.front())) {
          if (in_pool_ == 0) RetrySoon();
          return;
        }
        queue.pop_front();
        ++in_pool_;
      }
    }
  }

  // The pool is full of others' work, and nothing of ours will come back to try again.
  void RetrySoon() {
    if (retrying_) return;
    retrying_ = true;
    executor_->PostAt(executor_->Now() + std::chrono::milliseconds(1), [this] {
      retrying_ = false;
      Submit();
    });
  }

  Executor* executor_;
  sys::WorkPool* pool_;
  std::unique_ptr<LocalFiles> files_;
  std::string root_uri_;
  size_t in_pool_limit_;
  size_t in_pool_ = 0;
  bool retrying_ = false;
  OpId next_op_ = 1;
  std::unordered_map<OpId, std::shared_ptr<Shared>> running_;
  std::array<std::deque<Task>, kPriorities> waiting_;
};

}  // namespace

Result<std::unique_ptr<ObjectStore>> MakeFileStore(Executor* executor, sys::WorkPool* pool,
                                                   const FileStoreOptions& options) {
  std::string root = options.root;
  while (root.ends_with('/')) root.pop_back();
  FB_ASSIGN_OR_RETURN(
      std::unique_ptr<LocalFiles> files,
      LocalFiles::Open(root + "/", options.beneath, options.sync_writes, options.direct_reads));
  return std::make_unique<FileStore>(executor, pool, std::move(files), "file://" + root);
}

}  // namespace forebay::store
