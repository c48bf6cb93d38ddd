#include "ops/parser.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

namespace forebay::ops {
namespace {

struct Outcome {
  std::vector<std::string> arrays;  // one of each result, "" of bytes
  std::vector<std::string> fields;
  std::vector<std::string> ragged;
};

Result<Outcome> Parse(const Parser& parser, const std::string& field,
                      const std::vector<size_t>& sizes) {
  // Of its own size exactly, so that a sanitizer sees the first byte read past it.
  const std::vector<std::byte> bytes(AsBytes(field).begin(), AsBytes(field).end());
  Outcome outcome;
  for (const size_t size : sizes) outcome.arrays.emplace_back(size, '\x55');
  std::vector<MutableBytes> arrays;
  arrays.reserve(sizes.size());
  for (std::string& array : outcome.arrays) {
    arrays.emplace_back(reinterpret_cast<std::byte*>(array.data()), array.size());
  }
  std::vector<ByteView> fields(sizes.size());
  std::vector<std::vector<std::byte>> ragged(sizes.size(), {std::byte{1}});  // is to be replaced
  FB_RETURN_IF_ERROR(parser.Parse(bytes, {arrays, fields, ragged}));
  size_t all = 0;
  for (size_t i = 0; i < ragged.size(); ++i) {
    outcome.ragged.emplace_back(AsText(ragged[i]));
    all += parser.results()[i].ragged ? ragged[i].size() : 0;
  }
  EXPECT_LE(all, parser.ragged_each() * field.size());
  for (const ByteView f : fields) outcome.fields.emplace_back(AsText(f));
  return outcome;
}

template <class T>
std::vector<T> As(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::string BytesOfAll(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Every beginning of it but the whole is refused.
void ExpectNoPrefixParses(const Parser& parser, const std::string& field,
                          const std::vector<size_t>& sizes) {
  for (size_t size = 0; size < field.size(); ++size) {
    EXPECT_EQ(Parse(parser, field.substr(0, size), sizes).code(), Code::kDataLoss) << size;
  }
  EXPECT_TRUE(Parse(parser, field, sizes).ok());
}

std::string Npy(const std::string& dict, const std::string& data, char version = 1) {
  std::string file = std::string("\x93NUMPY", 6) + version + '\0';
  file += static_cast<char>(dict.size() & 0xFF);
  file += static_cast<char>(dict.size() >> 8);
  if (version > 1) file += std::string(2, '\0');
  return file + dict + data;
}

TEST(Npy, reads_arrays_in_either_order_and_endianness) {
  const auto parser = MakeNpyParser({"npy", "int16", {2, 3}});
  const std::string rows = BytesOfAll<int16_t>({1, 2, 3, 4, 5, 600});
  const std::string columns = BytesOfAll<int16_t>({1, 4, 2, 5, 3, 600});
  std::string swapped = rows;
  for (size_t i = 0; i < swapped.size(); i += 2) std::swap(swapped[i], swapped[i + 1]);
  for (const std::string& file :
       {Npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }          \n", rows),
        Npy("{\"shape\":(2L,3L),'fortran_order':False,'descr':'<i2'}", rows, 2),
        Npy("{'descr': '=i2', 'fortran_order': False, 'shape': (2, 3)}", rows, 3),
        Npy("{'descr': '>i2', 'fortran_order': False, 'shape': (2, 3), }", swapped),
        Npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }", columns)}) {
    const auto outcome = Parse(*parser, file, {12});
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    EXPECT_EQ(outcome->arrays[0], rows);
  }
  ExpectNoPrefixParses(
      *parser, Npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }", rows), {12});
}

TEST(Npy, reads_scalars_and_vectors) {
  const auto scalar = MakeNpyParser({"npy", "float64", {}});
  EXPECT_EQ(As<double>(Parse(*scalar,
                             Npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }",
                                 BytesOfAll<double>({2.5})),
                             {8})
                           ->arrays[0])[0],
            2.5);
  const auto vector = MakeNpyParser({"npy", "uint8", {2}});
  EXPECT_EQ(
      Parse(*vector, Npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }", "ab"), {2})
          ->arrays[0],
      "ab");
}

TEST(Npy, refuses_what_is_no_plain_array_of_the_wanted_kind) {
  const auto parser = MakeNpyParser({"npy", "uint8", {2}});
  for (const std::string dict :
       {"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2), }",
        "{'descr': '|u1', 'fortran_order': 0, 'shape': (2,), }",
        "{'descr': '|u1', 'shape': (2,), }",
        "{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [('a', '|u1')], 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (-2,), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), 'x': __import__('os')}",
        "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), } + 1", ""}) {
    EXPECT_EQ(Parse(*parser, Npy(dict, "ab"), {2}).code(), Code::kDataLoss) << dict;
  }
  const std::string good = "{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_TRUE(Parse(*parser, Npy(good, "ab"), {2}).ok());
  EXPECT_FALSE(Parse(*parser, Npy(good, "abc"), {2}).ok());
  EXPECT_FALSE(Parse(*parser, Npy(good, "ab", 4), {2}).ok());
  EXPECT_FALSE(Parse(*parser, Npy(good + std::string(10'000, ' '), "ab"), {2}).ok());
  const auto boolean = MakeNpyParser({"npy", "bool", {1}});
  const std::string bools = "{'descr': '|b1', 'fortran_order': False, 'shape': (1,), }";
  EXPECT_TRUE(Parse(*boolean, Npy(bools, "\x01"), {1}).ok());
  EXPECT_FALSE(Parse(*boolean, Npy(bools, "\x02"), {1}).ok());
}

TEST(Json, finds_numbers_by_pointer) {
  const auto parser = MakeJsonParser({"json",
                                      {{"/label", "label", "int64", {}},
                                       {"/a~1b/~0/1", "deep", "float64", {}},
                                       {"/boxes", "boxes", "float32", {2, 2}},
                                       {"/ok", "ok", "bool", {}}}});
  const auto outcome =
      Parse(*parser,
            R"({"label": 1, "label": 7, "a/b": {"~": [0, 2.5]}, "boxes": [[1, 2], [3, 4.5]],)"
            R"( "ok": true})",
            {8, 8, 16, 1});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(As<int64_t>(outcome->arrays[0])[0], 7);
  EXPECT_EQ(As<double>(outcome->arrays[1])[0], 2.5);
  EXPECT_EQ(As<float>(outcome->arrays[2]), (std::vector<float>{1, 2, 3, 4.5}));
  EXPECT_EQ(outcome->arrays[3], "\x01");
}

TEST(Json, refuses_what_is_not_of_the_wanted_type) {
  const auto parser = MakeJsonParser({"json", {{"/x", "x", "int64", {}}}});
  for (const char* bad :
       {"", "{", "[]", "{}", "1", R"({"x": 1.0})", R"({"x": "1"})", R"({"x": true})",
        R"({"x": [1]})", R"({"x": null})", R"({"x": 9223372036854775808})", R"({"x": NaN})",
        R"({"x": 1,})", R"({"x": 1} 2)", "{\"x\": 1}\xFF"}) {
    EXPECT_EQ(Parse(*parser, bad, {8}).code(), Code::kDataLoss) << bad;
  }
  EXPECT_EQ(As<int64_t>(Parse(*parser, R"({"x": -9223372036854775808})", {8})->arrays[0])[0],
            INT64_MIN);
  const auto real = MakeJsonParser({"json", {{"/x", "x", "float32", {2}}}});
  EXPECT_TRUE(Parse(*real, R"({"x": [1, 2]})", {8}).ok());
  for (const char* bad : {R"({"x": [1]})", R"({"x": [1, 2, 3]})", R"({"x": [1, 1e39]})"}) {
    EXPECT_EQ(Parse(*real, bad, {8}).code(), Code::kDataLoss) << bad;
  }
  EXPECT_FALSE(Parse(*parser, std::string(100'000, '['), {8}).ok());
}

// As protobuf's own writer, but with what only readers have to know.
std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Field(int number, const std::string& bytes) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string PackedInts(const std::vector<int64_t>& values) {
  std::string bytes;
  for (const int64_t value : values) bytes += Varint(static_cast<uint64_t>(value));
  return Field(1, bytes);
}
std::string PlainInt(int64_t value) { return "\x08" + Varint(static_cast<uint64_t>(value)); }
std::string PackedFloats(const std::vector<float>& values) { return Field(1, BytesOfAll(values)); }
std::string PlainFloat(float value) { return "\x0D" + BytesOfAll<float>({value}); }
std::string Bytes(const std::string& list) { return Field(1, list); }
std::string Floats(const std::string& list) { return Field(2, list); }
std::string Ints(const std::string& list) { return Field(3, list); }
std::string Entry(const std::string& key, const std::string& feature) {
  return Field(1, Field(1, key) + Field(2, feature));
}
std::string Example(const std::string& entries) { return Field(1, entries); }

ParseExampleOp Wanted() {
  return {"data",
          {{"label", "", "int64", {}},
           {"box", "boxes", "float32", {3}},
           {"image/encoded", "image", "bytes", {}},
           {"weight", "", "float32", {}, true, 0.5}}};
}
const std::vector<size_t> kSizes = {8, 12, 0, 4};

TEST(Example, reads_features_packed_or_not) {
  const auto parser = MakeExampleParser(Wanted());
  const std::string image = Entry("image/encoded", Bytes(Field(1, "JPEG")));
  for (const std::string& box :
       {PackedFloats({1, 2, 3}), PlainFloat(1) + PlainFloat(2) + PlainFloat(3),
        PackedFloats({1}) + PlainFloat(2) + PackedFloats({}) + PackedFloats({3})}) {
    for (const std::string& label : {PackedInts({-5}), PlainInt(-5)}) {
      const auto outcome =
          Parse(*parser, Example(Entry("box", Floats(box)) + image + Entry("label", Ints(label))),
                kSizes);
      ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
      EXPECT_EQ(As<int64_t>(outcome->arrays[0])[0], -5);
      EXPECT_EQ(As<float>(outcome->arrays[1]), (std::vector<float>{1, 2, 3}));
      EXPECT_EQ(outcome->fields[2], "JPEG");
      EXPECT_EQ(As<float>(outcome->arrays[3])[0], 0.5F);
    }
  }
}

TEST(Example, names_results_as_told) {
  std::vector<std::string> names;
  const auto parser = MakeExampleParser(Wanted());
  for (const Parsed& result : parser->results()) names.push_back(result.name);
  EXPECT_EQ(names, (std::vector<std::string>{"label", "boxes", "image", "weight"}));
}

TEST(Example, the_last_of_a_key_and_of_a_kind_counts) {
  const auto parser = MakeExampleParser({"data", {{"x", "", "int64", {2}}}});
  const auto value = [&](const std::string& entries) {
    const auto outcome = Parse(*parser, Example(entries), {16});
    return outcome.ok() ? As<int64_t>(outcome->arrays[0]) : std::vector<int64_t>();
  };
  const std::vector<int64_t> expected = {3, 4};
  EXPECT_EQ(value(Entry("x", Ints(PackedInts({1, 2}))) + Entry("x", Ints(PackedInts({3, 4})))),
            expected);
  EXPECT_EQ(value(Entry("x", Ints(PackedInts({1, 2, 9}))) + Entry("x", Ints(PackedInts({3, 4})))),
            expected);
  EXPECT_EQ(value(Entry("x", Floats(PackedFloats({1})) + Ints(PackedInts({3, 4})))), expected);
  EXPECT_EQ(value(Entry("x", Ints(PackedInts({3})) + Ints(PackedInts({4})))), expected);
  // Fields that nobody knows, in every message.
  const std::string unknown = Field(9, "?") + "\x40\x01" + "\x4D" + "1234" + "\x51" + "12345678";
  EXPECT_EQ(value(unknown + Field(1, unknown + Field(1, "x") +
                                         Field(2, unknown + Ints(unknown + PackedInts({3, 4}))))),
            expected);
  // An entry without a key, which is that of the empty one.
  EXPECT_EQ(value(Field(1, Field(2, Ints(PlainInt(9)))) + Entry("x", Ints(PackedInts({3, 4})))),
            expected);
  // Features that come in two pieces.
  const auto split = Parse(
      *parser,
      Example(Entry("y", Ints(PlainInt(1)))) + Example(Entry("x", Ints(PackedInts({3, 4})))), {16});
  EXPECT_EQ(As<int64_t>(split->arrays[0]), expected);
}

TEST(Example, what_is_missing_or_wrong_is_an_error_that_names_the_feature) {
  const auto parser = MakeExampleParser({"data", {{"x", "", "int64", {2}, true, 7}}});
  const auto defaulted = [&](const std::string& entries) {
    const auto outcome = Parse(*parser, Example(entries), {16});
    return outcome.ok() && As<int64_t>(outcome->arrays[0]) == std::vector<int64_t>{7, 7};
  };
  EXPECT_TRUE(defaulted(""));
  EXPECT_TRUE(defaulted(Entry("x", "")));  // no kind is set: as if it were missing
  for (const std::string& feature : {Ints(""), Ints(PackedInts({1})), Ints(PackedInts({1, 2, 3})),
                                     Floats(PackedFloats({1, 2})), Bytes(Field(1, "ab"))}) {
    const auto outcome = Parse(*parser, Example(Entry("x", feature)), {16});
    EXPECT_EQ(outcome.code(), Code::kDataLoss);
    EXPECT_NE(outcome.status().ToString().find("'x'"), std::string::npos);
  }
  const auto padded = MakeExampleParser({"data", {{"x", "", "int64", {3}, false, -1, true}}});
  const auto values = [&](const std::string& entries) {
    return As<int64_t>(Parse(*padded, Example(entries), {24})->arrays[0]);
  };
  EXPECT_EQ(values(""), (std::vector<int64_t>{-1, -1, -1}));
  EXPECT_EQ(values(Entry("x", Ints(""))), (std::vector<int64_t>{-1, -1, -1}));
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({4, 5})))), (std::vector<int64_t>{4, 5, -1}));
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({4, 5, 6})))), (std::vector<int64_t>{4, 5, 6}));
  EXPECT_FALSE(Parse(*padded, Example(Entry("x", Ints(PackedInts({1, 2, 3, 4})))), {24}).ok());
  EXPECT_FALSE(Parse(*padded, Example(Entry("x", Floats(PackedFloats({1})))), {24}).ok());
  const auto strict = MakeExampleParser({"data", {{"x", "", "int64", {}}}});
  EXPECT_EQ(Parse(*strict, "", {8}).code(), Code::kDataLoss);
  const auto bytes = MakeExampleParser({"data", {{"x", "", "bytes", {}}}});
  EXPECT_FALSE(Parse(*bytes, Example(Entry("x", Bytes(""))), {0}).ok());
  EXPECT_FALSE(Parse(*bytes, Example(Entry("x", Bytes(Field(1, "a") + Field(1, "b")))), {0}).ok());
  EXPECT_EQ(Parse(*bytes, Example(Entry("x", Bytes(Field(1, "")))), {0})->fields[0], "");
}

TEST(Example, ragged_features_have_as_many_values_as_there_are) {
  const auto parser = MakeExampleParser(
      {"data", {{.key = "x", .ragged = true}, {.key = "f", .dtype = "float32", .ragged = true}}});
  const auto values = [&](const std::string& entries) -> std::vector<int64_t> {
    const auto outcome = Parse(*parser, Example(entries), {0, 0});
    return outcome.ok() ? As<int64_t>(outcome->ragged[0]) : std::vector<int64_t>{-99};
  };
  using List = std::vector<int64_t>;
  EXPECT_EQ(values(""), List());
  EXPECT_EQ(values(Entry("x", "")), List());
  EXPECT_EQ(values(Entry("x", Ints(""))), List());
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({1, -2, 3}) + PlainInt(4)))), List({1, -2, 3, 4}));
  // The last of a key and of a kind, and lists of one kind go on.
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({1}))) + Entry("x", Ints(PackedInts({2})))),
            List({2}));
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({1}))) + Entry("x", "")), List());
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({1})) + Floats("") + Ints(PackedInts({3})))),
            List({3}));
  EXPECT_EQ(values(Entry("x", Ints(PackedInts({1})) + Ints(PackedInts({3})))), List({1, 3}));
  const auto both = Parse(*parser,
                          Example(Entry("f", Floats(PackedFloats({1}) + PlainFloat(2.5F))) +
                                  Entry("x", Ints(PackedInts({7})))),
                          {0, 0});
  EXPECT_EQ(As<float>(both->ragged[1]), (std::vector<float>{1, 2.5F}));
  EXPECT_EQ(As<int64_t>(both->ragged[0]), List({7}));
  const auto wrong = Parse(*parser, Example(Entry("x", Floats(PackedFloats({1})))), {0, 0});
  EXPECT_NE(wrong.status().ToString().find("'x' holds floats, not integers"), std::string::npos);
  EXPECT_FALSE(Parse(*parser, Example(Entry("f", Floats(Field(1, "12345")))), {0, 0}).ok());
}

TEST(Example, sparse_vectors_are_values_in_the_order_of_their_places) {
  const auto parser = MakeExampleParser(
      {"data",
       {{.key = "a", .name = "x", .dtype = "float32", .indices = "at", .size = 10},
        {.key = "b", .name = "y", .indices = "at", .size = 8}}});
  std::vector<std::string> names;
  for (const Parsed& result : parser->results()) names.push_back(result.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x", "x_indices", "y", "y_indices"}));
  const auto of = [&](const std::vector<int64_t>& at, const std::vector<float>& a,
                      const std::vector<int64_t>& b) {
    return Parse(*parser,
                 Example(Entry("b", Ints(PackedInts(b))) + Entry("at", Ints(PackedInts(at))) +
                         Entry("a", Floats(PackedFloats(a)))),
                 {0, 0, 0, 0});
  };
  const auto outcome = of({5, 2, 7, 2}, {1, 2, 3, 4}, {10, 20, 30, 40});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(As<float>(outcome->ragged[0]), (std::vector<float>{2, 4, 1, 3}));
  EXPECT_EQ(As<int64_t>(outcome->ragged[1]), (std::vector<int64_t>{2, 2, 5, 7}));
  EXPECT_EQ(As<int64_t>(outcome->ragged[2]), (std::vector<int64_t>{20, 40, 10, 30}));
  EXPECT_EQ(outcome->ragged[3], outcome->ragged[1]);
  EXPECT_TRUE(of({}, {}, {}).ok());
  EXPECT_TRUE(of({0, 7}, {1, 2}, {1, 2}).ok());
  EXPECT_TRUE(Parse(*parser, "", {0, 0, 0, 0})->ragged[0].empty());
  for (const auto& wrong :
       {of({8}, {1}, {1}), of({-1}, {1}, {1}), of({1}, {1, 2}, {1}), of({1, 2}, {1, 2}, {1})}) {
    EXPECT_EQ(wrong.code(), Code::kDataLoss);
  }
  EXPECT_NE(
      of({8}, {1}, {1}).status().ToString().find("'b': an index of 8 in a sparse vector of 8"),
      std::string::npos);
}

TEST(Record, takes_no_more_memory_than_it_says) {
  const auto parser =
      MakeRecordParser({"data",
                        {{.key = "a", .dtype = "int32", .sparse = true},
                         {.key = "a", .name = "b", .dtype = "int32", .ragged = true}}});
  const std::string tensor = Field(1, std::string(1000, '\x01'));  // 1,000 numbers, packed
  const auto outcome =
      Parse(*parser, Field(1, Field(1, "a") + Field(2, Field(7, tensor))), {0, 0, 0});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(outcome->ragged[0].size(), 4000U);
  EXPECT_EQ(outcome->ragged[1].size(), 8000U);
  EXPECT_EQ(outcome->ragged[2], outcome->ragged[0]);
}

TEST(Record, bytes_of_another_count_than_one_are_refused) {
  const auto parser = MakeRecordParser({"data", {{.key = "c", .dtype = "bytes"}}});
  const auto record = [](const std::string& list) {
    return Field(1, Field(1, "c") + Field(2, Field(9, list)));
  };
  EXPECT_EQ(Parse(*parser, record(Field(1, "JPEG")), {0})->fields[0], "JPEG");
  EXPECT_FALSE(Parse(*parser, record(""), {0}).ok());
  EXPECT_FALSE(Parse(*parser, record(Field(1, "a") + Field(1, "b")), {0}).ok());
}

TEST(Example, damage_is_refused) {
  const auto parser = MakeExampleParser(Wanted());
  const std::string whole = Example(Entry("label", Ints(PackedInts({1}))) +
                                    Entry("box", Floats(PackedFloats({1, 2, 3}))) +
                                    Entry("image/encoded", Bytes(Field(1, "JPEG"))));
  ExpectNoPrefixParses(*parser, whole, kSizes);
  const auto label = MakeExampleParser({"data", {{"x", "", "int64", {}}}});
  for (const std::string& list :
       {std::string("\x0B"), std::string("\x00", 1), std::string("\x08") + std::string(10, '\xFF'),
        std::string("\x0A\x03\x01"), "\x0A" + Varint(~uint64_t{0})}) {
    EXPECT_FALSE(Parse(*label, Example(Entry("x", Ints(list))), {8}).ok());
  }
  const auto box = MakeExampleParser({"data", {{"x", "", "float32", {1}}}});
  EXPECT_FALSE(Parse(*box, Example(Entry("x", Floats(Field(1, "12345")))), {4}).ok());
}

// What may come first is taken in one step if it looks as writers write it. A parser that waits for
// another feature goes the long way: both have to say the same, of every byte in every place.
TEST(Example, the_short_way_and_the_long_way_agree) {
  const auto outcome_of = [](bool short_way, const ExampleFeature& wanted,
                             const std::string& text) {
    ParseExampleOp op{"data", {{"other", "", "int64", {}, true, 0}}};
    op.features.insert(short_way ? op.features.begin() : op.features.end(), wanted);
    const std::vector<size_t> sizes = {8, 8};
    const auto parser = MakeExampleParser(op);  // one that has learnt nothing
    const auto outcome = Parse(*parser, text, sizes);
    if (!outcome.ok()) return std::string("error");
    const size_t at = short_way ? 0 : 1;
    return outcome->arrays[at] + "|" + outcome->fields[at] + "|" +
           (wanted.ragged ? outcome->ragged[at] : "");
  };
  const ExampleFeature wanted[] = {{"x", "", "int64", {}},
                                   {"seventeen letters", "", "int64", {}, true, 3},
                                   {"key", "", "float32", {2}, false, 0, true},
                                   {"", "", "int64", {}, true, 4},
                                   {"b", "", "bytes", {}},
                                   {"r", "", "int64", {}, false, 0, false, true},
                                   {"s", "", "float32", {}, false, 0, false, true}};
  for (const ExampleFeature& one : wanted) {
    const std::string feature = one.dtype == "int64"     ? Ints(PackedInts({300}))
                                : one.dtype == "float32" ? Floats(PackedFloats({1.5F, 2}))
                                                         : Bytes(Field(1, "text"));
    const std::string whole = Example(Entry(one.key, feature));
    ASSERT_NE(outcome_of(true, one, whole), "error");
    for (size_t at = 0; at < whole.size(); ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        std::string text = whole;
        text[at] = static_cast<char>(byte);
        ASSERT_EQ(outcome_of(true, one, text), outcome_of(false, one, text))
            << one.key << " " << at << " " << byte;
      }
      const std::string cut = whole.substr(0, at);
      ASSERT_EQ(outcome_of(true, one, cut), outcome_of(false, one, cut)) << one.key << " " << at;
    }
  }
}

// Lengths are of one byte or more, in any order of records, whatever came before.
TEST(Example, entries_of_all_sizes_come_in_any_order) {
  std::vector<std::string> keys = {""};
  for (const size_t size : {1, 2, 3, 4, 7, 8, 13, 14, 15, 100, 112, 113, 114, 115, 127, 128, 300}) {
    keys.emplace_back(size, 'k');
  }
  ParseExampleOp op{"data", {}};
  for (const std::string& key : keys) {
    op.features.push_back({key, "", "int64", {}, false, 0, false, true});
  }
  const auto parser = MakeExampleParser(op);
  const std::vector<size_t> sizes(keys.size(), 0);
  for (size_t count = 0; count < 140; ++count) {
    const std::vector<int64_t> values(count, static_cast<int64_t>(count % 100));
    std::string entries;
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string& key = keys[(i * (count % 5 + 1) * 7 + count / 3) % keys.size()];
      entries += Entry(key, Ints(PackedInts(values)));
    }
    // Some steps do not reach all of them.
    for (const std::string& key : keys) entries += Entry(key, Ints(PackedInts(values)));
    const auto outcome = Parse(*parser, Example(entries), sizes);
    ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
    for (const std::string& ragged : outcome->ragged) ASSERT_EQ(As<int64_t>(ragged), values);
  }
}

TEST(Example, many_features_are_told_apart) {
  ParseExampleOp op{"data", {}};
  std::string entries;
  std::vector<size_t> sizes;
  for (int i = 0; i < 200; ++i) {
    const std::string key = "feature" + std::to_string(i * 7919 % 200);
    op.features.push_back({"feature" + std::to_string(i), "", "int64", {}});
    entries += Entry(key, Ints(PlainInt(i * 7919 % 200))) + Entry(key + "x", Ints(PlainInt(-1)));
    sizes.push_back(8);
  }
  const auto outcome = Parse(*MakeExampleParser(op), Example(entries), sizes);
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(As<int64_t>(outcome->arrays[i])[0], static_cast<int64_t>(i));
  }
}

std::string StoredTokens(const std::vector<uint16_t>& tokens) { return BytesOfAll(tokens); }

TEST(Tokens, of_every_type_become_numbers) {
  const auto check = [](std::string_view stored, const std::string& bytes) {
    for (const std::string dtype : {"int64", "int32"}) {
      const auto parser = MakeTokensParser({.length = 3, .dtype = dtype}, stored);
      ASSERT_TRUE(parser.ok()) << stored;
      const size_t size = dtype == "int64" ? 24 : 12;
      const auto outcome = Parse(**parser, bytes, {size});
      ASSERT_TRUE(outcome.ok()) << stored << ": " << outcome.status().ToString();
      if (dtype == "int64") {
        EXPECT_EQ(As<int64_t>(outcome->arrays[0]), (std::vector<int64_t>{0, 7, 120})) << stored;
      } else {
        EXPECT_EQ(As<int32_t>(outcome->arrays[0]), (std::vector<int32_t>{0, 7, 120})) << stored;
      }
    }
  };
  check("uint8", BytesOfAll(std::vector<uint8_t>{0, 7, 120}));
  check("int8", BytesOfAll(std::vector<int8_t>{0, 7, 120}));
  check("uint16", BytesOfAll(std::vector<uint16_t>{0, 7, 120}));
  check("int16", BytesOfAll(std::vector<int16_t>{0, 7, 120}));
  check("uint32", BytesOfAll(std::vector<uint32_t>{0, 7, 120}));
  check("int32", BytesOfAll(std::vector<int32_t>{0, 7, 120}));
  check("uint64", BytesOfAll(std::vector<uint64_t>{0, 7, 120}));
  check("int64", BytesOfAll(std::vector<int64_t>{0, 7, 120}));
  EXPECT_EQ(MakeTokensParser({.length = 3}, "float32").code(), Code::kInvalidArgument);
}

TEST(Tokens, that_cannot_be_or_are_not_in_the_vocabulary_are_bad) {
  const auto one = [](std::string_view stored, const std::string& bytes, const std::string& dtype,
                      int64_t vocabulary) {
    const auto parser =
        MakeTokensParser({.length = 1, .dtype = dtype, .vocabulary = vocabulary}, stored);
    return Parse(**parser, bytes, {dtype == "int64" ? size_t{8} : size_t{4}}).code();
  };
  EXPECT_EQ(one("int16", BytesOfAll(std::vector<int16_t>{-1}), "int64", 0), Code::kDataLoss);
  EXPECT_EQ(one("uint32", BytesOfAll(std::vector<uint32_t>{1u << 31}), "int32", 0),
            Code::kDataLoss);
  EXPECT_EQ(one("uint32", BytesOfAll(std::vector<uint32_t>{1u << 31}), "int64", 0), Code::kOk);
  EXPECT_EQ(one("uint64", BytesOfAll(std::vector<uint64_t>{1ull << 63}), "int64", 0),
            Code::kDataLoss);
  EXPECT_EQ(one("uint16", StoredTokens({50'256}), "int64", 50'257), Code::kOk);
  EXPECT_EQ(one("uint16", StoredTokens({50'257}), "int64", 50'257), Code::kDataLoss);
  const auto parser = MakeTokensParser({.length = 3}, "uint16");
  EXPECT_EQ(Parse(**parser, StoredTokens({1, 2}), {24}).code(), Code::kDataLoss);
  EXPECT_EQ(Parse(**parser, StoredTokens({1, 2, 3, 4}), {24}).code(), Code::kDataLoss);
}

TEST(PackedTokens, become_a_row_with_segments_and_positions) {
  const auto parser = MakePackedTokensParser({.length = 6, .pad = -1}, "uint16");
  ASSERT_TRUE(parser.ok());
  const std::string row =
      BytesOfAll(std::vector<uint32_t>{2, 3, 1}) + StoredTokens({10, 11, 12, 20});
  const auto outcome = Parse(**parser, row, {48, 24, 24});
  ASSERT_TRUE(outcome.ok()) << outcome.status().ToString();
  EXPECT_EQ(As<int64_t>(outcome->arrays[0]), (std::vector<int64_t>{10, 11, 12, 20, -1, -1}));
  EXPECT_EQ(As<int32_t>(outcome->arrays[1]), (std::vector<int32_t>{1, 1, 1, 2, 0, 0}));
  EXPECT_EQ(As<int32_t>(outcome->arrays[2]), (std::vector<int32_t>{0, 1, 2, 0, 0, 0}));
  ExpectNoPrefixParses(**parser, row, {48, 24, 24});
  EXPECT_EQ(Parse(**parser, row + "xx", {48, 24, 24}).code(), Code::kDataLoss);
  const std::string longer =
      BytesOfAll(std::vector<uint32_t>{1, 7}) + StoredTokens({1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(Parse(**parser, longer, {48, 24, 24}).code(), Code::kDataLoss);
  // Nobody wants the segments.
  EXPECT_TRUE(Parse(**parser, row, {48, 0, 0}).ok());
}

}  // namespace
}  // namespace forebay::ops
