#include "format/zip.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/crc32.h"
#include "format/damage.h"
#include "format/inflate.h"
#include "format/little_endian.h"
#include "format/window.h"

namespace forebay::format {
namespace {

constexpr uint32_t kEndMark = 0x06054b50;
constexpr uint32_t kEnd64Mark = 0x06064b50;
constexpr uint32_t kLocatorMark = 0x07064b50;
constexpr uint32_t kEntryMark = 0x02014b50;
constexpr uint32_t kLocalMark = 0x04034b50;
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kLocatorBytes = 20;
constexpr uint64_t kEntryBytes = 46;
constexpr uint64_t kLocalBytes = 30;
constexpr uint64_t kMaxNameBytes = 4096;
constexpr uint16_t kEncrypted = 1;
constexpr uint16_t kSizesBehind = 8;

Place In(const Shard& shard, uint64_t offset) { return {shard.name, offset}; }

Result<std::vector<std::byte>> Read(const Shard& shard, ByteRange range, ScanReport* report) {
  std::vector<std::byte> bytes(range.size());
  if (bytes.empty()) return bytes;
  FB_RETURN_IF_ERROR(shard.read(range, bytes));
  report->bytes_read += bytes.size();
  return bytes;
}

struct Directory {
  ByteRange range;
  uint64_t entries = 0;
};

// The record of the end whose comment reaches the end of the file.
std::optional<uint64_t> FindEnd(ByteView tail) {
  if (tail.size() < kEndBytes) return std::nullopt;
  for (uint64_t at = tail.size() - kEndBytes + 1; at-- > 0;) {
    if (Load<uint32_t>(tail, at) == kEndMark &&
        at + kEndBytes + Load<uint16_t>(tail, at + 20) == tail.size()) {
      return at;
    }
  }
  return std::nullopt;
}

// Where numbers do not fit their fields, a larger record before the end has them.
Status ReadEnd64(const Shard& shard, ByteView tail, uint64_t end, uint64_t tail_start,
                 Directory* directory, uint64_t* size, uint64_t* start, ScanReport* report) {
  const Place place = In(shard, tail_start + end);
  if (end < kLocatorBytes || Load<uint32_t>(tail, end - kLocatorBytes) != kLocatorMark) {
    return Damaged(place, "the place of a zip's larger directory", "none");
  }
  const auto at = Load<uint64_t>(tail, end - kLocatorBytes + 8);
  const auto range = RangeWithin(at, kEnd64Bytes, tail_start + end);
  if (!range) return Damaged(place, "a zip's larger directory", fmt::format("offset {}", at));
  FB_ASSIGN_OR_RETURN(const auto record, Read(shard, *range, report));
  if (Load<uint32_t>(record) != kEnd64Mark) {
    return Damaged(In(shard, at), "a zip's larger directory", "another text");
  }
  directory->entries = Load<uint64_t>(record, 32);
  *size = Load<uint64_t>(record, 40);
  *start = Load<uint64_t>(record, 48);
  return {};
}

Result<Directory> FindDirectory(const Shard& shard, ScanReport* report) {
  constexpr uint64_t kMaxTail = kEndBytes + UINT16_MAX + kLocatorBytes;
  const uint64_t tail_start = shard.size - std::min(shard.size, kMaxTail);
  FB_ASSIGN_OR_RETURN(const auto tail, Read(shard, {tail_start, shard.size}, report));
  const auto end = FindEnd(tail);
  const Place place = In(shard, tail_start + end.value_or(0));
  if (!end) return Damaged(In(shard, shard.size), "a zip's directory", "none: it may be cut");
  if (Load<uint16_t>(tail, *end + 4) != 0 || Load<uint16_t>(tail, *end + 6) != 0) {
    return Refused(place, "a zip of several disks");
  }
  Directory directory;
  directory.entries = Load<uint16_t>(tail, *end + 10);
  uint64_t size = Load<uint32_t>(tail, *end + 12);
  uint64_t start = Load<uint32_t>(tail, *end + 16);
  if (directory.entries == UINT16_MAX || size == UINT32_MAX || start == UINT32_MAX) {
    FB_RETURN_IF_ERROR(ReadEnd64(shard, tail, *end, tail_start, &directory, &size, &start, report));
  }
  const auto range = RangeWithin(start, size, tail_start + *end);
  if (!range) {
    return Damaged(place, "a directory before its end", fmt::format("{} bytes at {}", size, start));
  }
  if (size > kMaxZipDirectoryBytes) {
    return AboveLimit(place, "a zip's directory", size, kMaxZipDirectoryBytes);
  }
  if (directory.entries > kMaxZipMembers) {
    return AboveLimit(place, "the count of members", directory.entries, kMaxZipMembers);
  }
  directory.range = *range;
  return directory;
}

// Sizes and places that do not fit 32 bits stand in the extra field 1, in this order.
Status TakeExtra(ByteView extra, const Place& place, std::initializer_list<uint64_t*> numbers) {
  ByteView large;
  for (uint64_t at = 0; at + 4 <= extra.size();) {
    const uint64_t size = Load<uint16_t>(extra, at + 2);
    if (size > extra.size() - at - 4) return Damaged(place, "an extra field", "a cut one");
    if (Load<uint16_t>(extra, at) == 1) large = extra.subspan(at + 4, size);
    at += 4 + size;
  }
  for (uint64_t* number : numbers) {
    if (*number != UINT32_MAX) continue;
    if (large.size() < sizeof(uint64_t)) return Damaged(place, "a size of 64 bits", "none");
    *number = Load<uint64_t>(large);
    large = large.subspan(sizeof(uint64_t));
  }
  return {};
}

struct Entry {
  ZipMember member;
  uint64_t local = 0;
  uint64_t packed = 0;
  uint16_t flags = 0;
};

Status ParseEntries(ByteView directory, uint64_t count, const Place& place,
                    std::vector<Entry>* entries) {
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const Place here = place + at;
    const uint64_t left = directory.size() - at;
    if (left < kEntryBytes) return Truncated(here, "a directory's entry", kEntryBytes, left);
    const ByteView fixed = directory.subspan(at);
    if (Load<uint32_t>(fixed) != kEntryMark) return Damaged(here, "a directory's entry", "none");
    const uint64_t name = Load<uint16_t>(fixed, 28);
    const uint64_t extra = Load<uint16_t>(fixed, 30);
    const uint64_t size = kEntryBytes + name + extra + Load<uint16_t>(fixed, 32);
    if (size > left) return Truncated(here, "a directory's entry", size, left);
    if (name > kMaxNameBytes) return AboveLimit(here, "a name's length", name, kMaxNameBytes);
    Entry entry;
    entry.flags = Load<uint16_t>(fixed, 8);
    entry.member.method = Load<uint16_t>(fixed, 10);
    entry.member.crc32 = Load<uint32_t>(fixed, 16);
    entry.packed = Load<uint32_t>(fixed, 20);
    entry.member.size = Load<uint32_t>(fixed, 24);
    entry.local = Load<uint32_t>(fixed, 42);
    entry.member.name = AsText(fixed.subspan(kEntryBytes, name));
    FB_RETURN_IF_ERROR(TakeExtra(fixed.subspan(kEntryBytes + name, extra), here,
                                 {&entry.member.size, &entry.packed, &entry.local}));
    if ((entry.flags & kEncrypted) != 0) return Refused(here, "an encrypted member");
    if (entry.member.method == 0 && entry.member.size != entry.packed) {
      return Damaged(here, fmt::format("{} stored bytes", entry.member.size),
                     fmt::format("{}", entry.packed));
    }
    entries->push_back(std::move(entry));
    at += size;
  }
  if (at == directory.size()) return {};
  return Damaged(place + at, "the end of the directory", "more of it");
}

// Where the member's data are is said by its own header alone.
Status FindData(Window* window, uint64_t limit, Entry* entry) {
  const Place place = window->PlaceAt(entry->local);
  if (!RangeWithin(entry->local, kLocalBytes, limit)) {
    return Damaged(place, "a member before the directory", "one behind it");
  }
  FB_ASSIGN_OR_RETURN(const ByteView fixed, window->At(entry->local, kLocalBytes, "a header"));
  if (Load<uint32_t>(fixed) != kLocalMark) return Damaged(place, "a member's header", "none");
  const auto method = Load<uint16_t>(fixed, 8);
  const uint64_t name = Load<uint16_t>(fixed, 26);
  const uint64_t extra = Load<uint16_t>(fixed, 28);
  uint64_t packed = Load<uint32_t>(fixed, 18);
  uint64_t size = Load<uint32_t>(fixed, 22);
  const bool sizes_behind = (Load<uint16_t>(fixed, 6) & kSizesBehind) != 0;
  const uint64_t head = kLocalBytes + name + extra;
  const auto data = RangeWithin(entry->local + head, entry->packed, limit);
  if (!RangeWithin(entry->local, head, limit) || !data) {
    return Truncated(place, "a member", head + entry->packed, limit - entry->local);
  }
  FB_ASSIGN_OR_RETURN(const ByteView whole, window->At(entry->local, head, "a header"));
  if (AsText(whole.subspan(kLocalBytes, name)) != entry->member.name ||
      method != entry->member.method) {
    return Damaged(place, "the member that the directory names", "another");
  }
  if (!sizes_behind) {
    FB_RETURN_IF_ERROR(
        TakeExtra(whole.subspan(kLocalBytes + name, extra), place, {&size, &packed}));
    if (size != entry->member.size || packed != entry->packed) {
      return Damaged(place, fmt::format("a member of {} bytes", entry->member.size),
                     fmt::format("one of {}", size));
    }
  }
  entry->member.data = *data;
  entry->member.header = entry->local;
  return {};
}

}  // namespace

Result<ByteView> OpenZipMember(ByteView fetched, uint64_t bytes, std::vector<std::byte>* scratch,
                               const Place& place) {
  if (fetched.size() < kLocalBytes || Load<uint32_t>(fetched) != kLocalMark) return fetched;
  const uint64_t head = kLocalBytes + Load<uint16_t>(fetched, 26) + Load<uint16_t>(fetched, 28);
  if (head > fetched.size()) return Truncated(place, "a header", head, fetched.size());
  const ByteView packed = fetched.subspan(head);
  FB_ASSIGN_OR_RETURN(Inflater inflater, Inflater::Make(packed.size(), bytes, place));
  scratch->clear();
  scratch->reserve(bytes);
  FB_RETURN_IF_ERROR(inflater.Take(packed, [scratch](ByteView piece) {
    scratch->insert(scratch->end(), piece.begin(), piece.end());
  }));
  FB_RETURN_IF_ERROR(inflater.End());
  const bool crc_behind = (Load<uint16_t>(fetched, 6) & kSizesBehind) != 0;
  const auto said = Load<uint32_t>(fetched, 14);
  const uint32_t is = ExtendCrc32(0, *scratch);
  if (crc_behind || said == is) return ByteView(*scratch);
  return Damaged(place, fmt::format("data with the checksum {:08x}", said),
                 fmt::format("{:08x}", is));
}

Result<std::vector<ZipMember>> ReadZip(const Shard& shard, ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const Directory directory, FindDirectory(shard, report));
  FB_ASSIGN_OR_RETURN(const auto bytes, Read(shard, directory.range, report));
  std::vector<Entry> entries;
  FB_RETURN_IF_ERROR(
      ParseEntries(bytes, directory.entries, In(shard, directory.range.offset), &entries));
  std::ranges::sort(entries, {}, &Entry::local);
  Window window(shard, report);
  std::vector<ZipMember> members;
  uint64_t before = 0;
  for (Entry& entry : entries) {
    if (entry.local < before) {
      return Damaged(In(shard, entry.local), "members that do not overlap", "two that do");
    }
    FB_RETURN_IF_ERROR(FindData(&window, directory.range.offset, &entry));
    before = entry.member.data.end;
    members.push_back(std::move(entry.member));
  }
  return members;
}

}  // namespace forebay::format
