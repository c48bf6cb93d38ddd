// A chain of ops, compiled: from the fields of a record to the arrays of a sample, each written
// once into its final place.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "forebay/ops.h"
#include "forebay/status.h"

namespace forebay::ops {

// What goes in: fields are bytes, or arrays of fixed shape (a label that a container holds).
struct InputField {
  std::string name;
  std::string dtype = "";      // "": bytes; otherwise as in ArraySpec
  std::vector<int64_t> shape;  // of an array
  // Of bytes that are numbers, as many as there are: their type, as NumPy says.
  std::string elements = "";
};

// What comes out. A field that no op took comes out as it is.
struct OutputArray {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
  uint64_t bytes = 0;   // of a sample; of a raw field and of a late array 0
  int64_t raw_of = -1;  // >= 0: the bytes of this input field, as they are
  bool late = false;    // of as many values as a sample has: only the run tells
};

// Whose random numbers: see RandomPlace.
struct SampleIdentity {
  uint64_t seed = 0;
  uint64_t epoch = 0;
  uint64_t sample = 0;  // of its source
  uint32_t occurrence = 0;
};

// Scratch of one thread.
class Worker {
 public:
  virtual ~Worker() = default;
  // `fields`: one per input field, contiguous; `out`: one per output array, of its size (of a raw
  // one: of the field's, which may lie there already; of a late one 0, see Late). A pure function
  // of its arguments. Errors: kDataLoss (damaged bytes, with the field's name), kInvalidArgument
  // (an image that the chain's shapes do not fit).
  virtual Status Run(const SampleIdentity& sample, std::span<const ByteView> fields,
                     std::span<const MutableBytes> out) = 0;
  // Run in two steps, of which the first is the same for every epoch: images are decoded and gone
  // through as far as nothing is random. `kept` is replaced by what may be kept of the sample, as
  // long as its fields and Chain::kept_as() are the same, and given to RunKept, of any worker, in
  // place of the fields.
  virtual Status Keep(std::span<const ByteView> fields, std::vector<std::byte>* kept) = 0;
  virtual Status RunKept(const SampleIdentity& sample, ByteView kept,
                         std::span<const MutableBytes> out) = 0;
  // A late output of the last run that went well, until the next one; after RunKept also no longer
  // than `kept`.
  virtual ByteView Late(size_t output) const = 0;
  // How many images so far had damage that was decoded past, as PIL does without a word.
  virtual uint64_t damaged_images() const = 0;
};

// Immutable, shared by threads.
class Chain {
 public:
  // Errors: kInvalidArgument: a field that is not there, an op that nothing came before which it
  // could work on, arrays whose shape is not known when the chain ends.
  static Result<std::shared_ptr<const Chain>> Compile(const std::vector<InputField>& inputs,
                                                      const std::vector<Op>& ops);
  virtual ~Chain() = default;

  virtual const std::vector<OutputArray>& outputs() const = 0;
  // Which of the inputs it reads at all: others need not be fetched.
  virtual const std::vector<bool>& needed() const = 0;
  virtual bool decodes_images() const = 0;
  // What Worker::Keep does, in words: a signature of the value it makes.
  virtual const std::string& kept_as() const = 0;
  // Late arrays take, all together, no more than so many bytes for each of the inputs'.
  virtual uint64_t late_each() const = 0;
  virtual std::unique_ptr<Worker> MakeWorker() const = 0;
};

}  // namespace forebay::ops
