#include "catalog/records_part.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/hash.h"
#include "catalog/coding.h"
#include "catalog/records_writer.h"

namespace forebay::catalog {
namespace {

constexpr std::string_view kMagic = "FBRPART\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeadBytes = 24;  // magic, version, nothing, check

Status Damaged(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("the part of a catalog is damaged: {}", what));
}

constexpr uint64_t RecordsPartHead::* kNumbers[] = {
    &RecordsPartHead::part,          &RecordsPartHead::parts,      &RecordsPartHead::objects,
    &RecordsPartHead::skipped,       &RecordsPartHead::failed,     &RecordsPartHead::oddities,
    &RecordsPartHead::dataset_bytes, &RecordsPartHead::bytes_read, &RecordsPartHead::requests};

constexpr std::string RecordsPartHead::* kTexts[] = {
    &RecordsPartHead::whole, &RecordsPartHead::source_uri, &RecordsPartHead::format,
    &RecordsPartHead::format_options};

Status CheckShards(const RecordsPart& part) {
  const auto behind = [](const FileEntry& a, const FileEntry& b) { return a.key >= b.key; };
  if (std::ranges::adjacent_find(part.shards, behind) != part.shards.end()) {
    return Damaged("its shards are not in order");
  }
  if (!part.catalog) return {};
  if (part.catalog->shard_count() != part.shards.size()) return Damaged("its shards are others");
  for (uint64_t i = 0; i < part.shards.size(); ++i) {
    FB_ASSIGN_OR_RETURN(const FileEntry shard, part.catalog->ShardAt(i));
    if (shard.key != part.shards[i].key) return Damaged("its shards are others");
  }
  return {};
}

// All parts are there, once each, and of one whole.
Status CheckParts(const std::vector<RecordsPart>& parts) {
  const auto bad = [](std::string text) { return Status(Code::kInvalidArgument, std::move(text)); };
  if (parts.empty()) return bad("no part of a catalog");
  const RecordsPartHead& first = parts[0].head;
  std::vector<bool> there(first.parts);
  for (const RecordsPart& part : parts) {
    for (const auto text : kTexts) {
      if (part.head.*text == first.*text && part.head.parts == first.parts) continue;
      return bad(
          fmt::format("part {} of {} and part {} of {} are not of one whole: the objects "
                      "have changed between them, or what was asked for",
                      first.part, first.parts, part.head.part, part.head.parts));
    }
    if (there[part.head.part]) {
      return bad(fmt::format("part {} of {} is there twice", part.head.part, first.parts));
    }
    there[part.head.part] = true;
  }
  const auto missing = std::ranges::find(there, false);
  if (missing == there.end()) return {};
  return bad(fmt::format("part {} of {} is missing", missing - there.begin(), first.parts));
}

format::FoundRecord FoundOf(const RecordEntry& entry, std::string key,
                            const std::vector<FieldInfo>& fields) {
  format::FoundRecord record{.key = std::move(key), .range = entry.range, .fields = {}};
  for (const RecordField& field : entry.fields) {
    const FieldInfo& info = fields[field.field];
    record.fields.push_back(
        {info.name, field.range, field.bytes, field.crc32c, info.dtype, info.shape});
  }
  return record;
}

struct Cursor {
  const RecordsPart* part = nullptr;
  uint64_t shard = 0;
  uint64_t record = 0;
};

// The cursor's next shard with its records.
Status TakeShard(Cursor& cursor, RecordsWriter& writer) {
  FB_RETURN_IF_ERROR(writer.AddShard(cursor.part->shards[cursor.shard]));
  const RecordsCatalog* catalog = cursor.part->catalog.get();
  for (; catalog != nullptr && cursor.record < catalog->count(); ++cursor.record) {
    FB_ASSIGN_OR_RETURN(const RecordEntry entry, catalog->At(cursor.record));
    if (entry.shard < cursor.shard) return Damaged("its records are not in order");
    if (entry.shard != cursor.shard) break;
    FB_ASSIGN_OR_RETURN(std::string key, catalog->KeyOf(cursor.record));
    FB_RETURN_IF_ERROR(writer.Add(FoundOf(entry, std::move(key), catalog->fields())));
  }
  ++cursor.shard;
  return {};
}

}  // namespace

std::vector<std::byte> PackRecordsPart(const RecordsPartHead& head,
                                       const std::vector<FileEntry>& shards, ByteView catalog) {
  Writer rest;
  for (const auto text : kTexts) rest.Text(head.*text);
  for (const auto number : kNumbers) rest.Varint(head.*number);
  rest.Varint(shards.size());
  for (const FileEntry& shard : shards) {
    rest.Text(shard.key);
    rest.Varint(shard.size);
    rest.Text(shard.etag);
    rest.Text(shard.version_id);
  }
  rest.Text(AsText(catalog));
  Writer file;
  file.Append(AsBytes(kMagic));
  file.Word(kVersion);
  file.Word(uint32_t{0});
  file.Word(HashBytes(rest.bytes()).low);
  file.Append(rest.bytes());
  return std::move(file.bytes());
}

Result<RecordsPart> OpenRecordsPart(ByteView bytes) {
  if (bytes.size() < kHeadBytes || !AsText(bytes).starts_with(kMagic)) {
    return Status(Code::kInvalidArgument, "this is no part of a catalog of records");
  }
  Reader head(bytes.first(kHeadBytes).subspan(kMagic.size()));
  const auto version = head.Word<uint32_t>();
  if (version != kVersion) {
    return Status(Code::kUnimplemented,
                  fmt::format("a part of a catalog of version {}, {} is read", version, kVersion));
  }
  (void)head.Word<uint32_t>();
  const ByteView rest = bytes.subspan(kHeadBytes);
  if (head.Word<uint64_t>() != HashBytes(rest).low) return Damaged("its check is wrong");
  Reader in(rest);
  RecordsPart part;
  for (const auto text : kTexts) part.head.*text = in.Text();
  for (const auto number : kNumbers) part.head.*number = in.Varint();
  part.shards.resize(in.Count(4));
  for (FileEntry& shard : part.shards) {
    shard.key = in.Text();
    shard.size = in.Varint();
    shard.etag = in.Text();
    shard.version_id = in.Text();
  }
  const uint64_t catalog_bytes = in.Count(1);
  if (!in.ok() || rest.size() - in.at() != catalog_bytes) return Damaged("it is cut");
  if (part.head.part >= part.head.parts || part.head.parts > kPartsMost) {
    return Damaged("its number cannot be");
  }
  if (catalog_bytes > 0) {
    const ByteView catalog = rest.subspan(in.at());
    if (part.head.format == kVideoParts) {
      FB_ASSIGN_OR_RETURN(part.videos, Catalog::Open({catalog.begin(), catalog.end()}));
      return part;
    }
    FB_ASSIGN_OR_RETURN(part.catalog,
                        RecordsCatalog::Open(BytesInMemory({catalog.begin(), catalog.end()})));
  }
  FB_RETURN_IF_ERROR(CheckShards(part));
  return part;
}

namespace {

// Packed again rather than copied: packing is a function of the indexes.
Result<std::vector<std::byte>> MergeVideos(const std::vector<RecordsPart>& parts) {
  CatalogInput input{.source_uri = parts[0].head.source_uri, .objects = {}};
  for (const RecordsPart& part : parts) {
    for (uint32_t i = 0; part.videos && i < part.videos->object_count(); ++i) {
      const CatalogObject& object = part.videos->object(i);
      CatalogInput::Object one{object.key, object.size, object.etag, object.error, {}};
      for (uint32_t k = 0; k < object.video_count; ++k) {
        FB_ASSIGN_OR_RETURN(const auto video, part.videos->video(object.first_video + k));
        one.videos.push_back(*video);
      }
      input.objects.push_back(std::move(one));
    }
  }
  if (input.objects.empty()) return Status(Code::kNotFound, "no video in any of the parts");
  return WriteCatalog(std::move(input));
}

}  // namespace

Result<std::vector<std::byte>> MergeRecords(const std::vector<RecordsPart>& parts) {
  FB_RETURN_IF_ERROR(CheckParts(parts));
  if (parts[0].head.format == kVideoParts) return MergeVideos(parts);
  std::vector<Cursor> cursors;
  std::vector<std::pair<std::string_view, size_t>> order;  // all shards' keys, with their part
  for (const RecordsPart& part : parts) {
    for (const FileEntry& shard : part.shards) order.emplace_back(shard.key, cursors.size());
    cursors.push_back({&part});
  }
  std::ranges::sort(order);
  const auto twice = std::ranges::adjacent_find(
      order, [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice != order.end()) {
    return Status(Code::kInvalidArgument, fmt::format("two parts have {}", twice->first));
  }
  const RecordsPartHead& head = parts[0].head;
  RecordsWriter writer(head.source_uri, head.format, head.format_options);
  for (const auto& [key, part] : order) FB_RETURN_IF_ERROR(TakeShard(cursors[part], writer));
  return writer.Finish();
}

}  // namespace forebay::catalog
