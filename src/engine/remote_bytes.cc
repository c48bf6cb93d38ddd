#include "engine/remote_bytes.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "engine/open_catalog.h"
#include "store/sync_store.h"

namespace forebay::engine {
namespace {
constexpr uint64_t kHeadBytes = 64 << 10;
constexpr uint64_t kPartBytes = 8 << 20;
constexpr auto kReadTimeout = std::chrono::seconds(60);
constexpr auto kRestTimeout = std::chrono::seconds(75);  // reads end before that
}  // namespace

// One StartRead, in parts; the store's thread only.
struct RemoteBytes::Read {
  ByteRange range;
  std::vector<std::byte> bytes;
  size_t left = 0;
  Status status;
  OnRead on_read;
};

Result<std::shared_ptr<const catalog::CatalogBytes>> RemoteBytes::Open(StoreSet& stores,
                                                                       const store::Uri& uri,
                                                                       uint64_t whole_bytes) {
  FB_ASSIGN_OR_RETURN(auto from, stores.StoreFor(uri));
  const store::SyncStore store(std::move(from));
  std::shared_ptr<RemoteBytes> remote(new RemoteBytes(stores.options(), uri));
  remote->head_.resize(kHeadBytes);
  store::ReadRequest first;
  first.key = uri.key;
  first.range = {0, kHeadBytes};
  first.target = {remote->head_};
  first.clamp_to_object = true;
  FB_ASSIGN_OR_RETURN(const store::ReadResult result, store.Read(std::move(first)));
  remote->head_.resize(result.bytes);
  remote->etag_ = result.etag;
  remote->size_ = result.object_size;
  if (result.object_size > whole_bytes) {
    return std::shared_ptr<const catalog::CatalogBytes>(std::move(remote));
  }
  std::vector<std::byte> bytes = std::move(remote->head_);
  const uint64_t have = bytes.size();
  bytes.resize(result.object_size);
  if (have < bytes.size()) {
    store::ReadRequest rest;
    rest.key = uri.key;
    rest.etag = result.etag;
    rest.range = {have, bytes.size()};
    rest.target = {MutableBytes(bytes).subspan(have)};
    FB_RETURN_IF_ERROR(store.ReadLarge(std::move(rest)));
  }
  return catalog::BytesInMemory(std::move(bytes));
}

Result<store::ObjectStore*> RemoteBytes::Store() const {
  if (!store_) {
    FB_ASSIGN_OR_RETURN(const auto stores, StoreSet::Make(options_));
    FB_ASSIGN_OR_RETURN(store_, stores->StoreFor(uri_));  // it keeps the set
  }
  return store_.get();
}

void RemoteBytes::StartRead(ByteRange range, OnRead on_read) const {
  if (range.end <= head_.size()) {
    const auto first = head_.begin() + static_cast<std::ptrdiff_t>(range.offset);
    on_read(std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(range.size())));
    return;
  }
  store::ObjectStore* store = nullptr;
  Status status;
  {
    const MutexLock lock(mutex_);
    Result<store::ObjectStore*> ready = Store();
    if (ready.ok()) {
      store = *ready;
      ++in_flight_;  // from here on the store stays
    } else {
      status = std::move(ready).status();
    }
  }
  if (store == nullptr) {
    on_read(std::move(status));
    return;
  }
  auto read = std::make_shared<Read>();
  read->range = range;
  read->on_read = std::move(on_read);
  store->executor().Post([this, store, read = std::move(read)] { StartParts(*store, read); });
}

void RemoteBytes::StartParts(store::ObjectStore& store, const std::shared_ptr<Read>& read) const {
  read->bytes.resize(read->range.size());
  read->left = (read->range.size() + kPartBytes - 1) / kPartBytes;
  for (uint64_t at = 0; at < read->bytes.size(); at += kPartBytes) {
    const uint64_t end = std::min<uint64_t>(read->bytes.size(), at + kPartBytes);
    store::ReadRequest request;
    request.key = uri_.key;
    request.etag = etag_;
    request.range = {read->range.offset + at, read->range.offset + end};
    request.target = {MutableBytes(read->bytes).subspan(at, end - at)};
    request.options.deadline = store.executor().Now() + kReadTimeout;
    auto op = std::make_shared<store::ObjectStore::OpId>(0);
    *op = store.StartRead(std::move(request), [this, read, op](Result<store::ReadResult> done) {
      operations_.erase(*op);
      OnPart(read, done.ok() ? Status() : std::move(done).status());
    });
    operations_.insert(*op);
  }
}

void RemoteBytes::OnPart(const std::shared_ptr<Read>& read, Status status) const {
  if (read->status.ok()) read->status = std::move(status);
  if (--read->left > 0) return;
  if (read->status.ok()) {
    read->on_read(std::move(read->bytes));
  } else {
    read->on_read(std::move(read->status).WithContext("reading the catalog"));
  }
  const MutexLock lock(mutex_);  // told under the lock: whoever waits may destroy this then
  if (--in_flight_ == 0) idle_.notify_all();
}

void RemoteBytes::Rest() const {
  std::shared_ptr<store::ObjectStore> store;
  const MutexLock lock(mutex_);
  if (!store_) return;
  if (in_flight_ > 0) {
    store_->executor().Post([this, raw = store_.get()] {
      const auto operations = operations_;
      for (const store::ObjectStore::OpId op : operations) raw->Cancel(op);
    });
  }
  const auto deadline = std::chrono::steady_clock::now() + kRestTimeout;
  while (in_flight_ > 0) {
    if (idle_.wait_until(mutex_, deadline) == std::cv_status::timeout) break;
  }
  if (in_flight_ > 0) {  // its memory stays, rather than be freed under a write
    Log(LogLevel::kError, "reads of a catalog do not end; their store stays");
    (void)new std::shared_ptr<store::ObjectStore>(std::move(store_));
    return;
  }
  store.swap(store_);  // let go behind the lock
}

}  // namespace forebay::engine
