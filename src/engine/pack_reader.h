// Fetches the samples of one shard ahead of the one that is taken next: neighbours in an object in
// one piece, many objects at a time, within a bound. One thread.
#pragma once

#include <deque>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pack_source.h"
#include "format/output_record.h"
#include "store/sync_store.h"

namespace forebay::engine {

class PackReader {
 public:
  static constexpr uint64_t kBytesAhead = 64ULL << 20;  // one longer field goes alone
  static constexpr size_t kReadsAhead = 128;

  // All outlive it. `prefix`: of the objects' keys.
  PackReader(const PackSource& source, const store::SyncStore& store, std::string prefix)
      : source_(source), store_(store), prefix_(std::move(prefix)) {}
  // Ends what is in flight.
  ~PackReader();
  PackReader(const PackReader&) = delete;
  PackReader& operator=(const PackReader&) = delete;

  bool empty() const { return samples_.empty(); }
  bool full() const {
    return bytes_ >= kBytesAhead || reads_.size() >= kReadsAhead ||
           (source_.unpacks() && !samples_.empty());
  }
  Status Add(PackSample sample);
  // The oldest one with its fields, whose bytes are valid until the next Take. Errors: the store's,
  // kDataLoss (bytes that are not what was indexed), with the object and its range.
  Result<PackSample> Take(std::vector<format::OutputField>* fields);

 private:
  struct Read;
  struct Pending {
    PackSample sample;
    std::vector<std::shared_ptr<Read>> reads;  // of each field; null: it has no bytes
  };
  Result<std::shared_ptr<Read>> ReadFor(const PackField& field);
  void Start(const std::shared_ptr<Read>& read);
  void StartOpen();
  void Release();
  Result<ByteView> Unpacked(const PackField& field);
  Result<ByteView> BytesOf(const PackField& field, const std::shared_ptr<Read>& read,
                           std::vector<std::byte>* scratch);

  const PackSource& source_;
  const store::SyncStore& store_;
  const std::string prefix_;
  std::deque<Pending> samples_;
  std::deque<std::shared_ptr<Read>> reads_;  // started, not all of their samples taken
  std::shared_ptr<Read> open_;               // not started yet: more may join it
  uint64_t bytes_ = 0;                       // of all of these
  std::optional<uint64_t> object_;           // looked at last
  std::optional<uint64_t> unpacked_object_;  // the same, of those that have to be unpacked
  std::shared_ptr<const std::vector<std::byte>> unpacked_;
  catalog::FileEntry entry_;
  Pending taken_;
  std::vector<std::vector<std::byte>> scratch_;
  std::vector<std::string> numbers_;
};

}  // namespace forebay::engine
