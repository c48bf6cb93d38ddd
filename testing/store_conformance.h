// What every ObjectStore must do, as tests. An implementation runs them with
//   INSTANTIATE_TEST_SUITE_P(Name, StoreConformance, ::testing::Values(StoreSubject{...}));
// in a file of its own, linked with forebay_store_conformance, and declares where it deviates.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "store/object_store.h"
#include "store/sync_store.h"

namespace forebay::testing {

struct StoreSubject {
  std::string name;
  // A store whose executor runs on a thread of its own; the pointer keeps all of it alive. May be
  // the same store every time: each test writes below a prefix of its own.
  std::function<std::shared_ptr<store::ObjectStore>()> make;

  // Deviations.
  // False for keys that the store cannot hold; putting one must fail.
  std::function<bool(const std::string& key)> holds_key = [](const std::string&) { return true; };
  // True for keys that the server takes for another key without a word: they are left out.
  std::function<bool(const std::string& key)> mangles_key = [](const std::string&) {
    return false;
  };
  bool lists_in_byte_order = true;  // else: each key once, in whatever order
  bool start_after_by_bytes = true;
  bool if_none_match = true;
  bool if_match = true;  // else such a put is refused
  bool complete_if_none_match = true;
  uint64_t least_part_bytes = 1;  // of all parts but the last
  bool checks_part_etags = true;  // complete refuses an etag that was not given
  bool reports_missing_upload = true;
};

inline std::string SubjectName(const ::testing::TestParamInfo<StoreSubject>& subject) {
  return subject.param.name;
}
inline void PrintTo(const StoreSubject& subject, std::ostream* out) { *out << subject.name; }

inline std::string TestBytes(size_t size, uint32_t seed = 1) {
  std::string text(size, '\0');
  for (char& c : text) {
    seed = seed * 1664525U + 1013904223U;
    c = static_cast<char>(seed >> 24);
  }
  return text;
}

class StoreConformance : public ::testing::TestWithParam<StoreSubject> {
 protected:
  void SetUp() override {
    static std::atomic<int> counter{0};
    store_ = GetParam().make();
    ASSERT_NE(store_, nullptr);
    sync_ = std::make_unique<store::SyncStore>(store_);
    prefix_ = "conformance-" + std::to_string(++counter) + "/";
  }

  std::string Key(const std::string& name) const { return prefix_ + name; }

  Result<store::PutResult> Put(const std::string& key, const std::string& body) {
    return sync_->Put({.key = key, .body = {AsBytes(body)}});
  }
  // Puts and returns the etag.
  std::string MustPut(const std::string& key, const std::string& body) {
    Result<store::PutResult> put = Put(key, body);
    EXPECT_TRUE(put.ok()) << key << ": " << put.status().ToString();
    return put.ok() ? put->etag : "";
  }
  struct ReadBack {
    Status status;
    store::ReadResult result;
    std::string text;
  };
  ReadBack Read(const std::string& key, uint64_t offset, uint64_t end, std::string etag = "",
                bool clamp = false) {
    ReadBack back;
    back.text.assign(end - offset, '#');
    auto result = sync_->Read({.key = key,
                               .etag = std::move(etag),
                               .range = {offset, end},
                               .target = {std::as_writable_bytes(std::span(back.text))},
                               .clamp_to_object = clamp});
    back.status = result.status();
    if (result.ok()) back.result = *result;
    return back;
  }
  std::string Whole(const std::string& key, uint64_t size) { return Read(key, 0, size).text; }

  // All keys below the prefix, page after page.
  std::vector<std::string> ListKeys(store::ListRequest request) {
    std::vector<std::string> keys;
    for (int pages = 0; pages < 1000; ++pages) {
      Result<store::ListPage> page = sync_->List(request);
      EXPECT_TRUE(page.ok()) << page.status().ToString();
      if (!page.ok()) return keys;
      EXPECT_LE(page->objects.size() + page->common_prefixes.size(),
                static_cast<size_t>(request.max_keys));
      for (const auto& object : page->objects) keys.push_back(object.key);
      for (const auto& common : page->common_prefixes) keys.push_back(common);
      if (page->next_token.empty()) return keys;
      request.continuation_token = page->next_token;
    }
    ADD_FAILURE() << "the listing does not end";
    return keys;
  }

  std::shared_ptr<store::ObjectStore> store_;
  std::unique_ptr<store::SyncStore> sync_;
  std::string prefix_;
};

}  // namespace forebay::testing
