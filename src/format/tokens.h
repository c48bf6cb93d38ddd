// Files of tokens: numbers of one type, one behind the other, with or without a header, and with or
// without an index beside them that says where documents end.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "format/damage.h"

namespace forebay::format {

enum class TokenType : uint8_t {
  kUint8,
  kInt8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat32,
  kFloat64,
};
uint64_t TokenBytes(TokenType type);
std::string_view TokenTypeName(TokenType type);  // "uint16", as NumPy says
std::optional<TokenType> ParseTokenType(std::string_view name);

// Where the tokens of a file lie.
struct TokenFile {
  TokenType type = TokenType::kUint16;
  uint64_t offset = 0;  // of the first
  uint64_t count = 0;
  std::vector<uint64_t> documents;  // tokens of each, in order; empty: not known
};

// Of how many bytes at the start of a file the functions below need at most, LitData's aside.
inline constexpr uint64_t kTokenHeadBytes = 1024;

// nanoGPT: no header; the type is not in the file. `head` is looked at only for headers that would
// be taken for tokens.
Result<TokenFile> RawTokens(ByteView head, uint64_t file_size, TokenType type,
                            const Place& place = {});
// llm.c and modded-nanogpt: a header of 1,024 bytes with the count.
Result<TokenFile> LlmcTokens(ByteView head, uint64_t file_size, const Place& place = {});

// LitData's chunks written for its TokensLoader: a table of offsets, then tokens. `head` has to
// hold LitDataHeadBytes() of the first four bytes.
uint64_t LitDataHeadBytes(ByteView first_four);
Result<TokenFile> LitDataTokens(ByteView head, uint64_t file_size, TokenType type,
                                const Place& place = {});

// The index of Megatron or fairseq (mmap): both say "MMIDIDX" and version 1, and mean different
// things by it; the size tells them apart.
struct TokenIndex {
  enum class Writer : uint8_t { kMegatron, kFairseq };

  Writer writer = Writer::kMegatron;
  TokenType type = TokenType::kUint16;
  uint64_t sequences = 0;
  uint64_t tokens = 0;
  ByteView lengths;    // int32 of each sequence, in tokens; at any address, in the index
  ByteView documents;  // Megatron: int64, the first sequence of each document and the end
};
// `index`: the whole file. Offsets are computed from the lengths and must be those it says; all
// tokens must lie in the .bin file of `bin_size` bytes.
Result<TokenIndex> ParseTokenIndex(ByteView index, uint64_t bin_size, const Place& place = {});

// kDataLoss when one of these tokens is not below `vocabulary`, or negative: the type is wrong.
Status CheckVocabulary(ByteView tokens, TokenType type, uint64_t vocabulary,
                       const Place& place = {});

}  // namespace forebay::format
