#include "format/token_shard.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "format/little_endian.h"
#include "format/sniff.h"

namespace forebay::format {
namespace {

constexpr uint64_t kIndexMost = 4ULL << 30;
constexpr std::string_view kShardName = ".bin";

Result<std::vector<std::byte>> HeadOf(const Shard& shard) {
  std::vector<std::byte> head(std::min<uint64_t>(shard.size, kSniffBytes));
  if (!head.empty()) FB_RETURN_IF_ERROR(shard.read({0, head.size()}, head));
  return head;
}

// Nothing where there is none.
Result<std::optional<std::vector<std::byte>>> IndexBeside(const Shard& shard) {
  if (!shard.beside || !shard.name.ends_with(kShardName)) {
    return std::optional<std::vector<std::byte>>();
  }
  std::string name = shard.name.substr(0, shard.name.size() - kShardName.size());
  auto index = shard.beside(name.append(kTokenIndexName), kIndexMost);
  if (index.ok()) return std::optional(*std::move(index));
  if (index.code() == Code::kNotFound) return std::optional<std::vector<std::byte>>();
  return std::move(index).status().WithContext(name);
}

class Documents {
 public:
  Documents(TokenType type, uint64_t at, const OnRecord& on_record, ScanReport* report)
      : type_(type), at_(at), on_record_(on_record), report_(report) {}

  Status Add(uint64_t tokens) {
    const uint64_t bytes = tokens * TokenBytes(type_);
    const ByteRange range{at_, at_ + bytes};
    at_ = range.end;
    if (bytes == 0) {
      report_->Note(range.offset, "a document without tokens, left out");
      return {};
    }
    ++report_->records;
    return on_record_({.key = "",
                       .range = range,
                       .fields = {{.name = "tokens",
                                   .range = range,
                                   .bytes = bytes,
                                   .dtype = std::string(TokenTypeName(type_))}}});
  }

 private:
  TokenType type_;
  uint64_t at_;
  const OnRecord& on_record_;
  ScanReport* report_;
};

// By Megatron's documents, or sequence by sequence.
Status ScanIndexed(const Shard& shard, ByteView bytes, const OnRecord& on_record,
                   ScanReport* report) {
  const std::string_view stem =
      std::string_view(shard.name).substr(0, shard.name.size() - kShardName.size());
  const std::string name = fmt::format("{}{}", stem, kTokenIndexName);
  FB_ASSIGN_OR_RETURN(const TokenIndex index, ParseTokenIndex(bytes, shard.size, {name, 0}));
  const auto length = [&](uint64_t i) {
    return static_cast<uint64_t>(Load<int32_t>(index.lengths, i * sizeof(int32_t)));
  };
  Documents documents(index.type, 0, on_record, report);
  const uint64_t marks = index.documents.size() / sizeof(int64_t);
  uint64_t sequence = 0;
  for (uint64_t i = 1; i < marks; ++i) {
    const auto end = static_cast<uint64_t>(Load<int64_t>(index.documents, i * sizeof(int64_t)));
    uint64_t tokens = 0;
    for (; sequence < end; ++sequence) tokens += length(sequence);
    FB_RETURN_IF_ERROR(documents.Add(tokens));
  }
  for (; sequence < index.sequences; ++sequence) {
    FB_RETURN_IF_ERROR(documents.Add(length(sequence)));
  }
  const uint64_t indexed = index.tokens * TokenBytes(index.type);
  if (indexed < shard.size) {
    report->Note(indexed,
                 fmt::format("{} bytes behind the last document, left out", shard.size - indexed));
  }
  return {};
}

}  // namespace

Result<bool> IsTokenShard(const Shard& shard, const TokenShardOptions&) {
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> head, HeadOf(shard));
  const Kind kind = Sniff(head, shard.size, shard.name);
  if (kind == Kind::kLlmcTokens) return true;
  // Nothing tells numbers of two bytes from a container by chance: the name decides.
  return shard.name.ends_with(kShardName) && kind != Kind::kMegatronIndex;
}

Status ScanTokens(const Shard& shard, const TokenShardOptions& options, const OnRecord& on_record,
                  ScanReport* report) {
  FB_ASSIGN_OR_RETURN(const std::vector<std::byte> head, HeadOf(shard));
  const Place place{shard.name, 0};
  report->bytes_read += head.size();
  FB_ASSIGN_OR_RETURN(const auto index, IndexBeside(shard));
  if (index) {
    report->bytes_read += index->size();
    return ScanIndexed(shard, *index, on_record, report);
  }
  TokenFile file;
  if (Sniff(head, shard.size, shard.name) == Kind::kLlmcTokens) {
    FB_ASSIGN_OR_RETURN(file, LlmcTokens(head, shard.size, place));
  } else if (options.type) {
    FB_ASSIGN_OR_RETURN(file, RawTokens(head, shard.size, *options.type, place));
  } else {
    return {Code::kInvalidArgument,
            "the file does not say what its tokens are: give their type (--dtype uint16)"};
  }
  Documents documents(file.type, file.offset, on_record, report);
  return file.count == 0 ? Status() : documents.Add(file.count);
}

}  // namespace forebay::format
