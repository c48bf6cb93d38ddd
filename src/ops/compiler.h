// From a list of ops to the program that a worker runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "forebay/ops.h"
#include "forebay/status.h"
#include "ops/chain.h"
#include "ops/image_plan.h"
#include "ops/parser.h"

namespace forebay::ops {

// Bytes fields are numbered: first the inputs, then what parsers make.
struct ParseStep {
  std::unique_ptr<const Parser> parser;
  std::string field;  // its name, for errors
  std::string op;     // in words
  size_t source = 0;  // the bytes field it reads
  // One of each of its results: the output it is, or -1; the bytes field it becomes, or -1.
  std::vector<int64_t> outputs;
  std::vector<int64_t> fields;
};

struct ImageStep {
  ImagePlan plan;
  std::string field;
  size_t source = 0;
  size_t output = 0;
};

struct CopyStep {  // of an input that is an array, or of bytes as they are
  size_t source = 0;
  size_t output = 0;
  std::string field;
};

struct Program {
  std::vector<ParseStep> parsers;  // in the chain's order
  std::vector<ImageStep> images;
  std::vector<CopyStep> copies;
  size_t fields = 0;  // bytes fields in all
  std::vector<OutputArray> outputs;
  std::vector<bool> needed;
  std::string kept_as;
};

Result<Program> CompileProgram(const std::vector<InputField>& inputs, const std::vector<Op>& ops);

}  // namespace forebay::ops
