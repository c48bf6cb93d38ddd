#include "format/tar.h"

#include "format/archive/plugin_api.h"

namespace forebay::format {
namespace {

constexpr Plugin kPlugin = {
    .file = "libforebay_archive.so",
    .variable = "FOREBAY_ARCHIVE_LIBRARY",
    .build_dir = FOREBAY_FORMAT_BUILD_DIR,
    .symbol = archive::kArchiveSymbol,
    .what_needs = "tar files (libforebay_archive.so, which needs libarchive)",
};

bool Fits(const void* api) {
  const auto* archive = static_cast<const archive::ArchiveApi*>(api);
  return archive->magic == archive::kArchiveMagic && archive->size == sizeof(archive::ArchiveApi) &&
         archive->fingerprint == archive::ArchiveFingerprint();
}

// Loads once; a failure is kept too, so that a thousand shards do not search a thousand times.
const Result<const void*>& Api() {
  static const Result<const void*> api = LoadPlugin(kPlugin, &Fits);
  return api;
}

}  // namespace

Status ScanTar(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
               ScanReport* report) {
  const auto& api = Api();
  if (!api.ok()) return api.status();
  return static_cast<const archive::ArchiveApi*>(*api)->scan_tar(shard, options, on_record, report);
}

}  // namespace forebay::format
