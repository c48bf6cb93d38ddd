// BuildIndex of records.
#pragma once

#include <string>

#include "engine/index_job.h"

namespace forebay::engine {

Result<IndexReport> BuildRecordsIndex(const IndexJob& job, const IndexOptions& options,
                                      const std::string& format);
// The format of the records' catalog that is there to be appended to; "": it is of plain objects.
Result<std::string> FormatOfCatalog(const IndexJob& job);
// What half of a few objects or more are, by their content; "": no shards of records, as where one
// is named like a video. Errors: kInvalidArgument when they are of different formats.
Result<std::string> FormatOfObjects(const IndexJob& job);

}  // namespace forebay::engine
