// Arrow's metadata and buffers, made by hand where no writer would make them so.
#include <gtest/gtest.h>
#include <zstd.h>

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "format/arrow_schema.h"
#include "format/sniff.h"

namespace forebay::format {
namespace {

template <class T>
std::string Raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Appends something that offsets point to, and says where it lies.
using Write = std::function<size_t(std::string& out)>;

struct Value {
  std::string scalar;
  Write child;  // else an offset to this
};

template <class T>
Value Scalar(T value) {
  return {Raw(value), nullptr};
}
Value To(Write child) { return {"", std::move(child)}; }

void Patch(std::string& out, size_t at, size_t target) {
  out.replace(at, sizeof(uint32_t), Raw(static_cast<uint32_t>(target - at)));
}

Write Table(std::map<uint32_t, Value> fields) {
  return [fields = std::move(fields)](std::string& out) {
    const uint32_t count = fields.empty() ? 0 : fields.rbegin()->first + 1;
    const size_t fields_at = out.size();
    const size_t table_at = fields_at + 4 + 2 * count;
    std::string places(2 * count, '\0');
    std::string table = Raw(static_cast<int32_t>(table_at - fields_at));
    std::map<uint32_t, size_t> offsets;
    for (const auto& [field, value] : fields) {
      places.replace(2 * field, 2, Raw(static_cast<uint16_t>(table.size())));
      if (value.child) offsets[field] = table_at + table.size();
      table += value.child ? std::string(4, '\0') : value.scalar;
    }
    out += Raw(static_cast<uint16_t>(4 + 2 * count)) + Raw(static_cast<uint16_t>(table.size()));
    out += places + table;
    for (const auto& [field, at] : offsets) Patch(out, at, fields.at(field).child(out));
    return table_at;
  };
}

Write Text(std::string text) {
  return [text = std::move(text)](std::string& out) {
    const size_t at = out.size();
    out += Raw(static_cast<uint32_t>(text.size())) + text;
    return at;
  };
}

Write Structs(uint32_t count, std::string bytes) {
  return [=](std::string& out) {
    const size_t at = out.size();
    out += Raw(count) + bytes;
    return at;
  };
}

Write Tables(std::vector<Write> tables) {
  return [tables = std::move(tables)](std::string& out) {
    const size_t at = out.size();
    out += Raw(static_cast<uint32_t>(tables.size())) + std::string(4 * tables.size(), '\0');
    for (size_t i = 0; i < tables.size(); ++i) Patch(out, at + 4 + 4 * i, tables[i](out));
    return at;
  };
}

std::string Buffer(const Write& root) {
  std::string out(4, '\0');
  Patch(out, 0, root(out));
  return out;
}

constexpr uint8_t kInt = 2;
constexpr uint8_t kBinary = 4;
constexpr uint8_t kList = 12;
constexpr uint8_t kStruct = 13;
constexpr uint8_t kUnion = 14;
constexpr uint8_t kUtf8View = 24;

Write Field(const std::string& name, uint8_t type, Write details = Table({}),
            std::vector<Write> children = {}) {
  return Table({{0, To(Text(name))},
                {2, Scalar(type)},
                {3, To(std::move(details))},
                {5, To(Tables(std::move(children)))}});
}
Write Int(const std::string& name, int32_t bits) {
  return Field(name, kInt, Table({{0, Scalar(bits)}, {1, Scalar(uint8_t{1})}}));
}

Write SchemaTable(std::vector<Write> fields, int16_t endianness = 0) {
  return Table({{0, Scalar(endianness)}, {1, To(Tables(std::move(fields)))}});
}

Write Message(uint8_t kind, Write header, int64_t body, int16_t version = 4) {
  return Table(
      {{0, Scalar(version)}, {1, Scalar(kind)}, {2, To(std::move(header))}, {3, Scalar(body)}});
}

// As it lies in a stream.
std::string Framed(const Write& message, const std::string& body = "", bool legacy = false) {
  std::string bytes = Buffer(message);
  const size_t head = legacy ? 4 : 8;
  bytes.resize((bytes.size() + head + 7) / 8 * 8 - head);
  return (legacy ? "" : "\xff\xff\xff\xff") + Raw(static_cast<uint32_t>(bytes.size())) + bytes +
         body;
}

struct Pair {
  int64_t first = 0;
  int64_t second = 0;
};
std::string Pairs(const std::vector<Pair>& pairs) {
  std::string out;
  for (const Pair& pair : pairs) out += Raw(pair.first) + Raw(pair.second);
  return out;
}

// `nodes`: rows and nulls. `buffers`: offset and bytes.
Write BatchTable(int64_t rows, const std::vector<Pair>& nodes, const std::vector<Pair>& buffers) {
  return Table({{0, Scalar(rows)},
                {1, To(Structs(static_cast<uint32_t>(nodes.size()), Pairs(nodes)))},
                {2, To(Structs(static_cast<uint32_t>(buffers.size()), Pairs(buffers)))}});
}

Shard ShardOf(const std::string& bytes) {
  return {.name = "a.arrow",
          .size = bytes.size(),
          .read = [&bytes](ByteRange range, MutableBytes into) -> Status {
            std::memcpy(into.data(), bytes.data() + range.offset, range.size());
            return {};
          }};
}

struct Scanned {
  Status status;
  std::vector<FoundRecord> records;
  ScanReport report;
};

Scanned ScanOf(const std::string& bytes) {
  Scanned scanned;
  const auto take = [&](FoundRecord record) -> Status {
    scanned.records.push_back(std::move(record));
    return {};
  };
  scanned.status = ScanArrow(ShardOf(bytes), take, &scanned.report);
  return scanned;
}

ArrowBatch BatchOf(const FoundRecord& record) {
  std::vector<ByteRange> ranges;
  for (const FoundField& field : record.fields) ranges.push_back(field.range);
  auto batch = UnpackArrowBatch(record.key, ranges);
  EXPECT_TRUE(batch.ok()) << batch.status().ToString();
  return batch.ok() ? *batch : ArrowBatch();
}

Result<TableValues> Decoded(const std::string& shard, const ArrowChunk& chunk) {
  std::string bytes;
  for (const ByteRange& range : ReadsOf(chunk)) bytes += shard.substr(range.offset, range.size());
  TableValues values;
  FB_RETURN_IF_ERROR(DecodeArrow(chunk, AsBytes(bytes), {"a.arrow", 0}, &values));
  return values;
}

const std::string kTen = Raw(int32_t{10}) + Raw(int32_t{11}) + Raw(int32_t{12}) + Raw(int32_t{13});

std::string OneColumn(const Write& field, const Write& batch, const std::string& body) {
  return Framed(Message(1, SchemaTable({field}), 0)) +
         Framed(Message(3, batch, static_cast<int64_t>(body.size())), body);
}

TEST(Flatbuffer, reads_what_is_there_and_defaults_of_what_is_not) {
  const std::string bytes =
      Buffer(Table({{0, Scalar(int16_t{-7})},
                    {2, To(Text("name"))},
                    {3, To(Tables({Table({{1, Scalar(uint8_t{9})}}), Table({})}))},
                    {5, To(Structs(2, Pairs({{1, 2}, {3, 4}})))}}));
  FlatReader in(AsBytes(bytes));
  const FlatTable root = in.Root();
  EXPECT_EQ(root.Get<int16_t>(0), -7);
  EXPECT_EQ(root.Get<int32_t>(1, 42), 42);
  EXPECT_EQ(root.Get<int32_t>(1000, 43), 43);
  EXPECT_EQ(root.Text(2), "name");
  ASSERT_EQ(root.Tables(3).size(), 2U);
  EXPECT_EQ(root.Tables(3).Table(0).Get<uint8_t>(1), 9);
  EXPECT_EQ(root.Tables(3).Table(1).Get<uint8_t>(1), 0);
  EXPECT_EQ(root.Structs(5, 16).Member<int64_t>(1, 8), 4);
  EXPECT_FALSE(root.Table(4).exists());
  EXPECT_TRUE(in.ok());
}

TEST(Flatbuffer, nothing_outside_of_the_bytes_is_read) {
  const std::string whole =
      Buffer(Table({{0, Scalar(int64_t{5})}, {1, To(Text("a longer name"))}, {2, To(Table({}))}}));
  const auto look = [](FlatReader& in) {
    const FlatTable root = in.Root();
    (void)root.Get<int64_t>(0);
    (void)root.Text(1);
    (void)root.Table(2).Get<int32_t>(0);
    return in.ok();
  };
  for (size_t end = 0; end < whole.size(); ++end) {
    const std::string cut = whole.substr(0, end);  // so that a sanitizer sees its end
    FlatReader in(AsBytes(cut));
    EXPECT_FALSE(look(in) && in.Root().Text(1) == "a longer name" && in.Root().Table(2).exists())
        << end;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      FlatReader in(AsBytes(damaged));
      (void)look(in);
    }
  }
}

TEST(Arrow, offsets_that_begin_above_nothing_are_counted_from_there) {
  const std::string offsets = Raw(int32_t{3}) + Raw(int32_t{5}) + Raw(int32_t{5}) + Raw(int32_t{9});
  const std::string body = offsets + "???abcdef??";
  const std::string shard =
      OneColumn(Field("s", kBinary), BatchTable(3, {{3, 0}}, {{0, 0}, {0, 16}, {16, 11}}), body);
  const Scanned scanned = ScanOf(shard);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 1U);
  const ArrowBatch batch = BatchOf(scanned.records[0]);
  const auto values = Decoded(shard, batch.chunks[0]);
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  EXPECT_EQ(AsText(values->values), "abcdef");
  EXPECT_EQ(values->offsets, (std::vector<uint64_t>{0, 2, 2, 6}));
}

TEST(Arrow, offsets_that_cannot_be_are_refused) {
  for (const auto& [offsets, found] : std::vector<std::pair<std::vector<int32_t>, std::string>>{
           {{0, 2, 1, 3}, "one that is less"},
           {{-1, 0, 1, 3}, "one that is less"},
           {{0, 1, 2, 12}, "11 bytes"},
           {{0, 1, 2, INT32_MAX}, "11 bytes"}}) {
    std::string body;
    for (const int32_t offset : offsets) body += Raw(offset);
    body += "eleven byte";
    const std::string shard =
        OneColumn(Field("s", kBinary), BatchTable(3, {{3, 0}}, {{0, 0}, {0, 16}, {16, 11}}), body);
    const Scanned scanned = ScanOf(shard);
    ASSERT_TRUE(scanned.status.ok());
    const ArrowBatch batch = BatchOf(scanned.records[0]);
    const auto values = Decoded(shard, batch.chunks[0]);
    EXPECT_EQ(values.status().code(), Code::kDataLoss);
    EXPECT_NE(values.status().ToString().find(found), std::string::npos)
        << values.status().ToString();
    EXPECT_NE(values.status().ToString().find("a.arrow, offset"), std::string::npos);
  }
}

TEST(Arrow, bits_of_validity_are_the_rows_own_and_what_a_null_holds_is_nobodys) {
  const std::string offsets = Raw(int32_t{0}) + Raw(int32_t{2}) + Raw(int32_t{5}) + Raw(int32_t{6});
  const std::string body = std::string("\x05\0\0\0\0\0\0\0", 8) + offsets + "ab???c";
  const std::string shard =
      OneColumn(Field("s", kBinary), BatchTable(3, {{3, 1}}, {{0, 1}, {8, 16}, {24, 6}}), body);
  const ArrowBatch batch = BatchOf(ScanOf(shard).records.at(0));
  const auto values = Decoded(shard, batch.chunks[0]);
  ASSERT_TRUE(values.ok()) << values.status().ToString();
  EXPECT_EQ(AsText(values->values), "abc");
  EXPECT_EQ(values->offsets, (std::vector<uint64_t>{0, 2, 2, 3}));
  EXPECT_EQ(values->valid, (std::vector<uint8_t>{1, 0, 1}));
}

std::string Packed(const std::string& bytes) {
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
  return Raw(static_cast<int64_t>(bytes.size())) + out;
}

// Two rows of bytes whose offsets begin at 3.
Result<TableValues> DecodePacked(const std::string& offsets, const std::string& bytes) {
  const auto at = static_cast<int64_t>(offsets.size());
  const Write batch = Table(
      {{0, Scalar(int64_t{2})},
       {1, To(Structs(1, Pairs({{2, 0}})))},
       {2, To(Structs(3, Pairs({{0, 0}, {0, at}, {at, static_cast<int64_t>(bytes.size())}})))},
       {3, To(Table({{0, Scalar(int8_t{1})}}))}});
  const std::string shard = OneColumn(Field("s", kBinary), batch, offsets + bytes);
  const Scanned scanned = ScanOf(shard);
  FB_RETURN_IF_ERROR(scanned.status);
  return Decoded(shard, BatchOf(scanned.records.at(0)).chunks[0]);
}

TEST(Arrow, packed_buffers_are_as_large_as_they_say) {
  const std::string offsets = Raw(int32_t{3}) + Raw(int32_t{5}) + Raw(int32_t{9});
  const std::string raw = Raw(int64_t{-1});
  for (const auto& [first, second] : {std::pair(Packed(offsets), Packed("???abcdef?")),
                                      std::pair(raw + offsets, raw + "???abcdef?"),
                                      std::pair(Packed(offsets), raw + "???abcdef?")}) {
    const auto values = DecodePacked(first, second);
    ASSERT_TRUE(values.ok()) << values.status().ToString();
    EXPECT_EQ(AsText(values->values), "abcdef");
    EXPECT_EQ(values->offsets, (std::vector<uint64_t>{0, 2, 6}));
  }
  const auto refused = [&](std::string bytes, const std::string& why) {
    const auto values = DecodePacked(Packed(offsets), bytes);
    EXPECT_EQ(values.status().code(), Code::kDataLoss);
    EXPECT_NE(values.status().ToString().find(why), std::string::npos)
        << values.status().ToString();
  };
  const std::string good = Packed("???abcdef?");
  refused(good.substr(0, 7), "7 bytes");
  refused(good.substr(0, good.size() - 1), "zstd data");
  refused(Raw(int64_t{-2}) + good.substr(8), "found -2");
  refused(Raw(int64_t{11}) + good.substr(8), "11 unpacked bytes");
  refused(Raw(int64_t{9}) + good.substr(8), "zstd data");
  refused(Raw(int64_t{8}) + good.substr(8), "9 bytes or more");
  refused(Raw(int64_t{65 << 20}) + good.substr(8), "above the limit of 67108864");
  refused(Raw(INT64_MAX) + good.substr(8), "above the limit");
  refused("", "9 bytes or more");
}

TEST(Arrow, batches_whose_words_do_not_add_up_are_refused) {
  const auto refused = [](const Write& batch, const std::string& why) {
    const Scanned scanned = ScanOf(OneColumn(Int("n", 32), batch, kTen));
    EXPECT_EQ(scanned.status.code(), Code::kDataLoss) << why;
    EXPECT_NE(scanned.status.ToString().find(why), std::string::npos) << scanned.status.ToString();
  };
  EXPECT_TRUE(ScanOf(OneColumn(Int("n", 32), BatchTable(4, {{4, 0}}, {{0, 0}, {0, 16}}), kTen))
                  .status.ok());
  refused(BatchTable(5, {{5, 0}}, {{0, 0}, {0, 16}}), "buffer 1 becomes 20 bytes");
  refused(BatchTable(4, {{3, 0}}, {{0, 0}, {0, 16}}), "3 rows");
  refused(BatchTable(4, {{4, 5}}, {{0, 0}, {0, 16}}), "5 nulls");
  refused(BatchTable(4, {{4, 1}}, {{0, 0}, {0, 16}}), "nulls that nothing tells");
  refused(BatchTable(4, {{4, 0}}, {{0, 0}, {8, 16}}), "inside of a body of 16 bytes");
  refused(BatchTable(4, {{4, 0}}, {{0, 0}, {-8, 16}}), "inside of a body");
  refused(BatchTable(4, {{4, 0}}, {{0, 0}, {0, INT64_MAX}}), "inside of a body");
  refused(BatchTable(4, {{4, 0}, {4, 0}}, {{0, 0}, {0, 16}}), "1 nodes");
  refused(BatchTable(4, {{4, 0}}, {{0, 0}}), "2 buffers");
  refused(BatchTable(-1, {{4, 0}}, {{0, 0}, {0, 16}}), "above the limit");
}

TEST(Arrow, the_batches_of_a_file_lie_where_its_footer_says) {
  const std::string head("ARROW1\0\0", 8);
  const std::string batch =
      Framed(Message(3, BatchTable(4, {{4, 0}}, {{0, 0}, {0, 16}}), 16), kTen);
  const auto at = static_cast<int64_t>(head.size());
  const auto metadata = static_cast<int32_t>(batch.size() - kTen.size());
  const auto block = [](int64_t offset, int32_t bytes, int64_t body) {
    return Raw(offset) + Raw(bytes) + std::string(4, '\0') + Raw(body);
  };
  const auto file = [&](const std::string& blocks, int16_t version = 4) {
    const auto count = static_cast<uint32_t>(blocks.size() / 24);
    const std::string footer = Buffer(Table({{0, Scalar(version)},
                                             {1, To(SchemaTable({Int("n", 32)}))},
                                             {3, To(Structs(count, blocks))}}));
    return head + batch + footer + Raw(static_cast<int32_t>(footer.size())) + "ARROW1";
  };
  const std::string whole = file(block(at, metadata, 16));
  const Scanned scanned = ScanOf(whole);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 1U);
  const auto values = Decoded(whole, BatchOf(scanned.records[0]).chunks[0]);
  ASSERT_TRUE(values.ok());
  EXPECT_EQ(AsText(values->values), kTen);
  const auto refused = [](const std::string& bytes, const std::string& why) {
    const Status status = ScanOf(bytes).status;
    EXPECT_EQ(status.code(), Code::kDataLoss) << why;
    EXPECT_NE(status.ToString().find(why), std::string::npos) << status.ToString();
  };
  refused(file(block(-8, metadata, 16)), "inside of the file");
  refused(file(block(at, -1, 16)), "inside of the file");
  refused(file(block(at, 7, 16)), "inside of the file");
  refused(file(block(at, metadata, -1)), "inside of the file");
  refused(file(block(at, metadata, 1 << 20)), "inside of the file");
  refused(file(block(at, metadata - 8, 24)), "a message of");
  refused(file(block(at, metadata, 8)), "with a body of 8 bytes");
  refused(file(block(0, metadata, 16)), "record batch 0");
  refused(file(block(at, metadata, 16) + block(at, metadata, 16)), "behind the one before it");
  refused(whole.substr(0, whole.size() - 1), "the end of an Arrow file");
  refused(head + "ARROW1", "is cut");
  refused(head + std::string(8, '\0') + Raw(int32_t{100}) + "ARROW1", "above the limit of 8");
  refused(head + std::string(8, '\0') + Raw(int32_t{-1}) + "ARROW1", "above the limit of 8");
  EXPECT_EQ(ScanOf(file("", 1)).status.code(), Code::kUnimplemented);
  EXPECT_TRUE(ScanOf(file("")).status.ok());
}

TEST(Arrow, streams_of_before_arrow_0_15_and_without_an_end_are_read) {
  const Write batch = BatchTable(4, {{4, 0}}, {{0, 0}, {0, 16}});
  const std::string shard = Framed(Message(1, SchemaTable({Int("n", 32)}), 0, 3), "", true) +
                            Framed(Message(3, batch, 16, 3), kTen, true);
  EXPECT_EQ(Sniff(AsBytes(shard), shard.size(), "x"), Kind::kArrow);
  for (const auto& [end, odd] :
       {std::pair(std::string(), 1U), {std::string(4, '\0'), 0U}, {std::string(6, '\0'), 1U}}) {
    const std::string all = shard + end;
    const Scanned scanned = ScanOf(all);
    ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
    ASSERT_EQ(scanned.records.size(), 1U);
    EXPECT_EQ(scanned.report.oddities, odd);
    const ArrowBatch found = BatchOf(scanned.records[0]);
    const auto values = Decoded(all, found.chunks[0]);
    ASSERT_TRUE(values.ok());
    EXPECT_EQ(AsText(values->values), kTen);
  }
}

TEST(Arrow, what_is_no_stream_of_batches_is_refused) {
  const std::string schema = Framed(Message(1, SchemaTable({Int("n", 32)}), 0));
  const std::string batch =
      Framed(Message(3, BatchTable(4, {{4, 0}}, {{0, 0}, {0, 16}}), 16), kTen);
  const auto code = [](const std::string& bytes) { return ScanOf(bytes).status.code(); };
  EXPECT_TRUE(ScanOf(schema).status.ok());
  EXPECT_EQ(code(schema + schema), Code::kDataLoss);
  EXPECT_EQ(code(batch), Code::kDataLoss);
  EXPECT_EQ(code(std::string(8, '\0')), Code::kDataLoss);
  EXPECT_EQ(code(schema + batch.substr(0, batch.size() - 1)), Code::kDataLoss);
  EXPECT_EQ(code(schema + Framed(Message(4, Table({}), 0))), Code::kUnimplemented);
  EXPECT_EQ(code(Framed(Message(1, SchemaTable({Int("n", 32)}, 1), 0))), Code::kUnimplemented);
  EXPECT_EQ(code(Framed(Message(1, SchemaTable({Int("n", 32)}), 0, 2))), Code::kUnimplemented);
  EXPECT_EQ(code(Framed(Message(1, SchemaTable({Field("x", 99)}), 0))), Code::kUnimplemented);
  EXPECT_EQ(code(Framed(Message(1, SchemaTable({Int("n", 32), Int("n", 8)}), 0))),
            Code::kUnimplemented);
  EXPECT_EQ(code("\xff\xff\xff\xff" + Raw(uint32_t{9 << 20}) + schema), Code::kDataLoss);
}

TEST(Arrow, a_dictionary_of_lists_without_elements_is_left_out) {
  const Write field = Table({{0, To(Text("d"))},
                             {2, Scalar(kList)},
                             {3, To(Table({}))},
                             {4, To(Table({{0, Scalar(int64_t{1})}}))}});
  const Scanned scanned = ScanOf(Framed(Message(1, SchemaTable({field, Int("n", 8)}), 0)));
  EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_EQ(scanned.report.oddities, 2U);  // and there is no end marker
}

TEST(Arrow, a_schema_that_is_deep_or_endless_is_refused) {
  Write field = Int("n", 32);
  for (int i = 0; i < 70; ++i) field = Field("s", kStruct, Table({}), {field});
  EXPECT_NE(ScanOf(Framed(Message(1, SchemaTable({field}), 0))).status.ToString().find("depth"),
            std::string::npos);
  // Each level's two children are the same table: few bytes, and 2^40 fields.
  std::string bytes = Buffer(Message(1, SchemaTable({Field("u", kUnion)}), 0));
  bytes.resize(bytes.size() - 4);  // the empty vector of children, the last that was written
  bytes += Raw(uint32_t{2}) + std::string(8, '\0');
  size_t vector = bytes.size() - 12;
  for (int depth = 0; depth < 40; ++depth) {
    const size_t base = bytes.size();
    std::string next;
    const size_t table = Field("s", kStruct, Table({}), {Int("x", 8), Int("y", 8)})(next);
    bytes += next;
    Patch(bytes, vector + 4, base + table);
    Patch(bytes, vector + 8, base + table);
    vector = bytes.find(std::string("\x02\0\0\0", 4), base + table);
    ASSERT_NE(vector, std::string::npos);
  }
  bytes.resize((bytes.size() + 15) / 8 * 8);
  const Scanned scanned =
      ScanOf("\xff\xff\xff\xff" + Raw(static_cast<uint32_t>(bytes.size())) + bytes);
  EXPECT_NE(scanned.status.ToString().find("number of a schema's fields"), std::string::npos)
      << scanned.status.ToString();
}

TEST(Arrow, views_of_bytes_that_are_not_there_are_refused) {
  const auto scan = [](const std::string& view) {
    const std::string body = view + "a dozen and one more";
    const Write batch = Table({{0, Scalar(int64_t{1})},
                               {1, To(Structs(1, Pairs({{1, 0}})))},
                               {2, To(Structs(3, Pairs({{0, 0}, {0, 16}, {16, 20}})))},
                               {4, To(Structs(1, Raw(int64_t{1})))}});
    const std::string shard = OneColumn(Field("v", kUtf8View), batch, body);
    const Scanned scanned = ScanOf(shard);
    EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
    return Decoded(shard, BatchOf(scanned.records.at(0)).chunks[0]);
  };
  const auto view = [](int32_t size, int32_t buffer, int32_t offset) {
    return Raw(size) + "a do" + Raw(buffer) + Raw(offset);
  };
  const auto good = scan(view(13, 0, 2));
  ASSERT_TRUE(good.ok()) << good.status().ToString();
  EXPECT_EQ(AsText(good->values), "dozen and one");
  EXPECT_EQ(scan(view(13, 0, 8)).status().code(), Code::kDataLoss);
  EXPECT_EQ(scan(view(13, 1, 2)).status().code(), Code::kDataLoss);
  EXPECT_EQ(scan(view(13, -1, 2)).status().code(), Code::kDataLoss);
  EXPECT_EQ(scan(view(13, 0, -1)).status().code(), Code::kDataLoss);
  EXPECT_EQ(scan(view(-1, 0, 0)).status().code(), Code::kDataLoss);
}

TEST(Arrow, what_a_catalog_says_of_a_batch_comes_back_and_is_checked) {
  using Kind = ArrowColumn::Kind;
  ArrowBatch batch{.rows = 100};
  batch.chunks.push_back({.column = {.kind = Kind::kList, .wide = true, .bits = 16, .parents = 1},
                          .codec = ArrowCodec::kNone,
                          .rows = 100,
                          .entries = 250,
                          .uncompressed = 500,
                          .range = {1000, 2400},
                          .buffers = {{900, 913}, {}, {1000, 1808}, {}, {1808, 2400}}});
  batch.chunks.push_back({.column = {.kind = Kind::kViews},
                          .codec = ArrowCodec::kZstd,
                          .rows = 100,
                          .entries = 100,
                          .range = {2400, 3000},
                          .buffers = {{}, {2400, 2500}, {2500, 2600}, {2600, 3000}}});
  const std::vector<ByteRange> ranges = {{1000, 2400}, {2400, 3000}};
  const std::string packed = PackArrowBatch(batch);
  const auto found = UnpackArrowBatch(packed, ranges);
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(found->rows, 100U);
  EXPECT_EQ(found->chunks, batch.chunks);
  EXPECT_EQ(ReadsOf(found->chunks[0]), (std::vector<ByteRange>{{900, 913}, {1000, 2400}}));
  EXPECT_FALSE(UnpackArrowBatch(packed, {{1000, 2300}, {2400, 3000}}).ok());
  EXPECT_FALSE(UnpackArrowBatch(packed, {{1000, 2400}}).ok());
  for (size_t end = 0; end < packed.size(); ++end) {
    EXPECT_FALSE(UnpackArrowBatch(packed.substr(0, end), ranges).ok()) << end;
  }
  batch.chunks[0].entries = 400;  // more than its elements' bytes are
  EXPECT_FALSE(UnpackArrowBatch(PackArrowBatch(batch), ranges).ok());
}

TEST(Arrow, lists_hold_no_more_than_their_elements) {
  const std::string offsets = Raw(int32_t{1}) + Raw(int32_t{2}) + Raw(int32_t{4});
  const std::string body = offsets + std::string(4, '\0') + kTen;
  const auto decode = [&](int64_t elements) {
    const Write batch = BatchTable(2, {{2, 0}, {elements, 0}}, {{0, 0}, {0, 12}, {0, 0}, {16, 16}});
    const std::string shard =
        OneColumn(Field("l", kList, Table({}), {Int("item", 32)}), batch, body);
    const Scanned scanned = ScanOf(shard);
    EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
    return Decoded(shard, BatchOf(scanned.records.at(0)).chunks[0]);
  };
  const auto good = decode(4);
  ASSERT_TRUE(good.ok()) << good.status().ToString();
  EXPECT_EQ(AsText(good->values), kTen.substr(4));
  EXPECT_EQ(good->offsets, (std::vector<uint64_t>{0, 4, 12}));
  EXPECT_EQ(decode(3).status().code(), Code::kDataLoss);
}

// A column of 43 rows that can be cut every 16, with what lies in its buffers.
struct Cut {
  std::string shard = std::string(5, '?');
  ArrowChunk chunk;
  uint64_t random = 1;

  uint8_t Byte() {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<uint8_t>(random >> 33U);
  }
  void Add(const std::string& bytes) {
    chunk.buffers.push_back({shard.size(), shard.size() + bytes.size()});
    shard += bytes + std::string(70, '?');
  }
  void AddRandom(size_t bytes) {
    std::string all;
    for (size_t i = 0; i < bytes; ++i) all += static_cast<char>(Byte());
    Add(all);
  }
  uint64_t AddOffsets(uint32_t most) {
    std::vector<int32_t> offsets = {7};
    for (uint64_t row = 0; row < chunk.rows; ++row) {
      offsets.push_back(offsets.back() + static_cast<int32_t>(Byte() % most));
    }
    std::string bytes;
    for (const int32_t offset : offsets) bytes += Raw(offset);
    Add(bytes);
    for (const size_t row : {0, 16, 32, 43}) {
      chunk.cuts.push_back(static_cast<uint64_t>(offsets[row]));
    }
    return static_cast<uint64_t>(offsets.back());
  }
};

Cut CutColumn(ArrowColumn column) {
  using Kind = ArrowColumn::Kind;
  Cut cut;
  cut.chunk = {.column = column, .rows = 43, .entries = 43, .step = 16};
  for (uint32_t i = 0; i <= column.parents; ++i) cut.AddRandom(6);
  switch (column.kind) {
    case Kind::kValues:
      cut.AddRandom((43 * column.bits + 7) / 8);
      break;
    case Kind::kArrays:
      cut.Add(std::string(17, '\xff'));
      cut.AddRandom((43 * column.each * column.bits + 7) / 8);
      break;
    case Kind::kList:
      cut.chunk.entries = cut.AddOffsets(5);
      cut.Add(std::string((cut.chunk.entries + 7) / 8, '\xff'));
      cut.AddRandom((cut.chunk.entries * column.bits + 7) / 8);
      break;
    default:
      cut.AddRandom(cut.AddOffsets(9));
      break;
  }
  cut.chunk.range = {5 + 76 * column.parents, cut.shard.size()};
  return cut;
}

TEST(Arrow, parts_of_a_column_are_what_all_of_it_is_there) {
  using Kind = ArrowColumn::Kind;
  for (const ArrowColumn& column :
       {ArrowColumn{.kind = Kind::kValues, .bits = 32, .parents = 1},
        ArrowColumn{.kind = Kind::kValues, .bits = 1}, ArrowColumn{.kind = Kind::kBytes},
        ArrowColumn{.kind = Kind::kList, .bits = 16}, ArrowColumn{.kind = Kind::kList, .bits = 1},
        ArrowColumn{.kind = Kind::kArrays, .bits = 1, .each = 3},
        ArrowColumn{.kind = Kind::kArrays, .bits = 8, .each = 3, .parents = 2}}) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(column.kind) << ' ' << column.bits);
    const Cut cut = CutColumn(column);
    const auto whole = Decoded(cut.shard, cut.chunk);
    ASSERT_TRUE(whole.ok()) << whole.status().ToString();
    TableValues joined{.offsets = whole->offsets.empty() ? std::vector<uint64_t>()
                                                         : std::vector<uint64_t>{0}};
    for (const auto& [first, rows] : {std::pair(0, 16), {16, 16}, {32, 11}}) {
      const auto part = Decoded(cut.shard, SliceOf(cut.chunk, first, rows));
      ASSERT_TRUE(part.ok()) << part.status().ToString();
      for (size_t i = 1; i < part->offsets.size(); ++i) {
        joined.offsets.push_back(joined.values.size() + part->offsets[i]);
      }
      joined.values.insert(joined.values.end(), part->values.begin(), part->values.end());
      ASSERT_EQ(part->valid.size(), rows);
      joined.valid.insert(joined.valid.end(), part->valid.begin(), part->valid.end());
    }
    EXPECT_EQ(joined.values, whole->values);
    EXPECT_EQ(joined.offsets, whole->offsets);
    EXPECT_EQ(joined.valid, whole->valid);
    uint64_t read = 0;
    for (const ByteRange& range : ReadsOf(SliceOf(cut.chunk, 16, 16))) read += range.size();
    EXPECT_LT(read, (cut.shard.size() - 70 * cut.chunk.buffers.size()) / 2);
    // A catalog says the same of it.
    const auto found = UnpackArrowBatch(PackArrowBatch({43, {cut.chunk}}), {cut.chunk.range});
    ASSERT_TRUE(found.ok()) << found.status().ToString();
    EXPECT_EQ(found->chunks[0], cut.chunk);
  }
}

TEST(Arrow, indices_lead_to_values_that_are_there) {
  using Kind = ArrowColumn::Kind;
  // Bytes "one", "", "four" at 0, of which the second is null; 24 indices at 40, their part at 48.
  std::string shard = "\x05" + std::string(7, '\0');
  for (const int32_t offset : {0, 3, 3, 7}) shard += Raw(offset);
  shard += "onefour";
  shard.resize(40);
  for (int i = 0; i < 24; ++i) shard += static_cast<char>(i % 3);
  ArrowChunk chunk{.column = {.kind = Kind::kIndices, .bits = 8},
                   .rows = 24,
                   .entries = 24,
                   .range = {40, 64},
                   .dictionary = {{.column = {.kind = Kind::kBytes},
                                   .rows = 3,
                                   .entries = 3,
                                   .range = {0, 31},
                                   .buffers = {{0, 1}, {8, 24}, {24, 31}}}},
                   .buffers = {{}, {40, 64}},
                   .step = 8};
  const auto part = Decoded(shard, SliceOf(chunk, 8, 8));
  ASSERT_TRUE(part.ok()) << part.status().ToString();
  EXPECT_EQ(AsText(part->values), "fouronefouronefourone");
  EXPECT_EQ(part->offsets, (std::vector<uint64_t>{0, 4, 7, 7, 11, 14, 14, 18, 21}));
  EXPECT_EQ(part->valid, (std::vector<uint8_t>{1, 1, 0, 1, 1, 0, 1, 1}));
  const std::string packed = PackArrowBatch({24, {chunk}});
  const auto found = UnpackArrowBatch(packed, {chunk.range});
  ASSERT_TRUE(found.ok()) << found.status().ToString();
  EXPECT_EQ(found->chunks[0], chunk);
  for (size_t end = 0; end < packed.size(); ++end) {
    EXPECT_FALSE(UnpackArrowBatch(packed.substr(0, end), {chunk.range}).ok()) << end;
  }
  for (const char bad : {'\x03', '\xff'}) {
    shard[50] = bad;
    EXPECT_EQ(Decoded(shard, chunk).status().code(), Code::kDataLoss);
    EXPECT_EQ(Decoded(shard, SliceOf(chunk, 8, 8)).status().code(), Code::kDataLoss);
    EXPECT_TRUE(Decoded(shard, SliceOf(chunk, 16, 8)).ok());
  }
  // 255 of a dictionary of 300, but for indices that have a sign, of which it is -1.
  std::string many = Raw<int8_t>(-1) + std::string(7, '\0') + std::string(300, 'v');
  ArrowChunk signs{.column = {.kind = Kind::kIndices, .bits = 8, .indexed_bytes = 1},
                   .rows = 1,
                   .entries = 1,
                   .range = {0, 8},
                   .dictionary = {{.column = {.kind = Kind::kValues, .bits = 8},
                                   .rows = 300,
                                   .entries = 300,
                                   .range = {8, 308},
                                   .buffers = {{}, {8, 308}}}},
                   .buffers = {{}, {0, 8}}};
  EXPECT_EQ(AsText(Decoded(many, signs)->values), "v");
  signs.column.wide = true;
  EXPECT_EQ(Decoded(many, signs).status().code(), Code::kDataLoss);
  // A dictionary of what is itself numbers of values.
  chunk.dictionary[0] = ArrowChunk(chunk);
  EXPECT_FALSE(UnpackArrowBatch(PackArrowBatch({24, {chunk}}), {chunk.range}).ok());
}

TEST(Arrow, cuts_that_cannot_be_are_refused) {
  using Kind = ArrowColumn::Kind;
  const auto ok = [](const std::function<void(ArrowChunk&)>& change) {
    Cut cut = CutColumn({.kind = Kind::kBytes});
    change(cut.chunk);
    return UnpackArrowBatch(PackArrowBatch({43, {cut.chunk}}), {cut.chunk.range}).ok();
  };
  EXPECT_TRUE(ok([](ArrowChunk&) {}));
  EXPECT_FALSE(ok([](ArrowChunk& chunk) { chunk.step = 12; }));
  EXPECT_FALSE(ok([](ArrowChunk& chunk) { chunk.step = 8; }));
  EXPECT_FALSE(ok([](ArrowChunk& chunk) { chunk.cuts[3] = 10'000; }));
  EXPECT_FALSE(ok([](ArrowChunk& chunk) { chunk.cuts[2] = chunk.cuts[1] - 1; }));
  EXPECT_FALSE(ok([](ArrowChunk& chunk) { chunk.cuts.pop_back(); }));
  EXPECT_FALSE(ok([](ArrowChunk& chunk) { chunk.codec = ArrowCodec::kZstd; }));
  Cut values = CutColumn({.kind = Kind::kValues, .bits = 8});
  for (const auto& [step, can] : {std::pair(16, true), {12, false}, {8, true}}) {
    values.chunk.step = static_cast<uint64_t>(step);
    const std::string packed = PackArrowBatch({43, {values.chunk}});
    EXPECT_EQ(UnpackArrowBatch(packed, {values.chunk.range}).ok(), can) << step;
  }
  Cut arrays = CutColumn({.kind = Kind::kArrays, .bits = 8, .each = 3});
  arrays.chunk.column.each = 0;
  EXPECT_FALSE(UnpackArrowBatch(PackArrowBatch({43, {arrays.chunk}}), {arrays.chunk.range}).ok());
  // Where a part's offsets are others than the catalog says, they are not followed.
  Cut cut = CutColumn({.kind = Kind::kBytes});
  ++cut.chunk.cuts[1];
  EXPECT_EQ(Decoded(cut.shard, SliceOf(cut.chunk, 16, 16)).status().code(), Code::kDataLoss);
  cut.chunk.cuts[1] -= 1;
  --cut.chunk.cuts[2];
  EXPECT_EQ(Decoded(cut.shard, SliceOf(cut.chunk, 16, 16)).status().code(), Code::kDataLoss);
}

TEST(Arrow, only_schemas_begin_a_stream) {
  const std::string schema = Framed(Message(1, SchemaTable({Int("n", 32)}), 0));
  EXPECT_TRUE(IsArrowStream(AsBytes(schema), schema.size()));
  EXPECT_EQ(Sniff(AsBytes(schema), schema.size(), "data"), Kind::kArrow);
  EXPECT_FALSE(IsArrowStream(AsBytes(schema), schema.size() - 1));
  const std::string batch = Framed(Message(3, BatchTable(0, {}, {}), 0));
  EXPECT_FALSE(IsArrowStream(AsBytes(batch), batch.size()));
  EXPECT_FALSE(IsArrowStream(AsBytes(std::string(64, '\xff')), 64));
  EXPECT_FALSE(IsArrowStream(AsBytes(std::string(64, '\0')), 64));
}

}  // namespace
}  // namespace forebay::format
