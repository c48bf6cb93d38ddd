// Writes the frames of RecordIO and TFRecord, and what MXNet and TensorFlow put into them.
#pragma once

#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "format/output_record.h"
#include "format/recordio.h"

namespace forebay::format {

// One record behind the others. kInvalidArgument: more than the format can hold.
Status AppendTfRecord(ByteView data, std::vector<std::byte>* out);
// kMxnet: cut where the magic number stands in it, as dmlc's writer does, so that readers may look
// for it. kSageMaker: in one piece, as SageMaker's own writer does.
Status AppendRecordIo(ByteView payload, RecordIoOptions::Multipart multipart,
                      std::vector<std::byte>* out);

// The payload of MXNet's image records: one label stands in the header, several behind it.
std::vector<std::byte> ImagePayload(uint64_t id, const std::vector<float>& labels, ByteView image);

// A tf.train.Example: integers as int64_list, float32 and float16 as float_list, all else (float64
// too, which has no list of its own) as the one value of a bytes_list. Features are in the order of
// their names, so that the bytes are a function of the record. kInvalidArgument: a name twice.
Status AppendExample(std::vector<OutputField> fields, std::vector<std::byte>* out);

}  // namespace forebay::format
