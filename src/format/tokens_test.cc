#include "format/tokens.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "format/token_shard.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using testing::Flipped;
using ::testing::HasSubstr;
using testing::Number;
using testing::Replaced;
using Writer = TokenIndex::Writer;

std::string LlmcHead(uint32_t magic, uint32_t version, int32_t count) {
  std::string head = Number(magic) + Number(version) + Number(count);
  head.resize(1024);
  return head;
}

std::string Index(Writer writer, uint8_t code, const std::vector<int32_t>& lengths, uint64_t item,
                  const std::vector<int64_t>& documents = {}) {
  std::string index = std::string("MMIDIDX\0\0", 9) + Number<uint64_t>(1) + Number(code) +
                      Number<uint64_t>(lengths.size());
  if (writer == Writer::kMegatron) index += Number<uint64_t>(documents.size());
  for (const int32_t length : lengths) index += Number(length);
  uint64_t offset = 0;
  for (const int32_t length : lengths) {
    index += Number<int64_t>(static_cast<int64_t>(offset));
    offset += static_cast<uint64_t>(length) * item;
  }
  for (const int64_t document : documents) index += Number(document);
  return index;
}

TEST(Tokens, without_a_header_need_their_type) {
  const auto tokens = RawTokens({}, 10, TokenType::kUint16);
  ASSERT_TRUE(tokens.ok());
  EXPECT_EQ(tokens->count, 5U);
  EXPECT_EQ(tokens->offset, 0U);
  EXPECT_EQ(RawTokens({}, 11, TokenType::kUint16).code(), Code::kDataLoss);
  EXPECT_THAT(
      RawTokens(AsBytes(LlmcHead(20240520, 1, 0)), 1024, TokenType::kUint16).status().ToString(),
      HasSubstr("llm.c"));
  EXPECT_FALSE(RawTokens(AsBytes("\x93NUMPY"), 10, TokenType::kUint16).ok());
  EXPECT_EQ(ParseTokenType("uint16"), TokenType::kUint16);
  EXPECT_EQ(ParseTokenType("float64"), TokenType::kFloat64);
  EXPECT_EQ(ParseTokenType("uint"), std::nullopt);
  EXPECT_EQ(TokenTypeName(TokenType::kInt64), "int64");
}

TEST(Tokens, of_llmc_are_as_many_as_the_header_says) {
  const auto small = LlmcTokens(AsBytes(LlmcHead(20240520, 1, 3)), 1030);
  ASSERT_TRUE(small.ok()) << small.status().ToString();
  EXPECT_EQ(small->type, TokenType::kUint16);
  EXPECT_EQ(small->offset, 1024U);
  EXPECT_EQ(small->count, 3U);
  const auto wide = LlmcTokens(AsBytes(LlmcHead(20240801, 7, 3)), 1036);
  ASSERT_TRUE(wide.ok());
  EXPECT_EQ(wide->type, TokenType::kUint32);
  for (const uint64_t size : {uint64_t{1029}, uint64_t{1031}, uint64_t{1024}}) {
    EXPECT_EQ(LlmcTokens(AsBytes(LlmcHead(20240520, 1, 3)), size).code(), Code::kDataLoss) << size;
  }
  EXPECT_FALSE(LlmcTokens(AsBytes(LlmcHead(20240520, 7, 3)), 1030).ok());
  EXPECT_FALSE(LlmcTokens(AsBytes(LlmcHead(20240520, 1, -1)), 1022).ok());
  EXPECT_FALSE(LlmcTokens(AsBytes(LlmcHead(20240520, 1, INT32_MAX)), 1030).ok());
  EXPECT_FALSE(LlmcTokens(AsBytes(LlmcHead(20240520, 1, 3).substr(0, 1023)), 1030).ok());
}

TEST(Tokens, of_litdata_lie_behind_a_table) {
  const std::string head =
      Number<uint32_t>(2) + Number<uint32_t>(16) + Number<uint32_t>(22) + Number<uint32_t>(24);
  EXPECT_EQ(LitDataHeadBytes(AsBytes(head)), 16U);
  const auto tokens = LitDataTokens(AsBytes(head), 24, TokenType::kUint16);
  ASSERT_TRUE(tokens.ok()) << tokens.status().ToString();
  EXPECT_EQ(tokens->offset, 16U);
  EXPECT_EQ(tokens->count, 4U);
  EXPECT_THAT(tokens->documents, ElementsAre(3, 1));
  EXPECT_FALSE(LitDataTokens(AsBytes(head), 25, TokenType::kUint16).ok());
  EXPECT_FALSE(LitDataTokens(AsBytes(head), 23, TokenType::kUint16).ok());
  EXPECT_FALSE(LitDataTokens(AsBytes(head), 24, TokenType::kUint32).ok());
  for (size_t at = 0; at < head.size(); at += 4) {
    EXPECT_FALSE(LitDataTokens(AsBytes(Flipped(head, at)), 24, TokenType::kUint16).ok()) << at;
    EXPECT_FALSE(
        LitDataTokens(AsBytes(Replaced(head, at, Number(UINT32_MAX))), 24, TokenType::kUint16)
            .ok());
  }
}

TEST(TokenIndex, of_megatron_and_fairseq_are_told_apart_by_size) {
  const std::string megatron = Index(Writer::kMegatron, 7, {3, 0, 5}, 4, {0, 2, 3});
  const auto first = ParseTokenIndex(AsBytes(megatron), 32);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  EXPECT_EQ(first->writer, Writer::kMegatron);
  EXPECT_EQ(first->type, TokenType::kFloat32);
  EXPECT_EQ(first->sequences, 3U);
  EXPECT_EQ(first->tokens, 8U);
  EXPECT_EQ(first->documents.size(), 24U);
  EXPECT_TRUE(ParseTokenIndex(AsBytes(megatron + std::string(3, '\0')), 32).ok());  // modes
  const std::string fairseq = Index(Writer::kFairseq, 7, {3, 0, 5}, 8);
  const auto second = ParseTokenIndex(AsBytes(fairseq), 64);
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(second->writer, Writer::kFairseq);
  EXPECT_EQ(second->type, TokenType::kFloat64);
  EXPECT_EQ(second->lengths.size(), 12U);
}

TEST(TokenIndex, that_does_not_fit_its_tokens_is_an_error) {
  const std::string index = Index(Writer::kMegatron, 8, {3, 1}, 2, {0, 1, 2});
  EXPECT_TRUE(ParseTokenIndex(AsBytes(index), 8).ok());
  EXPECT_TRUE(ParseTokenIndex(AsBytes(index), 9).ok());
  EXPECT_THAT(ParseTokenIndex(AsBytes(index), 7).status().ToString(), HasSubstr("cut"));
  for (size_t size = 0; size < index.size(); ++size) {
    EXPECT_EQ(ParseTokenIndex(AsBytes(index.substr(0, size)), 8).code(), Code::kDataLoss) << size;
  }
  EXPECT_FALSE(ParseTokenIndex(AsBytes(index + "x"), 8).ok());
  for (const size_t at : {0, 9, 17, 18, 26, 34, 37, 38, 42, 50, 58, 66}) {
    EXPECT_EQ(ParseTokenIndex(AsBytes(Flipped(index, at)), 8).code(), Code::kDataLoss) << at;
  }
  for (const size_t at : {18, 26, 42, 50, 58, 66}) {
    const std::string huge = Replaced(index, at, Number(UINT64_MAX));
    EXPECT_EQ(ParseTokenIndex(AsBytes(huge), 8).code(), Code::kDataLoss) << at;
  }
  EXPECT_FALSE(ParseTokenIndex(AsBytes(Replaced(index, 34, Number<int32_t>(-1))), 8).ok());
  EXPECT_EQ(ParseTokenIndex(AsBytes(std::string("TNTIDX\0\0", 8)), 8).code(), Code::kUnimplemented);
}

TEST(TokenIndex, has_its_writers_codes) {
  for (const int code : {9, 10}) {
    const auto c = static_cast<uint8_t>(code);
    EXPECT_TRUE(ParseTokenIndex(AsBytes(Index(Writer::kFairseq, c, {}, 4)), 0).ok());
    EXPECT_FALSE(ParseTokenIndex(AsBytes(Index(Writer::kMegatron, c, {}, 4, {0})), 0).ok());
  }
  EXPECT_FALSE(ParseTokenIndex(AsBytes(Index(Writer::kFairseq, 0, {}, 4)), 0).ok());
  EXPECT_FALSE(ParseTokenIndex(AsBytes(Index(Writer::kFairseq, 11, {}, 4)), 0).ok());
}

TEST(Tokens, beyond_the_vocabulary_are_told) {
  const std::string tokens = Number<uint16_t>(3) + Number<uint16_t>(50256);
  EXPECT_TRUE(CheckVocabulary(AsBytes(tokens), TokenType::kUint16, 50257).ok());
  EXPECT_THAT(CheckVocabulary(AsBytes(tokens), TokenType::kUint16, 50256).ToString(),
              HasSubstr("offset 2: expected tokens below 50256, found 50256"));
  EXPECT_FALSE(CheckVocabulary(AsBytes(tokens), TokenType::kUint32, 50257).ok());
  EXPECT_FALSE(CheckVocabulary(AsBytes(Number<int64_t>(-1)), TokenType::kInt64, 50257).ok());
}

// A folder of token files.
class TokenShards {
 public:
  std::string& operator[](const std::string& name) { return files_[name]; }
  Shard Open(const std::string& name) const {
    Shard shard = testing::ShardOf(files_.at(name), name);
    shard.beside = [this](const std::string& other, uint64_t) -> Result<std::vector<std::byte>> {
      const auto it = files_.find(other);
      if (it == files_.end()) return Status(Code::kNotFound, "no such file");
      const ByteView bytes = AsBytes(it->second);
      return std::vector<std::byte>(bytes.begin(), bytes.end());
    };
    return shard;
  }
  // Where the documents lie, as "offset+bytes dtype".
  Result<std::vector<std::string>> Scan(const std::string& name,
                                        const TokenShardOptions& options = {}) const {
    std::vector<std::string> found;
    ScanReport report;
    FB_RETURN_IF_ERROR(ScanTokens(
        Open(name), options,
        [&](const FoundRecord& record) {
          EXPECT_EQ(record.fields[0].name, "tokens");
          EXPECT_EQ(record.fields[0].range, record.range);
          found.push_back(fmt::format("{}+{} {}", record.range.offset, record.fields[0].bytes,
                                      record.fields[0].dtype));
          return Status();
        },
        &report));
    EXPECT_EQ(report.records, found.size());
    return found;
  }

 private:
  std::map<std::string, std::string> files_;
};

TEST(TokenShards, have_a_record_for_each_document_that_an_index_beside_them_names) {
  TokenShards files;
  files["a/x.bin"] = std::string(40, '\1');
  files["a/x.idx"] = Index(Writer::kMegatron, 8, {4, 3, 0, 5, 2}, 2, {0, 2, 3, 5});
  files["y.bin"] = std::string(28, '\1');
  files["y.idx"] = Index(Writer::kFairseq, 8, {4, 3, 0, 5, 2}, 2);
  // Documents of two sequences, of an empty one, of two.
  EXPECT_THAT(*files.Scan("a/x.bin"), ElementsAre("0+14 uint16", "14+14 uint16"));
  EXPECT_THAT(*files.Scan("y.bin"),
              ElementsAre("0+8 uint16", "8+6 uint16", "14+10 uint16", "24+4 uint16"));
  EXPECT_TRUE(*IsTokenShard(files.Open("a/x.bin"), {}));
  EXPECT_FALSE(*IsTokenShard(files.Open("a/x.idx"), {}));
  files["y.idx"] = Index(Writer::kFairseq, 8, {4, 3, 0, 5, 3}, 2);  // one token too many
  EXPECT_EQ(files.Scan("y.bin").code(), Code::kDataLoss);
}

TEST(TokenShards, without_an_index_are_one_record) {
  TokenShards files;
  files["train.bin"] = std::string(10, '\1');
  files["l.bin"] = LlmcHead(20240520, 1, 3) + std::string(6, '\1');
  files["notes.txt"] = "words";
  EXPECT_THAT(*files.Scan("train.bin", {TokenType::kUint16}), ElementsAre("0+10 uint16"));
  EXPECT_THAT(*files.Scan("l.bin"), ElementsAre("1024+6 uint16"));
  const auto unknown = files.Scan("train.bin");
  EXPECT_EQ(unknown.code(), Code::kInvalidArgument);
  EXPECT_THAT(unknown.status().ToString(), HasSubstr("--dtype"));
  EXPECT_FALSE(*IsTokenShard(files.Open("notes.txt"), {TokenType::kUint16}));
  EXPECT_TRUE(*IsTokenShard(files.Open("l.bin"), {}));
}

}  // namespace
}  // namespace forebay::format
