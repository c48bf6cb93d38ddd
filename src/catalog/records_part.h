// A part of a catalog of records or videos: what one of several machines has indexed or written, to
// be merged with the others' into the one catalog. Byte table: docs/formats/records.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalog.h"
#include "catalog/records_catalog.h"

namespace forebay::catalog {

inline constexpr uint64_t kPartsMost = uint64_t{1} << 32;

// Which part of what, and what was found on the way.
struct RecordsPartHead {
  std::string whole;  // of which this is a part: equal in all parts, else they are not of one whole
  uint64_t part = 0;
  uint64_t parts = 1;
  std::string source_uri, format, format_options;  // as in the catalog
  uint64_t objects = 0, skipped = 0, failed = 0, oddities = 0;
  uint64_t dataset_bytes = 0, bytes_read = 0, requests = 0;
};

struct RecordsPart {
  RecordsPartHead head;
  std::vector<FileEntry> shards;  // in the order of their keys' bytes
  // Of these shards; null: no record is in any of them.
  std::shared_ptr<const RecordsCatalog> catalog;
  std::shared_ptr<const Catalog> videos;  // of format kVideoParts: that, instead
};
// As RecordsPartHead::format.
inline constexpr std::string_view kVideoParts = "video";

// `catalog`: the file of one, of exactly `shards`; empty when they have no record.
std::vector<std::byte> PackRecordsPart(const RecordsPartHead& head,
                                       const std::vector<FileEntry>& shards, ByteView catalog);
// Errors: kDataLoss, kInvalidArgument (no part), kUnimplemented (another version).
Result<RecordsPart> OpenRecordsPart(ByteView bytes);

// The catalog that one machine would have made of all of it, of records or of videos; the parts in
// any order. Errors: kInvalidArgument (one is missing, there twice, or of another whole; no record
// in any of them), kDataLoss.
Result<std::vector<std::byte>> MergeRecords(const std::vector<RecordsPart>& parts);

}  // namespace forebay::catalog
