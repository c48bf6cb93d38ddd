#include "catalog/text_column.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "catalog/block_file.h"
#include "catalog/coding.h"

namespace forebay::catalog {
namespace {
constexpr uint32_t kRun = 16;  // texts of which each builds on the one before
}  // namespace

// Where each run begins, then the texts: what each has in common with the one before, and the rest.
std::vector<std::byte> PackTexts(const std::vector<std::string_view>& texts) {
  Writer starts;
  Writer entries;
  for (size_t i = 0; i < texts.size(); ++i) {
    size_t shared = 0;
    if (i % kRun == 0) {
      starts.Word(static_cast<uint32_t>(entries.size()));
    } else {
      const std::string_view before = texts[i - 1];
      const size_t most = std::min(before.size(), texts[i].size());
      while (shared < most && before[shared] == texts[i][shared]) ++shared;
    }
    entries.Varint(shared);
    entries.Text(texts[i].substr(shared));
  }
  starts.Append(entries.bytes());
  return std::move(starts.bytes());
}

Result<std::string> TextAt(ByteView column, uint32_t count, uint32_t i) {
  const size_t starts = (size_t{count} + kRun - 1) / kRun * sizeof(uint32_t);
  if (column.size() < starts) return DamagedCatalog("a column is cut off");
  uint32_t start = 0;
  std::memcpy(&start, column.data() + i / kRun * sizeof(start), sizeof(start));
  const ByteView entries = column.subspan(starts);
  if (start > entries.size()) return DamagedCatalog("a run begins behind its column");
  Reader in(entries.subspan(start));
  std::string text;
  for (uint32_t k = i / kRun * kRun; k <= i; ++k) {
    const uint64_t shared = in.Varint();
    const std::string rest = in.Text();
    if (!in.ok() || shared > text.size()) return DamagedCatalog("a text is cut off");
    text.resize(shared);
    text += rest;
  }
  return text;
}

}  // namespace forebay::catalog
