// NumPy's files: one array (.npy), or a zip of them (.npz).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

// Of the text that describes an array, with what is before it.
inline constexpr uint64_t kMaxNpyHeadBytes = uint64_t{64} << 10;

struct NpyHeader {
  std::string dtype;        // "float32", "S12", "datetime64[ns]"; of several fields "void24"
  std::string descr;        // as it is written, without the quotes of a plain one
  uint64_t item_bytes = 0;  // may be 0: "S0"
  bool big_endian = false;  // numbers have to be swapped
  bool fortran_order = false;
  std::vector<uint64_t> shape;
  uint64_t data_offset = 0;
  uint64_t data_bytes = 0;
};

// `head`: the first bytes of the file, kMaxNpyHeadBytes of them or all there are. kUnimplemented:
// arrays of objects, which are pickled and never opened.
Result<NpyHeader> ParseNpyHeader(ByteView head, const Place& place = {});

struct NpyOptions {
  bool drop_tail = false;  // rows that are cut are left out, not an error
};

// A record is a row (the first dimension counts them; of a single number it is that), its one field
// "array". Nothing but the header is read. kUnimplemented: columns first (Fortran), whose rows do
// not lie in one piece, and rows without bytes.
Status ScanNpy(const Shard& shard, const NpyOptions& options, const OnRecord& on_record,
               ScanReport* report);

// The one record is the file, its fields the arrays by their names (without .npy), each a whole
// .npy file. A stored one's range is the file's bytes, a deflated one's begins with the member's
// header: OpenZipMember (format/zip.h) tells them apart and unpacks.
Status ScanNpz(const Shard& shard, const OnRecord& on_record, ScanReport* report);

}  // namespace forebay::format
