#include "engine/pack_unpacked.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "engine/record_formats.h"
#include "format/unpack.h"
#include "store/pinned_object.h"

namespace forebay::engine {
namespace {

using format::OnRecord;
using format::ScanReport;
using format::Shard;

constexpr uint64_t kHead = 1024;
constexpr auto kRangeTimeout = std::chrono::seconds(60);

// "a.jsonl.zst" -> "a.jsonl": what it would be called.
std::string NameWithin(const std::string& name) {
  for (const std::string_view ending : {".gz", ".gzip", ".zst", ".zstd", ".zz", ".zlib"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return name;
}

// What is in it, as a shard that reads from `bytes`.
Shard Within(const Shard& shard, ByteView bytes) {
  Shard inner = format::InMemory(NameWithin(shard.name), bytes);
  inner.beside = shard.beside;
  return inner;
}

Status ScanWithin(const catalog::RecordFormat& inner, const Shard& shard, const OnRecord& on_record,
                  ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const bool packed, IsPackedShard(shard));
  if (!packed) return inner.scan(shard, on_record, report);
  std::vector<std::byte> bytes;
  {
    FB_ASSIGN_OR_RETURN(const std::vector<std::byte> all, format::ReadStored(shard));
    FB_ASSIGN_OR_RETURN(bytes, format::Unpack(all, format::kUnpackedMost, {shard.name, 0}));
  }
  const Shard within = Within(shard, bytes);
  if (inner.is_shard) {
    FB_ASSIGN_OR_RETURN(const bool is_shard, inner.is_shard(within));
    if (!is_shard) {
      return format::Damaged({shard.name, 0}, fmt::format("a shard of {} within", inner.name),
                             "something else");
    }
  }
  report->unpacked_bytes = bytes.size();
  return inner.scan(within, on_record, report);
}

}  // namespace

Result<bool> IsPackedShard(const Shard& shard) {
  std::vector<std::byte> head(std::min(shard.size, kHead));
  if (!head.empty()) FB_RETURN_IF_ERROR(shard.read({0, head.size()}, head));
  return format::IsPacked(head);
}

catalog::RecordFormat UnpackedFormat(catalog::RecordFormat inner) {
  catalog::RecordFormat outer{.name = inner.name,
                              .options = inner.options,
                              .companion = inner.companion,
                              .named = inner.named};
  const auto kept = std::make_shared<const catalog::RecordFormat>(std::move(inner));
  outer.is_shard = [kept](const Shard& shard) -> Result<bool> {
    FB_ASSIGN_OR_RETURN(const bool packed, IsPackedShard(shard));
    if (packed || !kept->is_shard) return true;
    return kept->is_shard(shard);
  };
  outer.scan = [kept](const Shard& shard, const OnRecord& on_record, ScanReport* report) {
    return ScanWithin(*kept, shard, on_record, report);
  };
  return outer;
}

Result<std::string> FormatWithin(const Shard& shard) {
  FB_ASSIGN_OR_RETURN(const bool packed, IsPackedShard(shard));
  if (!packed) return FormatOfShard(shard);
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> all, format::ReadStored(shard));
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                      format::Unpack(all, format::kUnpackedMost, {shard.name, 0}));
  return FormatOfShard(Within(shard, bytes));
}

Result<std::shared_ptr<const std::vector<std::byte>>> ReadUnpacked(
    const store::SyncStore& store, const std::string& prefix, const catalog::FileEntry& entry) {
  FB_ASSIGN_OR_RETURN(store::ObjectInfo info, store.Head(prefix + entry.key));
  if (info.etag != entry.etag) {
    return Status(Code::kPreconditionFailed,
                  fmt::format("it has changed since it was indexed (ETag '{}' then, '{}' now)",
                              entry.etag, info.etag),
                  {.uri = store.async().root_uri() + "/" + info.key});
  }
  store::PinnedObject reader(store, std::move(info), store::Priority::kBulk, kRangeTimeout);
  Shard shard{.name = entry.key, .size = reader.info().size, .read = {}};
  shard.read = [&reader](ByteRange range, MutableBytes into) { return reader.Read(range, into); };
  FB_ASSIGN_OR_RETURN(std::vector<std::byte> bytes, format::ReadStored(shard));
  if (format::IsPacked(bytes)) {
    FB_ASSIGN_OR_RETURN(bytes, format::Unpack(bytes, format::kUnpackedMost, {shard.name, 0}));
  }
  if (bytes.size() != entry.size) {
    return format::Damaged({shard.name, 0}, fmt::format("{} unpacked bytes", entry.size),
                           fmt::format("{}", bytes.size()));
  }
  return std::make_shared<const std::vector<std::byte>>(std::move(bytes));
}

}  // namespace forebay::engine
