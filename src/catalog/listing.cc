#include "catalog/listing.h"

#include <fmt/core.h>

namespace forebay::catalog {
namespace {
constexpr size_t kWarningsMax = 1000;
}  // namespace

void Warn(std::vector<std::string>* warnings, std::string_view key, std::string_view text) {
  if (warnings->size() >= kWarningsMax) return;
  warnings->push_back(fmt::format("{}: {}", key, text));
}

Status ListDataset(const store::SyncStore& store, const std::string& prefix,
                   const std::function<bool(const store::ObjectInfo&)>& visit, Listing* listing) {
  const std::string own = prefix + ".forebay/";
  return store.ListAll(
      prefix,
      [&](const store::ObjectInfo& info) {
        const bool folder = info.size == 0 && info.key.ends_with('/');
        return folder || info.key.starts_with(own) || visit(info);
      },
      {},
      [&](const store::ListSkip& skip) {
        if (skip.key.starts_with(own)) return;
        ++listing->skipped;
        Warn(&listing->warnings, skip.key.substr(prefix.size()), skip.why + ", left out");
      });
}

Status NothingThere(const store::SyncStore& store, const std::string& prefix) {
  return Status(Code::kNotFound,
                fmt::format("no object under {}/{}", store.async().root_uri(), prefix));
}

}  // namespace forebay::catalog
