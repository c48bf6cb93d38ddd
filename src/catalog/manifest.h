// SageMaker's lists of objects: what a channel's S3Uri names when its S3DataType is ManifestFile or
// AugmentedManifestFile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"

namespace forebay::catalog {

// What a data set's URI names.
enum class DataType : uint8_t {
  kFolder,             // all below URI/
  kPrefix,             // S3Prefix: all whose keys begin so, "train" also "training/1"
  kManifest,           // ManifestFile: a JSON list, the prefix first
  kAugmentedManifest,  // AugmentedManifestFile: JSON lines, an object's URI in each "source-ref"
};

// "" or SageMaker's name. Errors: kInvalidArgument.
Result<DataType> ParseDataType(std::string_view name);

// URIs of the objects, in the list's order, repeated ones too. Errors: kInvalidArgument, with the
// entry or line.
Result<std::vector<std::string>> ReadManifest(DataType type, std::string_view text);

}  // namespace forebay::catalog
