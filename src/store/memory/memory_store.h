// Objects in memory, for tests, simulation and benchmarks. Deterministic: everything completes
// through the executor, in the order of its latency, so that it runs under virtual time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "store/object_store.h"

namespace forebay::store {

class MemoryStore : public ObjectStore {
 public:
  // What a latency function gets to see.
  struct Operation {
    std::string_view verb;  // "read", "head", "list", "put", "upload", "delete"
    std::string_view key;   // of a list: the prefix
    ByteRange range;        // of a read
  };
  struct Options {
    std::string name = "test";  // root_uri is memory://name
    // How long an operation takes; none: it completes with the next turn of the executor.
    std::function<Duration(const Operation&)> latency;
    ListCut list_cut = ListCut::kKeys;
  };

  static std::shared_ptr<MemoryStore> Make(Executor* executor, Options options);

  // At once, without an operation. Executor's thread, or before the executor runs.
  void Insert(const std::string& key, ByteView body, int64_t modified_unix_s = 0);
  size_t object_count() const { return objects_.size(); }
  // Reads that completed with OK, and their bytes.
  uint64_t reads() const { return reads_; }
  uint64_t bytes_read() const { return bytes_read_; }
  size_t operations_in_flight() const { return pending_.size(); }

  OpId StartRead(ReadRequest request, Callback<ReadResult> on_done) override;
  OpId StartHead(HeadRequest request, Callback<ObjectInfo> on_done) override;
  OpId StartList(ListRequest request, Callback<ListPage> on_done) override;
  OpId StartPut(PutRequest request, Callback<PutResult> on_done) override;
  OpId StartCreateUpload(UploadRequest request, Callback<std::string> on_done) override;
  OpId StartPutPart(PartRequest request, Callback<PutResult> on_done) override;
  OpId StartCompleteUpload(UploadRequest request, Callback<PutResult> on_done) override;
  OpId StartAbortUpload(UploadRequest request, Callback<Unit> on_done) override;
  OpId StartDelete(HeadRequest request, Callback<Unit> on_done) override;
  void Cancel(OpId op) override;
  const std::string& root_uri() const override { return root_uri_; }
  ListCut list_cut() const override { return options_.list_cut; }
  Executor& executor() override { return *executor_; }

 private:
  struct Object {
    std::vector<std::byte> body;
    std::string etag;
    int64_t modified_unix_s = 0;
  };
  struct Upload {
    std::string key;
    std::map<int, Object> parts;
  };
  // One operation between its start and its callback.
  struct Pending {
    Executor::TimerId timer = 0;
    // Runs the operation, or, given an error, reports that instead.
    std::move_only_function<void(Status)> finish;
  };

  MemoryStore(Executor* executor, Options options);

  // Schedules `run` after the operation's latency; its result goes to `on_done`.
  template <class T>
  OpId Schedule(const Operation& operation, const RequestOptions& options, Callback<T> on_done,
                std::move_only_function<Result<T>()> run);
  void Finish(OpId op, Status status);

  Result<ReadResult> Read(const ReadRequest& request);
  Result<ListPage> List(const ListRequest& request) const;
  Status CheckConditions(const std::string& key, bool if_none_match,
                         const std::string& if_match) const;
  Result<PutResult> Put(const PutRequest& request);
  Result<PutResult> PutPart(const PartRequest& request);
  Result<PutResult> CompleteUpload(const UploadRequest& request);
  Result<Upload*> FindUpload(const std::string& key, const std::string& upload_id);
  Status Error(Code code, std::string message, const std::string& key) const;

  Executor* executor_;
  Options options_;
  std::string root_uri_;
  std::map<std::string, Object> objects_;
  std::map<std::string, Upload> uploads_;
  std::unordered_map<OpId, Pending> pending_;
  OpId next_op_ = 1;
  uint64_t next_upload_ = 1;
  uint64_t reads_ = 0;
  uint64_t bytes_read_ = 0;
  // Tasks posted to the executor may outlive the store; they look here first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace forebay::store
