#include "store/parallel_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/random.h"

namespace forebay::store {
namespace {

// A part is looked at for folders when it has shown to be long; and cut into them when they are
// few, so that a request for each is no waste.
constexpr int kLookAfter = 4;
constexpr size_t kMostFolders = 64;
constexpr int kMostLooks = 32;  // into the only folder of a folder, and so on
// When much is waiting, only the parts that are delivered next go on.
constexpr size_t kFirstParts = 4;
constexpr size_t kFirstPages = 8;
// What was deleted may leave pages empty, of a thousand keys each.
constexpr uint64_t kMostEmptyPages = 10'000;

// Keys that all begin with so much more than their bounds have in common are searched for their
// end.
constexpr size_t kLongStem = 4;

size_t Common(std::string_view a, std::string_view b) {
  const auto apart = std::ranges::mismatch(a, b);
  return static_cast<size_t>(apart.in1 - a.begin());
}

// The last character of those that stand for it: keys that differ here in a digit differ in digits.
char LastOfKind(char c) {
  for (const char last : {'/', '9', '@', 'Z', '`', 'z', '~'}) {
    if (c <= last) return last;
  }
  return c;
}

bool IsPlain(char c) { return c >= ' ' && c < '~'; }

// Just behind all keys that share with `low` the characters before `at`, and this one.
std::string Behind(std::string_view low, size_t at) {
  std::string key(low.substr(0, at));
  key += static_cast<char>(low[at] + 1);
  return key;
}

}  // namespace

std::string ListTokens::Check(std::string_view token, bool empty_page) {
  if (!seen_.insert(HashName(token)).second) return "the listing repeats a continuation token";
  empty_pages_ = empty_page ? empty_pages_ + 1 : 0;
  if (empty_pages_ < kMostEmptyPages) return "";
  return fmt::format("{} pages of the listing in a row hold nothing", empty_pages_);
}

std::string KeyBetween(std::string_view low, std::string_view high, std::string_view prefix,
                       size_t stem) {
  const size_t common = high.empty() ? prefix.size() : Common(low, high);
  for (size_t at = (common + stem + 1) / 2; stem >= common + kLongStem && at > common; --at) {
    if (at < low.size() && IsPlain(low[at])) return Behind(low, at);
  }
  for (size_t at = common; at < low.size() && IsPlain(low[at]); ++at) {
    const char from = low[at];
    const char bound = at == common && !high.empty() && high[at] > 0 ? high[at] : '~';
    const char kind = static_cast<char>(LastOfKind(from) + 1);
    const char to = std::min(bound, kind);
    if (to - from >= 2) {
      std::string key(low.substr(0, at));
      return key += static_cast<char>((from + to) / 2);
    }
    if (bound > kind) return Behind(low, at);  // the last of its kind: what follows is of another
  }
  return "";
}

std::shared_ptr<ParallelList> ParallelList::Start(ObjectStore* store, std::string prefix,
                                                  const ParallelListOptions& options,
                                                  OnPage on_page, OnDone on_done) {
  FB_ASSERT(store->executor().InThread());
  std::shared_ptr<ParallelList> list(
      new ParallelList(store, options, std::move(on_page), std::move(on_done)));
  list->parts_.emplace_back().prefix = std::move(prefix);
  list->parts_.back().undecided = list->cut_ == ObjectStore::ListCut::kFolders;
  list->Pump();
  return list;
}

ParallelList::ParallelList(ObjectStore* store, const ParallelListOptions& options, OnPage on_page,
                           OnDone on_done)
    : store_(store),
      options_(options),
      cut_(options.cut.value_or(store->list_cut())),
      on_page_(std::move(on_page)),
      on_done_(std::move(on_done)) {}

RequestOptions ParallelList::Options() const {
  RequestOptions options = options_.request;
  if (options.deadline == kNever) {
    options.deadline = store_->executor().Now() + options_.page_timeout;
  }
  return options;
}

void ParallelList::Consumed(size_t keys) {
  ahead_ -= std::min(keys, ahead_);
  Pump();
}

void ParallelList::Fail(Status status) {
  if (over_ || !status_.ok()) return;
  status_ = std::move(status);
  for (const Part& part : parts_) {
    if (part.op != 0) store_->Cancel(part.op);
  }
  // The end comes when the last of them is back; without any, in a turn of its own.
  store_->executor().Post([self = shared_from_this()] { self->Pump(); });
}

void ParallelList::Pump() {
  if (over_ || std::exchange(pumping_, true)) return;
  const std::shared_ptr<ParallelList> self = shared_from_this();
  if (status_.ok()) {
    Deliver();
    StartParts();
  }
  pumping_ = false;
  if (in_flight_ > 0 || (status_.ok() && !parts_.empty())) return;
  over_ = true;
  on_done_(std::move(status_));
}

void ParallelList::Deliver() {
  while (!parts_.empty() && !parts_.front().undecided) {
    Part& first = parts_.front();
    while (!first.pages.empty()) {
      first.keys -= first.pages.front().objects.size();
      on_page_(std::move(first.pages.front()));
      first.pages.pop_front();
    }
    if (!first.done || first.op != 0) return;
    parts_.pop_front();
  }
}

bool ParallelList::MayStart(size_t index, const Part& part) const {
  if (part.done || part.op != 0) return false;
  if (ahead_ < options_.keys_ahead || index == 0) return true;
  return index < kFirstParts && part.pages.size() < kFirstPages;
}

void ParallelList::StartParts() {
  size_t index = 0;
  for (auto part = parts_.begin(); part != parts_.end(); ++part, ++index) {
    if (in_flight_ >= options_.in_flight) return;
    if (MayStart(index, *part)) StartPage(*part);
  }
  if (cut_ != ObjectStore::ListCut::kKeys || ahead_ >= options_.keys_ahead) return;
  // There is room: halve what has shown to be longer than a page since it was last cut.
  for (auto part = parts_.begin(); part != parts_.end(); ++part) {
    while (in_flight_ < options_.in_flight && !part->done && part->listed > 0 && CutKeys(part)) {
    }
  }
}

void ParallelList::StartPage(Part& part) {
  ++in_flight_;
  ++requests_;
  ListRequest request{.prefix = part.prefix,
                      .delimiter = "",
                      .continuation_token = part.token,
                      .start_after = part.token.empty() ? part.after : "",
                      .max_keys = options_.page_keys,
                      .options = Options()};
  part.op = store_->StartList(std::move(request),
                              [self = shared_from_this(), &part](Result<ListPage> page) {
                                part.op = 0;
                                --self->in_flight_;
                                if (self->status_.ok()) self->OnPageDone(part, std::move(page));
                                self->Pump();
                              });
}

void ParallelList::OnPageDone(Part& part, Result<ListPage> page) {
  Status status = page.status();
  if (status.ok()) status = Accept(part, *std::move(page));
  if (!status.ok()) {
    Fail(std::move(status));
    return;
  }
  if (part.done) part.undecided = false;
  if (cut_ == ObjectStore::ListCut::kKeys) TellNeighbour(part);
  if (part.undecided && part.listed >= kLookAfter) Look(part);
}

Status ParallelList::Accept(Part& part, ListPage page) {
  const auto error = [&](std::string_view what) {
    return Status(Code::kDataLoss, std::string(what),
                  ErrorDetail{.uri = store_->root_uri() + "/" + part.prefix});
  };
  const bool in_order = cut_ == ObjectStore::ListCut::kKeys;
  if (!page.objects.empty() && !part.reaches_end) {
    part.stem = Common(page.objects.front().key, page.objects.back().key);
  }
  for (const ObjectInfo& object : page.objects) {
    if (!object.key.starts_with(part.prefix)) return error("a listed key lacks the prefix");
    if (in_order && object.key <= std::max(part.last, part.after)) {
      return error("the listing is not in the order of the keys' bytes");
    }
    part.last = object.key;
  }
  part.token = std::exchange(page.next_token, "");
  part.done = part.token.empty();
  if (!part.done) {
    const bool empty = page.objects.empty() && page.common_prefixes.empty() && page.skipped.empty();
    const std::string wrong = part.tokens.Check(part.token, empty);
    if (!wrong.empty()) return error(wrong);
  }
  page.common_prefixes.clear();
  if (in_order && !part.end.empty() && part.last > part.end) {
    // The part was cut while this page was on its way: the rest is the next part's.
    const auto beyond = std::ranges::upper_bound(page.objects, part.end, {}, &ObjectInfo::key);
    page.objects.erase(beyond, page.objects.end());
    part.done = true;
  }
  if (!part.done) ++part.listed;
  part.keys += page.objects.size();
  ahead_ += page.objects.size();
  if (!page.objects.empty() || !page.skipped.empty()) part.pages.push_back(std::move(page));
  return {};
}

// What a part's first page says of the one that it was cut from: if there is nothing here, the cut
// was in vain and may be made anew; else the other's keys reach to its end.
void ParallelList::TellNeighbour(const Part& part) {
  const Place place = Find(part);
  if (place == parts_.begin()) return;
  Part& before = *std::prev(place);
  if (before.done || before.end != part.after) return;
  if (part.last.empty()) {
    before.listed = std::max(before.listed, 1);
  } else {
    before.stem = 0;
    before.reaches_end = true;
  }
}

bool ParallelList::CutKeys(Place part) {
  const std::string middle = KeyBetween(part->last, part->end, part->prefix, part->stem);
  if (middle.empty()) return false;
  Part rest;
  rest.prefix = part->prefix;
  rest.after = middle;
  rest.end = std::exchange(part->end, middle);
  part->listed = 0;
  StartPage(*parts_.insert(std::next(part), std::move(rest)));
  return true;
}

ParallelList::Place ParallelList::Find(const Part& part) {
  return std::ranges::find_if(parts_, [&](const Part& one) { return &one == &part; });
}

void ParallelList::Look(Part& part) {
  if (part.look_at.empty()) part.look_at = part.prefix;
  ++part.looks;
  ++in_flight_;
  ++requests_;
  part.op = store_->StartList({.prefix = part.look_at,
                               .delimiter = "/",
                               .continuation_token = "",
                               .start_after = "",
                               .max_keys = options_.page_keys,
                               .options = Options()},
                              [self = shared_from_this(), &part](Result<ListPage> page) {
                                part.op = 0;
                                part.undecided = false;
                                --self->in_flight_;
                                if (self->status_.ok()) self->OnLook(part, std::move(page));
                                self->Pump();
                              });
}

void ParallelList::OnLook(Part& part, Result<ListPage> page) {
  if (!page.ok()) {
    Fail(std::move(page).status());
    return;
  }
  const size_t folders = page->common_prefixes.size();
  // Not worth it, or not possible: it goes on as it began.
  if (!page->next_token.empty() || folders == 0 || folders > kMostFolders) return;
  if (folders == 1 && page->objects.empty()) {
    if (part.looks >= kMostLooks || page->common_prefixes[0].size() <= part.look_at.size()) return;
    part.look_at = page->common_prefixes[0];
    part.undecided = true;
    Look(part);
    return;
  }
  // Its pages are listed again, folder by folder.
  ahead_ -= part.keys;
  std::vector<std::pair<std::string, ObjectInfo*>> names;
  for (ObjectInfo& object : page->objects) names.emplace_back(object.key, &object);
  for (const std::string& folder : page->common_prefixes) names.emplace_back(folder, nullptr);
  std::ranges::sort(names, {}, [](const auto& name) { return std::string_view(name.first); });
  const Place place = Find(part);
  Part* loose = nullptr;  // objects between two folders
  for (auto& [name, object] : names) {
    if (object == nullptr) {
      Part& folder = *parts_.emplace(place);
      folder.prefix = name;
      folder.undecided = true;
      loose = nullptr;
      continue;
    }
    if (loose == nullptr) {
      loose = &*parts_.emplace(place);
      loose->done = true;
      loose->pages.emplace_back();
    }
    loose->pages.back().objects.push_back(std::move(*object));
    ++loose->keys;
    ++ahead_;
  }
  if (!page->skipped.empty()) {
    Part& rest = *parts_.emplace(place);
    rest.done = true;
    rest.pages.emplace_back().skipped = std::move(page->skipped);
  }
  parts_.erase(place);
}

}  // namespace forebay::store
