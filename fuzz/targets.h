// Every parser of bytes that come from outside, as a function of bytes. libFuzzer calls one of them
// (libfuzzer.cc), an ordinary test replays the corpus of all (replay.cc). A target aborts when what
// it calls breaks its contract; that a parser refuses its input is no failure.
#pragma once

#include <span>
#include <string_view>

#include "base/bytes.h"

namespace forebay::fuzz {

struct Target {
  std::string_view name;  // its corpus is fuzz/corpus/NAME/
  void (*run)(ByteView input);
};

std::span<const Target> Targets();
const Target* FindTarget(std::string_view name);  // null: there is none

void Catalog(ByteView input);       // a catalog file, and the same as the body of one that verifies
void FilesCatalog(ByteView input);  // a catalog of plain objects, also with hashes made to fit
void RecordsCatalog(ByteView input);  // a catalog of records, likewise
void RecordsPart(ByteView input);     // a part of one, likewise
void VideoIndex(ByteView input);      // one packed video index
void S3Xml(ByteView input);           // the XML of S3's answers, and errors made of it
void HttpHead(ByteView input);        // the lines of a response's head; Content-Range; dates
void HttpAnswer(ByteView input);      // two bytes that say how it is cut, an answer as on the wire
void Uri(ByteView input);             // s3://, file://, memory:// and paths
void Endpoint(ByteView input);        // lines: endpoint URL, region, bucket, style, key
void Profile(ByteView input);         // the AWS tools' configuration files
void KeysAnswer(ByteView input);      // what services and programs that give credentials say
void PathPattern(ByteView input);     // lines: pattern, key
void Size(ByteView input);            // "1.5GiB"
void Scan(ByteView input);            // a video file of any kind
void Tar(ByteView input);             // a tar file
void TfRecord(ByteView input);        // a TFRecord file, and one frame
void RecordIo(ByteView input);  // a RecordIO file in all its readings, one record, an image record
void RecordIoIndex(ByteView input);    // an .idx file
void SageMakerRecord(ByteView input);  // a protocol buffer
void Lines(ByteView input);            // JSON lines, CSV
void Tokens(ByteView input);           // a file of tokens with a header, an index of tokens
void Parquet(ByteView input);          // a Parquet file, and the values of its columns
void ParquetPages(ByteView input);     // pages, a footer, what a catalog says of a row group
void Arrow(ByteView input);            // an Arrow file or stream, and the values of its columns
void ArrowBatch(ByteView input);       // a message, a schema, what a catalog says of a record batch
void Mds(ByteView input);              // an MDS shard, and one sample
void MdsIndex(ByteView input);         // its index.json
void MdsValue(ByteView input);         // a line: an encoding; a value
void NpyRows(ByteView input);          // a file of NumPy, and its rows
void Npz(ByteView input);              // a zip of them
void Unpack(ByteView input);           // a compressed file
void Compressed(ByteView input);       // what a catalog says of a compressed shard, and the shard
void LitData(ByteView input);          // a chunk, and one item
void LitDataIndex(ByteView input);     // its index.json
void Beton(ByteView input);            // FFCV's file
void Sniff(ByteView input);            // the head of a shard
void Image(ByteView input);            // a JPEG, PNG or WebP file, whole and in part
void Exif(ByteView input);             // a TIFF block, a JPEG's segments
void Npy(ByteView input);              // a NumPy array file
void JsonFields(ByteView input);       // a JSON document of which fields are wanted
void Example(ByteView input);          // a tf.train.Example of which features are wanted
void SageMakerTensors(ByteView input);  // a SageMaker Record of which tensors are wanted
void IntText(ByteView input);           // " 17\n"

}  // namespace forebay::fuzz
