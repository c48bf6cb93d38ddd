#include "engine/pack_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/pack_columns.h"
#include "engine/pack_unpacked.h"

namespace forebay::engine {
namespace {

constexpr uint64_t kGapBytes = 64 << 10;     // read along rather than asked around
constexpr uint64_t kReadBytes = 8ULL << 20;  // of neighbours together

}  // namespace

struct PackReader::Read {
  uint64_t object = 0;
  catalog::FileEntry entry;
  ByteRange range;
  std::vector<std::byte> bytes;
  std::promise<Status> promise;
  std::shared_future<Status> done;
  bool started = false;
  // The store's thread only.
  store::ObjectStore::OpId op = 0;
};

PackReader::~PackReader() {
  store::ObjectStore* const async = &store_.async();
  for (const auto& read : reads_) {
    async->executor().Post([async, read] {
      if (read->op != 0) async->Cancel(read->op);
    });
  }
  for (const auto& read : reads_) read->done.wait();  // by the request's deadline at the latest
}

Result<std::shared_ptr<PackReader::Read>> PackReader::ReadFor(const PackField& field) {
  if (field.literal || field.range.empty() || source_.unpacks()) return std::shared_ptr<Read>();
  if (open_ && open_->object == field.object && field.range.offset >= open_->range.offset &&
      field.range.offset <= open_->range.end + kGapBytes) {
    const uint64_t end = std::max(open_->range.end, field.range.end);
    if (end == open_->range.end || end - open_->range.offset <= kReadBytes) {
      bytes_ += end - open_->range.end;
      open_->range.end = end;
      return open_;
    }
  }
  StartOpen();
  if (object_ != field.object) {
    FB_ASSIGN_OR_RETURN(entry_, source_.ObjectAt(field.object));
    object_ = field.object;
  }
  open_ = std::make_shared<Read>();
  open_->object = field.object;
  open_->entry = entry_;
  open_->range = field.range;
  open_->done = open_->promise.get_future().share();
  bytes_ += field.range.size();
  return open_;
}

void PackReader::StartOpen() {
  if (open_) Start(std::exchange(open_, nullptr));
}

void PackReader::Start(const std::shared_ptr<Read>& read) {
  read->bytes.resize(read->range.size());
  read->started = true;
  reads_.push_back(read);
  store::ReadRequest request{.key = prefix_ + read->entry.key,
                             .etag = read->entry.etag,
                             .version_id = read->entry.version_id,
                             .range = read->range,
                             .target = {read->bytes}};
  request.options = store_.TransferOptions(kBytesAhead);
  store::ObjectStore* const async = &store_.async();
  async->executor().Post([async, read, request = std::move(request)]() mutable {
    read->op = async->StartRead(std::move(request), [read](Result<store::ReadResult> done) {
      read->op = 0;
      read->promise.set_value(std::move(done).status());
    });
  });
}

Status PackReader::Add(PackSample sample) {
  Pending pending;
  for (const PackField& field : sample.fields) {
    FB_ASSIGN_OR_RETURN(std::shared_ptr<Read> read, ReadFor(field));
    pending.reads.push_back(std::move(read));
  }
  pending.sample = std::move(sample);
  samples_.push_back(std::move(pending));
  return {};
}

// Reads that nothing waits for any more.
void PackReader::Release() {
  taken_ = {};
  while (!reads_.empty() && reads_.front().use_count() == 1 &&
         reads_.front()->done.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    bytes_ -= reads_.front()->range.size();
    reads_.pop_front();
  }
}

// Of the field's range. Records follow each other, so that the object is the last one's mostly.
Result<ByteView> PackReader::Unpacked(const PackField& field) {
  if (unpacked_object_ != field.object) {
    FB_ASSIGN_OR_RETURN(const catalog::FileEntry entry, source_.ObjectAt(field.object));
    unpacked_.reset();
    FB_ASSIGN_OR_RETURN(unpacked_, ReadUnpacked(store_, prefix_, entry));
    unpacked_object_ = field.object;
  }
  return ByteView(*unpacked_).subspan(field.range.offset, field.range.size());
}

Result<ByteView> PackReader::BytesOf(const PackField& field, const std::shared_ptr<Read>& read,
                                     std::vector<std::byte>* scratch) {
  if (field.literal) return AsBytes(*field.literal);
  ByteView fetched;
  if (read) {
    if (Status status = read->done.get(); !status.ok()) return status;
    fetched =
        ByteView(read->bytes).subspan(field.range.offset - read->range.offset, field.range.size());
  }
  if (source_.unpacks() && !field.range.empty()) {
    FB_ASSIGN_OR_RETURN(fetched, Unpacked(field));
  }
  auto opened = source_.Open(field, fetched, scratch);
  if (opened.ok()) return opened;
  FB_ASSIGN_OR_RETURN(const catalog::FileEntry entry, source_.ObjectAt(field.object));
  return std::move(opened).status().WithDetail(
      {.uri = store_.async().root_uri() + "/" + prefix_ + entry.key,
       .offset = static_cast<int64_t>(field.range.offset),
       .end = static_cast<int64_t>(field.range.end)});
}

Result<PackSample> PackReader::Take(std::vector<format::OutputField>* fields) {
  Release();
  taken_ = std::move(samples_.front());
  samples_.pop_front();
  fields->clear();
  const size_t count = taken_.sample.fields.size();
  scratch_.resize(std::max(scratch_.size(), count));
  numbers_.resize(scratch_.size());
  for (size_t i = 0; i < count; ++i) {
    const PackField& field = taken_.sample.fields[i];
    if (taken_.reads[i] && !taken_.reads[i]->started) StartOpen();
    Result<ByteView> bytes = BytesOf(field, taken_.reads[i], &scratch_[i]);
    if (bytes.ok() && field.from_text) {
      Result<std::string> number = NumberFromText(AsText(*bytes), field.dtype);
      if (number.ok()) {
        numbers_[i] = *std::move(number);
        bytes = AsBytes(numbers_[i]);
      } else {
        bytes = std::move(number).status();
      }
    }
    if (!bytes.ok()) {
      return std::move(bytes).status().WithContext(fmt::format("field '{}'", field.name));
    }
    fields->push_back({field.name, *bytes, field.dtype, field.shape});
  }
  return taken_.sample;
}

}  // namespace forebay::engine
