#include "format/parquet/scan.h"

#include <arrow/memory_pool.h>
#include <fmt/core.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/size_statistics.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "base/ascii.h"
#include "format/little_endian.h"
#include "format/parquet/codec.h"
#include "format/parquet_thrift.h"

namespace forebay::format::parquet {
namespace {

namespace pq = ::parquet;

constexpr uint64_t kTailBytes = 64 << 10;  // of a file, read at once
constexpr uint64_t kMagicBytes = 4;
constexpr uint64_t kEndBytes = 8;                // the footer's length, and the magic
constexpr uint64_t kIndexesBytes = 64ULL << 20;  // of one row group's, read at once
constexpr size_t kNameBytes = 1024;
constexpr uint64_t kRowsMost = uint64_t{1} << 40;  // of a file
constexpr uint64_t kOldDictionaryHeadBytes = 100;  // that old writers left out of the size

// A column that is exposed, of one file.
struct Leaf {
  int number = 0;  // among the file's leaves
  std::string name;
  ParquetColumn column;
  std::string dtype;  // "": bytes
  std::vector<int64_t> shape;
};

struct File {
  const Shard& shard;
  uint64_t footer_at = 0;
  std::shared_ptr<pq::FileMetaData> meta;
  pq::ReaderProperties properties = pq::ReaderProperties(arrow::system_memory_pool());
  std::vector<Leaf> leaves;

  Place at(uint64_t offset) const { return {shard.name, offset}; }
};

Result<std::vector<std::byte>> ReadFooter(const Shard& shard, uint64_t* footer_at) {
  const Place start{shard.name, 0};
  if (shard.size < kMagicBytes + kEndBytes) {
    return Truncated(start, "a Parquet file", kMagicBytes + kEndBytes, shard.size);
  }
  std::vector<std::byte> tail(std::min(shard.size, kTailBytes));
  const uint64_t tail_at = shard.size - tail.size();
  FB_RETURN_IF_ERROR(shard.read({tail_at, shard.size}, tail));
  const std::string_view magic = AsText(ByteView(tail).last(kMagicBytes));
  const Place end{shard.name, shard.size - kEndBytes};
  if (magic == "PARE") return Refused(end, "an encrypted Parquet file: there is no key for it");
  if (magic != "PAR1") {
    return Damaged(end, "the end of a Parquet file ('PAR1')", "other bytes: it may be cut off");
  }
  const auto length = Load<uint32_t>(tail, tail.size() - kEndBytes);
  const uint64_t most =
      std::min(shard.size - kMagicBytes - kEndBytes, ParquetLimits{}.footer_bytes);
  if (length > most) return AboveLimit(end, "the size of a Parquet footer", length, most);
  *footer_at = shard.size - kEndBytes - length;
  std::vector<std::byte> footer(length);
  if (*footer_at >= tail_at) {
    const auto from = tail.begin() + static_cast<std::ptrdiff_t>(*footer_at - tail_at);
    std::copy(from, from + length, footer.begin());
  } else {
    FB_RETURN_IF_ERROR(shard.read({*footer_at, *footer_at + length}, footer));
  }
  FB_RETURN_IF_ERROR(CheckParquetFooter(footer, {}, {shard.name, *footer_at}));
  return footer;
}

using Stored = ParquetColumn::Stored;

void TypeInteger(const pq::ColumnDescriptor& descr, Leaf& leaf) {
  const bool wide = leaf.column.stored == Stored::kInt64;
  leaf.dtype = wide ? "int64" : "int32";
  leaf.column.value_bytes = wide ? 8 : 4;
  const auto& logical = descr.logical_type();
  if (!logical || !logical->is_int()) return;
  const auto& type = static_cast<const pq::IntLogicalType&>(*logical);
  const int bits = type.bit_width();
  if (wide ? bits != 64 : bits != 8 && bits != 16 && bits != 32) return;
  leaf.dtype = fmt::format("{}int{}", type.is_signed() ? "" : "u", bits);
  leaf.column.value_bytes = static_cast<uint32_t>(bits / 8);
}

// Whether its values have a type that comes out.
bool SetType(const pq::ColumnDescriptor& descr, Leaf& leaf) {
  ParquetColumn& column = leaf.column;
  column.stored = static_cast<Stored>(descr.physical_type());
  switch (column.stored) {
    case Stored::kBool:
      leaf.dtype = "bool";
      column.value_bytes = 1;
      return true;
    case Stored::kInt32:
    case Stored::kInt64:
      TypeInteger(descr, leaf);
      return true;
    case Stored::kInt96:
      leaf.dtype = "int64";
      column.value_bytes = 8;
      return true;
    case Stored::kFloat:
      leaf.dtype = "float32";
      column.value_bytes = 4;
      return true;
    case Stored::kDouble:
      leaf.dtype = "float64";
      column.value_bytes = 8;
      return true;
    case Stored::kBytes:
      return true;
    case Stored::kFixed:
      break;
  }
  constexpr int kFixedMost = 1 << 20;
  if (column.stored != Stored::kFixed) return false;
  if (descr.type_length() < 1 || descr.type_length() > kFixedMost) return false;
  column.fixed_bytes = column.value_bytes = static_cast<uint32_t>(descr.type_length());
  leaf.dtype = "uint8";
  leaf.shape = {descr.type_length()};
  if (descr.logical_type() && descr.logical_type()->is_float16() && column.fixed_bytes == 2) {
    leaf.dtype = "float16";
    leaf.shape.clear();
  }
  return true;
}

// From the root to the leaf, without the root.
std::vector<const pq::schema::Node*> PathTo(const pq::ColumnDescriptor& descr) {
  std::vector<const pq::schema::Node*> nodes;
  for (const auto* node = descr.schema_node().get(); node != nullptr && node->parent() != nullptr;
       node = node->parent()) {
    nodes.insert(nodes.begin(), node);
  }
  return nodes;
}

bool IsList(const pq::schema::Node& node) {
  return (node.logical_type() && node.logical_type()->is_list()) ||
         node.converted_type() == pq::ConvertedType::LIST;
}

// As the data sets of Hugging Face hold pictures and sounds: {bytes, path}.
bool IsBytesAndPath(const pq::schema::Node& node) {
  if (!node.is_group()) return false;
  const auto& group = static_cast<const pq::schema::GroupNode&>(node);
  return group.field_count() == 2 && group.FieldIndex("bytes") >= 0 &&
         group.FieldIndex("path") >= 0;
}

// The dotted path, of a list the list's; the bytes of {bytes, path} are what that is named.
std::string NameOf(const std::vector<const pq::schema::Node*>& path) {
  std::string name;
  for (size_t i = 0; i < path.size(); ++i) {
    name += (i == 0 ? "" : ".") + path[i]->name();
    if (IsList(*path[i])) break;
    const bool last = i + 2 == path.size();
    if (last && path[i + 1]->name() == "bytes" && IsBytesAndPath(*path[i])) break;
  }
  return name;
}

// nullopt: a kind of column that is not read.
std::optional<Leaf> LeafOf(const pq::SchemaDescriptor& schema, int number) {
  const pq::ColumnDescriptor& descr = *schema.Column(number);
  Leaf leaf{.number = number};
  if (descr.max_repetition_level() > 1 || descr.max_definition_level() > ParquetLimits{}.depth) {
    return std::nullopt;
  }
  const auto path = PathTo(descr);
  leaf.name = NameOf(path);
  leaf.column.max_definition = static_cast<uint8_t>(descr.max_definition_level());
  leaf.column.max_repetition = static_cast<uint8_t>(descr.max_repetition_level());
  uint8_t level = 0;
  for (const auto* node : path) {
    level += node->is_required() ? 0 : 1;
    if (node->is_repeated()) leaf.column.list_definition = level;
  }
  if (!SetType(descr, leaf)) return std::nullopt;
  if (leaf.column.max_repetition == 0) return leaf;
  if (leaf.column.value_bytes == 0 || !leaf.shape.empty()) return std::nullopt;
  leaf.shape = {-1};
  return leaf;
}

Status OpenFile(File& file, ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> footer, ReadFooter(file.shard, &file.footer_at));
  auto length = static_cast<uint32_t>(footer.size());
  file.meta = pq::FileMetaData::Make(footer.data(), &length, file.properties);
  const Place place = file.at(file.footer_at);
  if (file.meta->is_encryption_algorithm_set()) {
    return Refused(place, "a Parquet file with encrypted columns: there is no key for them");
  }
  std::map<std::string, int> names;
  const pq::SchemaDescriptor& schema = *file.meta->schema();
  for (int i = 0; i < schema.num_columns(); ++i) {
    std::optional<Leaf> leaf = LeafOf(schema, i);
    if (!leaf || leaf->name.empty() || Printable(leaf->name, kNameBytes) != leaf->name) {
      report->Note(
          file.footer_at,
          fmt::format("column '{}' is left out: its type is none of those that come as arrays",
                      Printable(schema.Column(i)->path()->ToDotString(), kNameBytes)));
      continue;
    }
    ++names[leaf->name];
    file.leaves.push_back(*std::move(leaf));
  }
  // Of columns of one name none is the one that is meant.
  std::erase_if(file.leaves, [&](const Leaf& leaf) { return names[leaf.name] > 1; });
  for (const auto& [name, columns] : names) {
    if (columns == 1) continue;
    report->Note(file.footer_at,
                 fmt::format("{} columns are named '{}': they are left out", columns, name));
  }
  return {};
}

bool SetRange(const File& file, const pq::ColumnChunkMetaData& meta, ByteRange* range) {
  int64_t start = meta.data_page_offset();
  if (meta.has_dictionary_page() && meta.dictionary_page_offset() > 0 &&
      meta.dictionary_page_offset() < start) {
    start = meta.dictionary_page_offset();
  }
  if (start < static_cast<int64_t>(kMagicBytes) || meta.total_compressed_size() < 0) return false;
  auto bytes = static_cast<uint64_t>(meta.total_compressed_size());
  const auto within = RangeWithin(static_cast<uint64_t>(start), bytes, file.footer_at);
  if (!within) return false;
  *range = *within;
  const auto& writer = file.meta->writer_version();
  if (writer.VersionLt(pq::ApplicationVersion::PARQUET_816_FIXED_VERSION())) {
    range->end = std::min(range->end + kOldDictionaryHeadBytes, file.footer_at);
  }
  return true;
}

Result<ParquetChunk> ChunkOf(const File& file, const pq::ColumnChunkMetaData& meta,
                             const Leaf& leaf, uint64_t rows) {
  const Place place = file.at(file.footer_at);
  if (!meta.file_path().empty()) {
    return Refused(place, fmt::format("column '{}' lies in another file", leaf.name));
  }
  if (meta.crypto_metadata() != nullptr) {
    return Refused(place, fmt::format("column '{}' is encrypted", leaf.name));
  }
  if (!meta.can_decompress()) {
    return Refused(place, fmt::format("column '{}' is compressed as this Arrow cannot undo ({})",
                                      leaf.name, static_cast<int>(meta.compression())));
  }
  ParquetChunk chunk{.column = leaf.column};
  const bool counted = leaf.column.max_repetition == 0
                           ? meta.num_values() == static_cast<int64_t>(rows)
                           : meta.num_values() >= static_cast<int64_t>(rows);
  if (!counted || static_cast<int>(meta.type()) != static_cast<int>(leaf.column.stored)) {
    return Damaged(place, fmt::format("column '{}' of {} rows", leaf.name, rows),
                   fmt::format("{} values", meta.num_values()));
  }
  if (!SetRange(file, meta, &chunk.range)) {
    return Damaged(
        place, fmt::format("column '{}' inside of the file", leaf.name),
        fmt::format("{} bytes at {}", meta.total_compressed_size(), meta.data_page_offset()));
  }
  chunk.codec = NumberOf(meta.compression());
  chunk.always_compressed = file.meta->writer_version().VersionLt(
                                pq::ApplicationVersion::PARQUET_CPP_10353_FIXED_VERSION()) &&
                            file.meta->created_by().starts_with("parquet-cpp");
  chunk.entries = static_cast<uint64_t>(meta.num_values());
  chunk.uncompressed = static_cast<uint64_t>(std::max<int64_t>(meta.total_uncompressed_size(), 0));
  // What comes of a dictionary may be much more than its pages.
  const auto sizes = meta.size_statistics();
  if (sizes && sizes->unencoded_byte_array_data_bytes.value_or(0) > 0) {
    chunk.uncompressed = std::max(chunk.uncompressed,
                                  static_cast<uint64_t>(*sizes->unencoded_byte_array_data_bytes));
  }
  chunk.uncompressed = std::min(chunk.uncompressed, kParquetBytesMost);
  return chunk;
}

// What an offset index says, where it can be: pages one after the other to the chunk's end.
std::vector<TablePage> PagesOf(const pq::OffsetIndex& index, const ParquetChunk& chunk,
                               uint64_t rows) {
  std::vector<TablePage> pages;
  for (const pq::PageLocation& location : index.page_locations()) {
    const uint64_t at = pages.empty() ? chunk.range.offset : pages.back().range.end;
    const auto first = static_cast<uint64_t>(location.first_row_index);
    const bool begins = pages.empty() ? first == 0 : first > pages.back().first_row;
    if (location.offset < 0 || location.compressed_page_size <= 0 || !begins || first >= rows) {
      return {};
    }
    const auto offset = static_cast<uint64_t>(location.offset);
    const auto range =
        RangeWithin(offset, static_cast<uint64_t>(location.compressed_page_size), chunk.range.end);
    if (!range || offset < at || (!pages.empty() && offset != at)) return {};
    pages.push_back({*range, first});
  }
  return pages;
}

// The offset indexes of a row group lie side by side.
Status SetPages(const File& file, const pq::RowGroupMetaData& meta, uint64_t rows,
                ParquetGroup& group) {
  std::vector<std::pair<size_t, ByteRange>> indexes;
  ByteRange all{std::numeric_limits<uint64_t>::max(), 0};
  for (size_t i = 0; i < file.leaves.size(); ++i) {
    const auto location = meta.ColumnChunk(file.leaves[i].number)->GetOffsetIndexLocation();
    if (!location || location->offset < 0 || location->length <= 0) continue;
    const auto range = RangeWithin(static_cast<uint64_t>(location->offset),
                                   static_cast<uint64_t>(location->length), file.footer_at);
    if (!range) continue;
    indexes.emplace_back(i, *range);
    all = {std::min(all.offset, range->offset), std::max(all.end, range->end)};
  }
  if (indexes.empty() || all.size() > kIndexesBytes) return {};
  std::vector<std::byte> bytes(all.size());
  FB_RETURN_IF_ERROR(file.shard.read(all, bytes));
  for (const auto& [i, range] : indexes) {
    const auto index = pq::OffsetIndex::Make(bytes.data() + (range.offset - all.offset),
                                             static_cast<uint32_t>(range.size()), file.properties);
    group.chunks[i].pages = PagesOf(*index, group.chunks[i], rows);
  }
  return {};
}

uint64_t DecodedBytes(const ParquetChunk& chunk, uint64_t rows) {
  const ParquetColumn& column = chunk.column;
  if (column.value_bytes == 0) return chunk.uncompressed + rows * sizeof(uint64_t);
  return chunk.entries * column.value_bytes +
         (column.max_repetition > 0 ? rows * sizeof(uint64_t) : 0);
}

// `end`: of the row group before.
Status ScanGroup(const File& file, int number, uint64_t* end, const OnRecord& on_record,
                 ScanReport* report) {
  const auto meta = file.meta->RowGroup(number);
  const Place place = file.at(file.footer_at);
  if (meta->num_rows() < 0 || static_cast<uint64_t>(meta->num_rows()) > kRowsMost) {
    return AboveLimit(place, "the rows of a row group", static_cast<uint64_t>(meta->num_rows()),
                      kRowsMost);
  }
  ParquetGroup group{.rows = static_cast<uint64_t>(meta->num_rows())};
  if (group.rows == 0) return {};
  FoundRecord record{.range = {file.footer_at, 0}};
  for (const Leaf& leaf : file.leaves) {
    FB_ASSIGN_OR_RETURN(ParquetChunk chunk,
                        ChunkOf(file, *meta->ColumnChunk(leaf.number), leaf, group.rows));
    record.range = {std::min(record.range.offset, chunk.range.offset),
                    std::max(record.range.end, chunk.range.end)};
    record.fields.push_back({.name = leaf.name,
                             .range = chunk.range,
                             .bytes = DecodedBytes(chunk, group.rows),
                             .dtype = leaf.dtype,
                             .shape = leaf.shape});
    group.chunks.push_back(std::move(chunk));
  }
  if (record.range.offset < *end) {  // a catalog's records lie one behind the other
    return Damaged(file.at(record.range.offset), "a row group behind the one before it",
                   fmt::format("one that ends at {}", *end));
  }
  *end = record.range.end;
  FB_RETURN_IF_ERROR(SetPages(file, *meta, group.rows, group));
  record.key = PackParquetGroup(group);
  report->records += group.rows;
  return on_record(std::move(record));
}

Status ScanFile(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  File file{.shard = shard};
  FB_RETURN_IF_ERROR(OpenFile(file, report));
  if (file.leaves.empty()) return Refused(file.at(file.footer_at), "no column that is read");
  uint64_t end = 0;
  for (int i = 0; i < file.meta->num_row_groups(); ++i) {
    Status status = ScanGroup(file, i, &end, on_record, report);
    if (!status.ok()) return std::move(status).WithContext(fmt::format("row group {}", i));
  }
  return {};
}

}  // namespace

Status Scan(const Shard& shard, const OnRecord& on_record, ScanReport* report) {
  try {
    return ScanFile(shard, on_record, report);
  } catch (const std::exception& error) {
    return Damaged({shard.name, 0}, "a Parquet file", Printable(error.what(), kNameBytes));
  }
}

}  // namespace forebay::format::parquet
