#include "format/archive/tar_header.h"

#include <algorithm>

#include "base/ascii.h"

namespace forebay::format::archive {
namespace {

constexpr size_t kSizeAt = 124;
constexpr size_t kChecksumAt = 148;
constexpr size_t kTypeAt = 156;
constexpr size_t kDigits = 12;
constexpr size_t kChecksumDigits = 8;

bool IsZero(std::string_view block) {
  return block.find_first_not_of('\0') == std::string_view::npos;
}

// Digits with spaces before and a space or NUL behind.
std::optional<uint64_t> Octal(std::string_view field) {
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  uint64_t value = 0;
  size_t i = 0;
  for (; i < field.size() && field[i] >= '0' && field[i] <= '7'; ++i) {
    value = value * 8 + static_cast<uint64_t>(field[i] - '0');
  }
  if (i == 0 || (i < field.size() && field[i] != ' ' && field[i] != '\0')) return std::nullopt;
  return value;
}

bool ChecksumHolds(std::string_view block) {
  const auto said = Octal(block.substr(kChecksumAt, kChecksumDigits));
  uint64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksumAt && i < kChecksumAt + kChecksumDigits;
    const char c = own ? ' ' : block[i];
    sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  return said && (*said == sum || static_cast<int64_t>(*said) == signed_sum);
}

// What extended headers add up to.
class Extensions {
 public:
  Extensions(MemberHeader* header, bool global) : header_(header), global_(global) {}

  // "<length> <key>=<value>\n", one behind the other; the length counts itself.
  Status Add(std::string_view text, Place place) {
    while (!text.empty() && text.front() != '\0') {
      const size_t space = text.find(' ');
      const auto length = space <= kMaxLengthDigits ? Decimal(text.substr(0, space)) : std::nullopt;
      if (!length || *length <= space + 1 || *length > text.size() || text[*length - 1] != '\n') {
        return Damaged(place, "a record of an extended header with its length", "another text");
      }
      const std::string_view record = text.substr(space + 1, *length - space - 2);
      const size_t equals = record.find('=');
      if (equals == std::string_view::npos) {
        return Damaged(place, "a record of an extended header with '='", "none");
      }
      FB_RETURN_IF_ERROR(AddRecord(record.substr(0, equals), record.substr(equals + 1), place));
      text.remove_prefix(*length);
      place.offset += *length;
    }
    return {};
  }

 private:
  static constexpr size_t kMaxLengthDigits = 8;

  static std::optional<uint64_t> Decimal(std::string_view digits) {
    uint64_t value = 0;
    if (digits.empty()) return std::nullopt;
    for (const char c : digits) {
      if (!IsDigit(c)) return std::nullopt;
      value = value * 10 + static_cast<uint64_t>(c - '0');
    }
    return value;
  }

  Status AddRecord(std::string_view key, std::string_view value, const Place& place) {
    if (key.starts_with("GNU.sparse.")) {
      return Refused(place, "a sparse member: its bytes do not lie in one piece; pack it anew");
    }
    if (global_ && (key == "path" || key == "size")) {
      return Refused(place, "one name or size for all members (a global extended header)");
    }
    if (key != "path") return {};
    if (value.find('\0') != std::string_view::npos) {
      return Damaged(place, "a name without NUL", "a NUL in it");
    }
    // The last one counts; an empty one takes the others back.
    header_->name.reset();
    if (!value.empty()) header_->name = value;
    return {};
  }

  MemberHeader* const header_;
  const bool global_;
};

Status AddLongName(std::string_view text, const Place& place, MemberHeader* header) {
  const size_t end = std::min(text.find('\0'), text.size());
  if (!IsZero(text.substr(end))) return Damaged(place, "a name without NUL", "a NUL in it");
  if (header->name) return Damaged(place, "one name for a member", "two of them");
  header->name = text.substr(0, end);
  return {};
}

// The extended header whose block is at `offset`; its data follows.
Status AddExtended(Window* window, uint64_t offset, char type, uint64_t size,
                   MemberHeader* header) {
  const Place place = window->PlaceAt(offset + kBlock);
  FB_ASSIGN_OR_RETURN(const ByteView data,
                      window->At(place.offset, PaddedTo(size, kBlock), "an extended header"));
  const std::string_view text = AsText(data).substr(0, size);
  if (type == 'L') return AddLongName(text, place, header);
  if (type == 'K') return {};
  if (type == 'x' && header->name) {
    // Which one counts depends on the reader.
    return Damaged(place, "one extended header for a member's name", "two of them");
  }
  return Extensions(header, type == 'g').Add(text, place);
}

}  // namespace

Result<MemberHeader> ReadMemberHeader(Window* window, uint64_t offset) {
  using Kind = MemberHeader::Kind;
  MemberHeader header;
  header.offset = offset;
  const uint64_t start = offset;
  for (;;) {
    FB_ASSIGN_OR_RETURN(ByteView bytes, window->AtLeast(offset, kBlock));
    if (bytes.empty() && offset == start) return header;
    const std::string_view block = AsText(bytes.first(std::min(bytes.size(), size_t{kBlock})));
    if (block.size() < kBlock) {
      // Zeros that do not fill a block are what is left of an end.
      header.kind = IsZero(block) && offset == start ? Kind::kZeros : Kind::kDamaged;
      if (header.kind == Kind::kZeros) return header;
      return Truncated(window->PlaceAt(offset), "a header", kBlock, block.size());
    }
    header.offset = offset;
    if (IsZero(block) && offset != start) {
      return Damaged(window->PlaceAt(offset), "a member behind its extended header", "the end");
    }
    header.kind = IsZero(block) ? Kind::kZeros : Kind::kDamaged;
    if (header.kind == Kind::kZeros || !ChecksumHolds(block)) return header;
    header.type = block[kTypeAt];
    header.size = Octal(block.substr(kSizeAt, kDigits));
    const bool extended = header.type == 'x' || header.type == 'g' || header.type == 'L' ||
                          header.type == 'K' || header.type == 'X';
    if (!extended) break;
    const Place place = window->PlaceAt(offset);
    if (header.type == 'X') return Refused(place, "an extended header of Solaris; pack it anew");
    if (!header.size) return Damaged(place, "an extended header's size", "no octal number");
    if (*header.size > kMaxExtendedBytes || offset - start > kMaxExtendedBytes) {
      return AboveLimit(place, "an extended header's size", *header.size, kMaxExtendedBytes);
    }
    FB_RETURN_IF_ERROR(AddExtended(window, offset, header.type, *header.size, &header));
    offset += kBlock + PaddedTo(*header.size, kBlock);
  }
  header.kind = Kind::kMember;
  if (header.type == 'S') {
    return Refused(window->PlaceAt(offset),
                   "a sparse member: its bytes do not lie in one piece; pack it anew");
  }
  return header;
}

}  // namespace forebay::format::archive
