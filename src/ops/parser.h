// A parser of a field, compiled: what stands between a record's bytes and its arrays.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/ops.h"
#include "forebay/status.h"

namespace forebay::ops {

// What a parser makes, in the order of its op: an array of fixed shape or of as many values as
// there are, or ("bytes") a field.
struct Parsed {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  bool ragged = false;
};

// Where the results go, each of these as long as there are results.
struct ParserOut {
  std::span<const MutableBytes> arrays;  // of fixed shape: its size, or none where nobody wants it
  std::span<ByteView> fields;            // of bytes: pointed at them, within the parsed field
  std::span<std::vector<std::byte>> ragged;  // of as many values as there are: replaced by them
};

// Immutable, shared by threads. Checks all of its input, whoever wants which results.
class Parser {
 public:
  virtual ~Parser() = default;
  virtual const std::vector<Parsed>& results() const = 0;
  // Its ragged results take no more than so many bytes for each of the field's.
  virtual uint64_t ragged_each() const { return 0; }
  // Errors: kDataLoss.
  virtual Status Parse(ByteView field, const ParserOut& out) const = 0;
};

std::unique_ptr<const Parser> MakeIntParser(const ParseIntOp& op);
std::unique_ptr<const Parser> MakeNpyParser(const ParseNpyOp& op);
std::unique_ptr<const Parser> MakeJsonParser(const ParseJsonOp& op);
std::unique_ptr<const Parser> MakeExampleParser(const ParseExampleOp& op);
std::unique_ptr<const Parser> MakeRecordParser(const ParseRecordOp& op);
// `stored`: the type of the tokens in the field. Errors: kInvalidArgument (of no such type).
Result<std::unique_ptr<const Parser>> MakeTokensParser(const TokensOp& op, std::string_view stored);
// The field: uint32 how many documents, uint32 tokens of each, then the tokens.
Result<std::unique_ptr<const Parser>> MakePackedTokensParser(const PackTokensOp& op,
                                                             std::string_view stored);

}  // namespace forebay::ops
