#include <cstring>

#include "base/assert.h"
#include "format/archive/tar_scan.h"
#include "format/beton.h"
#include "format/beton_table.h"
#include "format/lines.h"
#include "format/litdata.h"
#include "format/mds.h"
#include "format/npy.h"
#include "format/recordio.h"
#include "format/sagemaker_record.h"
#include "format/sniff.h"
#include "format/tfrecord.h"
#include "format/tokens.h"
#include "format/unpack.h"
#include "format/zip.h"
#include "fuzz/shards.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

template <class Scan>
void Check(ByteView input, const Scan& scan) {
  CheckScan(input, Scanned::kRecords, scan, [](const format::FoundRecord&) {});
}

}  // namespace

void Tar(ByteView input) {
  for (const bool lenient : {false, true}) {
    Check(input, [lenient](const format::Shard& shard, const format::OnRecord& on_record,
                           format::ScanReport* report) {
      return format::archive::ScanTar(shard, {.concatenated = lenient, .drop_tail = lenient},
                                      on_record, report);
    });
  }
}

void TfRecord(ByteView input) {
  Check(input, [](const format::Shard& shard, const format::OnRecord& on_record,
                  format::ScanReport* report) {
    return format::ScanTfRecord(shard, {.drop_tail = true, .max_damaged = 2}, on_record, report);
  });
  const auto data = format::OpenTfRecord(input);
  FB_ASSERT(!data.ok() || data->size() + format::kTfRecordFraming == input.size());
}

void RecordIo(ByteView input) {
  using format::RecordIoOptions;
  std::vector<std::byte> scratch;
  for (const auto multipart :
       {RecordIoOptions::Multipart::kMxnet, RecordIoOptions::Multipart::kSageMaker}) {
    for (const auto payload : {RecordIoOptions::Payload::kRaw, RecordIoOptions::Payload::kImage}) {
      Check(input, [&](const format::Shard& shard, const format::OnRecord& on_record,
                       format::ScanReport* report) {
        return format::ScanRecordIo(
            shard, {.multipart = multipart, .payload = payload, .drop_tail = true},
            [&](format::FoundRecord record) -> Status {
              // What the scan says of a record is what opening it gives.
              const ByteView frames = input.subspan(record.range.offset, record.range.size());
              const auto opened = format::OpenRecordIo(frames, multipart, &scratch);
              FB_ASSERT(opened.ok());
              const uint64_t last = record.fields.back().bytes;
              if (payload == RecordIoOptions::Payload::kRaw) {
                FB_ASSERT(opened->size() == last);
              } else {
                const auto image = format::OpenImageRecord(*opened);
                FB_ASSERT(image.ok() && image->image.size() == last);
              }
              return on_record(std::move(record));
            },
            report);
      });
    }
    (void)format::OpenRecordIo(input, multipart, &scratch);
  }
  (void)format::OpenImageRecord(input);
}

void RecordIoIndex(ByteView input) {
  const auto places = format::ParseRecordIoIndex(AsText(input), 1 << 20);
  for (size_t i = 1; places.ok() && i < places->size(); ++i) {
    FB_ASSERT((*places)[i - 1].offset < (*places)[i].offset);
  }
}

void SageMakerRecord(ByteView input) {
  static format::SageMakerRecord record;  // used again, as by a reader
  if (!format::OpenSageMakerRecord(input, &record).ok()) return;
  for (const format::SageMakerValue& value : record.features) {
    FB_ASSERT(!value.sparse || value.keys.size() == value.count());
  }
}

void Lines(ByteView input) {
  std::vector<std::string_view> cells;
  std::string scratch;
  for (const bool drop : {false, true}) {
    Check(input, [drop](const format::Shard& shard, const format::OnRecord& on_record,
                        format::ScanReport* report) {
      return format::ScanJsonLines(shard, {.drop_tail = drop}, on_record, report);
    });
    Check(input, [&](const format::Shard& shard, const format::OnRecord& on_record,
                     format::ScanReport* report) {
      format::CsvOptions options;
      options.drop_tail = drop;
      return format::ScanCsv(
          shard, options,
          [&](format::FoundRecord record) -> Status {
            const ByteView line = input.subspan(record.range.offset, record.range.size());
            FB_ASSERT(!format::SplitCsvLine(line, ',', '"', &cells, &scratch).ok() ||
                      !cells.empty());
            return on_record(std::move(record));
          },
          report);
    });
  }
}

void Tokens(ByteView input) {
  using format::TokenType;
  const auto index = format::ParseTokenIndex(input, 1 << 20);
  FB_ASSERT(!index.ok() || index->tokens * format::TokenBytes(index->type) <= 1 << 20);
  for (const auto& file : {format::LlmcTokens(input, input.size()),
                           format::RawTokens(input, input.size(), TokenType::kUint16),
                           format::LitDataTokens(input, input.size(), TokenType::kUint16)}) {
    FB_ASSERT(!file.ok() ||
              file->offset + file->count * format::TokenBytes(file->type) == input.size());
  }
  (void)format::CheckVocabulary(input, TokenType::kInt32, 50257);
}

void Sniff(ByteView input) {
  const format::Kind kind = format::Sniff(input, input.size(), "x.tar");
  FB_ASSERT(!format::KindName(kind).empty());
  (void)format::Sniff(input, input.size() + 100, "x.csv");
}

void Mds(ByteView input) {
  for (const bool header_only : {false, true}) {
    Check(input, [header_only](const format::Shard& shard, const format::OnRecord& on_record,
                               format::ScanReport* report) {
      return format::ScanMds(shard, {.header_only = header_only}, on_record, report);
    });
  }
  const std::vector<format::MdsColumn> columns = {{"a", "int", 8}, {"b", "str"}, {"c", "bytes"}};
  std::vector<ByteView> values;
  FB_ASSERT(!format::OpenMdsSample(input, columns, &values).ok() || values.size() == 3);
}

void MdsIndex(ByteView input) { (void)format::ParseMdsIndex(AsText(input)); }

void MdsValue(ByteView input) {
  // The encoding, a line feed, the value.
  const size_t end = AsText(input).find('\n');
  if (end == std::string_view::npos) return;
  static format::MdsValue value;
  (void)format::OpenMdsValue(input.subspan(end + 1), AsText(input).substr(0, end), &value);
}

void NpyRows(ByteView input) {
  const auto header = format::ParseNpyHeader(input);
  FB_ASSERT(!header.ok() || header->data_offset <= input.size());
  Check(input, [](const format::Shard& shard, const format::OnRecord& on_record,
                  format::ScanReport* report) {
    return format::ScanNpy(shard, {.drop_tail = true}, on_record, report);
  });
}

void Npz(ByteView input) {
  Check(input, &format::ScanNpz);
  std::vector<std::byte> scratch;
  for (const uint64_t bytes : {input.size(), 2 * input.size(), size_t{200}}) {
    const auto member = format::OpenZipMember(input, bytes, &scratch);
    FB_ASSERT(!member.ok() || member->data() != scratch.data() || member->size() == bytes);
  }
}

void Unpack(ByteView input) {
  constexpr uint64_t kMost = 1 << 20;
  const auto bytes = format::Unpack(input, kMost);
  FB_ASSERT(!bytes.ok() || (bytes->size() <= kMost && format::IsPacked(input)));
}

void LitData(ByteView input) {
  for (const std::vector<std::string>& fields :
       {std::vector<std::string>{}, std::vector<std::string>{"a", "b"}}) {
    Check(input, [&fields](const format::Shard& shard, const format::OnRecord& on_record,
                           format::ScanReport* report) {
      return format::ScanLitData(shard, {.fields = fields}, on_record, report);
    });
  }
  std::vector<ByteView> values;
  FB_ASSERT(!format::OpenLitDataItem(input, 2, &values).ok() || values.size() == 2);
}

void LitDataIndex(ByteView input) { (void)format::ParseLitDataIndex(AsText(input)); }

namespace {

void TakeColumn(ByteView file, const format::BetonChunk& chunk, uint64_t rows) {
  for (const auto& [first, end] : {std::pair(uint64_t{0}, rows), std::pair(rows / 2, rows)}) {
    std::vector<std::byte> read;
    for (const ByteRange& range : format::ReadsOf(chunk, first, end)) {
      const ByteView bytes = file.subspan(range.offset, range.size());
      read.insert(read.end(), bytes.begin(), bytes.end());
    }
    format::TableValues values;
    FB_ASSERT(format::DecodeBeton(chunk, first, end - first, read, &values).ok());
    CheckValues(values, chunk.value_bytes, end - first);
  }
}

}  // namespace

void Beton(ByteView input) {
  Check(input, &format::ScanBeton);
  (void)format::OpenBetonImage(input);
  // What a scan finds of the table can be taken from the file.
  CheckScan(input, Scanned::kTablesAmongOneAnother, &format::ScanBetonTable,
            [&](const format::FoundRecord& record) {
              const auto group = format::UnpackBetonGroup(record.key, RangesOf(record));
              FB_ASSERT(group.ok());
              for (const auto& chunk : group->chunks) TakeColumn(input, chunk, group->rows);
            });
  const std::vector<ByteRange> ranges(2, {0, input.size()});
  const auto said = format::UnpackBetonGroup(AsText(input), ranges);
  if (!said.ok()) return;
  for (const format::BetonChunk& chunk : said->chunks) TakeColumn(input, chunk, said->rows);
}

}  // namespace forebay::fuzz
