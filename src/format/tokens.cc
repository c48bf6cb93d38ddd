#include "format/tokens.h"

#include <fmt/core.h>

#include <algorithm>

#include "format/little_endian.h"

namespace forebay::format {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::string_view kTypeNames[] = {"uint8",  "int8",  "int16",  "uint16",  "int32",
                                           "uint32", "int64", "uint64", "float32", "float64"};
constexpr uint64_t kTypeBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};

constexpr uint32_t kLlmcMagic16 = 20240520;
constexpr uint32_t kLlmcMagic32 = 20240801;
constexpr uint64_t kWord = sizeof(uint32_t);

std::optional<TokenType> LlmcType(ByteView head) {
  if (head.size() < 2 * kWord) return std::nullopt;
  const auto magic = Load<uint32_t>(head);
  const auto version = Load<uint32_t>(head, kWord);
  if (magic == kLlmcMagic16 && version == 1) return TokenType::kUint16;
  if (magic == kLlmcMagic32 && version == 7) return TokenType::kUint32;
  return std::nullopt;
}

Result<uint64_t> CountIn(uint64_t bytes, TokenType type, const Place& place) {
  if (bytes % TokenBytes(type) == 0) return bytes / TokenBytes(type);
  return Damaged(place, fmt::format("whole tokens of {} bytes", TokenBytes(type)),
                 fmt::format("{} bytes", bytes));
}

}  // namespace

uint64_t TokenBytes(TokenType type) { return kTypeBytes[static_cast<size_t>(type)]; }

std::string_view TokenTypeName(TokenType type) { return kTypeNames[static_cast<size_t>(type)]; }

std::optional<TokenType> ParseTokenType(std::string_view name) {
  const auto* found = std::ranges::find(kTypeNames, name);
  if (found == std::end(kTypeNames)) return std::nullopt;
  return static_cast<TokenType>(found - kTypeNames);
}

Result<TokenFile> RawTokens(ByteView head, uint64_t file_size, TokenType type, const Place& place) {
  if (LlmcType(head)) return Damaged(place, "tokens alone", "a header of llm.c: read it as such");
  for (const std::string_view magic : {"MMIDIDX\0"sv, "TNTIDX\0\0"sv, "LITPKDS"sv, "\x93NUMPY"sv}) {
    if (AsText(head).starts_with(magic)) return Damaged(place, "tokens alone", "a header");
  }
  FB_ASSIGN_OR_RETURN(const uint64_t count, CountIn(file_size, type, place));
  return TokenFile{.type = type, .offset = 0, .count = count};
}

Result<TokenFile> LlmcTokens(ByteView head, uint64_t file_size, const Place& place) {
  constexpr uint64_t kHeader = 1024;
  if (head.size() < kHeader) return Truncated(place, "a header of llm.c", kHeader, head.size());
  const auto type = LlmcType(head);
  if (!type) {
    return Damaged(place, "the magic number and version of llm.c's token files",
                   fmt::format("{} and {}", Load<uint32_t>(head), Load<uint32_t>(head, kWord)));
  }
  const auto count = Load<int32_t>(head, 2 * kWord);
  if (count < 0) return Damaged(place + 2 * kWord, "a count of tokens", fmt::format("{}", count));
  const uint64_t expected = kHeader + static_cast<uint64_t>(count) * TokenBytes(*type);
  if (file_size < expected) return Truncated(place, "a file of tokens", expected, file_size);
  if (file_size > expected) {
    return Damaged(place + expected, fmt::format("the end behind {} tokens", count),
                   fmt::format("{} more bytes", file_size - expected));
  }
  return TokenFile{.type = *type, .offset = kHeader, .count = static_cast<uint64_t>(count)};
}

uint64_t LitDataHeadBytes(ByteView first_four) {
  if (first_four.size() < kWord) return kWord;
  return kWord * (uint64_t{Load<uint32_t>(first_four)} + 2);
}

Result<TokenFile> LitDataTokens(ByteView head, uint64_t file_size, TokenType type,
                                const Place& place) {
  const uint64_t size = LitDataHeadBytes(head);
  if (head.size() < size || size > file_size) {
    return Truncated(place, "a table of offsets", size, std::min<uint64_t>(head.size(), file_size));
  }
  TokenFile file{.type = type, .offset = size};
  uint64_t before = Load<uint32_t>(head, kWord);
  if (before != size) {
    return Damaged(place + kWord, fmt::format("the first item at {}", size),
                   fmt::format("it at {}", before));
  }
  for (uint64_t at = 2 * kWord; at < size; at += kWord) {
    const uint64_t offset = Load<uint32_t>(head, at);
    if (offset < before || offset > file_size) {
      return Damaged(place + at, fmt::format("an offset from {} to {}", before, file_size),
                     fmt::format("{}", offset));
    }
    FB_ASSIGN_OR_RETURN(const uint64_t tokens, CountIn(offset - before, type, place + before));
    file.documents.push_back(tokens);
    before = offset;
  }
  if (before != file_size) {
    return Damaged(place + (size - kWord), fmt::format("the last item's end at {}", file_size),
                   fmt::format("it at {}", before));
  }
  FB_ASSIGN_OR_RETURN(file.count, CountIn(file_size - size, type, place + size));
  return file;
}

namespace {

constexpr uint64_t kFairseqHeader = 26;
constexpr uint64_t kMegatronHeader = 34;
constexpr uint64_t kCodeAt = 17;
constexpr uint64_t kSequencesAt = 18;
constexpr uint64_t kDocumentsAt = 26;
constexpr uint64_t kEntry = 12;  // a length of 32 bits and an offset of 64

std::optional<TokenType> TypeOf(uint8_t code, TokenIndex::Writer writer) {
  using T = TokenType;
  constexpr T kCommon[] = {T::kUint8, T::kInt8, T::kInt16, T::kInt32, T::kInt64};
  const bool fairseq = writer == TokenIndex::Writer::kFairseq;
  if (code >= 1 && code <= 5) return kCommon[code - 1];
  if (code == 6) return T::kFloat64;
  if (code == 7) return fairseq ? T::kFloat64 : T::kFloat32;
  if (code == 8) return T::kUint16;
  if (code == 9 && fairseq) return T::kUint32;
  if (code == 10 && fairseq) return T::kUint64;
  return std::nullopt;
}

// Offsets as they must be: those that the lengths add up to.
Status CheckSequences(ByteView index, uint64_t header, uint64_t bin_size, const Place& place,
                      TokenIndex* found) {
  const uint64_t count = found->sequences;
  const uint64_t item = TokenBytes(found->type);
  const uint64_t offsets = header + count * sizeof(int32_t);
  found->lengths = index.subspan(header, count * sizeof(int32_t));
  uint64_t expected = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const auto length = Load<int32_t>(found->lengths, i * sizeof(int32_t));
    if (length < 0) {
      return Damaged(place + (header + i * sizeof(int32_t)), "a sequence's length",
                     fmt::format("{}", length));
    }
    const auto offset = Load<int64_t>(index, offsets + i * sizeof(int64_t));
    if (offset < 0 || static_cast<uint64_t>(offset) != expected) {
      return Damaged(place + (offsets + i * sizeof(int64_t)),
                     fmt::format("the offset {} of sequence {}", expected, i),
                     fmt::format("{}", offset));
    }
    const auto range = RangeWithin(expected, static_cast<uint64_t>(length) * item, bin_size);
    if (!range) {
      return Truncated(place, fmt::format("the .bin file with sequence {}", i),
                       expected + static_cast<uint64_t>(length) * item, bin_size);
    }
    expected = range->end;
  }
  found->tokens = expected / item;
  return {};
}

Status CheckDocuments(ByteView documents, uint64_t at, uint64_t sequences, const Place& place) {
  int64_t before = 0;
  for (uint64_t i = 0; i * sizeof(int64_t) < documents.size(); ++i) {
    const auto first = Load<int64_t>(documents, i * sizeof(int64_t));
    if ((i == 0 && first != 0) || first < before || static_cast<uint64_t>(first) > sequences) {
      return Damaged(place + (at + i * sizeof(int64_t)),
                     i == 0 ? "the first document at sequence 0"
                            : fmt::format("a sequence from {} to {}", before, sequences),
                     fmt::format("{}", first));
    }
    before = first;
  }
  return {};
}

}  // namespace

Result<TokenIndex> ParseTokenIndex(ByteView index, uint64_t bin_size, const Place& place) {
  const std::string_view text = AsText(index);
  if (text.starts_with("TNTIDX\0\0"sv)) {
    return Refused(place, "fairseq's cached index: write it anew with --dataset-impl mmap");
  }
  if (index.size() < kFairseqHeader) {
    return Truncated(place, "an index's header", kFairseqHeader, index.size());
  }
  if (!text.starts_with("MMIDIDX\0\0"sv)) return Damaged(place, "\"MMIDIDX\"", "another text");
  const auto version = Load<uint64_t>(index, 9);
  if (version != 1) return Damaged(place + 9, "version 1", fmt::format("{}", version));
  TokenIndex found;
  found.sequences = Load<uint64_t>(index, kSequencesAt);
  const auto entries = Total(found.sequences, kEntry);
  const uint64_t size = index.size();
  if (!entries || *entries > size) {
    return Truncated(place, fmt::format("an index of {} sequences", found.sequences),
                     entries.value_or(UINT64_MAX), size);
  }
  uint64_t header = kFairseqHeader;
  if (size == kFairseqHeader + *entries) {
    found.writer = TokenIndex::Writer::kFairseq;
  } else {
    header = kMegatronHeader;
    const uint64_t documents = size >= kMegatronHeader ? Load<uint64_t>(index, kDocumentsAt) : 0;
    const auto bytes = Total(documents, sizeof(int64_t), kMegatronHeader + *entries);
    // What may follow is a byte for each sequence (its mode).
    const bool fits = bytes && documents <= found.sequences + 1 &&
                      (size == *bytes || (size > *bytes && size - *bytes == found.sequences));
    if (!fits) {
      return Damaged(place,
                     fmt::format("the size of an index of {} sequences (and {} documents)",
                                 found.sequences, documents),
                     fmt::format("{} bytes", size));
    }
    found.documents = index.subspan(kMegatronHeader + *entries, documents * sizeof(int64_t));
  }
  const auto code = Load<uint8_t>(index, kCodeAt);
  const auto type = TypeOf(code, found.writer);
  if (!type) return Damaged(place + kCodeAt, "a type of tokens", fmt::format("code {}", code));
  found.type = *type;
  FB_RETURN_IF_ERROR(CheckSequences(index, header, bin_size, place, &found));
  FB_RETURN_IF_ERROR(
      CheckDocuments(found.documents, kMegatronHeader + *entries, found.sequences, place));
  return found;
}

namespace {

template <class T>
Status CheckBelow(ByteView tokens, uint64_t vocabulary, const Place& place) {
  for (size_t at = 0; at + sizeof(T) <= tokens.size(); at += sizeof(T)) {
    const T token = Load<T>(tokens, at);
    if (token < T{0} || static_cast<uint64_t>(token) >= vocabulary) {
      return Damaged(place + at, fmt::format("tokens below {}", vocabulary),
                     fmt::format("{}: is their type right?", token));
    }
  }
  return {};
}

}  // namespace

Status CheckVocabulary(ByteView tokens, TokenType type, uint64_t vocabulary, const Place& place) {
  switch (type) {
    case TokenType::kUint8:
      return CheckBelow<uint8_t>(tokens, vocabulary, place);
    case TokenType::kInt8:
      return CheckBelow<int8_t>(tokens, vocabulary, place);
    case TokenType::kInt16:
      return CheckBelow<int16_t>(tokens, vocabulary, place);
    case TokenType::kUint16:
      return CheckBelow<uint16_t>(tokens, vocabulary, place);
    case TokenType::kInt32:
      return CheckBelow<int32_t>(tokens, vocabulary, place);
    case TokenType::kUint32:
      return CheckBelow<uint32_t>(tokens, vocabulary, place);
    case TokenType::kInt64:
      return CheckBelow<int64_t>(tokens, vocabulary, place);
    case TokenType::kUint64:
      return CheckBelow<uint64_t>(tokens, vocabulary, place);
    case TokenType::kFloat32:
    case TokenType::kFloat64:
      break;
  }
  return Damaged(place, "integers", TokenTypeName(type));
}

}  // namespace forebay::format
