// The boundary between libforebay_archive.so, which links libarchive, and the rest. Both sides are
// built from one tree by one compiler, so the functions speak C++ types; the fingerprint refuses a
// library from another build.
#pragma once

#include <cstdint>

#include "format/plugin.h"
#include "format/tar.h"

namespace forebay::format::archive {

struct ArchiveApi {
  // First, and never moved: read before anything else is trusted.
  uint32_t magic = 0;
  uint32_t size = 0;         // sizeof(ArchiveApi)
  uint64_t fingerprint = 0;  // ArchiveFingerprint() of the library's build

  Status (*scan_tar)(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
                     ScanReport* report) = nullptr;
};

inline constexpr uint32_t kArchiveMagic = 0x46424131;  // "FBA1"
inline constexpr char kArchiveSymbol[] = "forebay_archive_api";

constexpr uint64_t ArchiveFingerprint() {
  return PluginFingerprint({sizeof(ArchiveApi), sizeof(Shard), sizeof(FoundRecord),
                            sizeof(FoundField), sizeof(ScanReport), sizeof(TarOptions),
                            sizeof(Status)});
}

}  // namespace forebay::format::archive
