// The one symbol that libforebay_parquet.so exports.
#include "format/parquet/decode.h"
#include "format/parquet/plugin_api.h"
#include "format/parquet/scan.h"
#include "format/parquet/unpack.h"
#include "format/parquet/writer.h"

namespace forebay::format::parquet {
namespace {

const ParquetApi* Api() {
  static const ParquetApi api = {.magic = kParquetMagic,
                                 .size = sizeof(ParquetApi),
                                 .fingerprint = ParquetFingerprint(),
                                 .scan = &Scan,
                                 .decode = &Decode,
                                 .unpack_lz4_frame = &UnpackLz4Frame,
                                 .make_writer = &MakeWriter};
  return &api;
}

}  // namespace
}  // namespace forebay::format::parquet

extern "C" FOREBAY_API const void* forebay_parquet_api() { return forebay::format::parquet::Api(); }
