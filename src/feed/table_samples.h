// Rows of tables in groups of rows with columns (Parquet's row groups, Arrow's record batches) as
// samples. Only the columns that are wanted are read, each once for all rows that are drawn from it
// while it is kept decoded.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "catalog/records_catalog.h"
#include "feed/dataset.h"
#include "feed/record_samples.h"
#include "feed/table_cut.h"
#include "feed/table_pieces.h"
#include "format/table.h"
#include "ops/chain.h"

namespace forebay::feed {

// Whether the records of this catalog are groups of rows.
bool IsOfTables(const catalog::RecordsCatalog& catalog);
// The rows in the first `groups` records of such a catalog. Errors: those of reading it.
Result<uint64_t> RowsOf(const catalog::RecordsCatalog& catalog, uint64_t groups);

class TableSamples : public Dataset {
 public:
  // Reads what the catalog says of every group of rows. Errors: kInvalidArgument naming what is
  // wrong with columns or ops; kUnimplemented when what decodes them is not there.
  static Result<std::unique_ptr<TableSamples>> Make(
      std::shared_ptr<const catalog::RecordsCatalog> catalog, const RecordSamplesOptions& options);
  ~TableSamples() override;

  uint64_t sample_count() const override { return rows_; }
  const std::vector<SampleArray>& arrays() const override { return arrays_; }
  Result<SamplePlan> PlanSample(uint64_t sample, uint64_t gap_bytes) const override;
  bool plans_together() const override { return true; }
  std::vector<std::vector<uint32_t>> Together(std::span<const uint64_t> samples) const override;
  Result<SamplePlan> PlanTogether(std::span<const uint64_t> samples, uint64_t gap_bytes,
                                  size_t* bad_row) const override;
  uint64_t ItemsMax(uint64_t samples) const override {
    return std::min<uint64_t>(samples, table_.size());
  }
  std::vector<Planned> PlanBatch(std::span<const uint64_t> samples,
                                 uint64_t gap_bytes) const override;
  bool shares_extents() const override { return true; }
  bool Shorten(SamplePlan* plan) const override;
  bool sizes_late() const override { return late_; }
  uint64_t LateBytes(uint64_t rows) const override;
  Result<std::unique_ptr<SampleDecoder>> MakeDecoder() const override;
  std::string DescribeSample(uint64_t sample) const override;
  order::BlockTable BlocksOf(uint64_t samples) const override;
  uint64_t raw_bytes_max() const override;
  uint64_t OutputBytesMax(uint64_t rows) const override;

  // About, decoded: any so many pieces, at most; all of them.
  uint64_t DecodedBytes(uint64_t pieces) const;
  uint64_t decoded_bytes() const { return decoded_bytes_; }
  // Whether that is only known of what is stored, so that it may be many times as much.
  bool decoded_is_guessed() const { return guessed_; }
  // What is kept of them now.
  uint64_t kept_bytes() const { return pieces_->used_bytes(); }
  // Decoded pieces are kept within this.
  void KeepDecoded(uint64_t bytes) { pieces_->set_limit(bytes); }
  // An item may read so much, or one piece. Before anything is planned.
  void set_item_bytes(uint64_t bytes) { item_bytes_ = bytes; }
  // Rows come in the catalog's order: columns are kept as they are. Before there is a decoder.
  void ExpectInOrder() { in_order_ = true; }
  // How many samples there were when the catalog had so many groups.
  uint64_t RowsOfGroups(uint64_t groups) const;

 private:
  class Decoder;
  struct Rows;
  struct Part;
  class Opened;
  // A group that has rows.
  struct Group {
    uint64_t record = 0;  // of the catalog
    uint32_t shard = 0;
    uint64_t number = 0;                     // in its shard, of those with rows
    std::vector<format::TableChunk> chunks;  // of leaves_
  };
  // An input of the chain.
  struct Input {
    size_t leaf = 0;     // of leaves_
    bool valid = false;  // not its values: whether there are any
  };
  // A column that is decoded.
  struct Leaf {
    size_t field = 0;  // of the catalog's
    std::string name;
    std::string dtype;  // "": bytes
    std::vector<int64_t> shape;
    bool nulls = false;  // are asked for, and so no error
  };

  explicit TableSamples(std::shared_ptr<const catalog::RecordsCatalog> catalog);
  Status Choose(const std::vector<std::string>& columns, std::vector<ops::InputField>* inputs);
  Status AddColumn(const std::string& name, std::vector<ops::InputField>* inputs);
  size_t LeafOf(size_t field);
  Status SetArrays(bool plain);
  Status ReadGroups();
  Status ReadGroup(uint64_t record);
  Status CheckSame(const catalog::RecordEntry& record, const Leaf& leaf,
                   const format::TableLayout& layout) const;
  void MakeSteps();
  size_t PieceOf(uint64_t sample) const;
  Rows Locate(std::span<const uint64_t> samples) const;
  void LocateStretch(Rows& rows) const;
  Part PartOf(size_t piece) const;
  uint64_t RawBytesOf(const Part& part) const;
  std::vector<std::vector<uint32_t>> SortOut(const Rows& rows) const;
  SamplePlan PlanOf(Rows rows) const;
  void SetReads(Rows& rows, SamplePlan& plan) const;
  Result<ByteView> Gather(const TablePiece& piece, size_t leaf, const UnitBytes& bytes,
                          RawBytes& scratch) const;
  Status DecodeLeaf(const TablePiece& piece, size_t leaf, ByteView bytes, DecodedColumn* out) const;
  Status DecodeTogether(const TablePiece& piece, ByteView bytes,
                        std::span<DecodedColumn> out) const;
  Status Explain(const TablePiece& piece, const std::string& what, Status status) const;
  Status OfRow(size_t piece, Status status) const;
  Status OfShard(const catalog::FileEntry& shard, Status status) const;

  std::shared_ptr<const catalog::RecordsCatalog> catalog_;
  const format::TableFormat format_;
  std::vector<Leaf> leaves_;
  std::vector<uint32_t> widths_;  // of leaves_: bytes of a value, 0 where they differ in size
  std::vector<Input> inputs_;
  std::shared_ptr<const ops::Chain> chain_;
  bool neighbours_ = false;
  bool in_order_ = false;
  bool plain_ = false;  // no ops: an output is an input as it is
  bool late_ = false;   // some output differs in size from row to row
  std::vector<SampleArray> arrays_;
  uint64_t ragged_bytes_ = 0;  // of a row, about
  std::vector<Group> groups_;
  std::vector<TablePiece> table_;
  std::vector<uint64_t> firsts_;  // of each piece its first sample, and the end
  // Of every 2^step_ samples the piece that the first one lies in.
  uint64_t step_ = 0;
  std::vector<uint32_t> steps_;
  std::vector<uint64_t> group_ends_;  // of each record of the catalog, samples
  uint64_t rows_ = 0;
  uint64_t decoded_bytes_ = 0;
  bool guessed_ = false;
  uint64_t raw_bytes_max_ = 0;
  uint64_t item_bytes_ = 0;
  std::unique_ptr<TablePieces> pieces_;
};

}  // namespace forebay::feed
