// LitData's chunks: a count, a table of offsets, items.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/damage.h"
#include "format/record.h"

namespace forebay::format {

struct LitDataChunk {
  std::string name;  // in the folder of index.json; never a path
  uint64_t items = 0;
  uint64_t bytes = 0;
  std::optional<uint64_t> tokens;  // where it was written for the TokensLoader
};

struct LitDataIndex {
  std::vector<std::string> fields;  // how each is kept: "jpeg", "int", "no_header_tensor:16"
  std::string compression;          // "zstd"; "": none
  std::string item_loader;          // "TokensLoader"
  std::vector<LitDataChunk> chunks;
};

Result<LitDataIndex> ParseLitDataIndex(std::string_view json, const Place& place = {});

struct LitDataOptions {
  static constexpr uint64_t kMaxItemBytes = uint64_t{1} << 30;
  static constexpr uint64_t kMaxItems = uint64_t{64} << 20;

  // Names of an item's fields, of which each item says the sizes; none: the item is the one field,
  // "item".
  std::vector<std::string> fields = {};
  uint64_t max_item_bytes = kMaxItemBytes;
  uint64_t max_items = kMaxItems;
};

// A record is an item.
Status ScanLitData(const Shard& shard, const LitDataOptions& options, const OnRecord& on_record,
                   ScanReport* report);

// The `count` fields of an item, each a view of it. `values` is replaced.
Status OpenLitDataItem(ByteView item, size_t count, std::vector<ByteView>* values,
                       const Place& place = {});

}  // namespace forebay::format
