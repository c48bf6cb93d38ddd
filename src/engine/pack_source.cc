#include "engine/pack_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/crc32c.h"
#include "catalog/files_builder.h"
#include "catalog/files_catalog.h"
#include "catalog/listing.h"
#include "catalog/records_builder.h"
#include "engine/index_records.h"
#include "engine/open_catalog.h"
#include "engine/pack_columns.h"
#include "engine/pack_unpacked.h"
#include "engine/record_formats.h"
#include "feed/table_samples.h"
#include "format/table.h"
#include "format/tar.h"
#include "format/unpack.h"
#include "store/pinned_object.h"

namespace forebay::engine {
namespace {

using catalog::FileEntry;
using catalog::FilesCatalog;
using catalog::RecordsCatalog;

// Plain objects: those of one key, which lie side by side, are a sample.
class FilesSource : public PackSource {
 public:
  FilesSource(std::shared_ptr<const FilesCatalog> files) : PackSource("files"), files_(files) {}

  Result<bool> Next(Cursor* cursor, PackSample* sample, LeftOut* left_out) const override {
    *sample = {.number = cursor->number};
    for (; cursor->position < files_->count(); ++cursor->position) {
      FB_ASSIGN_OR_RETURN(const FileEntry file, files_->At(cursor->position));
      const auto name = format::SplitSampleName(file.key);
      if (!name || format::IsMetadataName(file.key)) {
        Leave(file, left_out);
        continue;
      }
      if (!sample->fields.empty() && name->key != sample->key) {
        FB_RETURN_IF_ERROR(CheckWhole(*sample, file, cursor->position));
        break;
      }
      if (sample->fields.empty()) sample->source = cursor->position;
      sample->key = name->key;
      FB_RETURN_IF_ERROR(Add(file, LowerAscii(name->extension), cursor->position, sample));
    }
    if (sample->fields.empty()) return false;
    ++cursor->number;
    return true;
  }
  Result<FileEntry> ObjectAt(uint64_t object) const override { return files_->At(object); }
  Result<ByteView> Open(const PackField&, ByteView fetched,
                        std::vector<std::byte>*) const override {
    return fetched;
  }
  std::string id() const override { return "files " + files_->content_hash(); }

 private:
  static void Leave(const FileEntry& file, LeftOut* left_out) {
    if (left_out == nullptr) return;
    ++left_out->files;
    catalog::Warn(&left_out->warnings, file.key,
                  "left out: its name has no key and extension, as WebDataset's rule wants them");
  }

  static Status Add(const FileEntry& file, std::string field, uint64_t object, PackSample* sample) {
    for (const PackField& other : sample->fields) {
      if (other.name != field) continue;
      return Status(Code::kInvalidArgument,
                    fmt::format("{} is the second file of field '{}' of sample '{}'", file.key,
                                field, sample->key));
    }
    sample->fields.push_back(
        {.name = std::move(field), .object = object, .range = {0, file.size}, .bytes = file.size});
    return {};
  }

  // In the order of the bytes only a folder that is named like one of its files, a.b/ between a.a
  // and a.c, can lie between the files of a sample.
  Status CheckWhole(const PackSample& sample, const FileEntry& behind, uint64_t position) const {
    const std::string mark = sample.key + ".";
    if (!behind.key.starts_with(mark)) return {};
    for (uint64_t i = position; i < files_->count(); ++i) {
      FB_ASSIGN_OR_RETURN(const FileEntry file, files_->At(i));
      if (!file.key.starts_with(mark)) break;
      const auto name = format::SplitSampleName(file.key);
      if (!name || name->key != sample.key) continue;
      return Status(Code::kInvalidArgument,
                    fmt::format("{} lies between the files of sample '{}', the next of which is "
                                "{}: rename the folder",
                                behind.key, sample.key, file.key));
    }
    return {};
  }

  const std::shared_ptr<const FilesCatalog> files_;
};

// Records of shards.
class RecordsSource : public PackSource {
 public:
  RecordsSource(std::string format, std::shared_ptr<const RecordsCatalog> records,
                std::optional<uint64_t> unpacked)
      : PackSource(std::move(format)), records_(std::move(records)), unpacked_(unpacked) {
    using RecordIo = format::RecordIoOptions;
    if (this->format() == "npz") kind_ = format::Kind::kNpz;
    if (this->format() == "tfrecord") kind_ = format::Kind::kTfRecord;
    if (!this->format().starts_with("recordio")) return;
    kind_ = format::Kind::kRecordIo;
    if (this->format() == "recordio-image") options_.payload = RecordIo::Payload::kImage;
    if (this->format() == "recordio-protobuf") options_.multipart = RecordIo::Multipart::kSageMaker;
  }

  Result<bool> Next(Cursor* cursor, PackSample* sample, LeftOut*) const override {
    if (cursor->position == records_->count()) return false;
    FB_ASSIGN_OR_RETURN(const catalog::RecordEntry record, records_->At(cursor->position));
    *sample = {.number = cursor->number, .source = record.shard};
    FB_ASSIGN_OR_RETURN(sample->key, records_->KeyOf(cursor->position));
    for (const catalog::RecordField& field : record.fields) {
      const catalog::FieldInfo& info = records_->fields()[field.field];
      if (format() == "npy" && info.dtype.empty()) {
        return Status(
            Code::kUnimplemented,
            "rows of these arrays are not packed: their types are not all one of bool, "
            "uint8, int32, int64, float16, float32 and float64 in little-endian, or their "
            "shapes differ");
      }
      sample->fields.push_back({.name = info.name + (format() == "npz" ? ".npy" : ""),
                                .origin = info.name,
                                .object = record.shard,
                                .range = field.range,
                                .bytes = field.bytes,
                                .crc32c = field.crc32c,
                                .dtype = info.dtype,
                                .shape = info.shape});
    }
    ++cursor->position;
    ++cursor->number;
    return true;
  }
  Result<FileEntry> ObjectAt(uint64_t object) const override { return records_->ShardAt(object); }
  Result<ByteView> Open(const PackField& field, ByteView fetched,
                        std::vector<std::byte>* scratch) const override {
    const uint64_t at = field.range.offset;
    if (field.crc32c && *field.crc32c != Crc32c(fetched)) {
      return Status(Code::kDataLoss,
                    fmt::format("it has CRC-32C {:08x}, {:08x} when it was indexed",
                                Crc32c(fetched), *field.crc32c));
    }
    return format::OpenField(kind_, options_, field.origin.empty() ? field.name : field.origin,
                             fetched, field.bytes, scratch, {.shard = "", .offset = at});
  }
  bool unpacks() const override { return unpacked_.has_value(); }
  // The object as it is stored, and unpacked.
  uint64_t held_bytes() const override { return 2 * unpacked_.value_or(0); }
  std::string id() const override { return format() + " " + records_->content_hash(); }

 private:
  const std::shared_ptr<const RecordsCatalog> records_;
  const std::optional<uint64_t> unpacked_;  // of the largest shard
  format::Kind kind_ = format::Kind::kUnknown;
  format::ContainerOptions options_;
};

Result<std::unique_ptr<PackSource>> OverFiles(std::shared_ptr<const FilesCatalog> files) {
  if (files->key_order() != catalog::KeyOrder::kBytes || files->generations().size() > 1) {
    return Status(Code::kInvalidArgument,
                  "the source's catalog has its objects in another order than that of their keys: "
                  "files of one sample would not lie side by side");
  }
  return std::unique_ptr<PackSource>(std::make_unique<FilesSource>(std::move(files)));
}

Result<std::unique_ptr<PackSource>> OverRecords(std::shared_ptr<const RecordsCatalog> records,
                                                bool unpack = false) {
  if (feed::IsOfTables(*records)) {
    return Status(Code::kUnimplemented,
                  "tables (Parquet, Arrow, FFCV) are not packed into other shards");
  }
  std::string name = FormatName(records->format(), records->format_options());
  std::optional<uint64_t> largest;
  for (uint64_t i = 0; unpack && i < records->shard_count(); ++i) {
    FB_ASSIGN_OR_RETURN(const FileEntry shard, records->ShardAt(i));
    largest = std::max(largest.value_or(0), shard.size);
  }
  return std::unique_ptr<PackSource>(
      std::make_unique<RecordsSource>(std::move(name), std::move(records), largest));
}

Status CheckFormat(const std::string& name) {
  if (!format::TableFormatOf(name)) return {};
  if (format::CompressedRowsOf(name)) {
    return Status(Code::kInvalidArgument,
                  "the shards are compressed: with --unpack what is in them is packed");
  }
  return Status(
      Code::kUnimplemented,
      "Parquet, Arrow and FFCV files are trained from as they are, and no source of packing: "
      "their values lie in columns of many rows");
}

Result<std::unique_ptr<PackSource>> FromCatalog(const IndexJob& job, const std::string& catalog) {
  FB_ASSIGN_OR_RETURN(const store::Uri uri, store::ParseUri(catalog));
  auto records = ReadRecordsCatalog(*job.stores, uri);
  if (records.ok()) {
    FB_RETURN_IF_ERROR(CheckFormat((*records)->format()));
    return OverRecords(*std::move(records));
  }
  if (records.code() != Code::kInvalidArgument) return std::move(records).status();
  FB_ASSIGN_OR_RETURN(auto files, ReadFilesCatalog(*job.stores, uri));
  return OverFiles(std::move(files));
}

Result<std::unique_ptr<PackSource>> IndexedFiles(const IndexJob& job, const PackOptions& options,
                                                 PackSource::LeftOut* left_out) {
  catalog::FilesOptions build{.source_uri = job.source_uri};
  if (options.on_progress) {
    build.on_progress = [&options](uint64_t) { return options.on_progress({}); };
  }
  catalog::FilesReport built;
  auto bytes = catalog::BuildFiles(store::SyncStore(job.from), job.prefix, build, &built);
  if (!bytes.ok()) return ExplainNothing(job, std::move(bytes).status());
  *left_out = {built.skipped, std::move(built.warnings)};
  FB_ASSIGN_OR_RETURN(auto files, FilesCatalog::Open(catalog::BytesInMemory(*std::move(bytes))));
  return OverFiles(std::move(files));
}

// A shard that is damaged, or none, ends it: what is packed is all of it.
Result<std::unique_ptr<PackSource>> IndexedRecords(const IndexJob& job, const PackOptions& options,
                                                   const std::string& name,
                                                   PackSource::LeftOut* left_out) {
  FB_RETURN_IF_ERROR(CheckFormat(name));
  FB_ASSIGN_OR_RETURN(catalog::RecordFormat format, RecordFormatOf(name));
  catalog::RecordsOptions build{.source_uri = job.source_uri};
  if (options.on_progress) {
    build.on_progress = [&options](const catalog::BuildProgress&) {
      return options.on_progress({});
    };
  }
  if (options.unpack) {
    format = UnpackedFormat(std::move(format));
    // Each holds a shard as it is stored, and what is in it.
    build.parallel = static_cast<uint32_t>(
        std::clamp<uint64_t>(options.memory / (4 * format::kUnpackedMost), 1, build.parallel));
  }
  catalog::RecordsReport built;
  auto bytes = catalog::BuildRecords(store::SyncStore(job.from), job.prefix, format, build, &built);
  if (!bytes.ok()) return ExplainNothing(job, std::move(bytes).status());
  if (!built.failures.empty()) {
    return Status(Code::kDataLoss, built.failures[0].why,
                  {.uri = job.source_uri + built.failures[0].key});
  }
  *left_out = {built.skipped, std::move(built.warnings)};
  FB_ASSIGN_OR_RETURN(auto records,
                      RecordsCatalog::Open(catalog::BytesInMemory(*std::move(bytes))));
  return OverRecords(std::move(records), options.unpack);
}

}  // namespace

namespace {

// Of what is in the first object that is a shard, compressed or not; "": none of them is.
Result<std::string> FormatOfFirst(const IndexJob& job) {
  const store::SyncStore store(job.from);
  std::vector<store::ObjectInfo> objects;
  catalog::Listing listing;
  constexpr size_t kLooked = 8;
  FB_RETURN_IF_ERROR(catalog::ListDataset(
      store, job.prefix,
      [&](const store::ObjectInfo& info) {
        objects.push_back(info);
        return objects.size() < kLooked;
      },
      &listing));
  for (const store::ObjectInfo& info : objects) {
    store::PinnedObject reader(store, info, store::Priority::kBulk, std::chrono::seconds(60));
    format::Shard shard{.name = info.key.substr(job.prefix.size()), .size = info.size, .read = {}};
    shard.read = [&](ByteRange range, MutableBytes into) { return reader.Read(range, into); };
    FB_ASSIGN_OR_RETURN(std::string format, FormatWithin(shard));
    if (!format.empty() && shard.name != "index.json") return format;
  }
  return std::string();
}

}  // namespace

Result<std::unique_ptr<PackSource>> OpenPackSource(const IndexJob& job, const PackOptions& options,
                                                   PackSource::LeftOut* left_out) {
  if (options.unpack && !options.catalog.empty()) {
    return Status(Code::kInvalidArgument,
                  "compressed shards have no catalog: they are unpacked to be read");
  }
  if (!options.catalog.empty()) return FromCatalog(job, options.catalog);
  std::string format = options.format;
  if (format == "auto") {
    FB_ASSIGN_OR_RETURN(format, options.unpack ? FormatOfFirst(job) : FormatOfObjects(job));
  }
  if (options.unpack && (format.empty() || format == "files")) {
    return Status(Code::kInvalidArgument,
                  "what is in the compressed shards is no format of records that is known");
  }
  if (format.empty() || format == "files") return IndexedFiles(job, options, left_out);
  auto source = IndexedRecords(job, options, format, left_out);
  if (options.format != "auto" || !source.ok() || left_out->files == 0) return source;
  // Not all of it is that. Beside pictures it is their samples' fields that look like shards.
  constexpr std::string_view kFields[] = {"jsonl", "csv", "npy", "npz"};
  if (std::ranges::find(kFields, format) != std::end(kFields)) {
    return IndexedFiles(job, options, left_out);
  }
  return Status(Code::kInvalidArgument,
                fmt::format("{} holds shards of {} and {} other objects: --format {} packs what is "
                            "in the shards and leaves the others out, --format files takes files "
                            "of one key for a sample",
                            job.source_uri, format, left_out->files, format));
}

}  // namespace forebay::engine
