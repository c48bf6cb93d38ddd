#include "engine/record_formats.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "engine/mds_format.h"
#include "engine/pack_unpacked.h"
#include "format/arrow.h"
#include "format/beton_table.h"
#include "format/compressed.h"
#include "format/damage.h"
#include "format/lines.h"
#include "format/litdata.h"
#include "format/npy.h"
#include "format/parquet.h"
#include "format/recordio.h"
#include "format/tar.h"
#include "format/tfrecord.h"
#include "format/token_shard.h"

namespace forebay::engine {
namespace {

using catalog::RecordFormat;
using format::Kind;
using format::OnRecord;
using format::ScanReport;
using format::Shard;

// What of RecordFormatOptions a format's own options have.
struct Tolerates {
  bool tail = false;
  bool concatenated = false;
  bool damaged = false;
};

template <class Options>
concept HasTail = requires(Options options) { options.drop_tail; };
template <class Options>
concept HasConcatenated = requires(Options options) { options.concatenated; };
template <class Options>
concept HasDamaged = requires(Options options) { options.max_damaged; };

template <class Options>
constexpr Tolerates TolerancesOf() {
  return {.tail = HasTail<Options>,
          .concatenated = HasConcatenated<Options>,
          .damaged = HasDamaged<Options>};
}

template <class Options>
Options Tolerant(const RecordFormatOptions& wanted) {
  Options options;
  if constexpr (HasTail<Options>) options.drop_tail = wanted.drop_tail;
  if constexpr (HasConcatenated<Options>) options.concatenated = wanted.concatenated;
  if constexpr (HasDamaged<Options>) options.max_damaged = wanted.max_damaged;
  return options;
}

struct Known {
  std::string name;
  Kind kind = Kind::kUnknown;  // of its shards, by content
  bool found = true;           // what "auto" takes such shards for
  Tolerates tolerates;
  RecordFormat format;
};

template <class Options, auto scan>
Known Plain(std::string name, Kind kind, const RecordFormatOptions& wanted) {
  RecordFormat format{.name = name};
  format.scan = [options = Tolerant<Options>(wanted)](const Shard& shard, const OnRecord& on_record,
                                                      ScanReport* report) {
    return scan(shard, options, on_record, report);
  };
  return {std::move(name), kind, true, TolerancesOf<Options>(), std::move(format)};
}

// What MXNet's image records say beside the image are numbers.
void TypeImageFields(format::FoundRecord& record) {
  for (format::FoundField& field : record.fields) {
    if (field.name == "id") field.dtype = "int64";
    if (field.name != "label") continue;
    field.dtype = "float32";
    const auto labels = static_cast<int64_t>(field.bytes / sizeof(float));
    if (labels != 1) field.shape = {labels};
  }
}

Known RecordIo(std::string name, format::RecordIoOptions::Multipart multipart,
               format::RecordIoOptions::Payload payload, const RecordFormatOptions& wanted) {
  const bool mxnet = multipart == format::RecordIoOptions::Multipart::kMxnet;
  const bool image = payload == format::RecordIoOptions::Payload::kImage;
  RecordFormat format{.name = name,
                      .options = mxnet ? "multipart=mxnet" : "multipart=sagemaker",
                      .companion = mxnet ? ".idx" : ""};
  auto options = Tolerant<format::RecordIoOptions>(wanted);
  options.multipart = multipart;
  options.payload = payload;
  format.scan = [options](const Shard& shard, const OnRecord& on_record, ScanReport* report) {
    const auto typed = [&](format::FoundRecord record) {
      TypeImageFields(record);
      return on_record(std::move(record));
    };
    return format::ScanRecordIo(shard, options, typed, report);
  };
  return {std::move(name), Kind::kRecordIo, mxnet && !image,
          TolerancesOf<format::RecordIoOptions>(), std::move(format)};
}

// Rows are arrays of the type and shape that the file's head says, where nothing has to be swapped.
Status ScanRows(const Shard& shard, const format::NpyOptions& options, const OnRecord& on_record,
                ScanReport* report) {
  std::vector<std::byte> head(std::min(shard.size, format::kMaxNpyHeadBytes));
  FB_RETURN_IF_ERROR(shard.read({0, head.size()}, head));
  FB_ASSIGN_OR_RETURN(const format::NpyHeader header,
                      format::ParseNpyHeader(head, {shard.name, 0}));
  std::vector<int64_t> shape;
  for (size_t i = 1; i < header.shape.size(); ++i) {
    shape.push_back(static_cast<int64_t>(header.shape[i]));
  }
  constexpr std::string_view kTypes[] = {"bool",    "uint8",   "int32",  "int64",
                                         "float16", "float32", "float64"};
  const bool typed =
      !header.big_endian && std::ranges::find(kTypes, header.dtype) != std::end(kTypes);
  const auto with_type = [&](format::FoundRecord record) {
    for (format::FoundField& field : record.fields) {
      if (!typed) break;
      field.dtype = header.dtype;
      field.shape = shape;
    }
    return on_record(std::move(record));
  };
  return format::ScanNpy(shard, options, with_type, report);
}

// Shards that are compressed as a whole, rows of `inner` being in them.
RecordFormat CompressedFormat(std::string name, format::CompressedRows rows, RecordFormat inner) {
  const auto inside = std::make_shared<const RecordFormat>(std::move(inner));
  RecordFormat format{.name = std::move(name)};
  format.is_shard = [inside](const Shard& shard) -> Result<bool> {
    FB_ASSIGN_OR_RETURN(const bool packed, IsPackedShard(shard));
    return packed ? Result<bool>(true) : inside->is_shard(shard);  // which the scan refuses
  };
  // Any bytes are lines of a kind: those of a container of another kind are not meant.
  const auto scan = [inside](const Shard& within, const OnRecord& on_record,
                             ScanReport* report) -> Status {
    FB_ASSIGN_OR_RETURN(const Kind kind, KindOf(within));
    if (kind != Kind::kUnknown && kind != Kind::kJsonl && kind != Kind::kCsv) {
      return format::Damaged({within.name, 0}, fmt::format("lines ({}) within", inside->name),
                             format::KindName(kind));
    }
    return inside->scan(within, on_record, report);
  };
  format.scan = [scan, rows](const Shard& shard, const OnRecord& on_record, ScanReport* report) {
    return format::ScanCompressed(rows, shard, scan, on_record, report);
  };
  return format;
}

Result<RecordFormat> TokensOf(const std::string& type) {
  format::TokenShardOptions options;
  if (!type.empty()) {
    options.type = format::ParseTokenType(type);
    const bool whole = options.type && *options.type != format::TokenType::kFloat32 &&
                       *options.type != format::TokenType::kFloat64;
    if (!whole) {
      return Status(Code::kInvalidArgument,
                    fmt::format("dtype '{}': uint8, int8, uint16, int16, uint32, int32, uint64, "
                                "int64",
                                type));
    }
  }
  RecordFormat format{.name = "tokens", .companion = std::string(format::kTokenIndexName)};
  format.is_shard = [options](const Shard& shard) { return format::IsTokenShard(shard, options); };
  format.scan = [options](const Shard& shard, const OnRecord& on_record, ScanReport* report) {
    return format::ScanTokens(shard, options, on_record, report);
  };
  return format;
}

// Lines that all are records: of CSV without names of columns, of LIBSVM.
Known BareLines(std::string name, std::string kept_as, std::string options, char quote,
                const RecordFormatOptions& wanted) {
  RecordFormat format{.name = kept_as, .options = std::move(options)};
  auto csv = Tolerant<format::CsvOptions>(wanted);
  csv.header = false;
  csv.quote = quote;
  format.scan = [kept_as, csv](const Shard& shard, const OnRecord& on_record, ScanReport* report) {
    const auto named = [&](format::FoundRecord record) {
      for (format::FoundField& field : record.fields) field.name = kept_as;
      return on_record(std::move(record));
    };
    return format::ScanCsv(shard, csv, named, report);
  };
  return {std::move(name), Kind::kCsv, false, TolerancesOf<format::CsvOptions>(),
          std::move(format)};
}

// Of those whose records a scan finds without options.
Known Bare(std::string name, Kind kind, decltype(RecordFormat::scan) scan) {
  RecordFormat format{.name = name, .scan = std::move(scan)};
  return {std::move(name), kind, true, {}, std::move(format)};
}

std::vector<Known> MakeAll(const RecordFormatOptions& wanted) {
  using Multipart = format::RecordIoOptions::Multipart;
  using Payload = format::RecordIoOptions::Payload;
  std::vector<Known> known;
  known.push_back(Plain<format::TarOptions, format::ScanTar>("tar", Kind::kTar, wanted));
  known.push_back(
      Plain<format::TfRecordOptions, format::ScanTfRecord>("tfrecord", Kind::kTfRecord, wanted));
  known.push_back(RecordIo("recordio", Multipart::kMxnet, Payload::kRaw, wanted));
  known.push_back(RecordIo("recordio-image", Multipart::kMxnet, Payload::kImage, wanted));
  known.push_back(RecordIo("recordio-protobuf", Multipart::kSageMaker, Payload::kRaw, wanted));
  known.push_back(Bare("mds", Kind::kMds, nullptr));
  known.push_back(
      Plain<format::LinesOptions, format::ScanJsonLines>("jsonl", Kind::kJsonl, wanted));
  known.push_back(Plain<format::CsvOptions, format::ScanCsv>("csv", Kind::kCsv, wanted));
  known.push_back(BareLines("csv-no-header", "csv", "header=none", '"', wanted));
  known.push_back(BareLines("libsvm", "libsvm", "", '\0', wanted));
  known.push_back(
      Plain<format::LitDataOptions, format::ScanLitData>("litdata", Kind::kLitData, wanted));
  known.push_back(Plain<format::NpyOptions, ScanRows>("npy", Kind::kNpy, wanted));
  known.push_back(Bare("npz", Kind::kNpz, format::ScanNpz));
  known.push_back(Bare("parquet", Kind::kParquet, format::ScanParquet));
  known.push_back(Bare("beton", Kind::kBeton, format::ScanBetonTable));
  known.push_back(Bare("arrow", Kind::kArrow, format::ScanArrow));
  known.push_back(Bare("tokens", Kind::kLlmcTokens, nullptr));
  for (Known& one : known) {
    // Lines without quotes and commas look like nothing.
    const bool text = one.name == "libsvm";
    one.format.is_shard = [kind = one.kind, text](const Shard& shard) -> Result<bool> {
      FB_ASSIGN_OR_RETURN(const Kind found, KindOf(shard));
      return found == kind || (text && found == Kind::kUnknown);
    };
  }
  return known;
}

const std::vector<Known>& All() {
  static const std::vector<Known> all = MakeAll({});
  return all;
}

// What is decoded anew whenever it is read, as tables are, is taken whole or not at all.
Status CheckTolerances(const std::string& name, const RecordFormatOptions& wanted) {
  const auto it = std::ranges::find(All(), name, &Known::name);
  const Tolerates has = it == All().end() ? Tolerates() : it->tolerates;
  const auto check = [&](bool is_wanted, bool there_is, std::string_view option) {
    if (!is_wanted || there_is) return Status();
    return Status(Code::kInvalidArgument,
                  fmt::format("{}: there is no such thing in '{}'", option, name));
  };
  FB_RETURN_IF_ERROR(check(wanted.drop_tail, has.tail, "drop_tail"));
  FB_RETURN_IF_ERROR(check(wanted.concatenated, has.concatenated, "concatenated"));
  return check(wanted.max_damaged > 0, has.damaged, "max_damaged");
}

}  // namespace

Result<Kind> KindOf(const Shard& shard) {
  std::vector<std::byte> head(std::min<uint64_t>(shard.size, format::kSniffBytes));
  if (!head.empty()) FB_RETURN_IF_ERROR(shard.read({0, head.size()}, head));
  return format::Sniff(head, shard.size, shard.name);
}

const std::vector<std::string>& RecordFormatNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const Known& one : All()) list.push_back(one.name);
    for (const std::string_view name : format::CompressedFormatNames()) list.emplace_back(name);
    return list;
  }();
  return names;
}

Result<RecordFormat> RecordFormatOf(const std::string& name, const RecordFormatOptions& options) {
  if (!options.token_type.empty() && name != "tokens") {
    return Status(Code::kInvalidArgument,
                  fmt::format("dtype '{}' is of tokens", options.token_type));
  }
  const std::vector<std::string>& names = RecordFormatNames();
  if (std::ranges::find(names, name) == names.end()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("format '{}': auto, video, files, {}", name, fmt::join(names, ", ")));
  }
  FB_RETURN_IF_ERROR(CheckTolerances(name, options));
  if (name == "tokens") return TokensOf(options.token_type);
  if (name == "mds") return MdsRecordFormat();
  if (name == "compressed-mds") return CompressedMdsFormat();
  if (const auto rows = format::CompressedRowsOf(name)) {
    FB_ASSIGN_OR_RETURN(RecordFormat inner,
                        RecordFormatOf(name.substr(format::kCompressedPrefix.size())));
    return CompressedFormat(name, *rows, std::move(inner));
  }
  std::vector<Known> known = MakeAll(options);
  return std::ranges::find(known, name, &Known::name)->format;
}

Result<std::string> FormatOfShard(const Shard& shard) {
  FB_ASSIGN_OR_RETURN(Kind kind, KindOf(shard));
  if (kind == Kind::kMegatronIndex) kind = Kind::kLlmcTokens;  // as it lies beside tokens
  for (const Known& one : All()) {
    if (one.kind == kind && one.found) return one.name;
  }
  return std::string();
}

std::string FormatName(const std::string& format, const std::string& options) {
  for (const Known& one : All()) {
    if (one.format.name == format && one.format.options == options) return one.name;
  }
  return format;
}

}  // namespace forebay::engine
