// Token files by the sample: the catalog of their documents seen as one of windows, or of rows that
// documents are packed into. Records of it are planned, read and taken apart like any.
#pragma once

#include <memory>
#include <vector>

#include "catalog/records_catalog.h"
#include "forebay/ops.h"
#include "forebay/status.h"

namespace forebay::feed {

// What a catalog of token files calls its format, and what one of packed rows does.
inline constexpr char kTokensFormat[] = "tokens";
inline constexpr char kPackedTokensFormat[] = "packed-tokens";

// By the first of `ops`; every other catalog, and one whose documents are the samples, comes back
// as it is. A record of packed rows has a field for each piece of a document, in the row's order;
// its range spans all that are packed with it.
//
// Goes through the shards, and to pack through the length of every document. Errors:
// kInvalidArgument (such an op on another format; files too short for any sample), and those of
// reading the catalog.
Result<std::shared_ptr<const catalog::RecordsCatalog>> BySamples(
    std::shared_ptr<const catalog::RecordsCatalog> catalog, const std::vector<Op>& ops);

// Of a catalog of packed rows: no record has more fields.
uint64_t PiecesMost(const catalog::RecordsCatalog& packed);

// The op among `ops` that says what a sample of token files is; null: none.
const Op* TokenOpOf(const std::vector<Op>& ops);

}  // namespace forebay::feed
