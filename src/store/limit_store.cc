#include "store/limit_store.h"

#include "base/assert.h"
#include "base/random.h"

namespace forebay::store {

LimitStore::LimitStore(std::shared_ptr<ObjectStore> inner, std::shared_ptr<Admission> admission)
    : Decorator(std::move(inner)), admission_(std::move(admission)) {}

LimitStore::LimitStore(std::shared_ptr<ObjectStore> inner, const LimitOptions& options)
    : Decorator(std::move(inner)),
      admission_(std::make_shared<Admission>(executor(), options, nullptr)) {}

uint64_t LimitStore::PrefixOf(std::string_view key) const {
  const size_t slash = key.find('/');
  const std::string_view folder = slash == std::string_view::npos ? "" : key.substr(0, slash);
  const uint64_t bucket = DeriveKey(HashName(admission_->options().host), HashName(root_uri()));
  return DeriveKey(bucket, HashName(folder));
}

void LimitStore::Launch(std::unique_ptr<Op> made) {
  FB_ASSERT(executor().InThread());
  made->id = ++last_id_;
  Op& op = *(ops_[made->id] = std::move(made));
  Status why;
  if (!admission_->Enter(op, &why)) FailLater(op, std::move(why));
}

void LimitStore::Op::Refuse(Status status) { store.FailLater(*this, std::move(status)); }

void LimitStore::FailLater(Op& op, Status status) {
  op.over = true;
  executor().Post([this, id = op.id, why = std::move(status)]() mutable {
    const std::unique_ptr<Op> self = Take(id);
    self->Fail(std::move(why));
  });
}

std::unique_ptr<LimitStore::Op> LimitStore::Take(OpId id) {
  auto node = ops_.extract(id);
  FB_ASSERT(!node.empty());
  return std::move(node.mapped());
}

void LimitStore::Promote(OpId id) {
  FB_ASSERT(executor().InThread());
  const auto found = ops_.find(id);
  if (found == ops_.end() || found->second->over) return;
  Op& op = *found->second;
  if (op.begun) {
    inner().Promote(op.inner_op);
    return;
  }
  op.RaiseToDemand();
  admission_->Promote(op);
}

void LimitStore::Cancel(OpId id) {
  FB_ASSERT(executor().InThread());
  const auto found = ops_.find(id);
  if (found == ops_.end() || found->second->over) return;
  Op& op = *found->second;
  if (op.begun) {
    inner().Cancel(op.inner_op);
    return;
  }
  admission_->Drop(op);
  FailLater(op, Status(Code::kCancelled, "cancelled while it waited for others to finish"));
}

}  // namespace forebay::store
