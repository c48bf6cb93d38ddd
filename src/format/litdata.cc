#include "format/litdata.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "format/foreign.h"
#include "format/little_endian.h"
#include "format/window.h"

namespace forebay::format {
namespace {

using nlohmann::json;

constexpr uint64_t kWord = sizeof(uint32_t);
constexpr uint64_t kMaxIndexBytes = uint64_t{256} << 20;

// The fields' ranges within an item of `bytes` that begins with `sizes`.
Status Split(ByteView sizes, uint64_t bytes, std::vector<ByteRange>* ranges, const Place& place) {
  ranges->clear();
  uint64_t at = sizes.size();
  for (uint64_t i = 0; i < sizes.size(); i += kWord) {
    const uint64_t size = Load<uint32_t>(sizes, i);
    const auto range = RangeWithin(at, size, bytes);
    if (!range) {
      return Truncated(place + at, fmt::format("field {} of an item", i / kWord), size, bytes - at);
    }
    ranges->push_back(*range);
    at = range->end;
  }
  if (at == bytes) return {};
  return Damaged(place, fmt::format("an item of {} bytes", bytes), fmt::format("fields of {}", at));
}

class LitDataScan {
 public:
  LitDataScan(const Shard& shard, const LitDataOptions& options, const OnRecord& on_record,
              ScanReport* report)
      : options_(options), on_record_(on_record), report_(report), window_(shard, report) {}

  Status Run() {
    FB_RETURN_IF_ERROR(ReadTable());
    for (size_t i = 0; i + 1 < offsets_.size(); ++i) {
      FB_RETURN_IF_ERROR(Deliver({offsets_[i], offsets_[i + 1]}));
    }
    return {};
  }

 private:
  Status ReadTable() {
    FB_ASSIGN_OR_RETURN(const ByteView head, window_.AtLeast(0, kWord));
    FB_RETURN_IF_ERROR(RefuseForeign(head, window_.PlaceAt(0)));
    FB_ASSIGN_OR_RETURN(const ByteView first, window_.At(0, kWord, "a chunk"));
    const uint64_t items = Load<uint32_t>(first);
    if (items > options_.max_items) {
      return AboveLimit(window_.PlaceAt(0), "the count of items", items, options_.max_items);
    }
    const uint64_t end = kWord * (items + 2);
    if (end > window_.size()) {
      return Truncated(window_.PlaceAt(0), fmt::format("a table of {} items", items), end,
                       window_.size());
    }
    offsets_.reserve(items + 1);
    for (uint64_t at = kWord; at < end;) {
      const uint64_t size = std::min<uint64_t>(end - at, Window::kBytes / kWord * kWord);
      FB_ASSIGN_OR_RETURN(const ByteView table, window_.At(at, size, "a table of offsets"));
      for (uint64_t i = 0; i < size; i += kWord) {
        FB_RETURN_IF_ERROR(AddOffset(Load<uint32_t>(table, i), at + i, end));
      }
      at += size;
    }
    if (offsets_.back() == window_.size()) return {};
    return Damaged(window_.PlaceAt(end - kWord),
                   fmt::format("the last item's end at {}", window_.size()),
                   fmt::format("it at {}", offsets_.back()));
  }

  Status AddOffset(uint32_t offset, uint64_t at, uint64_t table_end) {
    const Place place = window_.PlaceAt(at);
    if (offsets_.empty() && offset != table_end) {
      return Damaged(place, fmt::format("the first item at {}", table_end),
                     fmt::format("it at {}", offset));
    }
    const uint64_t before = offsets_.empty() ? table_end : offsets_.back();
    if (offset < before) {
      return Damaged(place, fmt::format("an offset of at least {}", before),
                     fmt::format("{}", offset));
    }
    if (offset > window_.size()) return Truncated(place, "a chunk", offset, window_.size());
    if (offset - before > options_.max_item_bytes) {
      return AboveLimit(place, "an item's size", offset - before, options_.max_item_bytes);
    }
    offsets_.push_back(offset);
    return {};
  }

  Status Deliver(ByteRange item) {
    FoundRecord record{.range = item};
    if (options_.fields.empty()) {
      FB_RETURN_IF_ERROR(AddField("item", item, &record));
    } else {
      const uint64_t size = kWord * options_.fields.size();
      const Place place = window_.PlaceAt(item.offset);
      if (item.size() < size) return Truncated(place, "an item's sizes", size, item.size());
      FB_ASSIGN_OR_RETURN(const ByteView sizes, window_.At(item.offset, size, "an item's sizes"));
      FB_RETURN_IF_ERROR(Split(sizes, item.size(), &ranges_, place));
      for (size_t i = 0; i < ranges_.size(); ++i) {
        const ByteRange range{item.offset + ranges_[i].offset, item.offset + ranges_[i].end};
        FB_RETURN_IF_ERROR(AddField(options_.fields[i], range, &record));
      }
    }
    ++report_->records;
    return on_record_(std::move(record));
  }

  Status AddField(const std::string& name, ByteRange range, FoundRecord* record) {
    FB_ASSIGN_OR_RETURN(const auto crc, window_.Crc32cOf(range));
    record->fields.push_back({name, range, range.size(), crc});
    return {};
  }

  const LitDataOptions& options_;
  const OnRecord& on_record_;
  ScanReport* const report_;
  Window window_;
  std::vector<uint32_t> offsets_;
  std::vector<ByteRange> ranges_;
};

// What is at `key` and of the kind wanted, else null.
const json* Find(const json& object, const char* key, bool (json::*is)() const noexcept) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found != object.end() && ((*found).*is)() ? &*found : nullptr;
}

std::string TextAt(const json& object, const char* key) {
  const json* found = Find(object, key, &json::is_string);
  return found == nullptr ? std::string() : found->get<std::string>();
}

Result<LitDataChunk> ChunkOf(const json& object, const Place& place) {
  const json* bytes = Find(object, "chunk_bytes", &json::is_number_unsigned);
  const json* items = Find(object, "chunk_size", &json::is_number_unsigned);
  const json* tokens = Find(object, "dim", &json::is_number_unsigned);
  LitDataChunk chunk{.name = TextAt(object, "filename")};
  if (bytes == nullptr || items == nullptr) {
    return Damaged(place, "'chunk_bytes' and 'chunk_size' of a chunk", "none in the JSON text");
  }
  if (chunk.name.empty() || chunk.name == "." || chunk.name == ".." ||
      chunk.name.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    return Damaged(place, "the name of a file in the index's folder", "none, or a path");
  }
  chunk.bytes = bytes->get<uint64_t>();
  chunk.items = items->get<uint64_t>();
  if (tokens != nullptr) chunk.tokens = tokens->get<uint64_t>();
  return chunk;
}

}  // namespace

Status ScanLitData(const Shard& shard, const LitDataOptions& options, const OnRecord& on_record,
                   ScanReport* report) {
  return LitDataScan(shard, options, on_record, report).Run();
}

Status OpenLitDataItem(ByteView item, size_t count, std::vector<ByteView>* values,
                       const Place& place) {
  values->clear();
  const auto sizes = Total(count, kWord);
  if (!sizes || item.size() < *sizes) {
    return Truncated(place, "an item's sizes", sizes.value_or(UINT64_MAX), item.size());
  }
  std::vector<ByteRange> ranges;
  FB_RETURN_IF_ERROR(Split(item.first(*sizes), item.size(), &ranges, place));
  for (const ByteRange& range : ranges) {
    values->push_back(item.subspan(range.offset, range.size()));
  }
  return {};
}

Result<LitDataIndex> ParseLitDataIndex(std::string_view text, const Place& place) {
  if (text.size() > kMaxIndexBytes) {
    return AboveLimit(place, "the index's size", text.size(), kMaxIndexBytes);
  }
  const json object = json::parse(text, nullptr, false);
  const json* config = Find(object, "config", &json::is_object);
  const json* chunks = Find(object, "chunks", &json::is_array);
  if (config == nullptr || chunks == nullptr) {
    return Damaged(place, "'config' and 'chunks' of a LitData index", "none in the JSON text");
  }
  LitDataIndex index;
  index.compression = TextAt(*config, "compression");
  index.item_loader = TextAt(*config, "item_loader");
  if (const json* formats = Find(*config, "data_format", &json::is_array); formats != nullptr) {
    for (const json& format : *formats) {
      if (!format.is_string()) return Damaged(place, "'data_format' of texts", "others");
      index.fields.push_back(format.get<std::string>());
    }
  }
  for (const json& entry : *chunks) {
    FB_ASSIGN_OR_RETURN(LitDataChunk chunk, ChunkOf(entry, place));
    index.chunks.push_back(std::move(chunk));
  }
  return index;
}

}  // namespace forebay::format
