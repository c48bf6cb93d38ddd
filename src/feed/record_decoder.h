// From what was fetched of records to a batch's rows: they are taken apart, and go through the op
// chain.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "catalog/records_catalog.h"
#include "feed/dataset.h"
#include "feed/kept_samples.h"
#include "feed/record_chunks.h"
#include "feed/record_fields.h"
#include "ops/chain.h"

namespace forebay::feed {

// What a plan of records is made of: its SamplePlan::detail.
struct RecordRows {
  struct Row {
    uint64_t sample = 0;
    const catalog::RecordTable* records = nullptr;
    uint32_t index = 0;  // in them
    catalog::RecordView record() const { return (*records)[index]; }
  };
  std::vector<Row> rows;
  std::vector<KeptSamples::Value> kept;  // of each row, not null: nothing is read; empty: of none
  catalog::RecordTable own;              // where there is one row
  std::vector<std::shared_ptr<const RecordChunk>> chunks;
};

// What decoders are of; all of it outlives them.
struct RecordDecoding {
  const catalog::RecordsCatalog& catalog;
  const RecordFields& fields;
  const std::vector<size_t>& columns;  // of the fields: the chain's inputs
  const std::vector<bool>& needed;     // of the fields
  const ops::Chain& chain;
  const std::vector<SampleArray>& arrays;
  bool late = false;  // some array is of as many values as only decoding tells
  KeptSamples& kept;
};

std::unique_ptr<SampleDecoder> MakeRecordDecoder(const RecordDecoding& of);

// Of a field that comes as it is, as the catalog says. Errors: kDataLoss (the record has none).
Result<uint64_t> SizeOf(const RecordFields& fields, const catalog::RecordView& record,
                        size_t field);

}  // namespace forebay::feed
