// Tar files as WebDataset reads them. What reads them links libarchive and lies in a library of its
// own (libforebay_archive.so), opened on first use, so that nothing else pays its start-up.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "format/record.h"

namespace forebay::format {

struct TarOptions {
  static constexpr uint64_t kMaxMembers = 10'000'000;
  static constexpr uint64_t kMaxNameBytes = 4096;
  static constexpr uint64_t kMaxSampleMembers = 1000;
  static constexpr uint64_t kMaxSampleBytes = uint64_t{1} << 30;

  bool concatenated = false;  // what follows the end of an archive is read as another one
  bool drop_tail = false;     // a cut last sample is left out, not an error
  uint64_t max_members = kMaxMembers;
  uint64_t max_name_bytes = kMaxNameBytes;
  uint64_t max_sample_members = kMaxSampleMembers;
  uint64_t max_sample_bytes = kMaxSampleBytes;
};

// A record is a sample: neighbouring regular members of equal key, a field for each, named by its
// extension in small (ASCII) letters. A field's range is the member's data, nothing else. Errors:
// kDataLoss for damage, two fields of one name in a sample, limits; kUnimplemented for what is
// compressed, sparse, or renamed as a whole, and where the library is missing.
Status ScanTar(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
               ScanReport* report);

struct SampleName {
  std::string_view key;        // directory and file name up to its first dot; a label, never a path
  std::string_view extension;  // the rest, as it is written
};
// WebDataset's rule, ^((?:.*/|)[^.]+)[.]([^/]*)$ exactly; none: no sample's member.
std::optional<SampleName> SplitSampleName(std::string_view name);
// Whether WebDataset takes it for its own notes: "__x__", "__x__/y".
bool IsMetadataName(std::string_view name);

}  // namespace forebay::format
