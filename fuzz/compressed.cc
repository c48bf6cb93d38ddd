#include "format/compressed.h"
#include "base/assert.h"
#include "base/crc32c.h"
#include "fuzz/shards.h"
#include "fuzz/targets.h"

namespace forebay::fuzz {
namespace {

using format::CompressedRows;

constexpr CompressedRows kKinds[] = {CompressedRows::kMds, CompressedRows::kJsonLines,
                                     CompressedRows::kCsv, CompressedRows::kCsvNoHeader,
                                     CompressedRows::kLibsvm};

}  // namespace

// A byte: what is said to be in it. A length and what a catalog says of the shard, then the shard.
void Compressed(ByteView input) {
  constexpr size_t kHead = 2;
  constexpr uint64_t kMost = 1 << 20;
  if (input.size() < kHead) return;
  const CompressedRows rows = kKinds[static_cast<size_t>(input[0]) % std::size(kKinds)];
  const size_t words = std::min(static_cast<size_t>(input[1]), input.size() - kHead);
  const std::string_view key = AsText(input.subspan(kHead, words));
  const ByteView shard = input.subspan(kHead + words);
  for (size_t fields = 1; fields < 4; ++fields) {
    const std::vector<ByteRange> ranges(fields, {0, shard.size()});
    auto said = format::UnpackCompressedShard(rows, key, ranges);
    if (!said.ok()) continue;
    FB_ASSERT(format::PackCompressedShard(*said).size() <= key.size());
    if (said->rows > kMost || said->chunks[0].unpacked > kMost) continue;
    std::vector<format::TableValues> values(fields);
    std::vector<const format::CompressedChunk*> chunks;
    std::vector<format::TableValues*> out;
    for (size_t i = 0; i < fields; ++i) {
      said->chunks[i].crc32c = Crc32c(shard);
      chunks.push_back(&said->chunks[i]);
      out.push_back(&values[i]);
    }
    if (!format::DecodeCompressed(chunks, said->rows, shard, {}, out).ok()) continue;
    for (size_t i = 0; i < fields; ++i) {
      CheckValues(values[i], chunks[i]->value_bytes, said->rows);
      FB_ASSERT(values[i].values.size() == chunks[i]->bytes);
    }
  }
}

}  // namespace forebay::fuzz
