#include "catalog/listing.h"

#include <fmt/core.h>

#include "base/hash.h"
#include "catalog/coding.h"

namespace forebay::catalog {
namespace {
constexpr size_t kWarningsMax = 1000;

// In a folder where Forebay keeps its catalogs.
bool IsOwn(std::string_view key, std::string_view prefix) {
  const bool at_folder = prefix.empty() || prefix.ends_with('/');
  const std::string_view rest = key.substr(prefix.size());
  return (at_folder && rest.starts_with(".forebay/")) || rest.contains("/.forebay/");
}
}  // namespace

void Warn(std::vector<std::string>* warnings, std::string_view key, std::string_view text) {
  if (warnings->size() >= kWarningsMax) return;
  warnings->push_back(fmt::format("{}: {}", key, text));
}

Status ListDataset(const store::SyncStore& store, const std::string& prefix,
                   const std::function<bool(const store::ObjectInfo&)>& visit, Listing* listing) {
  return store.ListAll(
      prefix,
      [&](const store::ObjectInfo& info) {
        const bool folder = info.size == 0 && info.key.ends_with('/');
        return folder || IsOwn(info.key, prefix) || visit(info);
      },
      {},
      [&](const store::ListSkip& skip) {
        if (IsOwn(skip.key, prefix)) return;
        ++listing->skipped;
        Warn(&listing->warnings, skip.key.substr(prefix.size()), skip.why + ", left out");
      });
}

std::string ListingHash(const std::vector<store::ObjectInfo>& objects, const std::string& prefix) {
  Writer listing;
  for (const store::ObjectInfo& info : objects) {
    listing.Text(std::string_view(info.key).substr(prefix.size()));
    listing.Varint(info.size);
    listing.Text(info.etag);
  }
  return HashBytes(listing.bytes()).ToHex();
}

Status NothingThere(const store::SyncStore& store, const std::string& prefix) {
  return Status(Code::kNotFound,
                fmt::format("no object under {}/{}", store.async().root_uri(), prefix));
}

}  // namespace forebay::catalog
