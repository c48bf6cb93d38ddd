// BuildIndex of records.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catalog/records_builder.h"
#include "engine/index_job.h"
#include "engine/record_formats.h"

namespace forebay::engine {

Result<IndexReport> BuildRecordsIndex(const IndexJob& job, const IndexOptions& options,
                                      const std::string& format);
RecordFormatOptions FormatOptionsOf(const IndexOptions& options);
// What both that and one machine's share of it are made by and say.
catalog::RecordsOptions RecordsBuild(const IndexJob& job, const IndexOptions& options,
                                     const std::string& format);
IndexReport Summarize(catalog::RecordsReport built, const IndexJob& job, const std::string& format);
// A catalog before it is stored. Errors: kInvalidArgument (its shards do not go together).
Result<std::shared_ptr<const catalog::RecordsCatalog>> OpenBuilt(std::vector<std::byte> bytes);
Status Describe(const catalog::RecordsCatalog& catalog, IndexReport* report);
// The format of the records' catalog that is there to be appended to; "": it is of plain objects.
Result<std::string> FormatOfCatalog(const IndexJob& job);
// What half of a few objects or more are, by their content; "": no shards of records, as where one
// is named like a video. Errors: kInvalidArgument when they are of different formats.
Result<std::string> FormatOfObjects(const IndexJob& job);

}  // namespace forebay::engine
