// Tokens as they are stored -> as they are trained on.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "ops/dtype.h"
#include "ops/parser.h"

namespace forebay::ops {
namespace {

Status Bad(std::string text) { return Status(Code::kDataLoss, std::move(text)); }

template <class From>
From Load(const std::byte* from) {
  From value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// Writes `count` tokens. Whether each is at least 0 and below `end`.
template <class From, class To>
bool Convert(const std::byte* from, size_t count, uint64_t end, std::byte* to) {
  // What has to be looked for is one value beyond all others: a loop that the compiler vectorizes.
  From most = 0;
  From least = 0;
  for (size_t i = 0; i < count; ++i) {
    const From token = Load<From>(from + i * sizeof(From));
    const To value = static_cast<To>(token);  // NOLINT(bugprone-signed-char-misuse): a number
    std::memcpy(to + i * sizeof(To), &value, sizeof(value));
    most = std::max(most, token);
    least = std::min(least, token);
  }
  if constexpr (std::is_signed_v<From>) {
    if (least < 0) return false;
  }
  return static_cast<uint64_t>(most) < end;
}

using ConvertTokens = bool (*)(const std::byte*, size_t, uint64_t, std::byte*);

template <class To>
ConvertTokens ConverterTo(std::string_view stored) {
  if (stored == "uint8") return Convert<uint8_t, To>;
  if (stored == "int8") return Convert<int8_t, To>;
  if (stored == "uint16") return Convert<uint16_t, To>;
  if (stored == "int16") return Convert<int16_t, To>;
  if (stored == "uint32") return Convert<uint32_t, To>;
  if (stored == "int32") return Convert<int32_t, To>;
  if (stored == "uint64") return Convert<uint64_t, To>;
  if (stored == "int64") return Convert<int64_t, To>;
  return nullptr;
}

// From one type to another, within both and within the vocabulary.
class Tokens {
 public:
  static Result<Tokens> Make(std::string_view stored, const std::string& dtype,
                             int64_t vocabulary) {
    Tokens tokens;
    const bool narrow = dtype == "int32";
    tokens.convert_ = narrow ? ConverterTo<int32_t>(stored) : ConverterTo<int64_t>(stored);
    if (tokens.convert_ == nullptr) {
      return Status(Code::kInvalidArgument, fmt::format("tokens of {}: integers are read", stored));
    }
    tokens.from_ = static_cast<size_t>(BytesOf(stored));
    tokens.to_ = static_cast<size_t>(BytesOf(dtype));
    const uint64_t holds = narrow ? uint64_t{1} << 31 : uint64_t{1} << 63;

    tokens.end_ = vocabulary > 0 ? std::min(holds, static_cast<uint64_t>(vocabulary)) : holds;
    return tokens;
  }

  size_t stored_bytes() const { return from_; }
  size_t bytes() const { return to_; }
  // `to` may be empty: then they are neither written nor looked at.
  Status Write(ByteView from, MutableBytes to) const {
    if (to.empty()) return {};
    if (convert_(from.data(), from.size() / from_, end_, to.data())) return {};
    return Bad(
        fmt::format("a token that is negative, or not below {}: are type and vocabulary "
                    "right?",
                    end_));
  }

 private:
  Tokens() = default;
  ConvertTokens convert_ = nullptr;
  size_t from_ = 0, to_ = 0;
  uint64_t end_ = 0;
};

class TokensParser : public Parser {
 public:
  TokensParser(const TokensOp& op, Tokens tokens)
      : results_{{"tokens", op.dtype, {op.length}}},
        bytes_(static_cast<uint64_t>(op.length) * tokens.stored_bytes()),
        tokens_(tokens) {}
  const std::vector<Parsed>& results() const override { return results_; }
  Status Parse(ByteView field, const ParserOut& out) const override {
    if (field.size() != bytes_) {
      return Bad(fmt::format("{} bytes of tokens, and there should be {}", field.size(), bytes_));
    }
    return tokens_.Write(field, out.arrays[0]);
  }

 private:
  std::vector<Parsed> results_;
  uint64_t bytes_;
  Tokens tokens_;
};

// An array of int32 that may be wanted by nobody.
class Int32s {
 public:
  explicit Int32s(MutableBytes to) : to_(to) {}
  void Set(size_t i, int32_t value) {
    if (!to_.empty()) std::memcpy(to_.data() + i * sizeof(value), &value, sizeof(value));
  }

 private:
  MutableBytes to_;
};

class PackedTokensParser : public Parser {
 public:
  PackedTokensParser(const PackTokensOp& op, Tokens tokens)
      : results_{{"tokens", op.dtype, {op.length}},
                 {"segment_ids", "int32", {op.length}},
                 {"positions", "int32", {op.length}}},
        length_(static_cast<size_t>(op.length)),
        pad_(op.pad),
        tokens_(tokens) {}
  const std::vector<Parsed>& results() const override { return results_; }

  Status Parse(ByteView field, const ParserOut& out) const override {
    constexpr size_t kWord = sizeof(uint32_t);
    const uint64_t documents = field.size() < kWord ? 0 : Load<uint32_t>(field.data());
    const uint64_t head = kWord * (1 + documents);
    if (field.size() < head) return Bad("a packed row that is cut off");
    Int32s segments(out.arrays[1]), positions(out.arrays[2]);
    size_t at = 0;
    ByteView tokens = field.subspan(head);
    for (size_t d = 0; d < documents; ++d) {
      const size_t count = Load<uint32_t>(field.data() + kWord * (1 + d));
      if (count > length_ - at || count * tokens_.stored_bytes() > tokens.size()) {
        return Bad("a packed row that is longer than it says");
      }
      const ByteView own = tokens.first(count * tokens_.stored_bytes());
      tokens = tokens.subspan(own.size());
      FB_RETURN_IF_ERROR(tokens_.Write(own, Part(out.arrays[0], at, count)));
      for (size_t i = 0; i < count; ++i, ++at) {
        segments.Set(at, static_cast<int32_t>(d + 1));
        positions.Set(at, static_cast<int32_t>(i));
      }
    }
    if (!tokens.empty()) return Bad("a packed row with more tokens than it says");
    Fill(out.arrays[0], at);
    for (; at < length_; ++at) {
      segments.Set(at, 0);
      positions.Set(at, 0);
    }
    return {};
  }

 private:
  MutableBytes Part(MutableBytes array, size_t at, size_t count) const {
    if (array.empty()) return array;
    return array.subspan(at * tokens_.bytes(), count * tokens_.bytes());
  }
  void Fill(MutableBytes array, size_t at) const {
    if (array.empty()) return;
    for (size_t i = at; i < length_; ++i) {  // little-endian: the low bytes are the number's
      std::memcpy(array.data() + i * tokens_.bytes(), &pad_, tokens_.bytes());
    }
  }

  std::vector<Parsed> results_;
  size_t length_;
  int64_t pad_;
  Tokens tokens_;
};

}  // namespace

Result<std::unique_ptr<const Parser>> MakeTokensParser(const TokensOp& op,
                                                       std::string_view stored) {
  FB_ASSIGN_OR_RETURN(const Tokens tokens, Tokens::Make(stored, op.dtype, op.vocabulary));
  return std::unique_ptr<const Parser>(std::make_unique<TokensParser>(op, tokens));
}

Result<std::unique_ptr<const Parser>> MakePackedTokensParser(const PackTokensOp& op,
                                                             std::string_view stored) {
  FB_ASSIGN_OR_RETURN(const Tokens tokens, Tokens::Make(stored, op.dtype, op.vocabulary));
  return std::unique_ptr<const Parser>(std::make_unique<PackedTokensParser>(op, tokens));
}

}  // namespace forebay::ops
