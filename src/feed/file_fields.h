// Plain objects as records, for ops: each is one of its own "shard", with a field "bytes", and a
// field "label": the number of its class, as torchvision's ImageFolder counts them.
#pragma once

#include <memory>

#include "catalog/files_catalog.h"
#include "catalog/records_catalog.h"
#include "feed/record_fields.h"

namespace forebay::feed {

// Shard i of it is object i.
std::shared_ptr<const catalog::RecordsCatalog> RecordsOfFiles(
    std::shared_ptr<const catalog::FilesCatalog> files);

// Of a catalog that RecordsOfFiles made; null: it is another one. Classes are the folders right
// below the root, in the order of their names' bytes; the catalog's keys are gone through once to
// find them, when the first label is asked for.
std::shared_ptr<const RecordFields> FieldsOfFiles(const catalog::RecordsCatalog& catalog);

}  // namespace forebay::feed
