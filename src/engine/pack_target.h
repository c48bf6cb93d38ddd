// What is made of samples: shards of one format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/pack_source.h"
#include "format/output_record.h"

namespace forebay::engine {

// A shard that is being made, in memory. One thread.
class PackShard {
 public:
  virtual ~PackShard() = default;
  // `fields`: the sample's, with their bytes.
  virtual Status Add(const PackSample& sample, std::vector<format::OutputField> fields) = 0;
  virtual Result<std::vector<std::byte>> Finish() = 0;
  // That the samples have become; none: one of each.
  virtual std::optional<uint64_t> records() const { return std::nullopt; }
  // Of what lies beside it; "": nothing does. After Finish.
  virtual std::string Sidecar() const { return ""; }
};

// A shard that is there.
struct PackedShard {
  std::string name;
  uint64_t bytes = 0;
  uint64_t samples = 0;
};

class PackTarget {
 public:
  // Errors: kInvalidArgument (no such format).
  static Result<std::unique_ptr<PackTarget>> Make(const PackOptions& options,
                                                  const std::string& source_format);
  virtual ~PackTarget() = default;

  // In order, each sample once, before the first Begin. How many bytes it will take, about. Errors:
  // kInvalidArgument (the format cannot hold it).
  virtual Result<uint64_t> Plan(const PackSample& sample) = 0;
  virtual Result<std::unique_ptr<PackShard>> Begin(uint64_t bytes) const = 0;

  // Whether a record of its catalog is a table of many samples.
  virtual bool is_table() const { return false; }
  virtual std::string ShardName(uint64_t number, uint64_t count) const;
  // The text of the one file "index.json" of all shards; "": there is none.
  virtual std::string IndexOf(const std::vector<PackedShard>& shards) const;
  // By which what was written is indexed, as in IndexOptions.
  const std::string& format() const { return format_; }
  const std::string& sidecar_ending() const { return sidecar_ending_; }

 protected:
  PackTarget(std::string format, std::string ending, std::string sidecar_ending = "")
      : format_(std::move(format)),
        ending_(std::move(ending)),
        sidecar_ending_(std::move(sidecar_ending)) {}

 private:
  const std::string format_;
  const std::string ending_;
  const std::string sidecar_ending_;
};

const std::vector<std::string>& PackFormatNames();

// Each format's own, for Make.
std::unique_ptr<PackTarget> MakeTarTarget();
std::unique_ptr<PackTarget> MakeMdsTarget();
// Errors: kUnimplemented (no Arrow on this machine).
Result<std::unique_ptr<PackTarget>> MakeParquetTarget();
// `raw`: a sample's one field is a record already.
std::unique_ptr<PackTarget> MakeTfRecordTarget(bool raw);
std::unique_ptr<PackTarget> MakeRecordIoTarget();
std::unique_ptr<PackTarget> MakeImageTarget(bool no_labels);
// `arrays`: a sample is the arrays of an .npz, whose rows are records.
std::unique_ptr<PackTarget> MakeProtobufTarget(bool raw, bool arrays, const PackOptions& options);

}  // namespace forebay::engine
