#include "store/memory/memory_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/random.h"

namespace forebay::store {
namespace {

std::string EtagOf(ByteView body) { return fmt::format("{:016x}", HashName(AsText(body))); }

std::vector<std::byte> Join(const std::vector<ByteView>& pieces) {
  std::vector<std::byte> all;
  for (const ByteView piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

void Scatter(ByteView from, const std::vector<MutableBytes>& target) {
  for (const MutableBytes piece : target) {
    const size_t length = std::min(piece.size(), from.size());
    if (length == 0) continue;
    std::memcpy(piece.data(), from.data(), length);
    from = from.subspan(length);
  }
}

}  // namespace

std::shared_ptr<MemoryStore> MemoryStore::Make(Executor* executor, Options options) {
  return std::shared_ptr<MemoryStore>(new MemoryStore(executor, std::move(options)));
}

MemoryStore::MemoryStore(Executor* executor, Options options)
    : executor_(executor), options_(std::move(options)), root_uri_("memory://" + options_.name) {}

void MemoryStore::Insert(const std::string& key, ByteView body, int64_t modified_unix_s) {
  objects_[key] = Object{
      .body = {body.begin(), body.end()}, .etag = EtagOf(body), .modified_unix_s = modified_unix_s};
}

Status MemoryStore::Error(Code code, std::string message, const std::string& key) const {
  return Status(code, std::move(message), ErrorDetail{.uri = root_uri_ + "/" + key, .attempt = 1});
}

template <class T>
ObjectStore::OpId MemoryStore::Schedule(const Operation& operation, const RequestOptions& options,
                                        Callback<T> on_done,
                                        std::move_only_function<Result<T>()> run) {
  const OpId op = next_op_++;
  Pending pending;
  pending.finish = [run = std::move(run), on_done = std::move(on_done)](Status status) mutable {
    on_done(status.ok() ? run() : Result<T>(std::move(status)));
  };
  const Duration latency = options_.latency ? options_.latency(operation) : Duration::zero();
  const Time now = executor_->Now();
  Status late;
  Time at = now + latency;
  if (at > options.deadline) {
    at = std::max(now, options.deadline);
    late = Error(Code::kDeadlineExceeded, fmt::format("{} took too long", operation.verb),
                 std::string(operation.key));
  }
  auto task = [this, alive = std::weak_ptr<bool>(alive_), op, late = std::move(late)]() mutable {
    if (!alive.expired()) Finish(op, std::move(late));
  };
  if (at == now) {
    executor_->Post(std::move(task));
  } else {
    pending.timer = executor_->PostAt(at, std::move(task));
  }
  pending_.emplace(op, std::move(pending));
  return op;
}

void MemoryStore::Finish(OpId op, Status status) {
  auto node = pending_.extract(op);
  if (node.empty()) return;
  node.mapped().finish(std::move(status));
}

void MemoryStore::Cancel(OpId op) {
  const auto found = pending_.find(op);
  if (found == pending_.end()) return;
  if (found->second.timer != 0) executor_->CancelTimer(found->second.timer);
  found->second.timer = 0;
  executor_->Post([this, alive = std::weak_ptr<bool>(alive_), op] {
    if (!alive.expired()) Finish(op, Status(Code::kCancelled, "the operation was cancelled"));
  });
}

Result<ReadResult> MemoryStore::Read(const ReadRequest& request) {
  ErrorDetail detail{.uri = root_uri_ + "/" + request.key,
                     .offset = static_cast<int64_t>(request.range.offset),
                     .end = static_cast<int64_t>(request.range.end),
                     .attempt = 1};
  const auto fail = [&detail](Code code, std::string message) {
    return Status(code, std::move(message), detail);
  };
  const auto found = objects_.find(request.key);
  if (found == objects_.end()) return fail(Code::kNotFound, "no such object");
  const Object& object = found->second;
  if (!request.etag.empty() && request.etag != object.etag) {
    return fail(Code::kPreconditionFailed,
                fmt::format("the object changed: expected etag \"{}\", found \"{}\"", request.etag,
                            object.etag));
  }
  ByteRange range = request.range;
  if (request.clamp_to_object) {
    range.end = std::min<uint64_t>(range.end, object.body.size());
    range.offset = std::min(range.offset, range.end);
  } else if (range.end > object.body.size()) {
    return fail(Code::kInvalidArgument,
                fmt::format("the range reaches past the object's {} bytes", object.body.size()));
  }
  Scatter(ByteView(object.body).subspan(range.offset, range.size()), request.target);
  ++reads_;
  bytes_read_ += range.size();
  return ReadResult{.bytes = range.size(),
                    .object_size = object.body.size(),
                    .etag = object.etag,
                    .request_id = ""};
}

ObjectStore::OpId MemoryStore::StartRead(ReadRequest request, Callback<ReadResult> on_done) {
  const Operation operation{.verb = "read", .key = request.key, .range = request.range};
  uint64_t room = 0;
  for (const MutableBytes piece : request.target) room += piece.size();
  FB_ASSERT(room == request.range.size() && room > 0);
  const Time started = executor_->Now();
  const RequestOptions options = request.options;
  return Schedule<ReadResult>(operation, options, std::move(on_done),
                              [this, started, request]() -> Result<ReadResult> {
                                FB_ASSIGN_OR_RETURN(ReadResult result, Read(request));
                                result.total = executor_->Now() - started;
                                result.first_byte = result.total;
                                return result;
                              });
}

ObjectStore::OpId MemoryStore::StartHead(HeadRequest request, Callback<ObjectInfo> on_done) {
  return Schedule<ObjectInfo>({.verb = "head", .key = request.key, .range = {}}, request.options,
                              std::move(on_done),
                              [this, key = request.key]() -> Result<ObjectInfo> {
                                const auto found = objects_.find(key);
                                if (found == objects_.end())
                                  return Error(Code::kNotFound, "no such object", key);
                                return ObjectInfo{.key = key,
                                                  .size = found->second.body.size(),
                                                  .etag = found->second.etag,
                                                  .modified_unix_s = found->second.modified_unix_s};
                              });
}

Result<ListPage> MemoryStore::List(const ListRequest& request) const {
  ListPage page;
  const std::string& after =
      request.continuation_token.empty() ? request.start_after : request.continuation_token;
  auto at = objects_.lower_bound(std::max(request.prefix, after));
  const size_t limit = static_cast<size_t>(std::clamp(request.max_keys, 1, 1000));
  std::string last;
  for (; at != objects_.end() && at->first.starts_with(request.prefix); ++at) {
    const std::string& key = at->first;
    if (!after.empty() &&
        (key <= after || (!request.delimiter.empty() && after.ends_with(request.delimiter) &&
                          after.size() > request.prefix.size() && key.starts_with(after)))) {
      continue;
    }
    std::string common;
    if (!request.delimiter.empty()) {
      const size_t cut = key.find(request.delimiter, request.prefix.size());
      if (cut != key.npos) common = key.substr(0, cut + request.delimiter.size());
    }
    if (!common.empty() && !page.common_prefixes.empty() && page.common_prefixes.back() == common) {
      continue;
    }
    if (page.objects.size() + page.common_prefixes.size() == limit) {
      page.next_token = last;
      break;
    }
    if (!common.empty()) {
      last = common;
      page.common_prefixes.push_back(std::move(common));
      continue;
    }
    last = key;
    page.objects.push_back({.key = key,
                            .size = at->second.body.size(),
                            .etag = at->second.etag,
                            .modified_unix_s = at->second.modified_unix_s});
  }
  return page;
}

ObjectStore::OpId MemoryStore::StartList(ListRequest request, Callback<ListPage> on_done) {
  const Operation operation{.verb = "list", .key = request.prefix, .range = {}};
  return Schedule<ListPage>(operation, request.options, std::move(on_done),
                            [this, request] { return List(request); });
}

Status MemoryStore::CheckConditions(const std::string& key, bool if_none_match,
                                    const std::string& if_match) const {
  const auto found = objects_.find(key);
  if (if_none_match && found != objects_.end()) {
    return Error(Code::kPreconditionFailed, "the key exists already", key);
  }
  if (if_match.empty()) return {};
  if (found == objects_.end()) return Error(Code::kNotFound, "no such object", key);
  if (found->second.etag == if_match) return {};
  return Error(Code::kPreconditionFailed,
               fmt::format("the object changed: its etag is {}, {} was expected",
                           found->second.etag, if_match),
               key);
}

Result<PutResult> MemoryStore::Put(const PutRequest& request) {
  FB_RETURN_IF_ERROR(CheckConditions(request.key, request.if_none_match, request.if_match));
  Object object;
  object.body = Join(request.body);
  object.etag = EtagOf(object.body);
  PutResult result{.etag = object.etag};
  objects_[request.key] = std::move(object);
  return result;
}

ObjectStore::OpId MemoryStore::StartPut(PutRequest request, Callback<PutResult> on_done) {
  const Operation operation{.verb = "put", .key = request.key, .range = {}};
  return Schedule<PutResult>(operation, request.options, std::move(on_done),
                             [this, request] { return Put(request); });
}

ObjectStore::OpId MemoryStore::StartCreateUpload(UploadRequest request,
                                                 Callback<std::string> on_done) {
  return Schedule<std::string>({.verb = "upload", .key = request.key, .range = {}}, request.options,
                               std::move(on_done),
                               [this, key = request.key]() -> Result<std::string> {
                                 std::string id = fmt::format("upload-{}", next_upload_++);
                                 uploads_[id].key = key;
                                 return id;
                               });
}

Result<MemoryStore::Upload*> MemoryStore::FindUpload(const std::string& key,
                                                     const std::string& upload_id) {
  const auto found = uploads_.find(upload_id);
  if (found == uploads_.end() || found->second.key != key) {
    return Error(Code::kNotFound, fmt::format("no such upload: {}", upload_id), key);
  }
  return &found->second;
}

Result<PutResult> MemoryStore::PutPart(const PartRequest& request) {
  if (request.part_number < 1 || request.part_number > 10'000) {
    return Error(Code::kInvalidArgument,
                 fmt::format("part number {} is not in 1 .. 10000", request.part_number),
                 request.key);
  }
  FB_ASSIGN_OR_RETURN(Upload * upload, FindUpload(request.key, request.upload_id));
  Object& part = upload->parts[request.part_number];
  part.body = Join(request.body);
  part.etag = EtagOf(part.body);
  return PutResult{.etag = part.etag};
}

ObjectStore::OpId MemoryStore::StartPutPart(PartRequest request, Callback<PutResult> on_done) {
  const Operation operation{.verb = "put", .key = request.key, .range = {}};
  return Schedule<PutResult>(operation, request.options, std::move(on_done),
                             [this, request] { return PutPart(request); });
}

Result<PutResult> MemoryStore::CompleteUpload(const UploadRequest& request) {
  FB_ASSIGN_OR_RETURN(Upload * upload, FindUpload(request.key, request.upload_id));
  Object object;
  int number = 0;
  for (const std::string& etag : request.part_etags) {
    const auto part = upload->parts.find(++number);
    if (part == upload->parts.end() || part->second.etag != etag) {
      return Error(Code::kInvalidArgument,
                   fmt::format("part {} was not uploaded with etag \"{}\"", number, etag),
                   request.key);
    }
    object.body.insert(object.body.end(), part->second.body.begin(), part->second.body.end());
  }
  if (number == 0) return Error(Code::kInvalidArgument, "an upload needs parts", request.key);
  FB_RETURN_IF_ERROR(CheckConditions(request.key, request.if_none_match, request.if_match));
  object.etag = fmt::format("{}-{}", EtagOf(object.body), number);
  PutResult result{.etag = object.etag};
  objects_[request.key] = std::move(object);
  uploads_.erase(request.upload_id);
  return result;
}

ObjectStore::OpId MemoryStore::StartCompleteUpload(UploadRequest request,
                                                   Callback<PutResult> on_done) {
  const Operation operation{.verb = "upload", .key = request.key, .range = {}};
  return Schedule<PutResult>(operation, request.options, std::move(on_done),
                             [this, request] { return CompleteUpload(request); });
}

ObjectStore::OpId MemoryStore::StartAbortUpload(UploadRequest request, Callback<Unit> on_done) {
  return Schedule<Unit>({.verb = "upload", .key = request.key, .range = {}}, request.options,
                        std::move(on_done), [this, request]() -> Result<Unit> {
                          FB_RETURN_IF_ERROR(FindUpload(request.key, request.upload_id).status());
                          uploads_.erase(request.upload_id);
                          return Unit{};
                        });
}

ObjectStore::OpId MemoryStore::StartDelete(HeadRequest request, Callback<Unit> on_done) {
  return Schedule<Unit>({.verb = "delete", .key = request.key, .range = {}}, request.options,
                        std::move(on_done), [this, key = request.key]() -> Result<Unit> {
                          objects_.erase(key);
                          return Unit{};
                        });
}

}  // namespace forebay::store
