// One listing of a data set: everything under a prefix but Forebay's own folders and the empty
// objects that stand for folders.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/sync_store.h"

namespace forebay::catalog {

struct Listing {
  uint64_t skipped = 0;  // no object at all, as a dangling link
  std::vector<std::string> warnings;
};

// At most a thousand warnings are kept.
void Warn(std::vector<std::string>* warnings, std::string_view key, std::string_view text);

// Keys come whole, in the store's order; `visit` returning false ends it. Errors: the store's.
Status ListDataset(const store::SyncStore& store, const std::string& prefix,
                   const std::function<bool(const store::ObjectInfo&)>& visit, Listing* listing);

// What tells whether several machines have listed the same.
std::string ListingHash(const std::vector<store::ObjectInfo>& objects, const std::string& prefix);

Status NothingThere(const store::SyncStore& store, const std::string& prefix);

}  // namespace forebay::catalog
