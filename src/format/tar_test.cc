#include "format/tar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

#include "format/sniff.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using testing::CutNear;
using testing::Flipped;
using ::testing::HasSubstr;
using testing::RunScan;
using testing::Scanned;

constexpr size_t kBlock = 512;

std::string WithChecksum(std::string header) {
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
  return header;
}

std::string HeaderWithSize(const std::string& name, char type, std::string_view size) {
  std::string header(kBlock, '\0');
  std::memcpy(header.data(), name.data(), std::min<size_t>(name.size(), 100));
  std::memcpy(header.data() + 100, "0000644", 7);
  std::memcpy(header.data() + 108, "0000000", 7);
  std::memcpy(header.data() + 116, "0000000", 7);
  std::memcpy(header.data() + 124, size.data(), size.size());
  std::memcpy(header.data() + 136, "00000000000", 11);
  header[156] = type;
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  return WithChecksum(header);
}

std::string Header(const std::string& name, uint64_t size, char type = '0') {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%011llo", static_cast<unsigned long long>(size));
  return HeaderWithSize(name, type, {digits, 11});
}

std::string Padded(std::string data) {
  data.resize((data.size() + kBlock - 1) / kBlock * kBlock);
  return data;
}

std::string Member(const std::string& name, const std::string& data, char type = '0') {
  return Header(name, data.size(), type) + Padded(data);
}

std::string PaxRecord(const std::string& key, const std::string& value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return std::to_string(length) + " " + key + "=" + value + "\n";
}

const std::string kEnd(2 * kBlock, '\0');

std::string Base256(uint64_t value) {
  std::string field(12, '\0');
  field[0] = '\x80';
  for (size_t i = 0; i < 8; ++i) field[11 - i] = static_cast<char>(value >> (8 * i));
  return field;
}

Scanned ScanIt(const std::string& bytes, const TarOptions& options = {}) {
  return RunScan(bytes, [&options](const Shard& shard, const OnRecord& on, ScanReport* report) {
    return ScanTar(shard, options, on, report);
  });
}

// "key:field=data,field=data" of each record.
std::vector<std::string> Texts(const std::string& bytes, const Scanned& scanned) {
  std::vector<std::string> texts;
  for (const FoundRecord& record : scanned.records) {
    std::string text = record.key + ":";
    for (const FoundField& field : record.fields) {
      if (text.back() != ':') text += ",";
      EXPECT_EQ(field.bytes, field.range.size());
      text += field.name + "=" + bytes.substr(field.range.offset, field.range.size());
    }
    texts.push_back(text);
  }
  return texts;
}

std::vector<std::string> TextsOf(const std::string& bytes, const TarOptions& options = {}) {
  const Scanned scanned = ScanIt(bytes, options);
  EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  return Texts(bytes, scanned);
}

void ExpectDamage(const std::string& bytes, std::string_view why, const TarOptions& options = {}) {
  const Scanned scanned = ScanIt(bytes, options);
  EXPECT_EQ(scanned.status.code(), Code::kDataLoss) << scanned.status.ToString();
  EXPECT_THAT(scanned.status.ToString(), HasSubstr(std::string(why)));
  EXPECT_THAT(scanned.status.ToString(), HasSubstr("shard, offset "));
}

std::string ThreeSamples() {
  return Member("a/0.jpg", "first") + Member("a/0.cls", "7") + Member("a/1.jpg", "second") +
         Member("a/1.cls", "8") + Member("a/2.jpg", std::string(600, 'x')) + kEnd;
}

TEST(TarName, is_split_as_webdataset_does) {
  const auto split = [](std::string_view name) -> std::string {
    const auto parts = SplitSampleName(name);
    return parts ? std::string(parts->key) + "|" + std::string(parts->extension) : "-";
  };
  EXPECT_EQ(split("a/000.seg.png"), "a/000|seg.png");
  EXPECT_EQ(split("dir.v1/0.1.jpg"), "dir.v1/0|1.jpg");
  EXPECT_EQ(split("22.05.png"), "22|05.png");
  EXPECT_EQ(split(".hidden.jpg"), "-");
  EXPECT_EQ(split("d/.hidden.jpg"), "d/|hidden.jpg");
  EXPECT_EQ(split("c/d/.hidden.jpg"), "c/d/|hidden.jpg");
  EXPECT_EQ(split("d.v1/.hidden.jpg"), "-");
  EXPECT_EQ(split("noext"), "-");
  EXPECT_EQ(split("d.v1/noext"), "-");
  EXPECT_EQ(split("A.JPG"), "A|JPG");
  EXPECT_EQ(split("x."), "x|");
  EXPECT_EQ(split("./x.jpg"), "./x|jpg");
  EXPECT_EQ(split("../up.jpg"), "../up|jpg");
  EXPECT_EQ(split("/abs/x.jpg"), "/abs/x|jpg");
  EXPECT_EQ(split("/.x.jpg"), "/|x.jpg");
  EXPECT_EQ(split("//.x.jpg"), "//|x.jpg");
  EXPECT_EQ(split("a.b\nc/d.jpg"), "-");
  EXPECT_EQ(split("a\nb/c.jpg"), "a\nb/c|jpg");
  EXPECT_EQ(split(""), "-");
  EXPECT_EQ(split("."), "-");
  EXPECT_EQ(split("/"), "-");
}

TEST(TarName, marks_notes_by_underscores) {
  EXPECT_TRUE(IsMetadataName("__notes__"));
  EXPECT_TRUE(IsMetadataName("__"));
  EXPECT_TRUE(IsMetadataName("__notes__/a.jpg"));
  EXPECT_FALSE(IsMetadataName("a/__notes__"));
  EXPECT_FALSE(IsMetadataName("__notes__.jpg"));
  EXPECT_FALSE(IsMetadataName("__/a.jpg"));
}

TEST(Tar, gives_neighbouring_members_of_one_key_as_a_sample) {
  EXPECT_THAT(TextsOf(ThreeSamples()),
              ::testing::ElementsAre("a/0:jpg=first,cls=7", "a/1:jpg=second,cls=8",
                                     "a/2:jpg=" + std::string(600, 'x')));
  EXPECT_EQ(ScanIt(ThreeSamples()).report.oddities, 0U);
}

TEST(Tar, takes_names_and_sizes_from_wherever_they_stand) {
  const std::string long_name = "d/" + std::string(300, 'n') + ".jpg";
  EXPECT_THAT(
      TextsOf(Header("x", PaxRecord("path", "pax.\xc3\xbc.jpg").size(), 'x') +
              Padded(PaxRecord("path", "pax.\xc3\xbc.jpg")) + Member("short.jpg", "1") +
              Member("././@LongLink", long_name + '\0', 'L') + Member("cut.jpg", "2") +
              Member("x", PaxRecord("size", "3"), 'x') + Header("s.JPG", 0) + Padded("abc") +
              HeaderWithSize("b.jpg", '0', Base256(4)) + Padded("four") +
              Member("g", PaxRecord("comment", "hello"), 'g') + Member("v7.txt", "5", '\0') + kEnd),
      ::testing::ElementsAre("pax:\xc3\xbc.jpg=1", "d/" + std::string(300, 'n') + ":jpg=2",
                             "s:jpg=abc", "b:jpg=four", "v7:txt=5"));
}

TEST(Tar, leaves_out_what_is_no_file_and_says_so) {
  const std::string bytes = Member("link.jpg", "", '2') + Member("hard.jpg", "", '1') +
                            Member("dir", "", '5') + Member("dev.jpg", "", '3') +
                            Member("pipe.jpg", "", '6') + Member("q.jpg", "data", 'Q') +
                            Member("label", std::string(700, 'l'), 'V') + Member("noext", "x") +
                            Member("__notes__", "x") + Member("a.jpg", "1") + kEnd;
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_THAT(Texts(bytes, scanned), ::testing::ElementsAre("a:jpg=1"));
  EXPECT_EQ(scanned.report.oddities, 9U);
  for (const char* what : {"a symbolic link", "a hard link", "a directory", "a device", "a FIFO",
                           "a type that is no file", "own label", "no key", "WebDataset"}) {
    EXPECT_TRUE(scanned.HasOddity(what)) << what;
  }
}

TEST(Tar, refuses_two_fields_of_one_name) {
  ExpectDamage(Member("a.jpg", "1") + Member("a.JPG", "2") + kEnd, "'jpg' twice in the sample 'a'");
}

TEST(Tar, tells_of_keys_that_are_no_neighbours) {
  const Scanned scanned =
      ScanIt(Member("a.jpg", "1") + Member("b.jpg", "2") + Member("a.cls", "3") + kEnd);
  EXPECT_TRUE(scanned.status.ok());
  EXPECT_EQ(scanned.records.size(), 3U);
  EXPECT_EQ(scanned.report.oddities, 1U);
  EXPECT_TRUE(scanned.HasOddity("met before, at offset 0"));
  EXPECT_EQ(scanned.report.first_oddities[0].offset, 2048U);
}

TEST(Tar, tells_of_an_end_that_is_missing_or_has_something_behind_it) {
  const std::string members = Member("a.jpg", "1") + Member("b.jpg", "2");
  for (const auto& [tail, oddity] : std::vector<std::pair<std::string, std::string>>{
           {"", "no end is marked"},
           {std::string(kBlock, '\0'), "the mark of the end is cut"},
           {kEnd + Member("c.jpg", "3"), "behind the archive's end"},
           {std::string(kBlock, '\0') + Member("c.jpg", "3"), "behind the archive's end"}}) {
    const Scanned scanned = ScanIt(members + tail);
    EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
    EXPECT_EQ(scanned.records.size(), 2U);
    EXPECT_TRUE(scanned.HasOddity(oddity)) << oddity;
  }
  EXPECT_THAT(TextsOf(members + kEnd + Member("b.jpg", "3") + kEnd, {.concatenated = true}),
              ::testing::ElementsAre("a:jpg=1", "b:jpg=2", "b:jpg=3"));
}

TEST(Tar, is_known_by_its_content) {
  for (const std::string& bytes : {ThreeSamples(), Member("x", PaxRecord("size", "3"), 'x')}) {
    EXPECT_EQ(Sniff(AsBytes(bytes), bytes.size(), "x.jsonl"), Kind::kTar);
    EXPECT_EQ(Sniff(AsBytes(Flipped(bytes, 3)), bytes.size(), "x.tar"), Kind::kUnknown);
  }
}

TEST(Tar, of_nothing_has_no_samples) {
  for (const size_t zeros : {0, 512, 1024, 10240}) {
    const Scanned scanned = ScanIt(std::string(zeros, '\0'));
    EXPECT_TRUE(scanned.status.ok()) << scanned.status.ToString();
    EXPECT_TRUE(scanned.records.empty());
    EXPECT_TRUE(scanned.HasOddity("there are no samples"));
  }
}

TEST(Tar, with_a_damaged_header_is_an_error_wherever_it_is) {
  const std::string bytes = ThreeSamples();
  for (size_t member = 0; member < 5; ++member) {
    for (const size_t at : {0, 124, 148, 156, 300}) {
      ExpectDamage(Flipped(bytes, member * 2 * kBlock + at), "damage");
    }
  }
}

TEST(Tar, that_is_cut_is_an_error_or_loses_its_last_sample) {
  const std::string bytes = ThreeSamples();
  const std::vector<std::string> whole = TextsOf(bytes);
  std::set<uint64_t> places;
  for (uint64_t at = 0; at < bytes.size(); at += kBlock)
    places.insert({at, at + 1, at + 5, at + 7});
  for (const std::string& cut : CutNear(bytes, places)) {
    const Scanned scanned = ScanIt(cut);
    const Scanned dropped = ScanIt(cut, {.drop_tail = true});
    ASSERT_TRUE(dropped.status.ok()) << cut.size() << ": " << dropped.status.ToString();
    ASSERT_GT(dropped.report.oddities, 0U) << cut.size();
    // What is delivered is what was there, and nothing in part but where the cut cannot be told.
    const std::vector<std::string> texts = Texts(cut, dropped);
    for (size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(texts[i] == whole[i] || whole[i].starts_with(texts[i] + ",")) << texts[i];
    }
    if (!scanned.status.ok()) {
      EXPECT_THAT(scanned.status.ToString(), HasSubstr("cut")) << cut.size();
      EXPECT_EQ(scanned.status.code(), Code::kDataLoss);
    } else {
      EXPECT_EQ(Texts(cut, scanned), texts);
    }
  }
}

TEST(Tar, with_a_length_at_its_maximum_is_an_error) {
  ExpectDamage(Header("a.jpg", 077777777777) + kEnd, "cut: expected 8589934591 bytes");
  ExpectDamage(HeaderWithSize("a.jpg", '0', Base256(uint64_t{1} << 62)) + kEnd, "");
  ExpectDamage(HeaderWithSize("a.jpg", '0', Base256(INT64_MAX)) + kEnd, "");
  ExpectDamage(HeaderWithSize("a.jpg", '0', std::string(12, '\xff')) + kEnd, "");
  ExpectDamage(HeaderWithSize("a.jpg", '0', "zzz") + kEnd, "");
  ExpectDamage(Header("x", 077777777777, 'x') + kEnd, "limit");
  ExpectDamage(Header("x", uint64_t{1} << 31, 'L') + kEnd, "limit");
  ExpectDamage(Header("x", 3000, 'x') + kEnd, "cut");
  ExpectDamage(Member("x", PaxRecord("size", "9223372036854775807"), 'x') + Member("a.jpg", "1"),
               "");
}

TEST(Tar, refuses_what_readers_would_disagree_on) {
  const auto refused = [](const std::string& bytes, std::string_view why) {
    const Scanned scanned = ScanIt(bytes);
    EXPECT_EQ(scanned.status.code(), Code::kUnimplemented) << scanned.status.ToString();
    EXPECT_THAT(scanned.status.ToString(), HasSubstr(std::string(why)));
  };
  const std::string member = Member("a.jpg", "1");
  refused(Member("g", PaxRecord("path", "all.jpg"), 'g') + member + kEnd, "for all members");
  refused(Member("x", PaxRecord("GNU.sparse.major", "1"), 'x') + member + kEnd, "sparse");
  refused(Member("s.jpg", "1", 'S') + kEnd, "sparse");
  refused("\x1f\x8b\x08 and so on", "gzip");
  refused("PK\x03\x04 and so on", "zip");
  ExpectDamage(Member("x", PaxRecord("path", std::string("a\0b.jpg", 7)), 'x') + member + kEnd,
               "NUL");
  ExpectDamage(Member("x", std::string("a\0b.jpg", 7), 'L') + member + kEnd, "NUL");
  ExpectDamage(Member("x", "99 path=a.jpg\n", 'x') + member + kEnd, "its length");
  ExpectDamage(Member("x", PaxRecord("path", "b.jpg"), 'x') + Member("l", "c.jpg", 'L') + member,
               "two of them");
  ExpectDamage("<?xml version='1.0'?><Error><Code>SlowDown</Code></Error>", "XML or HTML");
}

TEST(Tar, keeps_its_limits) {
  ExpectDamage(ThreeSamples(), "limit", {.max_members = 4});
  ExpectDamage(ThreeSamples(), "limit", {.max_name_bytes = 6});
  ExpectDamage(ThreeSamples(), "limit", {.max_sample_members = 1});
  ExpectDamage(ThreeSamples(), "limit", {.max_sample_bytes = 599});
  EXPECT_EQ(TextsOf(ThreeSamples(), {.max_members = 5,
                                     .max_name_bytes = 7,
                                     .max_sample_members = 2,
                                     .max_sample_bytes = 1025})
                .size(),
            3U);
}

TEST(Tar, larger_than_the_window_is_read_once_but_for_its_largest_members) {
  std::string bytes = Member("big.bin", std::string(size_t{20} << 20, 'b'));
  for (int i = 0; i < 40; ++i) {
    bytes +=
        Member(std::to_string(i) + ".jpg", std::string(500'000 + i * 777, static_cast<char>(i)));
  }
  bytes += kEnd;
  const Scanned scanned = ScanIt(bytes);
  ASSERT_TRUE(scanned.status.ok()) << scanned.status.ToString();
  EXPECT_EQ(scanned.records.size(), 41U);
  EXPECT_FALSE(scanned.records[0].fields[0].crc32c);
  for (size_t i = 1; i < 41; ++i) EXPECT_TRUE(scanned.records[i].fields[0].crc32c);
  EXPECT_LE(scanned.report.bytes_read, bytes.size() - (size_t{20} << 20) + (128 << 10));
}

TEST(Tar, hands_on_the_errors_of_reading_and_of_its_taker) {
  const std::string bytes = ThreeSamples();
  Shard shard = testing::ShardOf(bytes);
  ScanReport report;
  const Status refused =
      ScanTar(shard, {}, [](FoundRecord) { return Status(Code::kCancelled, "enough"); }, &report);
  EXPECT_EQ(refused.code(), Code::kCancelled);
  shard.read = [](ByteRange, MutableBytes) { return Status(Code::kUnavailable, "gone"); };
  EXPECT_EQ(
      ScanTar(shard, {}, [](FoundRecord) { return Status(); }, &report).code(), Code::kUnavailable);
}

}  // namespace
}  // namespace forebay::format
