#include "fetch/store_tier.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/assert.h"

namespace forebay::fetch {

struct StoreTier::Answer {
  size_t piece = 0;
  Extent extent;
  Status status;
  PieceReport report;
};

// One StartRead on the store's thread. Kept alive by its callbacks.
class StoreTier::Group : public std::enable_shared_from_this<Group> {
 public:
  using OnAnswers = std::function<void(std::vector<Answer>, bool last)>;

  // `objects`: of each piece.
  Group(std::shared_ptr<const std::vector<StoreOfObjects>> stores, std::vector<Piece> pieces,
        std::vector<Result<ObjectVersion>> objects, OnAnswers on_answers)
      : stores_(std::move(stores)), on_answers_(std::move(on_answers)) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      reads_.push_back({.piece = std::move(pieces[i]), .object = std::move(objects[i])});
    }
    open_ = reads_.size();
  }

  void Start(store::Priority priority, Time deadline) {
    stream_ = priority == store::Priority::kDemand;
    for (size_t i = 0; i < reads_.size(); ++i) StartOne(i, priority, deadline);
  }

  void Promote() {
    stream_ = true;
    Flush();
    if (std::exchange(promoted_, true)) return;
    for (const Read& read : reads_) {
      if (!read.done) read.store->Promote(read.op);
    }
  }

  void Cancel() {
    for (const Read& read : reads_) {
      if (!read.done) read.store->Cancel(read.op);
    }
  }

 private:
  struct Read {
    Piece piece;
    Result<ObjectVersion> object;
    store::ObjectStore* store = nullptr;
    store::ObjectStore::OpId op = 0;
    std::string etag;
    uint64_t object_size = 0;  // 0: not known
    Time asked{};
    bool done = false;
  };

  void StartOne(size_t i, store::Priority priority, Time deadline) {
    Read& read = reads_[i];
    read.store = StoreOf(read.piece.extent.object);
    read.asked = read.store->executor().Now();
    if (!read.object.ok()) {
      OnOne(i, std::move(read.object).status());
      return;
    }
    store::ReadRequest request;
    request.key = std::move(read.object->key);
    read.object_size = read.object->size;
    request.etag = read.etag = std::move(read.object->etag);
    request.version_id = std::move(read.object->version_id);
    request.range = read.piece.extent.range;
    request.target = read.piece.target;
    request.options = {.deadline = deadline, .priority = priority};
    read.op = read.store->StartRead(
        std::move(request), [self = shared_from_this(), i](Result<store::ReadResult> result) {
          self->OnOne(i, std::move(result));
        });
  }

  store::ObjectStore* StoreOf(uint32_t object) const {
    const auto after =
        std::ranges::upper_bound(*stores_, object, {}, &StoreOfObjects::first_object);
    return std::prev(after)->store.get();
  }

  void OnOne(size_t i, Result<store::ReadResult> result) {
    Read& read = reads_[i];
    read.done = true;
    Answer answer{.piece = i, .extent = read.piece.extent, .status = {}, .report = {}};
    answer.report.total = read.store->executor().Now() - read.asked;
    if (result.ok() && read.object_size != 0 && result->object_size != read.object_size) {
      answer.status =
          Status(Code::kDataLoss,
                 fmt::format("the answer is of an object of {} bytes, the catalog's has {}",
                             result->object_size, read.object_size));
    } else if (result.ok()) {
      answer.report.first_byte = result->first_byte;
      answer.report.attempts = result->attempts;
      answer.report.hedged = result->hedged;
    } else {
      answer.status = std::move(result).status();
      if (!read.etag.empty()) {
        answer.status = std::move(answer.status).WithContext(fmt::format("ETag {}", read.etag));
      }
    }
    answers_.push_back(std::move(answer));
    --open_;
    if (stream_ || open_ == 0) Flush();
  }

  void Flush() {
    if (answers_.empty() || reported_last_) return;
    reported_last_ = open_ == 0;
    on_answers_(std::exchange(answers_, {}), reported_last_);
  }

  std::shared_ptr<const std::vector<StoreOfObjects>> stores_;
  OnAnswers on_answers_;
  std::vector<Read> reads_;
  std::vector<Answer> answers_;
  size_t open_ = 0;
  bool stream_ = false;
  bool promoted_ = false;
  bool reported_last_ = false;
};

StoreTier::StoreTier(std::vector<StoreOfObjects> stores, std::shared_ptr<const ObjectTable> objects,
                     Executor& coordinator)
    : stores_(std::make_shared<const std::vector<StoreOfObjects>>(std::move(stores))),
      objects_(std::move(objects)),
      coordinator_(coordinator),
      self_(std::make_shared<StoreTier*>(this)) {
  FB_ASSERT(!stores_->empty() && stores_->front().first_object == 0);
  for (const StoreOfObjects& store : *stores_) {
    FB_ASSERT(&store.store->executor() == &StoreExecutor());
  }
}

StoreTier::~StoreTier() {
  FB_ASSERT(open_.empty());  // the fetcher drains before it goes
  *self_ = nullptr;
}

Tier::Ticket StoreTier::StartRead(std::vector<Piece> pieces, Priority priority, Time deadline,
                                  TierSink* sink) {
  FB_ASSERT(!pieces.empty());
  const Ticket ticket = next_ticket_++;
  Executor& coordinator = coordinator_;
  auto deliver = [self = self_, ticket, &coordinator](std::vector<Answer> answers, bool last) {
    coordinator.Post([self, ticket, last, answers = std::move(answers)]() mutable {
      if (*self != nullptr) (*self)->Deliver(ticket, std::move(answers), last);
    });
  };
  // Here, because looking an object up may have to wait for the store's thread.
  std::vector<Result<ObjectVersion>> objects;
  objects.reserve(pieces.size());
  for (const Piece& piece : pieces) objects.push_back(objects_->At(piece.extent.object));
  auto group =
      std::make_shared<Group>(stores_, std::move(pieces), std::move(objects), std::move(deliver));
  open_[ticket] = {group, sink};
  StoreExecutor().Post([group, priority, deadline] { group->Start(priority, deadline); });
  return ticket;
}

void StoreTier::Promote(Ticket ticket) {
  const auto it = open_.find(ticket);
  if (it == open_.end()) return;
  StoreExecutor().Post([group = it->second.group] { group->Promote(); });
}

void StoreTier::Cancel(Ticket ticket) {
  const auto it = open_.find(ticket);
  if (it == open_.end()) return;
  StoreExecutor().Post([group = it->second.group] { group->Cancel(); });
}

void StoreTier::Deliver(Ticket ticket, std::vector<Answer> answers, bool last) {
  const auto it = open_.find(ticket);
  FB_ASSERT(it != open_.end());
  TierSink* sink = it->second.sink;
  if (last) open_.erase(it);
  for (Answer& answer : answers) {
    if (answer.status.ok()) {
      sink->OnBytes(answer.piece, answer.extent, answer.report);
    } else {
      sink->OnFailed(answer.piece, std::move(answer.status));
    }
  }
  if (last) sink->OnTierDone();
}

}  // namespace forebay::fetch
