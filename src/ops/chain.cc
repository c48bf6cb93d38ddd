#include "ops/chain.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/stream_copy.h"
#include "ops/compiler.h"

namespace forebay::ops {
namespace {

Status InField(Status status, const std::string& field) {
  if (status.ok()) return status;
  return std::move(status).WithContext(fmt::format("field '{}'", field));
}

// What a parser makes of a row: one of each for each of its results.
struct Made {
  std::vector<MutableBytes> arrays;  // where they go, unless in_order
  std::vector<ByteView> fields;
  std::vector<std::vector<std::byte>> ragged;  // values of those that are of as many as there are
  bool in_order = true;                        // they are the outputs, one after the other
  bool arrays_only = true;                     // it makes no field, and nothing late

  void SetFor(const Program& program, const ParseStep& step) {
    const size_t results = step.outputs.size();
    arrays.resize(results);
    fields.resize(results);
    ragged.resize(results);
    in_order = results == program.outputs.size();
    for (size_t i = 0; i < results; ++i) {
      const int64_t output = step.outputs[i];
      in_order = in_order && output == static_cast<int64_t>(i);
      const bool late = output >= 0 && program.outputs[static_cast<size_t>(output)].late;
      arrays_only = arrays_only && !late && step.fields[i] < 0;
    }
  }
};

class ProgramWorker : public Worker {
 public:
  explicit ProgramWorker(std::shared_ptr<const Program> program)
      : program_(std::move(program)),
        fields_(program_->fields),
        late_(program_->outputs.size()),
        made_(program_->parsers.size()) {
    for (size_t i = 0; i < made_.size(); ++i) made_[i].SetFor(*program_, program_->parsers[i]);
  }

  Status Run(const SampleIdentity& sample, std::span<const ByteView> fields,
             std::span<const MutableBytes> out) override {
    FB_RETURN_IF_ERROR(RunPlain(fields, out));
    for (const ImageStep& step : program_->images) {
      FB_RETURN_IF_ERROR(InField(
          images_.Run(step.plan, sample, fields_[step.source], out[step.output]), step.field));
      damaged_ += images_.damaged() ? 1 : 0;
    }
    return {};
  }

  ByteView Late(size_t output) const override { return late_[output]; }

  // Of each output that is neither image nor late its size and its bytes, then of the late ones,
  // then the images.
  Status Keep(std::span<const ByteView> fields, std::vector<std::byte>* kept) override {
    kept->clear();
    std::vector<size_t> at;
    for (size_t i = 0; i < program_->outputs.size(); ++i) {
      const uint64_t bytes = KeptBytes(i, fields);
      const auto head = std::as_bytes(std::span(&bytes, 1));
      kept->insert(kept->end(), head.begin(), head.end());
      at.push_back(kept->size());
      kept->resize(kept->size() + bytes);
    }
    std::vector<MutableBytes> out;
    for (const size_t begin : at) {
      uint64_t bytes = 0;
      std::memcpy(&bytes, kept->data() + begin - sizeof(bytes), sizeof(bytes));
      out.push_back(MutableBytes(*kept).subspan(begin, bytes));
    }
    FB_RETURN_IF_ERROR(RunPlain(fields, out));
    for (size_t i = 0; i < late_.size(); ++i) {
      if (!program_->outputs[i].late) continue;
      const uint64_t bytes = late_[i].size();
      const auto head = std::as_bytes(std::span(&bytes, 1));
      kept->insert(kept->end(), head.begin(), head.end());
      kept->insert(kept->end(), late_[i].begin(), late_[i].end());
    }
    for (const ImageStep& step : program_->images) {
      FB_RETURN_IF_ERROR(InField(images_.Keep(step.plan, fields_[step.source], kept), step.field));
      damaged_ += images_.damaged() ? 1 : 0;
    }
    return {};
  }

  Status RunKept(const SampleIdentity& sample, ByteView kept,
                 std::span<const MutableBytes> out) override {
    FB_ASSERT(out.size() == program_->outputs.size());
    ByteView bytes;
    for (size_t i = 0; i < out.size(); ++i) {
      const bool nothing = IsImage(i) || program_->outputs[i].late;
      if (!TakeKept(&kept, &bytes) || bytes.size() != (nothing ? 0 : out[i].size())) {
        return NotKept();
      }
      StreamCopy(bytes, out[i].data());
    }
    for (size_t i = 0; i < out.size(); ++i) {
      if (program_->outputs[i].late && !TakeKept(&kept, &late_[i])) return NotKept();
    }
    for (const ImageStep& step : program_->images) {
      FB_RETURN_IF_ERROR(
          InField(images_.RunKept(step.plan, sample, &kept, out[step.output]), step.field));
    }
    return kept.empty() ? Status() : NotKept();
  }

  uint64_t damaged_images() const override { return damaged_; }

 private:
  static Status NotKept() {
    return Status(Code::kDataLoss, "what was kept of the sample is not that");
  }

  // A size, and as many bytes.
  static bool TakeKept(ByteView* kept, ByteView* bytes) {
    uint64_t size = 0;
    if (kept->size() < sizeof(size)) return false;
    std::memcpy(&size, kept->data(), sizeof(size));
    if (size > kept->size() - sizeof(size)) return false;
    *bytes = kept->subspan(sizeof(size), size);
    *kept = kept->subspan(sizeof(size) + size);
    return true;
  }

  bool IsImage(size_t output) const {
    return std::ranges::find(program_->images, output, &ImageStep::output) !=
           program_->images.end();
  }
  uint64_t KeptBytes(size_t output, std::span<const ByteView> fields) const {
    const OutputArray& array = program_->outputs[output];
    if (array.raw_of >= 0) return fields[static_cast<size_t>(array.raw_of)].size();
    return IsImage(output) ? 0 : array.bytes;
  }

  // All but the images.
  Status RunPlain(std::span<const ByteView> fields, std::span<const MutableBytes> out) {
    FB_ASSERT(fields.size() == program_->needed.size() && out.size() == program_->outputs.size());
    std::ranges::copy(fields, fields_.begin());
    for (const CopyStep& step : program_->copies) FB_RETURN_IF_ERROR(Copy(step, out));
    for (size_t i = 0; i < program_->parsers.size(); ++i) {
      const ParseStep& step = program_->parsers[i];
      FB_RETURN_IF_ERROR(InField(Parse(i, out), step.field));
    }
    return {};
  }

  Status Copy(const CopyStep& step, std::span<const MutableBytes> out) const {
    const ByteView from = fields_[step.source];
    const MutableBytes to = out[step.output];
    if (from.size() != to.size()) {
      return InField(Status(Code::kDataLoss, fmt::format("it is of {} bytes, and should be of {}",
                                                         from.size(), to.size())),
                     step.field);
    }
    if (!from.empty() && from.data() != to.data()) std::memcpy(to.data(), from.data(), from.size());
    return {};
  }

  Status Parse(size_t number, std::span<const MutableBytes> out) {
    const ParseStep& step = program_->parsers[number];
    Made& made = made_[number];
    std::span<const MutableBytes> arrays = out;
    if (!made.in_order) {
      for (size_t i = 0; i < step.outputs.size(); ++i) {
        const int64_t output = step.outputs[i];
        made.arrays[i] = output < 0 ? MutableBytes() : out[static_cast<size_t>(output)];
      }
      arrays = made.arrays;
    }
    if (!made.arrays_only) std::ranges::fill(made.fields, ByteView());
    FB_RETURN_IF_ERROR(
        step.parser->Parse(fields_[step.source], {arrays, made.fields, made.ragged}));
    if (made.arrays_only) return {};
    for (size_t i = 0; i < made.fields.size(); ++i) {
      if (step.fields[i] >= 0) fields_[static_cast<size_t>(step.fields[i])] = made.fields[i];
      if (step.outputs[i] < 0) continue;
      const auto output = static_cast<size_t>(step.outputs[i]);
      if (program_->outputs[output].late) late_[output] = made.ragged[i];
    }
    return {};
  }

  const std::shared_ptr<const Program> program_;
  std::vector<ByteView> fields_;
  std::vector<ByteView> late_;  // of each output
  std::vector<Made> made_;      // of each parser
  ImageRunner images_;
  uint64_t damaged_ = 0;
};

class ProgramChain : public Chain {
 public:
  explicit ProgramChain(Program program)
      : program_(std::make_shared<const Program>(std::move(program))) {}
  const std::vector<OutputArray>& outputs() const override { return program_->outputs; }
  const std::vector<bool>& needed() const override { return program_->needed; }
  bool decodes_images() const override { return !program_->images.empty(); }
  const std::string& kept_as() const override { return program_->kept_as; }
  uint64_t late_each() const override {
    uint64_t most = 0;
    for (const ParseStep& step : program_->parsers) {
      most = std::max(most, step.parser->ragged_each());
    }
    return most;
  }
  std::unique_ptr<Worker> MakeWorker() const override {
    return std::make_unique<ProgramWorker>(program_);
  }

 private:
  const std::shared_ptr<const Program> program_;
};

}  // namespace

Result<std::shared_ptr<const Chain>> Chain::Compile(const std::vector<InputField>& inputs,
                                                    const std::vector<Op>& ops) {
  FB_ASSIGN_OR_RETURN(Program program, CompileProgram(inputs, ops));
  return std::shared_ptr<const Chain>(std::make_shared<ProgramChain>(std::move(program)));
}

}  // namespace forebay::ops
