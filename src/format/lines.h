// Text files whose lines are records: JSON lines, CSV.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

struct LinesOptions {
  static constexpr uint64_t kMaxLineBytes = uint64_t{512} << 20;

  bool drop_tail = false;  // a cut last line is left out, not an error
  uint64_t max_line_bytes = kMaxLineBytes;
};

// A record is a line without its end (LF or CR LF); its one field is "json". Lines of white space
// alone are none. The last line may lack its end when its brackets and quotes are closed. A mark of
// UTF-8 at the start is passed over and told; UTF-16 is refused.
Status ScanJsonLines(const Shard& shard, const LinesOptions& options, const OnRecord& on_record,
                     ScanReport* report);

struct CsvOptions : LinesOptions {
  bool header = true;  // the first line names the columns and is no record
  char quote = '"';    // between two of them a line may end without ending the record
};

// A record is a line, its one field "csv". kDataLoss when a quote is never closed.
Status ScanCsv(const Shard& shard, const CsvOptions& options, const OnRecord& on_record,
               ScanReport* report);

// The cells of one line. Quotes around a cell are taken off; `cells` are views of `line` or of
// `scratch`, which is replaced. kDataLoss: text behind a closing quote, or none.
Status SplitCsvLine(ByteView line, char delimiter, char quote, std::vector<std::string_view>* cells,
                    std::string* scratch, const Place& place = {});

}  // namespace forebay::format
