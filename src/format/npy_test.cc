#include "format/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include "base/crc32.h"
#include "base/crc32c.h"
#include "format/inflate.h"
#include "format/zip.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using testing::Flipped;
using ::testing::HasSubstr;
using testing::Number;
using testing::Replaced;
using testing::RunScan;
using testing::Scanned;

std::string Npy(std::string dictionary, const std::string& data, char major = 1) {
  const size_t start = major == 1 ? 10 : 12;
  while ((start + dictionary.size() + 1) % 64 != 0) dictionary += ' ';
  dictionary += '\n';
  const auto size = static_cast<uint32_t>(dictionary.size());
  return "\x93NUMPY" + std::string(1, major) + std::string(1, '\0') +
         (major == 1 ? Number(static_cast<uint16_t>(size)) : Number(size)) + dictionary + data;
}

std::string Dictionary(const std::string& descr, const std::string& shape,
                       const std::string& order = "False") {
  return "{'descr': " + descr + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }";
}

Result<NpyHeader> Parse(const std::string& dictionary) {
  return ParseNpyHeader(AsBytes(Npy(dictionary, "")));
}

Scanned ScanIt(const std::string& bytes, const NpyOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanNpy(shard, options, on, report);
  });
}

TEST(Npy, says_what_the_array_is) {
  const auto header = Parse(Dictionary("'>f4'", "(3, 2)"));
  ASSERT_TRUE(header.ok()) << header.status().ToString();
  EXPECT_EQ(header->dtype, "float32");
  EXPECT_EQ(header->descr, ">f4");
  EXPECT_TRUE(header->big_endian);
  EXPECT_THAT(header->shape, ElementsAre(3, 2));
  EXPECT_EQ(header->data_bytes, 24U);
  EXPECT_EQ(header->data_offset, 128U);
  const std::pair<std::string, std::string> types[] = {
      {"'|b1'", "bool"},
      {"'|u1'", "uint8"},
      {"'<i8'", "int64"},
      {"'<c16'", "complex128"},
      {"'|S12'", "S12"},
      {"'<U3'", "U3"},
      {"'<M8[ns]'", "datetime64[ns]"},
      {"'|V5'", "void5"},
      {"\"<f2\"", "float16"},
      {"[('a', '<f4'), ('b', '<i2', (3,))]", "void10"},
      {"[('a', [('x', '|u1'), ('y', '<u2')]), ('b', '<i8')]", "void11"}};
  for (const auto& [descr, name] : types) {
    const auto parsed = Parse(Dictionary(descr, "(1,)"));
    ASSERT_TRUE(parsed.ok()) << descr << parsed.status().ToString();
    EXPECT_EQ(parsed->dtype, name);
  }
  EXPECT_EQ(Parse(Dictionary("'<U3'", "()"))->data_bytes, 12U);
  EXPECT_EQ(Parse(Dictionary("'<f4'", "(10L, 2L)"))->data_bytes, 80U);
  EXPECT_TRUE(ParseNpyHeader(AsBytes(Npy(Dictionary("'<f4'", "(2,)"), "", 2))).ok());
  EXPECT_TRUE(ParseNpyHeader(AsBytes(Npy(Dictionary("'<f4'", "(2,)"), "", 3))).ok());
}

TEST(Npy, never_opens_objects_and_refuses_other_types) {
  for (const char* descr : {"'|O'", "'O8'", "'<f16'", "'<x4'", "''", "'<'", "'S'", "'<f4[ns]'",
                            "[('a', '|O')]", "'<U99999999999'"}) {
    EXPECT_EQ(Parse(Dictionary(descr, "(1,)")).code(), Code::kUnimplemented) << descr;
  }
  EXPECT_THAT(Parse(Dictionary("'|O'", "(1,)")).status().ToString(), HasSubstr("never opened"));
}

TEST(Npy, with_another_header_is_an_error) {
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "[('a', ";
  for (const std::string& bad :
       {std::string(""), std::string("{}"), std::string("{'descr': '<f4'}"),
        Dictionary("'<f4'", "(1,)") + "x", Dictionary("'<f4'", "(-1,)"), Dictionary("'<f4'", "1"),
        Dictionary("'<f4'", "(18446744073709551616,)"), Dictionary("'<f4'", "(1 2)"),
        Dictionary("'<f4'", "(9999999999, 9999999999)"), Dictionary("'<f4'", "(1,)", "None"),
        Dictionary("'<\\x664'", "(1,)"), Dictionary("[('a')]", "(1,)"),
        Dictionary("'<f4', 'descr': '<f8'", "(1,)"), std::string("{'descr': __import__('os')}")}) {
    EXPECT_EQ(Parse(bad).code(), Code::kDataLoss) << bad;
  }
  EXPECT_FALSE(Parse(Dictionary("'<f4", "(1,)")).ok());
  EXPECT_FALSE(Parse(Dictionary(deep, "(1,)")).ok());
  const std::string bytes = Npy(Dictionary("'<f4'", "(3,)"), "");
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(ParseNpyHeader(AsBytes(bytes.substr(0, size))).code(), Code::kDataLoss) << size;
  }
  EXPECT_FALSE(ParseNpyHeader(AsBytes(Replaced(bytes, 8, "\xff\xff"))).ok());
  EXPECT_FALSE(ParseNpyHeader(AsBytes(Flipped(bytes, 0))).ok());
  EXPECT_EQ(ParseNpyHeader(AsBytes(Replaced(bytes, 6, "\x04"))).code(), Code::kUnimplemented);
  EXPECT_FALSE(ParseNpyHeader(AsBytes(Npy("", "", 2).replace(8, 4, "\xff\xff\xff\xff"))).ok());
}

TEST(Npy, gives_its_rows) {
  const std::string bytes = Npy(Dictionary("'<u2'", "(3, 2)"), "aabbccddeeff");
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 3U);
  const ByteRange last = scanned.records[2].range;
  EXPECT_EQ(bytes.substr(last.offset, last.size()), "eeff");
  EXPECT_EQ(scanned.records[2].fields[0].name, "array");
  EXPECT_EQ(ScanIt(Npy(Dictionary("'<u2'", "()"), "aa")).records.size(), 1U);
  EXPECT_EQ(ScanIt(Npy(Dictionary("'<u2'", "(0, 5)"), "")).records.size(), 0U);
  EXPECT_TRUE(ScanIt(bytes + "x").HasOddity("behind the array"));
  EXPECT_TRUE(ScanIt(Npy(Dictionary("'<u2'", "(3,)", "True"), "aabbcc")).status.ok());
  EXPECT_EQ(ScanIt(Npy(Dictionary("'<u2'", "(3, 2)", "True"), "aabbccddeeff")).status.code(),
            Code::kUnimplemented);
  EXPECT_EQ(ScanIt(Npy(Dictionary("'|S0'", "(1000000000000,)"), "")).status.code(),
            Code::kUnimplemented);
}

TEST(Npy, that_is_cut_is_an_error_or_loses_rows) {
  const std::string bytes = Npy(Dictionary("'<u2'", "(3, 2)"), "aabbccddeeff");
  for (size_t size = bytes.size() - 12; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    EXPECT_THAT(ScanIt(cut).status.ToString(), HasSubstr("cut: expected 12"));
    const Scanned dropped = ScanIt(cut, {.drop_tail = true});
    EXPECT_TRUE(dropped.status.ok());
    EXPECT_EQ(dropped.records.size(), (size + 12 - bytes.size()) / 4);
  }
}

struct Zipped {
  std::string name;
  std::string data;
  uint16_t method = 0;
};

std::string Deflated(const std::string& data) {
  std::string packed(data.size() + 1000, '\0');
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  z.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(data.data()));
  z.avail_in = static_cast<uInt>(data.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  packed.resize(z.total_out);
  deflateEnd(&z);
  return packed;
}

// As NumPy writes: 64-bit sizes in the local header. Method 8 is deflated, any other as it is.
std::string Zip(const std::vector<Zipped>& members) {
  std::string bytes;
  std::string directory;
  for (const Zipped& member : members) {
    const std::string packed = member.method == 8 ? Deflated(member.data) : member.data;
    const auto size = static_cast<uint32_t>(member.data.size());
    const auto packed_size = static_cast<uint32_t>(packed.size());
    const auto name = static_cast<uint16_t>(member.name.size());
    const std::string common = Number<uint16_t>(member.method) + std::string(4, '\0') +
                               Number(Crc32(AsBytes(member.data)));
    directory += "PK\x01\x02" + Number<uint16_t>(20) + Number<uint16_t>(20) + Number<uint16_t>(0) +
                 common + Number(packed_size) + Number(size) + Number(name) +
                 std::string(12, '\0') + Number(static_cast<uint32_t>(bytes.size())) + member.name;
    bytes.append("PK\x03\x04").append(Number<uint16_t>(45)).append(Number<uint16_t>(0));
    bytes.append(common).append(Number(UINT32_MAX)).append(Number(UINT32_MAX));
    bytes.append(Number(name)).append(Number<uint16_t>(20)).append(member.name);
    bytes.append(Number<uint16_t>(1)).append(Number<uint16_t>(16)).append(Number<uint64_t>(size));
    bytes.append(Number<uint64_t>(packed_size)).append(packed);
  }
  const auto count = static_cast<uint16_t>(members.size());
  return bytes + directory + "PK\x05\x06" + std::string(4, '\0') + Number(count) + Number(count) +
         Number(static_cast<uint32_t>(directory.size())) +
         Number(static_cast<uint32_t>(bytes.size())) + Number<uint16_t>(0);
}

Scanned ScanZip(const std::string& bytes) {
  return RunScan(bytes, [](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanNpz(shard, on, report);
  });
}

std::string TwoArrays() {
  return Zip({{"x.npy", Npy(Dictionary("'<u2'", "(3, 2)"), "aabbccddeeff")},
              {"notes.txt", "hello"},
              {"y.npy", Npy(Dictionary("'|u1'", "(3,)"), "012")}});
}

TEST(Npz, gives_its_arrays) {
  const std::string bytes = TwoArrays();
  const Scanned scanned = ScanZip(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.size(), 1U);
  ASSERT_EQ(scanned.records[0].fields.size(), 2U);
  EXPECT_EQ(scanned.records[0].fields[0].name, "x");
  const FoundField& y = scanned.records[0].fields[1];
  const std::string array = bytes.substr(y.range.offset, y.range.size());
  EXPECT_EQ(array, Npy(Dictionary("'|u1'", "(3,)"), "012"));
  EXPECT_TRUE(scanned.HasOddity("no array"));
  EXPECT_TRUE(ScanZip(Zip({})).HasOddity("no arrays"));
}

// Long enough for more than one of the inflater's pieces.
std::string LongArray() {
  std::string data;
  for (uint32_t i = 0; i < 100'000; ++i) data += static_cast<char>(i * i % 251);
  return Npy(Dictionary("'|u1'", "(100000,)"), data);
}

TEST(Npz, unpacks_compressed_arrays_whole) {
  const std::string array = LongArray();
  const std::string bytes = Zip({{"x.npy", array, 8}, {"y.npy", array, 0}, {"z.npy", array, 8}});
  const Scanned scanned = ScanZip(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  ASSERT_EQ(scanned.records.at(0).fields.size(), 3U);
  for (const FoundField& field : scanned.records[0].fields) {
    const std::string fetched = bytes.substr(field.range.offset, field.range.size());
    EXPECT_EQ(field.bytes, array.size());
    EXPECT_EQ(field.crc32c, Crc32c(AsBytes(fetched)));
    std::vector<std::byte> scratch;
    const auto opened = OpenZipMember(AsBytes(fetched), field.bytes, &scratch);
    ASSERT_TRUE(opened.ok()) << opened.status().ToString();
    EXPECT_TRUE(AsText(*opened) == array);
    // Of a stored one the catalog's checksum watches, and nothing is to be taken apart.
    if (field.range.size() == field.bytes) continue;
    for (size_t at = 0; at < fetched.size(); at += 1 + fetched.size() / 300) {
      const std::string bad = Flipped(fetched, at);
      const auto other = OpenZipMember(AsBytes(bad), field.bytes, &scratch);
      EXPECT_TRUE(!other.ok() || at < 4 || AsText(*other) == array) << at;
    }
    EXPECT_FALSE(OpenZipMember(AsBytes(fetched).first(20 + 30), field.bytes, &scratch).ok());
    EXPECT_FALSE(OpenZipMember(AsBytes(fetched), field.bytes - 1, &scratch).ok());
    EXPECT_FALSE(OpenZipMember(AsBytes(fetched), field.bytes + 1, &scratch).ok());
  }
}

TEST(Npz, finds_damage_in_compressed_arrays) {
  const std::string bytes = Zip({{"x.npy", LongArray(), 8}});
  const size_t data = ScanZip(bytes).records.at(0).fields.at(0).range.offset + 55;
  for (size_t at = data; at < bytes.size() - 80; at += 997) {
    EXPECT_FALSE(ScanZip(Flipped(bytes, at)).status.ok()) << at;
  }
}

TEST(Inflater, takes_no_size_that_deflate_cannot_make) {
  EXPECT_EQ(Inflater::Make(100, 200'000, {}).status().code(), Code::kDataLoss);
  EXPECT_EQ(Inflater::Make(uint64_t{1} << 40, Inflater::kMaxBytes + 1, {}).status().code(),
            Code::kDataLoss);
  const std::string zeros = Deflated(std::string(1'000'000, '\0'));
  auto inflater = Inflater::Make(zeros.size(), 999'999, {});
  ASSERT_TRUE(inflater.ok());
  uint64_t made = 0;
  EXPECT_FALSE(inflater->Take(AsBytes(zeros), [&](ByteView piece) { made += piece.size(); }).ok());
  EXPECT_LT(made, 1'000'000U);
}

TEST(Npz, refuses_other_compression_and_pickled_arrays) {
  const std::string array = Npy(Dictionary("'|u1'", "(3,)"), "012");
  EXPECT_THAT(ScanZip(Zip({{"x.npy", array, 12}})).status.ToString(), HasSubstr("method 12"));
  EXPECT_EQ(ScanZip(Zip({{"x.npy", Npy(Dictionary("'|O'", "(3,)"), "012")}})).status.code(),
            Code::kUnimplemented);
}

TEST(Npz, that_is_damaged_is_an_error) {
  const std::string bytes = TwoArrays();
  for (size_t size = 0; size < bytes.size(); size += 7) {
    EXPECT_EQ(ScanZip(bytes.substr(0, size)).status.code(), Code::kDataLoss) << size;
  }
  const std::string array = Npy(Dictionary("'|u1'", "(3,)"), "012");
  EXPECT_FALSE(ScanZip(Zip({{"x.npy", array}, {"x.npy", array}})).status.ok());
  EXPECT_FALSE(ScanZip(Zip({{"x.npy", array + "more"}})).status.ok());
  const size_t end = bytes.size() - 22;
  const size_t first = bytes.find("PK\x01\x02");
  // Of the end: count, size and place of the directory; of an entry: mark, sizes, place, name's
  // length; of a member: mark, method, name.
  for (const size_t at : {end, end + 10, end + 12, end + 16, first, first + 20, first + 24,
                          first + 28, first + 42, size_t{0}, size_t{8}, size_t{26}, size_t{30}}) {
    EXPECT_FALSE(ScanZip(Flipped(bytes, at)).status.ok()) << at;
    EXPECT_FALSE(ScanZip(Replaced(bytes, at, "\xff\xff\xff\xff")).status.ok()) << at;
  }
  // Data that fail the zip's own checksum.
  EXPECT_THAT(ScanZip(Flipped(bytes, bytes.find("aabbcc"))).status.ToString(),
              HasSubstr("data with the checksum"));
  // Two members in one place: what is read would be far more than the file.
  const size_t second = bytes.find("PK\x01\x02", first + 1);
  EXPECT_THAT(ScanZip(Replaced(bytes, second + 42, Number<uint32_t>(0))).status.ToString(),
              HasSubstr("overlap"));
}

}  // namespace
}  // namespace forebay::format
