#include "format/container.h"

#include <fmt/core.h>

#include <algorithm>

#include "format/beton.h"
#include "format/lines.h"
#include "format/litdata.h"
#include "format/mds.h"
#include "format/npy.h"
#include "format/tar.h"
#include "format/tfrecord.h"
#include "format/zip.h"

namespace forebay::format {
namespace {

constexpr Kind kContainers[] = {Kind::kTar,     Kind::kTfRecord, Kind::kRecordIo, Kind::kMds,
                                Kind::kJsonl,   Kind::kCsv,      Kind::kNpy,      Kind::kNpz,
                                Kind::kLitData, Kind::kBeton};

RecordIoOptions RecordIoOf(const ContainerOptions& options) {
  RecordIoOptions recordio;
  recordio.multipart = options.multipart;
  recordio.payload = options.payload;
  recordio.attributes = options.attributes;
  recordio.drop_tail = options.drop_tail;
  return recordio;
}

// A field of a record of several parts, whose range is the record's.
Result<ByteView> OpenParts(const ContainerOptions& options, std::string_view field,
                           ByteView fetched, std::vector<std::byte>* scratch, const Place& place) {
  FB_ASSIGN_OR_RETURN(const ByteView payload,
                      OpenRecordIo(fetched, options.multipart, scratch, place));
  if (options.payload == RecordIoOptions::Payload::kRaw || !options.attributes.empty()) {
    return payload;
  }
  FB_ASSIGN_OR_RETURN(const ImageRecord image, OpenImageRecord(payload, place));
  if (field == "image") return image.image;
  if (field == "label") return image.labels;
  if (field == "id") return image.id_bytes;
  return Status(Code::kInvalidArgument, fmt::format("image records have no field '{}'", field));
}

}  // namespace

std::span<const Kind> Containers() { return kContainers; }

Result<Kind> SniffShard(const Shard& shard) {
  std::vector<std::byte> head(std::min<uint64_t>(shard.size, kSniffBytes));
  if (!head.empty()) FB_RETURN_IF_ERROR(shard.read({0, head.size()}, head));
  return Sniff(head, shard.size, shard.name);
}

Status ScanContainer(Kind kind, const Shard& shard, const ContainerOptions& options,
                     const OnRecord& on_record, ScanReport* report) {
  switch (kind) {
    case Kind::kTar:
      return ScanTar(shard, {.concatenated = options.concatenated, .drop_tail = options.drop_tail},
                     on_record, report);
    case Kind::kTfRecord:
      return ScanTfRecord(shard, {.drop_tail = options.drop_tail}, on_record, report);
    case Kind::kRecordIo:
      return ScanRecordIo(shard, RecordIoOf(options), on_record, report);
    case Kind::kMds:
      return ScanMds(shard, {}, on_record, report);
    case Kind::kJsonl:
      return ScanJsonLines(shard, {.drop_tail = options.drop_tail}, on_record, report);
    case Kind::kCsv: {
      CsvOptions csv;
      csv.drop_tail = options.drop_tail;
      csv.header = options.csv_header;
      return ScanCsv(shard, csv, on_record, report);
    }
    case Kind::kNpy:
      return ScanNpy(shard, {.drop_tail = options.drop_tail}, on_record, report);
    case Kind::kNpz:
      return ScanNpz(shard, on_record, report);
    case Kind::kLitData:
      return ScanLitData(shard, {.fields = options.fields}, on_record, report);
    case Kind::kBeton:
      return ScanBeton(shard, on_record, report);
    default:
      return {Code::kInvalidArgument,
              fmt::format("{}: no records are read from it", KindName(kind))};
  }
}

Result<ByteView> OpenField(Kind kind, const ContainerOptions& options, std::string_view field,
                           ByteView fetched, uint64_t bytes, std::vector<std::byte>* scratch,
                           const Place& place) {
  ByteView opened = fetched;
  if (kind == Kind::kTfRecord) {
    FB_ASSIGN_OR_RETURN(opened, OpenTfRecord(fetched, place));
  } else if (kind == Kind::kNpz) {
    FB_ASSIGN_OR_RETURN(opened, OpenZipMember(fetched, bytes, scratch, place));
  } else if (kind == Kind::kRecordIo && fetched.size() != bytes) {
    FB_ASSIGN_OR_RETURN(opened, OpenParts(options, field, fetched, scratch, place));
  }
  if (opened.size() == bytes) return opened;
  return Damaged(place, fmt::format("field '{}' of {} bytes", field, bytes),
                 fmt::format("{}", opened.size()));
}

}  // namespace forebay::format
