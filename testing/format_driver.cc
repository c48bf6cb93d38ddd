// Scans files for tests that compare with other readers. A request a line, in JSON:
//   {"format": "tar", "file": PATH, "options": {"drop_tail": true, ...}}
// and an answer a line: {"records": [{"key", "range", "fields": [{"name", "range", "bytes",
// "crc32c"}], "payload"}], "oddities": [TEXT], "code": "ok", "error": ""}. Keys, names and payloads
// are in hexadecimal: they may be any bytes.
#include <fmt/core.h>

#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "format/beton.h"
#include "format/lines.h"
#include "format/litdata.h"
#include "format/mds.h"
#include "format/npy.h"
#include "format/recordio.h"
#include "format/sniff.h"
#include "format/tar.h"
#include "format/tfrecord.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using nlohmann::json;

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

Status Scan(const std::string& name, const json& given, const Shard& shard, const OnRecord& on,
            ScanReport* report) {
  const bool drop = given.value("drop_tail", false);
  if (name == "tar") {
    return ScanTar(shard, {.concatenated = given.value("concatenated", false), .drop_tail = drop},
                   on, report);
  }
  if (name == "tfrecord") return ScanTfRecord(shard, {.drop_tail = drop}, on, report);
  if (name == "recordio") {
    RecordIoOptions options{.drop_tail = drop};
    if (given.value("multipart", "mxnet") == "sagemaker") {
      options.multipart = RecordIoOptions::Multipart::kSageMaker;
    }
    if (given.value("images", false)) options.payload = RecordIoOptions::Payload::kImage;
    return ScanRecordIo(shard, options, on, report);
  }
  if (name == "jsonl") return ScanJsonLines(shard, {.drop_tail = drop}, on, report);
  if (name == "csv") {
    CsvOptions options;
    options.header = given.value("header", true);
    return ScanCsv(shard, options, on, report);
  }
  if (name == "mds") return ScanMds(shard, {}, on, report);
  if (name == "npy") return ScanNpy(shard, {.drop_tail = drop}, on, report);
  if (name == "npz") return ScanNpz(shard, on, report);
  if (name == "litdata") return ScanLitData(shard, {}, on, report);
  if (name == "beton") return ScanBeton(shard, on, report);
  return {Code::kInvalidArgument, "no such format"};
}

// What taking the record apart gives, of formats where that is more than its fields' bytes.
Result<std::string> PayloadOf(const std::string& name, const json& given, ByteView frames) {
  if (name == "tfrecord") {
    FB_ASSIGN_OR_RETURN(const ByteView data, OpenTfRecord(frames));
    return std::string(AsText(data));
  }
  if (name == "csv") {
    std::vector<std::string_view> cells;
    std::string scratch;
    FB_RETURN_IF_ERROR(SplitCsvLine(frames, ',', '"', &cells, &scratch));
    std::string text;
    for (const std::string_view cell : cells) text += std::string(cell) + '\0';
    return text;
  }
  if (name != "recordio") return std::string();
  const bool amazon = given.value("multipart", "mxnet") == "sagemaker";
  std::vector<std::byte> scratch;
  FB_ASSIGN_OR_RETURN(const ByteView data,
                      OpenRecordIo(frames,
                                   amazon ? RecordIoOptions::Multipart::kSageMaker
                                          : RecordIoOptions::Multipart::kMxnet,
                                   &scratch));
  return std::string(AsText(data));
}

json RangeOf(const ByteRange& range) { return {range.offset, range.end}; }

json Answer(const json& request) {
  std::ifstream file(request.at("file").get<std::string>(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const std::string name = request.at("format");
  const json given = request.value("options", json::object());
  json records = json::array();
  ScanReport report;
  const OnRecord on_record = [&](const FoundRecord& record) -> Status {
    json fields = json::array();
    for (const FoundField& field : record.fields) {
      json described = {
          {"name", Hex(field.name)}, {"range", RangeOf(field.range)}, {"bytes", field.bytes}};
      if (field.crc32c) described["crc32c"] = *field.crc32c;
      fields.push_back(std::move(described));
    }
    const ByteView frames =
        AsBytes(std::string_view(bytes).substr(record.range.offset, record.range.size()));
    FB_ASSIGN_OR_RETURN(const std::string payload, PayloadOf(name, given, frames));
    records.push_back({{"key", Hex(record.key)},
                       {"range", RangeOf(record.range)},
                       {"fields", std::move(fields)},
                       {"payload", Hex(payload)}});
    return {};
  };
  const Status status = Scan(name, given, testing::ShardOf(bytes), on_record, &report);
  json oddities = json::array();
  for (const Oddity& oddity : report.first_oddities) oddities.push_back(Hex(oddity.what));
  return {{"records", std::move(records)},
          {"oddities", std::move(oddities)},
          {"kind", KindName(Sniff(AsBytes(bytes).first(std::min(bytes.size(), kSniffBytes)),
                                  bytes.size(), ""))},
          {"code", status.ok() ? "ok" : CodeName(status.code())},
          {"error", status.ok() ? "" : Hex(status.ToString())}};
}

}  // namespace
}  // namespace forebay::format

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << forebay::format::Answer(nlohmann::json::parse(line)).dump() << std::endl;
  }
}
