#include "engine/scanned_object.h"

#include <fmt/core.h>

#include <utility>

namespace forebay::engine {
namespace {

Result<media::Verified> VerifiedOf(const std::string& name) {
  if (name == "none") return media::Verified::kNone;
  if (name == "heads") return media::Verified::kHeads;
  if (name == "full") return media::Verified::kFull;
  return Status(Code::kInvalidArgument,
                fmt::format("verify is none, heads or full, not \"{}\"", name));
}

}  // namespace

Result<std::unique_ptr<ScannedObject>> ScannedObject::Open(const std::string& uri,
                                                           const StoreOptions& options) {
  FB_ASSIGN_OR_RETURN(store::Uri parsed, store::ParseUri(uri));
  if (parsed.key.empty()) {
    return Status(Code::kInvalidArgument, fmt::format("\"{}\" names no object", uri));
  }
  FB_ASSIGN_OR_RETURN(std::shared_ptr<StoreSet> set, StoreSet::Make(options));
  FB_ASSIGN_OR_RETURN(std::shared_ptr<store::ObjectStore> store, set->StoreFor(parsed));
  const Duration timeout = std::chrono::milliseconds(options.request_timeout_ms);
  std::unique_ptr<ScannedObject> object(
      new ScannedObject(std::move(set), store::SyncStore(std::move(store), timeout)));
  object->uri_ = parsed.ToString();
  FB_ASSIGN_OR_RETURN(store::ObjectInfo info, object->store_.Head(parsed.key));
  object->object_ = std::make_unique<store::PinnedObject>(object->store_, std::move(info),
                                                          store::Priority::kDemand, timeout);
  return object;
}

Result<std::vector<media::VideoIndex>> ScannedObject::Scan(const std::string& verify) {
  media::ScanOptions options;
  FB_ASSIGN_OR_RETURN(options.verify, VerifiedOf(verify));
  options.read_many = [this](const std::vector<ByteRange>& ranges,
                             const std::vector<MutableBytes>& into) {
    return object_->ReadMany(ranges, into);
  };
  auto videos = media::ScanVideo(
      [this](ByteRange range, MutableBytes into) { return object_->Read(range, into); },
      object_->info().size, options, &report_);
  if (!videos.ok()) return std::move(videos).status().WithDetail({.uri = uri_});
  return videos;
}

}  // namespace forebay::engine
