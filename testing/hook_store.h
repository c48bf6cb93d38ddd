// An ObjectStore whose reads a test may look at, fail or hold up.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "store/object_store.h"

namespace forebay::testing {

class HookStore : public store::ObjectStore {
 public:
  // A status: the read fails with it, in the executor's next turn.
  using OnRead = std::function<std::optional<Status>(const store::ReadRequest&)>;

  HookStore(std::shared_ptr<store::ObjectStore> inner, OnRead on_read)
      : inner_(std::move(inner)), on_read_(std::move(on_read)) {}

  OpId StartRead(store::ReadRequest request, store::Callback<store::ReadResult> on_done) override {
    if (std::optional<Status> status = on_read_(request)) {
      executor().Post([status = *std::move(status), on_done = std::move(on_done)]() mutable {
        on_done(std::move(status));
      });
      return ~OpId{0};  // Cancel knows nothing of it
    }
    return inner_->StartRead(std::move(request), std::move(on_done));
  }
  OpId StartHead(store::HeadRequest r, store::Callback<store::ObjectInfo> f) override {
    return inner_->StartHead(std::move(r), std::move(f));
  }
  OpId StartList(store::ListRequest r, store::Callback<store::ListPage> f) override {
    return inner_->StartList(std::move(r), std::move(f));
  }
  OpId StartPut(store::PutRequest r, store::Callback<store::PutResult> f) override {
    return inner_->StartPut(std::move(r), std::move(f));
  }
  OpId StartCreateUpload(store::UploadRequest r, store::Callback<std::string> f) override {
    return inner_->StartCreateUpload(std::move(r), std::move(f));
  }
  OpId StartPutPart(store::PartRequest r, store::Callback<store::PutResult> f) override {
    return inner_->StartPutPart(std::move(r), std::move(f));
  }
  OpId StartCompleteUpload(store::UploadRequest r, store::Callback<store::PutResult> f) override {
    return inner_->StartCompleteUpload(std::move(r), std::move(f));
  }
  OpId StartAbortUpload(store::UploadRequest r, store::Callback<store::Unit> f) override {
    return inner_->StartAbortUpload(std::move(r), std::move(f));
  }
  OpId StartDelete(store::HeadRequest r, store::Callback<store::Unit> f) override {
    return inner_->StartDelete(std::move(r), std::move(f));
  }
  void Cancel(OpId op) override { inner_->Cancel(op); }
  void Promote(OpId op) override { inner_->Promote(op); }
  const std::string& root_uri() const override { return inner_->root_uri(); }
  Executor& executor() override { return inner_->executor(); }

 private:
  std::shared_ptr<store::ObjectStore> inner_;
  OnRead on_read_;
};

}  // namespace forebay::testing
