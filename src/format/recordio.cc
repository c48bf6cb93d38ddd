#include "format/recordio.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "format/foreign.h"
#include "format/little_endian.h"
#include "format/window.h"

namespace forebay::format {
namespace {

using Multipart = RecordIoOptions::Multipart;
using Payload = RecordIoOptions::Payload;

constexpr uint64_t kHeader = 8;
constexpr uint64_t kImageHeader = 24;  // flag, label, id, id2
constexpr uint64_t kLabelAt = 4;
constexpr uint64_t kIdAt = 8;

enum class Flag : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

struct Part {
  Flag flag = Flag::kWhole;
  uint64_t length = 0;

  bool ends() const { return flag == Flag::kWhole || flag == Flag::kLast; }
};

// `first`: whether a record begins here.
Result<Part> ReadHeader(ByteView header, bool first, const Place& place) {
  const auto magic = Load<uint32_t>(header);
  if (magic != kRecordIoMagic) {
    return Damaged(place, fmt::format("the magic number {:08x}", kRecordIoMagic),
                   fmt::format("{:08x}", magic));
  }
  const auto word = Load<uint32_t>(header, 4);
  const Part part{static_cast<Flag>(word >> 29), word & ((uint32_t{1} << 29) - 1)};
  const bool begins = part.flag == Flag::kWhole || part.flag == Flag::kFirst;
  const bool goes_on = part.flag == Flag::kMiddle || part.flag == Flag::kLast;
  if (first ? begins : goes_on) return part;
  return Damaged(place,
                 first ? "a record's first part (flag 0 or 1)" : "its next part (flag 2 or 3)",
                 fmt::format("flag {}", word >> 29));
}

Status CheckPartLength(const Part& part, Multipart multipart, const Place& place) {
  if (multipart == Multipart::kSageMaker || part.ends() || part.length % 4 == 0) return {};
  return Damaged(place, "a part of a multiple of 4 bytes, as MXNet cuts them",
                 fmt::format("{} bytes (SageMaker's writers make such: read it so)", part.length));
}

// The frames of one record, as they lie in the shard.
struct Frames {
  ByteRange range;
  std::vector<ByteRange> parts;  // their data
  uint64_t bytes = 0;            // of the payload
  bool cut = false;              // noted and left out
};

class RecordIoScan {
 public:
  RecordIoScan(const Shard& shard, const RecordIoOptions& options, const OnRecord& on_record,
               ScanReport* report)
      : options_(options), on_record_(on_record), report_(report), window_(shard, report) {}

  Status Run() {
    FB_ASSIGN_OR_RETURN(const ByteView head, window_.From(0));
    FB_RETURN_IF_ERROR(RefuseForeign(head, window_.PlaceAt(0)));
    if (window_.size() == 0) report_->Note(0, "the shard is empty");
    for (uint64_t at = 0; at < window_.size();) {
      FB_RETURN_IF_ERROR(ReadFrames(at));
      if (frames_.cut) break;
      FB_RETURN_IF_ERROR(Deliver());
      at = frames_.range.end;
    }
    if (!sample_.fields.empty()) FB_RETURN_IF_ERROR(CutSample());
    if (multipart_ > 0) {
      report_->Note(
          first_multipart_,
          fmt::format("{} records of several parts, the first one here, are joined as {} "
                      "does",
                      multipart_, options_.multipart == Multipart::kMxnet ? "MXNet" : "SageMaker"));
    }
    return {};
  }

 private:
  Status ReadFrames(uint64_t start) {
    frames_ = {.range = {start, start}, .parts = std::move(frames_.parts)};
    frames_.parts.clear();
    for (bool more = true; more;) {
      const uint64_t at = frames_.range.end;
      const Place place = window_.PlaceAt(at);
      const uint64_t left = window_.Left(at);
      if (left < kHeader) return Cut(start, kHeader, left);
      FB_ASSIGN_OR_RETURN(const ByteView header, window_.At(at, kHeader, "a record's header"));
      FB_ASSIGN_OR_RETURN(const Part part, ReadHeader(header, at == start, place));
      FB_RETURN_IF_ERROR(CheckPartLength(part, options_.multipart, place));
      const auto frame = RangeWithin(at, kHeader + PaddedTo(part.length, 4), window_.size());
      if (!frame) return Cut(start, kHeader + PaddedTo(part.length, 4), left);
      const bool joined = at != start && options_.multipart == Multipart::kMxnet;
      frames_.bytes += part.length + (joined ? sizeof kRecordIoMagic : 0);
      frames_.parts.push_back({at + kHeader, at + kHeader + part.length});
      frames_.range.end = frame->end;
      if (frames_.bytes > options_.max_record_bytes) {
        return AboveLimit(place, "a record's length", frames_.bytes, options_.max_record_bytes);
      }
      if (frames_.parts.size() > options_.max_parts) {
        return AboveLimit(place, "a record's count of parts", frames_.parts.size(),
                          options_.max_parts);
      }
      more = !part.ends();
    }
    return {};
  }

  Status Cut(uint64_t start, uint64_t expected, uint64_t left) {
    frames_.cut = true;
    return CutTail(options_.drop_tail, window_.PlaceAt(start), "a record",
                   frames_.range.end - start + expected, frames_.range.end - start + left, report_);
  }

  Status Deliver() {
    FoundRecord record{.range = frames_.range};
    if (frames_.parts.size() > 1 && multipart_++ == 0) first_multipart_ = frames_.range.offset;
    if (!options_.attributes.empty()) return AddAttribute();
    if (options_.payload == Payload::kImage) {
      FB_RETURN_IF_ERROR(AddImageFields(&record));
    } else {
      FB_RETURN_IF_ERROR(AddField("data", 0, frames_.bytes, &record));
    }
    ++report_->records;
    return on_record_(std::move(record));
  }

  Status AddAttribute() {
    if (sample_.fields.empty()) sample_.range = frames_.range;
    sample_.range.end = frames_.range.end;
    FB_RETURN_IF_ERROR(
        AddField(options_.attributes[sample_.fields.size()], 0, frames_.bytes, &sample_));
    if (sample_.fields.size() < options_.attributes.size()) return {};
    ++report_->records;
    return on_record_(std::exchange(sample_, {}));
  }

  // The shard ends, or is cut, before the sample's last attribute.
  Status CutSample() {
    const Place place = window_.PlaceAt(sample_.range.offset);
    const std::string found = fmt::format("{}", sample_.fields.size());
    if (!options_.drop_tail) {
      return Damaged(place, fmt::format("{} attributes of a sample", options_.attributes.size()),
                     found);
    }
    report_->Note(place.offset, fmt::format("a sample of {} attributes only is left out", found));
    return {};
  }

  // [offset, offset + bytes) of the payload.
  Status AddField(std::string name, uint64_t offset, uint64_t bytes, FoundRecord* record) {
    const ByteRange& first = frames_.parts.front();
    const ByteRange range = frames_.parts.size() == 1
                                ? ByteRange{first.offset + offset, first.offset + offset + bytes}
                                : frames_.range;
    FB_ASSIGN_OR_RETURN(const auto crc, window_.Crc32cOf(range));
    record->fields.push_back({std::move(name), range, bytes, crc});
    return {};
  }

  Status AddImageFields(FoundRecord* record) {
    const Place place = window_.PlaceAt(frames_.parts.front().offset);
    if (frames_.bytes < kImageHeader) {
      return Truncated(place, "an image record's header", kImageHeader, frames_.bytes);
    }
    FB_RETURN_IF_ERROR(JoinHeader());
    const ByteView header = AsBytes(header_);
    const auto labels = Load<uint32_t>(header);
    const auto image = Total(labels, sizeof(float), kImageHeader);
    if (!image || *image > frames_.bytes) {
      return Truncated(place, fmt::format("an image record of {} labels", labels),
                       image.value_or(UINT64_MAX), frames_.bytes);
    }
    record->key = std::to_string(Load<uint64_t>(header, kIdAt));
    const uint64_t label_at = labels == 0 ? kLabelAt : kImageHeader;
    const uint64_t label_bytes = labels == 0 ? sizeof(float) : *image - kImageHeader;
    FB_RETURN_IF_ERROR(AddField("id", kIdAt, sizeof(uint64_t), record));
    FB_RETURN_IF_ERROR(AddField("label", label_at, label_bytes, record));
    return AddField("image", *image, frames_.bytes - *image, record);
  }

  // The first bytes of the payload, which may lie in several parts.
  Status JoinHeader() {
    header_.clear();
    for (const ByteRange& part : frames_.parts) {
      if (&part != &frames_.parts.front() && options_.multipart == Multipart::kMxnet) {
        header_.append(reinterpret_cast<const char*>(&kRecordIoMagic), sizeof kRecordIoMagic);
      }
      if (header_.size() >= kImageHeader) break;
      const uint64_t wanted = std::min<uint64_t>(part.size(), kImageHeader - header_.size());
      FB_ASSIGN_OR_RETURN(const ByteView bytes,
                          window_.At(part.offset, wanted, "an image record's header"));
      header_.append(AsText(bytes));
    }
    return {};
  }

  const RecordIoOptions& options_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  Window window_;
  Frames frames_;
  std::string header_;
  FoundRecord sample_;  // of several attributes, begun
  uint64_t multipart_ = 0;
  uint64_t first_multipart_ = 0;
};

Result<uint64_t> ParseOffset(std::string_view text, const Place& place) {
  uint64_t offset = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (error != std::errc() || end != text.data() + text.size()) {
    return Damaged(place, "an offset behind a tab", "none");
  }
  return offset;
}

}  // namespace

Status ScanRecordIo(const Shard& shard, const RecordIoOptions& options, const OnRecord& on_record,
                    ScanReport* report) {
  return RecordIoScan(shard, options, on_record, report).Run();
}

Result<ByteView> OpenRecordIo(ByteView frames, Multipart multipart, std::vector<std::byte>* scratch,
                              const Place& place) {
  scratch->clear();
  for (uint64_t at = 0;;) {
    const uint64_t left = frames.size() - at;
    if (left < kHeader) return Truncated(place + at, "a record's header", kHeader, left);
    FB_ASSIGN_OR_RETURN(const Part part,
                        ReadHeader(frames.subspan(at, kHeader), at == 0, place + at));
    FB_RETURN_IF_ERROR(CheckPartLength(part, multipart, place + at));
    const uint64_t size = kHeader + PaddedTo(part.length, 4);
    if (size > left) return Truncated(place + at, "a record", size, left);
    if (part.ends() && size != left) {
      return Damaged(place + at, fmt::format("a record of {} bytes", left),
                     fmt::format("one of {}", size));
    }
    const ByteView data = frames.subspan(at + kHeader, part.length);
    if (part.flag == Flag::kWhole) return data;
    if (at > 0 && multipart == Multipart::kMxnet) {
      const auto* magic = reinterpret_cast<const std::byte*>(&kRecordIoMagic);
      scratch->insert(scratch->end(), magic, magic + sizeof kRecordIoMagic);
    }
    scratch->insert(scratch->end(), data.begin(), data.end());
    at += size;
    if (part.ends()) return ByteView(*scratch);
  }
}

Result<ImageRecord> OpenImageRecord(ByteView payload, const Place& place) {
  if (payload.size() < kImageHeader) {
    return Truncated(place, "an image record's header", kImageHeader, payload.size());
  }
  const auto labels = Load<uint32_t>(payload);
  const auto image = Total(labels, sizeof(float), kImageHeader);
  if (!image || *image > payload.size()) {
    return Truncated(place, fmt::format("an image record of {} labels", labels),
                     image.value_or(UINT64_MAX), payload.size());
  }
  return ImageRecord{
      .id = Load<uint64_t>(payload, kIdAt),
      .id2 = Load<uint64_t>(payload, kIdAt + sizeof(uint64_t)),
      .id_bytes = payload.subspan(kIdAt, sizeof(uint64_t)),
      .labels = labels == 0 ? payload.subspan(kLabelAt, sizeof(float))
                            : payload.subspan(kImageHeader, *image - kImageHeader),
      .image = payload.subspan(*image),
  };
}

Result<std::vector<RecordIoPlace>> ParseRecordIoIndex(std::string_view text, uint64_t shard_size,
                                                      const Place& place) {
  std::vector<RecordIoPlace> places;
  for (uint64_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    const Place here = place + at;
    at = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const size_t tab = line.find('\t');
    if (tab == std::string_view::npos) return Damaged(here, "a key, a tab and an offset", "no tab");
    FB_ASSIGN_OR_RETURN(const uint64_t offset, ParseOffset(line.substr(tab + 1), here));
    if (offset % 4 != 0 || !RangeWithin(offset, kHeader, shard_size)) {
      return Damaged(here, fmt::format("the offset of a record in {} bytes", shard_size),
                     fmt::format("{}", offset));
    }
    places.push_back({std::string(line.substr(0, tab)), offset});
  }
  std::ranges::sort(places, {}, &RecordIoPlace::offset);
  const auto twice = std::ranges::adjacent_find(places, {}, &RecordIoPlace::offset);
  if (twice != places.end()) {
    return Damaged(place, "each offset once", fmt::format("{} twice", twice->offset));
  }
  return places;
}

}  // namespace forebay::format
