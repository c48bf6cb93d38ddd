#include "catalog/files_block.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "base/hash.h"
#include "catalog/coding.h"
#include "catalog/text_column.h"

namespace forebay::catalog {
namespace {

constexpr size_t kHeadBytes = 36;
constexpr size_t kDigest = 16;  // bytes of an MD5

enum Kind : uint8_t { kTexts = 0, kDigests = 1, kNone = 2 };

Status Damaged(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("a damaged block of a catalog: {}", what));
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool IsDigest(std::string_view text) {
  return text.size() == 2 * kDigest &&
         std::ranges::all_of(text, [](char c) { return HexDigit(c) >= 0; });
}

std::vector<std::byte> PackDigests(const std::vector<std::string_view>& texts) {
  std::vector<std::byte> bytes;
  for (const std::string_view text : texts) {
    for (size_t i = 0; i < text.size(); i += 2) {
      bytes.push_back(static_cast<std::byte>(HexDigit(text[i]) * 16 + HexDigit(text[i + 1])));
    }
  }
  return bytes;
}

std::pair<Kind, std::vector<std::byte>> PackColumn(const std::vector<std::string_view>& texts) {
  if (std::ranges::all_of(texts, [](std::string_view t) { return t.empty(); })) return {kNone, {}};
  if (std::ranges::all_of(texts, IsDigest)) return {kDigests, PackDigests(texts)};
  return {kTexts, PackTexts(texts)};
}

}  // namespace

std::vector<std::byte> PackFiles(const std::vector<FileEntry>& entries) {
  FB_ASSERT(!entries.empty() && entries.size() <= kFilesPerBlock);
  std::vector<std::string_view> keys, etags, versions;
  uint64_t least = ~uint64_t{0};
  uint64_t most = 0;
  for (const FileEntry& entry : entries) {
    keys.push_back(entry.key);
    etags.push_back(entry.etag);
    versions.push_back(entry.version_id);
    least = std::min(least, entry.size);
    most = std::max(most, entry.size);
  }
  const auto width = static_cast<uint8_t>((std::bit_width(most - least) + 7) / 8);
  const std::vector<std::byte> packed_keys = PackTexts(keys);
  const auto [etag_kind, packed_etags] = PackColumn(etags);
  const auto [version_kind, packed_versions] = PackColumn(versions);
  Writer body;
  body.Word(static_cast<uint32_t>(entries.size()));
  body.Word(static_cast<uint32_t>(packed_keys.size()));
  body.Word(static_cast<uint32_t>(packed_etags.size()));
  body.Word(static_cast<uint32_t>(packed_versions.size()));
  body.Word(width);
  body.Word(static_cast<uint8_t>(etag_kind));
  body.Word(static_cast<uint8_t>(version_kind));
  body.Word(uint8_t{0});
  body.Word(least);
  for (const FileEntry& entry : entries) {
    const uint64_t over = entry.size - least;
    body.Append({reinterpret_cast<const std::byte*>(&over), width});
  }
  body.Append(packed_keys);
  body.Append(packed_etags);
  body.Append(packed_versions);
  Writer block;
  block.Word(HashBytes(body.bytes()).low);
  block.Append(body.bytes());
  return std::move(block.bytes());
}

Result<FilesBlock> FilesBlock::Open(ByteView bytes) {
  if (bytes.size() < kHeadBytes) return Damaged("it is cut off");
  Reader head(bytes);
  (void)head.Word<uint64_t>();  // the hash
  FilesBlock block;
  block.count_ = head.Word<uint32_t>();
  const auto keys = head.Word<uint32_t>();
  const auto etags = head.Word<uint32_t>();
  const auto versions = head.Word<uint32_t>();
  block.size_width_ = head.Word<uint8_t>();
  block.etags_.kind = head.Word<uint8_t>();
  block.versions_.kind = head.Word<uint8_t>();
  (void)head.Word<uint8_t>();
  block.size_least_ = head.Word<uint64_t>();
  if (block.count_ == 0 || block.count_ > kFilesPerBlock || block.size_width_ > 8) {
    return Damaged("its head cannot be");
  }
  const uint64_t sizes = uint64_t{block.count_} * block.size_width_;
  if (kHeadBytes + sizes + keys + etags + versions != bytes.size()) {
    return Damaged("its lengths do not add up");
  }
  size_t at = kHeadBytes;
  const auto next = [&](uint64_t n) {
    const ByteView part = bytes.subspan(at, n);
    at += n;
    return part;
  };
  block.sizes_ = next(sizes);
  block.keys_.bytes = next(keys);
  block.etags_.bytes = next(etags);
  block.versions_.bytes = next(versions);
  return block;
}

uint64_t FilesBlock::SizeOf(uint32_t i) const {
  uint64_t over = 0;
  if (size_width_ > 0) {
    std::memcpy(&over, sizes_.data() + size_t{i} * size_width_, size_width_);
  }
  return size_least_ + over;
}

Result<FileEntry> FilesBlock::At(uint32_t i) const {
  FB_ASSERT(i < count_);
  FileEntry entry;
  entry.size = SizeOf(i);
  FB_ASSIGN_OR_RETURN(entry.key, TextOf(keys_, i));
  FB_ASSIGN_OR_RETURN(entry.etag, TextOf(etags_, i));
  FB_ASSIGN_OR_RETURN(entry.version_id, TextOf(versions_, i));
  return entry;
}

Result<std::string> FilesBlock::TextOf(const Column& column, uint32_t i) const {
  if (column.kind == kNone) return std::string();
  if (column.kind == kDigests) {
    if (column.bytes.size() != kDigest * count_) return Damaged("digests of another number");
    std::string text;
    for (const std::byte byte : column.bytes.subspan(kDigest * i, kDigest)) {
      text += "0123456789abcdef"[static_cast<uint8_t>(byte) >> 4];
      text += "0123456789abcdef"[static_cast<uint8_t>(byte) & 15];
    }
    return text;
  }
  if (column.kind != kTexts) return Damaged("a column of an unknown kind");
  return TextAt(column.bytes, count_, i);
}

}  // namespace forebay::catalog
