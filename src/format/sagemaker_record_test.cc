#include "format/sagemaker_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "format/little_endian.h"
#include "testing/format_shards.h"

namespace forebay::format {
namespace {

using ::testing::ElementsAre;
using testing::Number;
using Kind = SageMakerValue::Kind;

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}
std::string Bytes(uint32_t number, const std::string& bytes) {
  return Varint(number << 3 | 2) + Varint(bytes.size()) + bytes;
}
std::string Varints(uint32_t number, const std::vector<uint64_t>& values) {
  std::string packed;
  for (const uint64_t value : values) packed += Varint(value);
  return Bytes(number, packed);
}
std::string Floats(const std::vector<float>& values) {
  std::string packed;
  for (const float value : values) packed += Number(value);
  return Bytes(1, packed);
}
std::string Feature(const std::string& name, const std::string& value) {
  return Bytes(1, Bytes(1, name) + Bytes(2, value));
}
std::string Label(const std::string& name, const std::string& value) {
  return Bytes(2, Bytes(1, name) + Bytes(2, value));
}

template <class T>
std::vector<T> Values(const SageMakerValue& value) {
  std::vector<T> values(value.count());
  std::memcpy(values.data(), value.values.data(), value.values.size());
  return values;
}

Status Open(const std::string& payload, SageMakerRecord* record) {
  return OpenSageMakerRecord(AsBytes(payload), record);
}

std::string Whole() {
  return Feature("values", Bytes(2, Floats({1.5F, -2}) + Varints(3, {2}))) +
         Feature("wide", Bytes(3, Bytes(1, Number(0.25) + Number(4.0)))) +
         Feature("ints", Bytes(7, Varints(1, {1, uint64_t(-5), 7}))) +
         Feature("raw", Bytes(9, Bytes(1, "jpeg") + Bytes(2, "image/jpeg"))) +
         Feature("sparse", Bytes(2, Floats({9, 8}) + Varints(2, {1, 5}) + Varints(3, {2, 3}))) +
         Label("values", Bytes(2, Floats({7}))) + Bytes(3, "uid") + Bytes(4, "meta");
}

TEST(SageMakerRecord, gives_tensors_of_every_kind) {
  SageMakerRecord record;
  const std::string payload = Whole();
  ASSERT_TRUE(Open(payload, &record).ok());
  ASSERT_EQ(record.features.size(), 5U);
  EXPECT_EQ(record.features[0].name, "values");
  EXPECT_THAT(Values<float>(record.features[0]), ElementsAre(1.5F, -2));
  EXPECT_FALSE(record.features[0].sparse);
  EXPECT_THAT(Values<double>(record.features[1]), ElementsAre(0.25, 4));
  EXPECT_THAT(Values<int32_t>(record.features[2]), ElementsAre(1, -5, 7));
  EXPECT_EQ(AsText(record.features[3].bytes.at(0)), "jpeg");
  EXPECT_EQ(record.features[3].content_type, "image/jpeg");
  EXPECT_TRUE(record.features[4].sparse);
  EXPECT_THAT(record.features[4].keys, ElementsAre(1, 5));
  EXPECT_THAT(record.features[4].shape, ElementsAre(2, 3));
  ASSERT_EQ(record.labels.size(), 1U);
  EXPECT_THAT(Values<float>(record.labels[0]), ElementsAre(7));
  EXPECT_EQ(record.uid, "uid");
  EXPECT_EQ(record.metadata, "meta");
}

TEST(SageMakerRecord, takes_lists_in_several_pieces_and_unpacked) {
  SageMakerRecord record;
  const std::string one = Varint(1 << 3 | 5) + Number(3.0F);
  ASSERT_TRUE(Open(Feature("v", Bytes(2, Floats({1, 2}) + one + Floats({4}))), &record).ok());
  EXPECT_THAT(Values<float>(record.features[0]), ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(
      Open(Feature("v", Bytes(7, Varint(1 << 3) + Varint(6) + Varints(1, {7, 8}))), &record).ok());
  EXPECT_THAT(Values<int32_t>(record.features[0]), ElementsAre(6, 7, 8));
}

TEST(SageMakerRecord, is_used_again_without_what_it_held) {
  SageMakerRecord record;
  const std::string whole = Whole();
  ASSERT_TRUE(Open(whole, &record).ok());
  const std::string payload = Label("x", Bytes(2, Floats({7, 8})));
  ASSERT_TRUE(Open(payload, &record).ok());
  EXPECT_TRUE(record.features.empty());
  EXPECT_EQ(record.labels.size(), 1U);
  EXPECT_TRUE(record.uid.empty());
  ASSERT_TRUE(Open("", &record).ok());
  EXPECT_TRUE(record.labels.empty());
}

TEST(SageMakerRecord, keeps_a_row_of_zeros_sparse) {
  SageMakerRecord record;
  const std::string payload = Feature("v", Bytes(2, Varints(3, {100})));
  ASSERT_TRUE(Open(payload, &record).ok());
  EXPECT_TRUE(record.features[0].sparse);
  EXPECT_EQ(record.features[0].count(), 0U);
}

TEST(SageMakerRecord, takes_the_last_of_what_comes_twice) {
  SageMakerRecord record;
  const std::string payload = Feature("v", Bytes(2, Floats({1}))) +
                              Feature("v", Bytes(2, Floats({2})) + Bytes(7, Varints(1, {3})));
  ASSERT_TRUE(Open(payload, &record).ok());
  ASSERT_EQ(record.features.size(), 1U);
  EXPECT_EQ(record.features[0].kind, Kind::kInt32);
  EXPECT_THAT(Values<int32_t>(record.features[0]), ElementsAre(3));
}

TEST(SageMakerRecord, refuses_what_is_no_such_message) {
  SageMakerRecord record;
  for (const std::string& bad : {
           Feature("v", Bytes(2, Bytes(1, "abc"))),                                     // 3 bytes
           Feature("v", Bytes(2, Floats({1}) + Varints(2, {0, 1}) + Varints(3, {9}))),  // 2 keys
           Feature("v", Bytes(2, Floats({1}) + Varints(2, {9}) + Varints(3, {9}))),     // beyond it
           Feature("v", Bytes(2, Floats({1}) + Varints(2, {0}))),                       // no shape
           Feature("v", Bytes(2, Floats({1, 2}) + Varints(3, {3}))),                    // 2 of 3
           Feature("v", Bytes(2, Floats({1}) + Varints(2, {0}) +
                                     Varints(3, {uint64_t{1} << 32, uint64_t{1} << 33}))),
           Varint(1 << 3) + Varint(1),               // a number for a map
           Varint(1 << 3 | 3),                       // a group
           Varint(0 << 3 | 2) + Varint(0),           // number 0
           Varint(1 << 3 | 2) + Varint(UINT64_MAX),  // far beyond the end
           std::string(11, '\xff'),                  // a varint without end
       }) {
    EXPECT_EQ(Open(bad, &record).code(), Code::kDataLoss);
  }
}

TEST(SageMakerRecord, that_is_cut_anywhere_is_an_error_or_a_shorter_one) {
  SageMakerRecord record;
  const std::string whole = Whole();
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    const Status status = Open(cut, &record);
    EXPECT_TRUE(status.ok() || status.code() == Code::kDataLoss);
    if (status.ok()) {
      EXPECT_LE(record.features.size() + record.labels.size(), 6U);
    }
  }
}

}  // namespace
}  // namespace forebay::format
