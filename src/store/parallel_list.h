// A long listing, many requests at a time: it is cut where the store allows it, a part gets cut
// again while it proves long, and what comes out is in the order of a listing by one request after
// another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "store/object_store.h"

namespace forebay::store {

struct ParallelListOptions {
  size_t in_flight = 16;
  int page_keys = 1000;
  std::optional<ObjectStore::ListCut> cut;           // none: as the store says
  size_t keys_ahead = 256 * 1024;                    // listed, and not yet consumed; about 40 MB
  Duration page_timeout = std::chrono::seconds(60);  // of a request, where there is no deadline
  RequestOptions request;
};

// What a listing by continuation tokens must not do: go round in a circle, or on without an end.
class ListTokens {
 public:
  // Of the page that came with `token`; what is wrong, "" nothing.
  std::string Check(std::string_view token, bool empty_page);

 private:
  std::unordered_set<uint64_t> seen_;  // hashes
  uint64_t empty_pages_ = 0;           // in a row
};

// On the store's executor's thread. The store must outlive it.
class ParallelList : public std::enable_shared_from_this<ParallelList> {
 public:
  // Pages in order, without their common prefixes and tokens. The receiver calls Consumed when it
  // is through with one: listing halts while too much is waiting.
  using OnPage = std::move_only_function<void(ListPage)>;
  // Once, after the last page and with nothing in flight. Where the store's own order is that of
  // the keys' bytes, or can be cut at folders only, the keys came in that order, folder by folder.
  using OnDone = std::move_only_function<void(Status)>;

  // Begins at once; keeps itself alive until `on_done` has run.
  static std::shared_ptr<ParallelList> Start(ObjectStore* store, std::string prefix,
                                             const ParallelListOptions& options, OnPage on_page,
                                             OnDone on_done);
  void Consumed(size_t keys);
  // `on_done` follows, with kCancelled.
  void Cancel() { Fail(Status(Code::kCancelled, "the listing was stopped")); }
  uint64_t requests() const { return requests_; }

 private:
  // A stretch of the listing. All parts together, in order, are what is still to be delivered.
  struct Part {
    std::string prefix;
    std::string after;  // keys behind this one
    std::string end;    // up to and including this one; "": to the end of the prefix
    std::string token;
    std::string last;  // the greatest key so far
    ListTokens tokens;
    std::list<ListPage> pages;  // not delivered
    size_t keys = 0;            // in them
    int listed = 0;             // pages since it was cut, of which none was the last
    size_t stem = 0;            // what the first and the last key of a page have in common, bytes
    bool reaches_end = false;   // there are keys behind its end
    ObjectStore::OpId op = 0;
    bool done = false;
    std::string look_at;  // the folder that all of its keys are in; looked for those in it
    int looks = 0;
    bool undecided = false;  // it may yet be cut into folders: nothing of it is delivered
  };
  using Place = std::list<Part>::iterator;

  ParallelList(ObjectStore* store, const ParallelListOptions& options, OnPage on_page,
               OnDone on_done);
  void Pump();
  void StartParts();
  bool MayStart(size_t index, const Part& part) const;
  void StartPage(Part& part);
  void OnPageDone(Part& part, Result<ListPage> page);
  Status Accept(Part& part, ListPage page);
  // Cuts off a second half of what is left of a part, by bytes; false when it cannot.
  bool CutKeys(Place part);
  void TellNeighbour(const Part& part);
  // Asks what folders there are in a part's prefix, to cut it there.
  void Look(Part& part);
  void OnLook(Part& part, Result<ListPage> page);
  Place Find(const Part& part);
  void Deliver();
  void Fail(Status status);
  RequestOptions Options() const;

  ObjectStore* const store_;
  const ParallelListOptions options_;
  const ObjectStore::ListCut cut_;
  OnPage on_page_;
  OnDone on_done_;
  std::list<Part> parts_;
  size_t in_flight_ = 0;
  size_t ahead_ = 0;  // keys listed and not consumed
  uint64_t requests_ = 0;
  Status status_;
  bool pumping_ = false;
  bool over_ = false;
};

// Where to cut between the two: behind about half of the keys that may be there, going by how `low`
// is made; "" where that cannot be told. `high` may be "": the end of all keys that begin with
// `prefix`. `stem`: keys near `low` have that many bytes in common; when that is much more than it
// has in common with `high`, the end of the keys with half of that stem is taken, because there may
// be no others.
std::string KeyBetween(std::string_view low, std::string_view high, std::string_view prefix,
                       size_t stem);

}  // namespace forebay::store
