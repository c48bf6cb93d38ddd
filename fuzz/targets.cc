#include "fuzz/targets.h"

#include <algorithm>

namespace forebay::fuzz {
namespace {

constexpr Target kTargets[] = {
    {"catalog", &Catalog},
    {"files_catalog", &FilesCatalog},
    {"records_catalog", &RecordsCatalog},
    {"records_part", &RecordsPart},
    {"video_index", &VideoIndex},
    {"s3_xml", &S3Xml},
    {"http_head", &HttpHead},
    {"http_answer", &HttpAnswer},
    {"uri", &Uri},
    {"endpoint", &Endpoint},
    {"profile", &Profile},
    {"keys_answer", &KeysAnswer},
    {"size", &Size},
    {"path_pattern", &PathPattern},
    {"scan", &Scan},
    {"tar", &Tar},
    {"tfrecord", &TfRecord},
    {"recordio", &RecordIo},
    {"recordio_index", &RecordIoIndex},
    {"sagemaker_record", &SageMakerRecord},
    {"lines", &Lines},
    {"tokens", &Tokens},
    {"parquet", &Parquet},
    {"parquet_pages", &ParquetPages},
    {"arrow", &Arrow},
    {"arrow_batch", &ArrowBatch},
    {"mds", &Mds},
    {"mds_index", &MdsIndex},
    {"mds_value", &MdsValue},
    {"npy_rows", &NpyRows},
    {"npz", &Npz},
    {"unpack", &Unpack},
    {"compressed", &Compressed},
    {"litdata", &LitData},
    {"litdata_index", &LitDataIndex},
    {"beton", &Beton},
    {"sniff", &Sniff},
    {"image", &Image},
    {"exif", &Exif},
    {"npy", &Npy},
    {"json_fields", &JsonFields},
    {"example", &Example},
    {"record_tensors", &SageMakerTensors},
    {"int_text", &IntText},
};

}  // namespace

std::span<const Target> Targets() { return kTargets; }

const Target* FindTarget(std::string_view name) {
  const auto* found = std::ranges::find(kTargets, name, &Target::name);
  return found == std::end(kTargets) ? nullptr : found;
}

}  // namespace forebay::fuzz
