// All containers of records by one interface, for those that take any of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/record.h"
#include "format/recordio.h"
#include "format/sniff.h"

namespace forebay::format {

// What a file does not say of itself. Each container takes those that concern it.
struct ContainerOptions {
  bool drop_tail = false;     // a cut last record is left out and reported, not an error
  bool concatenated = false;  // tar: what follows an archive's end is another one
  RecordIoOptions::Multipart multipart = RecordIoOptions::Multipart::kMxnet;
  RecordIoOptions::Payload payload = RecordIoOptions::Payload::kRaw;
  std::vector<std::string> attributes = {};  // of an augmented manifest in RecordIO
  bool csv_header = true;
  std::vector<std::string> fields = {};  // of LitData's items
};

// Those that ScanContainer takes.
std::span<const Kind> Containers();

// By the first bytes of the shard.
Result<Kind> SniffShard(const Shard& shard);

// kInvalidArgument: not one of Containers(). Else as the container's own scan.
Status ScanContainer(Kind kind, const Shard& shard, const ContainerOptions& options,
                     const OnRecord& on_record, ScanReport* report);

// A field's own bytes from those of its range, framing checked and taken off: a view of `fetched`,
// or of `scratch`, whose content is replaced. `bytes`: of the field, as its scan said; another
// count is kDataLoss.
Result<ByteView> OpenField(Kind kind, const ContainerOptions& options, std::string_view field,
                           ByteView fetched, uint64_t bytes, std::vector<std::byte>* scratch,
                           const Place& place = {});

}  // namespace forebay::format
