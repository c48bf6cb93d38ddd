// ObjectStore: the one interface to where objects live. Implementations: s3/, file/, memory/;
// decorators (retry, meter, hedge, limit) implement it too. One conformance suite
// (testing/store_conformance.h) runs against all, each declaring its deviations.
//
// Threads: every method is called on executor()'s thread, and every callback runs there, exactly
// once, never inside the call that started it. store/sync_store.h wraps this for callers that wait.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/executor.h"
#include "forebay/status.h"

namespace forebay::store {

template <class T>
using Callback = std::move_only_function<void(Result<T>)>;

// Lower goes first. Two permits of every limit are kept for demand.
enum class Priority : uint8_t { kDemand = 0, kSoon = 1, kFar = 2, kBulk = 3 };

struct RequestOptions {
  Time deadline = kNever;  // absolute, for all attempts together
  Priority priority = Priority::kDemand;
  // While another request for the same is out: to another of the host's addresses, if it has one.
  bool other_address = false;
};

// How far a read has come; written on the executor's thread while the read runs.
struct ReadProgress {
  Time first_byte{};   // when the answer's head came and was found right; Time{} before
  uint64_t bytes = 0;  // of the body, that are in the target
};

struct ObjectInfo {
  std::string key;
  uint64_t size = 0;
  std::string etag;  // opaque, without quotes
  int64_t modified_unix_s = 0;
  std::string version_id;  // of a versioned bucket, where the answer names it
};

// How far a write has come, as above; each attempt begins at 0 again. Stores that write at once say
// nothing.
struct WriteProgress {
  uint64_t bytes = 0;  // of the body, that have gone out
};

struct ReadRequest {
  std::string key;
  std::string etag;  // pinned content; "" only where none is known yet
  // Pinned version; "": the newest. An object that is overwritten keeps its older versions.
  std::string version_id;
  ByteRange range;  // not empty; must lie inside the object
  // Bytes land here; together exactly range.size(), unless `clamp_to_object`.
  std::vector<MutableBytes> target;
  // The range may reach past the object's end (its size is not known yet): the bytes that exist
  // are delivered, and ReadResult says how many.
  bool clamp_to_object = false;
  // Not null: kept up to date; must live until the callback.
  ReadProgress* progress = nullptr;
  RequestOptions options;
};

struct ReadResult {
  uint64_t bytes = 0;  // == range.size() unless clamped
  uint64_t object_size = 0;
  std::string etag;
  std::string version_id;
  std::string request_id;
  int attempts = 1;
  bool hedged = false;    // a second request was faster
  Duration first_byte{};  // of the successful attempt
  Duration total{};       // of all attempts and the waits between them
};

struct HeadRequest {
  std::string key;
  std::string version_id;  // "": the newest
  RequestOptions options;
};

struct ListRequest {
  std::string prefix;
  std::string delimiter;           // "" or "/"
  std::string continuation_token;  // "" for the first page
  std::string start_after;
  int max_keys = 1000;
  RequestOptions options;
};

// What lies where an object would, and is none: in a folder, a link to nothing or a FIFO.
struct ListSkip {
  std::string key;
  std::string why;
};

struct ListPage {
  std::vector<ObjectInfo> objects;
  std::vector<std::string> common_prefixes;
  std::vector<ListSkip> skipped;
  std::string next_token;  // "" at the end
};

struct PutRequest {
  std::string key;
  std::vector<ByteView> body;  // must live until the callback
  std::string content_type = "application/octet-stream";
  bool if_none_match = false;  // fail with kPreconditionFailed when the key exists
  std::string if_match;        // not "": fail with it unless this is the key's etag
  // Tells a conditional write that succeeded, but whose answer was lost, from another writer's:
  // unlike for unlike requests, the same for all attempts of one. The retry layer fills it in.
  std::string write_id;
  WriteProgress* progress = nullptr;  // not null: must live until the callback
  RequestOptions options;
};

struct PutResult {
  std::string etag;
  std::string version_id;  // of a versioned bucket
};

struct PartRequest {
  std::string key;
  std::string upload_id;
  int part_number = 1;  // 1 .. 10,000
  std::vector<ByteView> body;
  WriteProgress* progress = nullptr;  // not null: must live until the callback
  RequestOptions options;
};

struct UploadRequest {  // of an upload as a whole: create, complete, abort
  std::string key;
  std::string upload_id;                // "" in create
  std::vector<std::string> part_etags;  // complete: etag of part i + 1
  std::string content_type = "application/octet-stream";
  bool if_none_match = false;  // complete: as in PutRequest
  std::string if_match;
  std::string write_id;  // create: as in PutRequest, for completing
  RequestOptions options;
};

struct Unit {};

class ObjectStore {
 public:
  using OpId = uint64_t;  // 0 is never given out

  virtual ~ObjectStore() = default;

  // Errors: kNotFound, kPermissionDenied, kPreconditionFailed (the object changed; both etags are
  // named), kDataLoss (wrong range, short or long body, 200 to a range, body encoding, an etag that
  // the store itself does not confirm), kUnavailable,
  // kResourceExhausted (503 SlowDown, 429), kDeadlineExceeded, kCancelled, kInvalidArgument
  // (range outside the object). Every error carries uri, range, attempt and request id.
  virtual OpId StartRead(ReadRequest request, Callback<ReadResult> on_done) = 0;
  virtual OpId StartHead(HeadRequest request, Callback<ObjectInfo> on_done) = 0;
  virtual OpId StartList(ListRequest request, Callback<ListPage> on_done) = 0;
  virtual OpId StartPut(PutRequest request, Callback<PutResult> on_done) = 0;
  virtual OpId StartCreateUpload(UploadRequest request, Callback<std::string> on_done) = 0;
  virtual OpId StartPutPart(PartRequest request, Callback<PutResult> on_done) = 0;
  virtual OpId StartCompleteUpload(UploadRequest request, Callback<PutResult> on_done) = 0;
  virtual OpId StartAbortUpload(UploadRequest request, Callback<Unit> on_done) = 0;
  // OK when the key did not exist, as in S3. With a version: that version, for ever.
  virtual OpId StartDelete(HeadRequest request, Callback<Unit> on_done) = 0;

  // The callback still runs, once, with kCancelled or with the result that was already on its way.
  // After it has run, nothing touches the target.
  virtual void Cancel(OpId op) = 0;
  // The consumer now waits for it: from here on as if it had been started at Priority::kDemand. No
  // effect on one that is over.
  virtual void Promote(OpId op) { (void)op; }
  // How a long listing may be cut into parts that are listed at the same time.
  enum class ListCut : uint8_t {
    kNone,     // not at all: it would gain nothing
    kFolders,  // at what the delimiter "/" rolls up
    kKeys,     // anywhere: keys come in the order of their bytes, and start_after counts by it
  };
  virtual ListCut list_cut() const { return ListCut::kNone; }
  // "s3://bucket" or "file:///dir" or "memory://name": what a key is appended to (with '/') in
  // messages and catalogs.
  virtual const std::string& root_uri() const = 0;
  virtual Executor& executor() = 0;
};

}  // namespace forebay::store
