#pragma once

#include "format/tar.h"

namespace forebay::format::archive {

// format::ScanTar, where libarchive is linked.
Status ScanTar(const Shard& shard, const TarOptions& options, const OnRecord& on_record,
               ScanReport* report);

}  // namespace forebay::format::archive
