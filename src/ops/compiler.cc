#include "ops/compiler.h"

#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <type_traits>
#include <utility>

#include "ops/dtype.h"

namespace forebay::ops {
namespace {

Status Bad(std::string text) { return Status(Code::kInvalidArgument, std::move(text)); }

constexpr int64_t kNone = -1;

// A name that the chain holds at some point, and what it stands for.
struct Slot {
  enum class Kind : uint8_t { kBytes, kArray, kImage, kParsed };
  std::string name;
  Kind kind = Kind::kBytes;
  size_t source = 0;  // bytes field, input array, image, or parser
  size_t result = 0;  // of that parser
  std::string dtype;
  std::vector<int64_t> shape;
  std::string elements = {};
  bool ragged = false;  // of a parser's: as many values as there are
};

class Compiler {
 public:
  Result<Program> Compile(const std::vector<InputField>& inputs, const std::vector<Op>& ops);

 private:
  Status AddInputs(const std::vector<InputField>& inputs);
  Status Add(const Op& op);
  Status AddParser(const Op& op, const std::string& field, std::unique_ptr<const Parser> parser);
  template <class TokenOp>
  Status AddTokens(const Op& op, const TokenOp& tokens);
  Status AddImage(const DecodeImageOp& op);
  Status AddImageOp(const Op& op);
  Status Select(const SelectOp& op);
  Status Rename(const RenameOp& op);
  Result<size_t> BytesSlot(const std::string& field) const;
  Result<size_t> FindSlot(const std::string& field) const;
  Status Emit();
  Status EmitSlot(const Slot& slot);
  void DropUnused();
  void DescribeKept(const std::vector<InputField>& inputs);

  size_t inputs_ = 0;
  std::vector<Slot> slots_;
  Program program_;
  std::map<std::string, int> random_ops_;  // how many of each name so far
};

Result<Program> Compiler::Compile(const std::vector<InputField>& inputs,
                                  const std::vector<Op>& ops) {
  FB_RETURN_IF_ERROR(AddInputs(inputs));
  for (size_t i = 0; i < ops.size(); ++i) {
    FB_RETURN_IF_ERROR(ValidateOp(ops[i]));
    auto status = Add(ops[i]);
    if (!status.ok()) {
      return std::move(status).WithContext(fmt::format("op {}, {}", i + 1, DescribeOp(ops[i])));
    }
  }
  FB_RETURN_IF_ERROR(Emit());
  DropUnused();
  DescribeKept(inputs);
  return std::move(program_);
}

Status Compiler::AddInputs(const std::vector<InputField>& inputs) {
  inputs_ = inputs.size();
  program_.fields = inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputField& input = inputs[i];
    if (FindSlot(input.name).ok()) return Bad(fmt::format("two fields named '{}'", input.name));
    const bool array = !input.dtype.empty();
    if (array && BytesOf(input.dtype, input.shape) == 0) {
      return Bad(fmt::format("field '{}': an array of {} [{}]", input.name, input.dtype,
                             fmt::join(input.shape, ", ")));
    }
    slots_.push_back({.name = input.name,
                      .kind = array ? Slot::Kind::kArray : Slot::Kind::kBytes,
                      .source = i,
                      .dtype = input.dtype,
                      .shape = input.shape,
                      .elements = input.elements});
  }
  return {};
}

Status Compiler::Add(const Op& op) {
  if (const auto* decode = std::get_if<DecodeImageOp>(&op)) return AddImage(*decode);
  if (const auto* select = std::get_if<SelectOp>(&op)) return Select(*select);
  if (const auto* rename = std::get_if<RenameOp>(&op)) return Rename(*rename);
  if (const auto* parse = std::get_if<ParseIntOp>(&op)) {
    return AddParser(op, parse->field, MakeIntParser(*parse));
  }
  if (const auto* parse = std::get_if<ParseNpyOp>(&op)) {
    return AddParser(op, parse->field, MakeNpyParser(*parse));
  }
  if (const auto* parse = std::get_if<ParseJsonOp>(&op)) {
    return AddParser(op, parse->field, MakeJsonParser(*parse));
  }
  if (const auto* parse = std::get_if<ParseExampleOp>(&op)) {
    return AddParser(op, parse->field, MakeExampleParser(*parse));
  }
  if (const auto* parse = std::get_if<ParseRecordOp>(&op)) {
    return AddParser(op, parse->field, MakeRecordParser(*parse));
  }
  if (const auto* tokens = std::get_if<TokensOp>(&op)) return AddTokens(op, *tokens);
  if (const auto* packed = std::get_if<PackTokensOp>(&op)) return AddTokens(op, *packed);
  return AddImageOp(op);
}

Result<size_t> Compiler::FindSlot(const std::string& field) const {
  const auto found = std::ranges::find(slots_, field, &Slot::name);
  if (found != slots_.end()) return static_cast<size_t>(found - slots_.begin());
  std::vector<std::string_view> names;
  names.reserve(slots_.size());
  for (const Slot& slot : slots_) names.push_back(slot.name);
  return Bad(fmt::format("there is no field '{}'; there is [{}]", field, fmt::join(names, ", ")));
}

Result<size_t> Compiler::BytesSlot(const std::string& field) const {
  FB_ASSIGN_OR_RETURN(const size_t at, FindSlot(field));
  if (slots_[at].kind == Slot::Kind::kBytes) return at;
  return Bad(fmt::format("the field '{}' is no bytes any more, but an array", field));
}

// The results take the place of the field they are made of.
Status Compiler::AddParser(const Op& op, const std::string& field,
                           std::unique_ptr<const Parser> parser) {
  FB_ASSIGN_OR_RETURN(const size_t at, BytesSlot(field));
  ParseStep step{.parser = std::move(parser),
                 .field = field,
                 .op = DescribeOp(op),
                 .source = slots_[at].source};
  slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(at));
  const auto& results = step.parser->results();
  step.outputs.assign(results.size(), kNone);
  step.fields.assign(results.size(), kNone);
  for (size_t i = 0; i < results.size(); ++i) {
    const Parsed& result = results[i];
    if (FindSlot(result.name).ok()) {
      return Bad(fmt::format("there would be two fields named '{}'", result.name));
    }
    const bool bytes = result.dtype == "bytes";
    if (bytes) step.fields[i] = static_cast<int64_t>(program_.fields);
    slots_.insert(slots_.begin() + static_cast<std::ptrdiff_t>(at + i),
                  {.name = result.name,
                   .kind = bytes ? Slot::Kind::kBytes : Slot::Kind::kParsed,
                   .source = bytes ? program_.fields : program_.parsers.size(),
                   .result = i,
                   .dtype = bytes ? "" : result.dtype,
                   .shape = result.shape,
                   .ragged = result.ragged});
    if (bytes) ++program_.fields;
  }
  program_.parsers.push_back(std::move(step));
  return {};
}

template <class TokenOp>
Status Compiler::AddTokens(const Op& op, const TokenOp& tokens) {
  static const std::string field = "tokens";
  FB_ASSIGN_OR_RETURN(const size_t at, BytesSlot(field));
  const std::string stored = slots_[at].elements;
  if (stored.empty()) return Bad("it is of token files, and of those it has to be the first op");
  if constexpr (std::is_same_v<TokenOp, TokensOp>) {
    FB_ASSIGN_OR_RETURN(auto parser, MakeTokensParser(tokens, stored));
    return AddParser(op, field, std::move(parser));
  } else {
    FB_ASSIGN_OR_RETURN(auto parser, MakePackedTokensParser(tokens, stored));
    return AddParser(op, field, std::move(parser));
  }
}

Status Compiler::AddImage(const DecodeImageOp& op) {
  FB_ASSIGN_OR_RETURN(const size_t at, BytesSlot(op.field));
  Slot& slot = slots_[at];
  program_.images.push_back({.plan = ImagePlan(op), .field = op.field, .source = slot.source});
  slot.kind = Slot::Kind::kImage;
  slot.source = program_.images.size() - 1;
  return {};
}

// Works on every image that was decoded before, on all with the same random numbers.
Status Compiler::AddImageOp(const Op& op) {
  const std::string text = DescribeOp(op);
  std::string name = text.substr(0, text.find('('));
  const int before = random_ops_[name]++;
  if (before > 0) name += fmt::format(".{}", before + 1);
  bool any = false;
  for (const Slot& slot : slots_) {
    if (slot.kind != Slot::Kind::kImage) continue;
    FB_RETURN_IF_ERROR(program_.images[slot.source].plan.Append(op, name));
    any = true;
  }
  return any ? Status() : Bad("no image has been decoded before it");
}

Status Compiler::Select(const SelectOp& op) {
  std::vector<Slot> kept;
  for (const std::string& field : op.fields) {
    FB_ASSIGN_OR_RETURN(const size_t at, FindSlot(field));
    if (std::ranges::find(kept, field, &Slot::name) != kept.end()) {
      return Bad(fmt::format("the field '{}' is named twice", field));
    }
    kept.push_back(slots_[at]);
  }
  slots_ = std::move(kept);
  return {};
}

Status Compiler::Rename(const RenameOp& op) {
  FB_ASSIGN_OR_RETURN(const size_t at, FindSlot(op.field));
  if (op.name != op.field && FindSlot(op.name).ok()) {
    return Bad(fmt::format("there would be two fields named '{}'", op.name));
  }
  slots_[at].name = op.name;
  return {};
}

Status Compiler::Emit() {
  program_.needed.assign(inputs_, false);
  for (const Slot& slot : slots_) {
    auto status = EmitSlot(slot);
    if (!status.ok()) return std::move(status).WithContext(fmt::format("field '{}'", slot.name));
  }
  return {};
}

Status Compiler::EmitSlot(const Slot& slot) {
  OutputArray output{.name = slot.name, .dtype = slot.dtype, .shape = slot.shape};
  const size_t index = program_.outputs.size();
  switch (slot.kind) {
    case Slot::Kind::kBytes:
      if (slot.source >= inputs_) {
        return Bad("bytes within a record, which differ in size: decode them, or select without");
      }
      output.raw_of = static_cast<int64_t>(slot.source);
      program_.copies.push_back({slot.source, index, slot.name});
      break;
    case Slot::Kind::kArray:
      program_.copies.push_back({slot.source, index, slot.name});
      break;
    case Slot::Kind::kParsed:
      program_.parsers[slot.source].outputs[slot.result] = static_cast<int64_t>(index);
      output.late = slot.ragged;
      break;
    case Slot::Kind::kImage: {
      ImageStep& image = program_.images[slot.source];
      FB_RETURN_IF_ERROR(image.plan.Finish());
      image.output = index;
      output.dtype = image.plan.table().dtype();
      output.shape = image.plan.Shape();
      break;
    }
  }
  if (output.raw_of < 0 && !output.late) output.bytes = BytesOf(output.dtype, output.shape);
  program_.outputs.push_back(std::move(output));
  return {};
}

// What no output comes from is not run, and not read.
void Compiler::DropUnused() {
  std::vector<bool> used(program_.fields, false);
  for (const CopyStep& copy : program_.copies) used[copy.source] = true;
  std::vector<bool> live(program_.images.size(), false);
  for (const Slot& slot : slots_) {
    if (slot.kind == Slot::Kind::kImage) live[slot.source] = true;
  }
  std::vector<ImageStep> images;
  for (size_t i = 0; i < live.size(); ++i) {
    if (!live[i]) continue;
    used[program_.images[i].source] = true;
    images.push_back(std::move(program_.images[i]));
  }
  program_.images = std::move(images);
  std::vector<ParseStep> parsers;
  for (ParseStep& step : program_.parsers | std::views::reverse) {
    bool wanted = false;
    for (size_t i = 0; i < step.outputs.size(); ++i) {
      wanted |= step.outputs[i] != kNone ||
                (step.fields[i] != kNone && used[static_cast<size_t>(step.fields[i])]);
    }
    if (!wanted) continue;
    used[step.source] = true;
    parsers.push_back(std::move(step));
  }
  std::ranges::reverse(parsers);
  program_.parsers = std::move(parsers);
  for (size_t i = 0; i < inputs_; ++i) program_.needed[i] = used[i];
}

// All that the kept value depends on, in the order in which it is laid out.
void Compiler::DescribeKept(const std::vector<InputField>& inputs) {
  std::string& text = program_.kept_as;
  text = "forebay kept sample, version 1";
  for (const InputField& input : inputs) {
    text +=
        fmt::format("\nfield {} {} [{}]", input.name, input.dtype, fmt::join(input.shape, ", "));
  }
  for (const CopyStep& step : program_.copies) {
    text += fmt::format("\ncopy {} to {}", step.source, step.output);
  }
  for (const ParseStep& step : program_.parsers) {
    text += fmt::format("\nparse {} to [{}] and fields [{}]: {}", step.source,
                        fmt::join(step.outputs, ", "), fmt::join(step.fields, ", "), step.op);
  }
  for (const ImageStep& step : program_.images) {
    text += fmt::format("\nimage {}: {}", step.source, step.plan.DescribeFixed());
  }
}

}  // namespace

Result<Program> CompileProgram(const std::vector<InputField>& inputs, const std::vector<Op>& ops) {
  return Compiler().Compile(inputs, ops);
}

}  // namespace forebay::ops
