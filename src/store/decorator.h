// The nine verbs of ObjectStore reduced to one: what retry, limit and meter are written as.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "store/object_store.h"

namespace forebay::store {

enum class Verb : uint8_t {
  kRead,
  kHead,
  kList,
  kPut,
  kCreateUpload,
  kPutPart,
  kCompleteUpload,
  kAbortUpload,
  kDelete,
};
inline constexpr size_t kVerbs = 9;

// Stable, for metrics and texts.
constexpr std::string_view VerbName(Verb verb) {
  constexpr std::array<std::string_view, kVerbs> kNames{
      "read",         "head",  "list", "put", "create_upload", "put_part", "complete_upload",
      "abort_upload", "delete"};
  return kNames[static_cast<size_t>(verb)];
}

template <class Request, class T>
using StartMethod = ObjectStore::OpId (ObjectStore::*)(Request, Callback<T>);

// `Derived` has
//   template <class Request, class T>
//   OpId RunOp(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done);
// which calls (inner().*start)(...) as often as it sees fit. Destroy on the executor's thread once
// nothing is in flight, or after the executor has stopped.
template <class Derived>
class Decorator : public ObjectStore {
 public:
  explicit Decorator(std::shared_ptr<ObjectStore> inner) : inner_(std::move(inner)) {}

  OpId StartRead(ReadRequest request, Callback<ReadResult> on_done) override {
    return Run(Verb::kRead, &ObjectStore::StartRead, std::move(request), std::move(on_done));
  }
  OpId StartHead(HeadRequest request, Callback<ObjectInfo> on_done) override {
    return Run(Verb::kHead, &ObjectStore::StartHead, std::move(request), std::move(on_done));
  }
  OpId StartList(ListRequest request, Callback<ListPage> on_done) override {
    return Run(Verb::kList, &ObjectStore::StartList, std::move(request), std::move(on_done));
  }
  OpId StartPut(PutRequest request, Callback<PutResult> on_done) override {
    return Run(Verb::kPut, &ObjectStore::StartPut, std::move(request), std::move(on_done));
  }
  OpId StartCreateUpload(UploadRequest request, Callback<std::string> on_done) override {
    return Run(Verb::kCreateUpload, &ObjectStore::StartCreateUpload, std::move(request),
               std::move(on_done));
  }
  OpId StartPutPart(PartRequest request, Callback<PutResult> on_done) override {
    return Run(Verb::kPutPart, &ObjectStore::StartPutPart, std::move(request), std::move(on_done));
  }
  OpId StartCompleteUpload(UploadRequest request, Callback<PutResult> on_done) override {
    return Run(Verb::kCompleteUpload, &ObjectStore::StartCompleteUpload, std::move(request),
               std::move(on_done));
  }
  OpId StartAbortUpload(UploadRequest request, Callback<Unit> on_done) override {
    return Run(Verb::kAbortUpload, &ObjectStore::StartAbortUpload, std::move(request),
               std::move(on_done));
  }
  OpId StartDelete(HeadRequest request, Callback<Unit> on_done) override {
    return Run(Verb::kDelete, &ObjectStore::StartDelete, std::move(request), std::move(on_done));
  }
  const std::string& root_uri() const override { return inner_->root_uri(); }
  ListCut list_cut() const override { return inner_->list_cut(); }
  Executor& executor() override { return inner_->executor(); }

 protected:
  ObjectStore& inner() { return *inner_; }

 private:
  template <class Request, class T>
  OpId Run(Verb verb, StartMethod<Request, T> start, Request request, Callback<T> on_done) {
    return static_cast<Derived*>(this)->RunOp(verb, start, std::move(request), std::move(on_done));
  }
  const std::shared_ptr<ObjectStore> inner_;
};

}  // namespace forebay::store
