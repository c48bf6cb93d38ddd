#include "catalog/listing.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

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

// The parts that people split a data set into, as its folders or the names of its shards
// ("data/train-00000-of-00008.parquet") say: to train from all of them is seldom meant.
class Splits {
 public:
  void Note(std::string_view key) {
    const size_t folder = key.find('/');
    if (folder != key.npos) Take(key.substr(0, folder), &folders_);
    const std::string_view name = key.substr(key.rfind('/') + 1);
    const size_t number = name.find_first_of("-_");
    if (number == name.npos || number + 1 == name.size()) return;
    if (IsDigit(name[number + 1])) Take(name.substr(0, number), &names_);
  }

  // "": there are no two.
  std::string Text() const {
    if (folders_.size() > 1) {
      return fmt::format(
          "{}: splits of a data set, it seems, that come as one; the index of a folder takes one",
          fmt::join(folders_, ", "));
    }
    if (names_.size() > 1) {
      return fmt::format("{}: shards of several splits, it seems, that come as one",
                         fmt::join(names_, ", "));
    }
    return "";
  }

 private:
  static constexpr size_t kNameMost = 10;
  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static void Take(std::string_view name, std::set<std::string, std::less<>>* found) {
    constexpr std::string_view kNames[] = {"train",      "training", "val",  "valid",   "validate",
                                           "validation", "dev",      "test", "testing", "eval"};
    if (name.size() > kNameMost || found->contains(name)) return;
    if (std::ranges::find(kNames, name) != std::end(kNames)) found->emplace(name);
  }

  std::set<std::string, std::less<>> folders_;
  std::set<std::string, std::less<>> names_;
};

}  // namespace

void Warn(std::vector<std::string>* warnings, std::string_view key, std::string_view text) {
  if (warnings->size() >= kWarningsMax) return;
  warnings->push_back(fmt::format("{}: {}", key, text));
}

Status ListDataset(const store::SyncStore& store, const std::string& prefix,
                   const std::function<bool(const store::ObjectInfo&)>& visit, Listing* listing) {
  Splits splits;
  FB_RETURN_IF_ERROR(store.ListAll(
      prefix,
      [&](const store::ObjectInfo& info) {
        const bool folder = info.size == 0 && info.key.ends_with('/');
        if (folder || IsOwn(info.key, prefix)) return true;
        splits.Note(std::string_view(info.key).substr(prefix.size()));
        return visit(info);
      },
      {},
      [&](const store::ListSkip& skip) {
        if (IsOwn(skip.key, prefix)) return;
        ++listing->skipped;
        Warn(&listing->warnings, skip.key.substr(prefix.size()), skip.why + ", left out");
      }));
  if (std::string text = splits.Text(); !text.empty()) {
    listing->warnings.insert(listing->warnings.begin(), std::move(text));
  }
  return {};
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
