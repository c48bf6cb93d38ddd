#include "format/sniff.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/crc32c.h"
#include "format/arrow.h"
#include "format/foreign.h"
#include "format/little_endian.h"
#include "format/recordio.h"
#include "format/tfrecord.h"

namespace forebay::format {
namespace {

using std::string_view_literals::operator""sv;

// What is looked at: the first bytes, and how many there are in all.
struct Head {
  ByteView bytes;
  uint64_t size = 0;

  bool Has(size_t end) const { return end <= bytes.size(); }
  std::string_view text() const { return AsText(bytes); }
};

bool IsTfRecord(const Head& head) {
  constexpr size_t kHeader = 12;
  if (!head.Has(kHeader)) return false;
  return MaskCrc32c(Crc32c(head.bytes.first(8))) == Load<uint32_t>(head.bytes, 8);
}

bool IsRecordIo(const Head& head) {
  return head.Has(8) && Load<uint32_t>(head.bytes) == kRecordIoMagic && head.size % 4 == 0;
}

// The sum of the first block with its own field as spaces.
bool IsTar(const Head& head) {
  constexpr size_t kBlock = 512;
  constexpr size_t kSumAt = 148;
  if (!head.Has(kBlock)) return false;
  uint64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const char c = i >= kSumAt && i < kSumAt + 8 ? ' ' : head.text()[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  std::string_view digits = head.text().substr(kSumAt, 8);
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  uint64_t said = 0;
  size_t count = 0;
  for (; count < digits.size() && digits[count] >= '0' && digits[count] <= '7'; ++count) {
    said = said * 8 + static_cast<uint64_t>(digits[count] - '0');
  }
  return count > 0 && (said == sum || static_cast<int64_t>(said) == signed_sum);
}

// MDS and LitData: a count, and that many offsets and one more. They differ in what the first
// offset leaves room for: MDS keeps a JSON text there.
Kind OffsetsKind(const Head& head) {
  constexpr uint64_t kWord = sizeof(uint32_t);
  if (!head.Has(2 * kWord)) return Kind::kUnknown;
  const uint64_t count = Load<uint32_t>(head.bytes);
  const uint64_t table_end = kWord * (count + 2);
  const uint64_t first = Load<uint32_t>(head.bytes, kWord);
  if (count == 0 || first < table_end || first > head.size) return Kind::kUnknown;
  uint64_t before = first;
  for (uint64_t i = 1; i <= count && head.Has(kWord * (i + 2)); ++i) {
    const uint64_t offset = Load<uint32_t>(head.bytes, kWord * (i + 1));
    if (offset < before || offset > head.size) return Kind::kUnknown;
    before = offset;
    if (i == count && offset != head.size) return Kind::kUnknown;
  }
  if (first == table_end) return Kind::kLitData;
  if (!head.Has(table_end + 1)) return Kind::kMds;  // the table alone fills the head
  return head.text()[table_end] == '{' ? Kind::kMds : Kind::kUnknown;
}

bool IsBeton(const Head& head) {
  constexpr size_t kHeader = 24;
  constexpr uint64_t kField = 1041;
  if (!head.Has(kHeader) || Load<uint16_t>(head.bytes) != 2) return false;
  const uint64_t fields = Load<uint16_t>(head.bytes, 2);
  const uint64_t page = Load<uint32_t>(head.bytes, 4);
  const uint64_t table = Load<uint64_t>(head.bytes, 16);
  // Of one that is cut the table lies beyond its end.
  return fields > 0 && std::has_single_bit(page) && page >= uint64_t{1} << 21 &&
         table >= kHeader + fields * kField;
}

bool IsLlmcTokens(const Head& head) {
  if (!head.Has(8)) return false;
  const auto magic = Load<uint32_t>(head.bytes);
  const auto version = Load<uint32_t>(head.bytes, 4);
  return (magic == 20240520 && version == 1) || (magic == 20240801 && version == 7);
}

// Of text as JSON lines have it: an object begins, maybe behind a mark of the encoding.
bool IsJsonl(const Head& head) {
  std::string_view text = head.text();
  if (text.starts_with("\xef\xbb\xbf"sv)) text.remove_prefix(3);
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || text[start] != '{') return false;
  const size_t next = text.find_first_not_of(" \t\r\n", start + 1);
  return next == std::string_view::npos || text[next] == '"' || text[next] == '}';
}

bool IsText(std::string_view text) {
  return std::ranges::none_of(text, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
}

Kind ByMagic(const Head& head) {
  const std::string_view text = head.text();
  if (text.starts_with("PAR1"sv)) return Kind::kParquet;
  if (text.starts_with("ARROW1\0\0"sv)) return Kind::kArrow;
  if (text.starts_with("\x93NUMPY"sv)) return Kind::kNpy;
  if (text.starts_with("MMIDIDX\0\0"sv)) return Kind::kMegatronIndex;
  if (IsLlmcTokens(head)) return Kind::kLlmcTokens;
  if (IsRecordIo(head)) return Kind::kRecordIo;
  if (IsTfRecord(head)) return Kind::kTfRecord;
  if (IsTar(head)) return Kind::kTar;
  if (IsArrowStream(head.bytes, head.size)) return Kind::kArrow;
  return Kind::kUnknown;
}

// A zip of arrays: its first member's name says so.
Kind ZipKind(const Head& head) {
  constexpr size_t kNameLengthAt = 26;
  constexpr size_t kNameAt = 30;
  if (!head.Has(kNameAt)) return Kind::kZip;
  const size_t length = Load<uint16_t>(head.bytes, kNameLengthAt);
  return head.Has(kNameAt + length) && head.text().substr(kNameAt, length).ends_with(".npy")
             ? Kind::kNpz
             : Kind::kZip;
}

Kind ByForeign(const Head& head) {
  switch (ForeignKind(head.bytes)) {
    case Foreign::kNone:
      return Kind::kUnknown;
    case Foreign::kGzip:
      return Kind::kGzip;
    case Foreign::kZlib:
      return Kind::kZlib;
    case Foreign::kZstd:
      return Kind::kZstd;
    case Foreign::kBzip2:
      return Kind::kBzip2;
    case Foreign::kXz:
      return Kind::kXz;
    case Foreign::kZip:
      return ZipKind(head);
    case Foreign::kErrorPage:
      return Kind::kErrorPage;
    case Foreign::kGitLfs:
      return Kind::kGitLfs;
  }
  return Kind::kUnknown;
}

std::string_view Extension(std::string_view name) {
  const std::string_view file = name.substr(name.rfind('/') + 1);  // npos + 1: all of it
  const size_t dot = file.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : file.substr(dot + 1);
}

// What content alone does not tell.
Kind ByName(const Head& head, std::string_view name) {
  const std::string_view extension = Extension(name);
  const bool zeros = head.text().find_first_not_of('\0') == std::string_view::npos;
  if (extension == "tar" && zeros) return Kind::kTar;  // an empty one
  const bool text = IsText(head.text());
  if ((extension == "csv" || extension == "tsv") && text) return Kind::kCsv;
  if ((extension == "jsonl" || extension == "ndjson") && text) return Kind::kJsonl;
  if (!head.bytes.empty()) return Kind::kUnknown;
  // Of nothing the name alone can tell.
  if (extension == "tfrecord" || extension == "tfrecords") return Kind::kTfRecord;
  if (extension == "rec") return Kind::kRecordIo;
  return Kind::kUnknown;
}

}  // namespace

std::string_view KindName(Kind kind) {
  constexpr std::string_view kNames[] = {
      "unknown",        "tar",    "tfrecord", "recordio", "mds",   "jsonl",   "csv",
      "parquet",        "npy",    "npz",      "arrow",    "beton", "litdata", "llmc_tokens",
      "megatron_index", "gzip",   "zlib",     "zstd",     "bzip2", "xz",      "zip",
      "error_page",     "git_lfs"};
  const auto index = static_cast<size_t>(kind);
  return index < std::size(kNames) ? kNames[index] : kNames[0];
}

Kind Sniff(ByteView bytes, uint64_t shard_size, std::string_view name) {
  const Head head{bytes, shard_size};
  // Checksums and magic numbers first: two bytes may begin a length or a member's name as well.
  if (const Kind kind = ByMagic(head); kind != Kind::kUnknown) return kind;
  if (const Kind kind = ByForeign(head); kind != Kind::kUnknown) return kind;
  if (IsBeton(head)) return Kind::kBeton;
  if (const Kind kind = OffsetsKind(head); kind != Kind::kUnknown) return kind;
  if (IsJsonl(head)) return Kind::kJsonl;
  return ByName(head, name);
}

}  // namespace forebay::format
