// The one symbol that libforebay_archive.so exports.
#include "format/archive/plugin_api.h"
#include "format/archive/tar_scan.h"

namespace forebay::format::archive {
namespace {

const ArchiveApi* Api() {
  static const ArchiveApi api = {.magic = kArchiveMagic,
                                 .size = sizeof(ArchiveApi),
                                 .fingerprint = ArchiveFingerprint(),
                                 .scan_tar = &ScanTar};
  return &api;
}

}  // namespace
}  // namespace forebay::format::archive

extern "C" FOREBAY_API const void* forebay_archive_api() { return forebay::format::archive::Api(); }
