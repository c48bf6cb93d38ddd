#include "testing/store_conformance.h"

#include <future>

#include "store/parallel_list.h"

namespace forebay::testing {

TEST_P(StoreConformance, gives_back_what_was_put) {
  const std::string body = TestBytes(200'000);
  const std::string etag = MustPut(Key("a/b.bin"), body);
  EXPECT_FALSE(etag.empty());
  EXPECT_EQ(etag.find('"'), std::string::npos);

  Result<store::ObjectInfo> info = sync_->Head(Key("a/b.bin"));
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(info->key, Key("a/b.bin"));
  EXPECT_EQ(info->size, body.size());
  EXPECT_EQ(info->etag, etag);

  const ReadBack back = Read(Key("a/b.bin"), 1000, 150'000, etag);
  ASSERT_TRUE(back.status.ok()) << back.status.ToString();
  EXPECT_EQ(back.result.bytes, 149'000U);
  EXPECT_EQ(back.result.object_size, body.size());
  EXPECT_EQ(back.result.etag, etag);
  EXPECT_TRUE(back.text == body.substr(1000, 149'000));
}

TEST_P(StoreConformance, a_body_in_pieces_is_put_as_one) {
  const std::string a = "first,";
  const std::string b;
  const std::string c = "third";
  ASSERT_TRUE(sync_->Put({.key = Key("x"), .body = {AsBytes(a), AsBytes(b), AsBytes(c)}}).ok());
  EXPECT_EQ(Whole(Key("x"), 11), "first,third");
}

TEST_P(StoreConformance, a_read_fills_the_pieces_of_its_target_in_order) {
  const std::string body = TestBytes(100'000);
  MustPut(Key("x"), body);
  std::string one(10, '\0'), two(60'000, '\0'), three(1, '\0');
  auto result = sync_->Read(
      {.key = Key("x"),
       .etag = "",
       .range = {5, 60'016},
       .target = {std::as_writable_bytes(std::span(one)), std::as_writable_bytes(std::span(two)),
                  std::as_writable_bytes(std::span(three))}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_TRUE(one + two + three == body.substr(5, 60'011));
}

TEST_P(StoreConformance, a_missing_key_is_not_found_and_the_error_names_it) {
  const Result<store::ObjectInfo> info = sync_->Head(Key("nothing"));
  EXPECT_EQ(info.code(), Code::kNotFound);
  EXPECT_EQ(info.status().detail().uri, store_->root_uri() + "/" + Key("nothing"));

  const ReadBack back = Read(Key("nothing"), 3, 10);
  EXPECT_EQ(back.status.code(), Code::kNotFound);
  EXPECT_EQ(back.status.detail().uri, store_->root_uri() + "/" + Key("nothing"));
  EXPECT_EQ(back.status.detail().offset, 3);
  EXPECT_EQ(back.status.detail().end, 10);
}

TEST_P(StoreConformance, an_overwritten_object_fails_the_reads_that_pinned_it) {
  const std::string old_etag = MustPut(Key("x"), "the old content");
  const std::string new_etag = MustPut(Key("x"), "the new content is longer");
  EXPECT_NE(old_etag, new_etag);
  const ReadBack back = Read(Key("x"), 0, 5, old_etag);
  EXPECT_EQ(back.status.code(), Code::kPreconditionFailed) << back.status.ToString();
  EXPECT_EQ(back.text, "#####");
  EXPECT_NE(back.status.ToString().find(old_etag), std::string::npos) << back.status.ToString();
  EXPECT_TRUE(Read(Key("x"), 0, 5, new_etag).status.ok());
}

TEST_P(StoreConformance, a_range_outside_the_object_is_an_error_and_delivers_nothing) {
  MustPut(Key("x"), "0123456789");
  const ReadBack across = Read(Key("x"), 5, 11);
  EXPECT_FALSE(across.status.ok());
  EXPECT_TRUE(across.status.code() == Code::kInvalidArgument ||
              across.status.code() == Code::kDataLoss)
      << across.status.ToString();
  const ReadBack beyond = Read(Key("x"), 10, 12);
  EXPECT_EQ(beyond.status.code(), Code::kInvalidArgument) << beyond.status.ToString();
}

TEST_P(StoreConformance, a_clamped_read_delivers_the_bytes_that_exist) {
  const std::string etag = MustPut(Key("x"), "0123456789");
  const ReadBack across = Read(Key("x"), 4, 100, "", true);
  ASSERT_TRUE(across.status.ok()) << across.status.ToString();
  EXPECT_EQ(across.result.bytes, 6U);
  EXPECT_EQ(across.result.object_size, 10U);
  EXPECT_EQ(across.result.etag, etag);
  EXPECT_EQ(across.text.substr(0, 6), "456789");

  const ReadBack inside = Read(Key("x"), 2, 5, "", true);
  ASSERT_TRUE(inside.status.ok()) << inside.status.ToString();
  EXPECT_EQ(inside.result.bytes, 3U);
  EXPECT_EQ(inside.text, "234");
}

TEST_P(StoreConformance, an_empty_object_has_size_zero_and_clamped_reads_of_it_no_bytes) {
  MustPut(Key("empty"), "");
  Result<store::ObjectInfo> info = sync_->Head(Key("empty"));
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(info->size, 0U);
  const ReadBack back = Read(Key("empty"), 0, 10, "", true);
  ASSERT_TRUE(back.status.ok()) << back.status.ToString();
  EXPECT_EQ(back.result.bytes, 0U);
  EXPECT_EQ(back.result.object_size, 0U);
}

TEST_P(StoreConformance, lists_every_key_below_a_prefix_once_page_after_page) {
  std::vector<std::string> want;
  for (const std::string name : {"a-x", "a/1", "a/2/z", "a/b/3", "a0", "b"}) {
    MustPut(Key("in/" + name), name);
    want.push_back(Key("in/" + name));
  }
  MustPut(Key("inside"), "no");
  MustPut(Key("io"), "no");
  for (const int max_keys : {1, 2, 5, 1000}) {
    auto keys = ListKeys({.prefix = Key("in/"), .max_keys = max_keys});
    if (!GetParam().lists_in_byte_order) std::ranges::sort(keys);
    EXPECT_EQ(keys, want) << max_keys;
  }
  // A prefix need not end at a '/'.
  auto keys = ListKeys({.prefix = Key("in/a")});
  std::ranges::sort(keys);
  EXPECT_EQ(keys, std::vector(want.begin(), want.end() - 1));
  EXPECT_TRUE(ListKeys({.prefix = Key("none/")}).empty());

  Result<store::ListPage> page = sync_->List({.prefix = Key("in/a/2")});
  ASSERT_TRUE(page.ok() && page->objects.size() == 1);
  Result<store::ObjectInfo> info = sync_->Head(Key("in/a/2/z"));
  ASSERT_TRUE(info.ok());
  EXPECT_EQ(page->objects[0].size, 5U);
  EXPECT_EQ(page->objects[0].etag, info->etag);
  EXPECT_EQ(page->objects[0].modified_unix_s, info->modified_unix_s);
}

TEST_P(StoreConformance, a_listing_in_parts_brings_every_key_once) {
  using Cut = store::ObjectStore::ListCut;
  std::vector<std::string> want;
  for (const std::string folder : {"a/", "a/b/", "c+ d/", "é/"}) {
    for (int i = 0; i < 12; ++i) want.push_back(Key("p/" + folder + std::to_string(i * 7)));
  }
  for (const std::string& key : want) MustPut(key, "x");
  std::ranges::sort(want);
  std::vector<Cut> cuts{Cut::kFolders, Cut::kNone};
  if (GetParam().lists_in_byte_order && GetParam().start_after_by_bytes) {
    cuts.push_back(Cut::kKeys);
  }
  for (const Cut cut : cuts) {
    std::vector<std::string> keys;
    std::promise<Status> end;
    store_->executor().Post([&] {
      store::ParallelList::Start(
          store_.get(), Key("p/"), {.in_flight = 3, .page_keys = 4, .cut = cut},
          [&](store::ListPage page) {
            for (const auto& object : page.objects) keys.push_back(object.key);
          },
          [&](Status status) { end.set_value(std::move(status)); });
    });
    const Status status = end.get_future().get();
    EXPECT_TRUE(status.ok()) << status.ToString();
    if (cut != Cut::kKeys) std::ranges::sort(keys);
    EXPECT_EQ(keys, want) << static_cast<int>(cut);
  }
}

TEST_P(StoreConformance, a_delimiter_rolls_deeper_keys_up) {
  for (const std::string name : {"a/1", "a/2/z", "b", "c/d/e"}) MustPut(Key(name), name);
  for (const int max_keys : {1, 2, 1000}) {
    auto names = ListKeys({.prefix = prefix_, .delimiter = "/", .max_keys = max_keys});
    std::ranges::sort(names);
    EXPECT_EQ(names, (std::vector{Key("a/"), Key("b"), Key("c/")})) << max_keys;
  }
}

TEST_P(StoreConformance, a_listing_can_start_after_a_key) {
  for (const std::string name : {"a", "b", "c"}) MustPut(Key(name), name);
  if (!GetParam().start_after_by_bytes) return;
  EXPECT_EQ(ListKeys({.prefix = prefix_, .start_after = Key("a")}),
            (std::vector{Key("b"), Key("c")}));
  EXPECT_EQ(ListKeys({.prefix = prefix_, .start_after = Key("bb")}), (std::vector{Key("c")}));
}

TEST_P(StoreConformance, odd_keys_make_the_round_trip_or_are_refused) {
  const std::string long_segment(255, 'n');
  std::vector<std::string> names = {"a b",
                                    "a+b",
                                    "a%2Bb",
                                    "a%b",
                                    "é",
                                    "e\u0301",
                                    "日本",
                                    "a&b=c?d#e",
                                    "a;b",
                                    "~",
                                    "*'()!",
                                    "\"",
                                    "ends in space ",
                                    "dt=2024-01-01/x",
                                    "[x]",
                                    "<x>&amp;",
                                    "a\\b",
                                    "x//y",
                                    "x/",
                                    "x/./y",
                                    "x/../y",
                                    "#",
                                    "?",
                                    "\x01",
                                    "new\nline",
                                    long_segment,
                                    long_segment + "n"};
  for (const std::string& name : names) {
    const std::string key = Key("odd-" + std::to_string(&name - names.data()) + "/" + name);
    if (GetParam().mangles_key(key)) continue;
    Result<store::PutResult> put = Put(key, name);
    if (!GetParam().holds_key(key)) {
      EXPECT_FALSE(put.ok()) << key;
      continue;
    }
    ASSERT_TRUE(put.ok()) << put.status().ToString();
    EXPECT_EQ(Whole(key, name.size()), name) << key;
    const std::string folder = key.substr(0, prefix_.size() + key.substr(prefix_.size()).find('/'));
    EXPECT_EQ(ListKeys({.prefix = folder + "/"}), std::vector{key});
    EXPECT_TRUE(sync_->Delete(key).ok()) << key;
    EXPECT_EQ(sync_->Head(key).code(), Code::kNotFound) << key;
  }
}

TEST_P(StoreConformance, deleting_is_final_and_forgives_a_missing_key) {
  MustPut(Key("x"), "x");
  EXPECT_TRUE(sync_->Delete(Key("x")).ok());
  EXPECT_EQ(sync_->Head(Key("x")).code(), Code::kNotFound);
  const Status again = sync_->Delete(Key("x"));
  EXPECT_TRUE(again.ok()) << again.ToString();
  EXPECT_TRUE(ListKeys({.prefix = prefix_}).empty());
}

TEST_P(StoreConformance, if_none_match_refuses_a_key_that_exists) {
  if (!GetParam().if_none_match) return;
  const std::string first = "first";
  const std::string second = "second";
  EXPECT_TRUE(sync_->Put({.key = Key("x"), .body = {AsBytes(first)}, .if_none_match = true}).ok());
  EXPECT_EQ(sync_->Put({.key = Key("x"), .body = {AsBytes(second)}, .if_none_match = true}).code(),
            Code::kPreconditionFailed);
  EXPECT_EQ(Whole(Key("x"), 5), "first");
}

TEST_P(StoreConformance, if_match_replaces_only_the_object_that_was_meant) {
  const std::string first = MustPut(Key("x"), "first");
  const std::string body = "second";
  const auto put = [&](const std::string& key, const std::string& etag) {
    return sync_->Put({.key = key, .body = {AsBytes(body)}, .if_match = etag});
  };
  const Result<store::PutResult> second = put(Key("x"), first);
  if (!GetParam().if_match) {
    EXPECT_FALSE(second.ok());
    EXPECT_EQ(Whole(Key("x"), 5), "first");
    return;
  }
  ASSERT_TRUE(second.ok()) << second.status().ToString();
  EXPECT_EQ(Whole(Key("x"), 6), "second");
  const std::string third = MustPut(Key("x"), "third!");
  EXPECT_EQ(put(Key("x"), second->etag).code(), Code::kPreconditionFailed);
  EXPECT_EQ(Whole(Key("x"), 6), "third!");
  EXPECT_FALSE(put(Key("missing"), third).ok());
  EXPECT_EQ(sync_->Head(Key("missing")).code(), Code::kNotFound);
}

TEST_P(StoreConformance, completing_an_upload_can_refuse_a_key_that_exists) {
  if (!GetParam().complete_if_none_match) return;
  const std::string body = "of the upload";
  const auto upload = [&](const std::string& key) {
    store::UploadRequest request{.key = key};
    Result<std::string> id = sync_->CreateUpload(request);
    EXPECT_TRUE(id.ok()) << id.status().ToString();
    request.upload_id = id.ok() ? *id : "";
    auto part = sync_->PutPart({.key = request.key,
                                .upload_id = request.upload_id,
                                .part_number = 1,
                                .body = {AsBytes(body)}});
    EXPECT_TRUE(part.ok()) << part.status().ToString();
    request.part_etags = {part.ok() ? part->etag : ""};
    request.if_none_match = true;
    Result<store::PutResult> done = sync_->CompleteUpload(request);
    if (!done.ok()) {
      EXPECT_TRUE(sync_->AbortUpload(request).ok());
    }
    return done.code();
  };
  EXPECT_EQ(upload(Key("new")), Code::kOk);
  EXPECT_EQ(Whole(Key("new"), body.size()), body);
  MustPut(Key("old"), "is there already");
  EXPECT_EQ(upload(Key("old")), Code::kPreconditionFailed);
  EXPECT_EQ(Whole(Key("old"), 16), "is there already");
}

TEST_P(StoreConformance, an_upload_appears_whole_when_it_is_completed) {
  const std::string one = TestBytes(std::max<uint64_t>(1000, GetParam().least_part_bytes), 1);
  const std::string two = TestBytes(777, 2);
  store::UploadRequest upload{.key = Key("big")};
  Result<std::string> id = sync_->CreateUpload(upload);
  ASSERT_TRUE(id.ok()) << id.status().ToString();
  upload.upload_id = *id;
  const auto put_part = [&](int number, const std::string& body) {
    auto put = sync_->PutPart({.key = upload.key,
                               .upload_id = upload.upload_id,
                               .part_number = number,
                               .body = {AsBytes(body)}});
    EXPECT_TRUE(put.ok()) << put.status().ToString();
    return put.ok() ? put->etag : "";
  };
  const std::string etag_two = put_part(2, two);  // in any order
  const std::string etag_one = put_part(1, one);
  EXPECT_EQ(sync_->Head(Key("big")).code(), Code::kNotFound);
  EXPECT_TRUE(ListKeys({.prefix = prefix_}).empty());

  if (GetParam().checks_part_etags) {
    upload.part_etags = {etag_one, etag_one};
    EXPECT_FALSE(sync_->CompleteUpload(upload).ok());
    EXPECT_EQ(sync_->Head(Key("big")).code(), Code::kNotFound);
  }
  upload.part_etags = {etag_one, etag_two};
  Result<store::PutResult> done = sync_->CompleteUpload(upload);
  ASSERT_TRUE(done.ok()) << done.status().ToString();
  EXPECT_TRUE(Whole(Key("big"), one.size() + two.size()) == one + two);
  EXPECT_EQ(sync_->Head(Key("big"))->etag, done->etag);
}

TEST_P(StoreConformance, an_aborted_upload_leaves_nothing) {
  store::UploadRequest upload{.key = Key("big")};
  Result<std::string> id = sync_->CreateUpload(upload);
  ASSERT_TRUE(id.ok()) << id.status().ToString();
  upload.upload_id = *id;
  const std::string body = "part";
  ASSERT_TRUE(sync_
                  ->PutPart({.key = upload.key,
                             .upload_id = upload.upload_id,
                             .part_number = 1,
                             .body = {AsBytes(body)}})
                  .ok());
  const Status aborted = sync_->AbortUpload(upload);
  EXPECT_TRUE(aborted.ok()) << aborted.ToString();
  EXPECT_TRUE(ListKeys({.prefix = prefix_}).empty());
  if (!GetParam().reports_missing_upload) return;
  EXPECT_EQ(sync_
                ->PutPart({.key = upload.key,
                           .upload_id = upload.upload_id,
                           .part_number = 1,
                           .body = {AsBytes(body)}})
                .code(),
            Code::kNotFound);
}

TEST_P(StoreConformance, a_large_put_goes_up_in_parts) {
  const uint64_t part_bytes = std::max<uint64_t>(100'000, GetParam().least_part_bytes);
  const std::string head = TestBytes(12'345, 3);
  const std::string tail = TestBytes(part_bytes * 2 + 999, 4);
  Result<store::PutResult> put =
      sync_->PutLarge({.key = Key("large"), .body = {AsBytes(head), AsBytes(tail)}}, part_bytes);
  ASSERT_TRUE(put.ok()) << put.status().ToString();
  EXPECT_TRUE(Whole(Key("large"), head.size() + tail.size()) == head + tail);
  EXPECT_EQ(sync_->Head(Key("large"))->etag, put->etag);
  put = sync_->PutLarge({.key = Key("large"), .body = {AsBytes(tail)}, .if_none_match = true},
                        part_bytes);
  EXPECT_EQ(put.code(), Code::kPreconditionFailed);
}

TEST_P(StoreConformance, callbacks_run_once_on_the_executor_and_never_inside_the_start) {
  MustPut(Key("x"), "0123456789");
  std::string into(10, '\0');
  std::promise<void> done;
  bool inside_start = false;
  bool was_inside = true;
  bool in_thread = false;
  store_->executor().Post([&] {
    inside_start = true;
    store_->StartRead({.key = Key("x"),
                       .etag = "",
                       .range = {0, 10},
                       .target = {std::as_writable_bytes(std::span(into))}},
                      [&](Result<store::ReadResult> result) {
                        was_inside = inside_start;
                        in_thread = store_->executor().InThread();
                        EXPECT_TRUE(result.ok()) << result.status().ToString();
                        done.set_value();
                      });
    inside_start = false;
  });
  done.get_future().wait();
  EXPECT_FALSE(was_inside);
  EXPECT_TRUE(in_thread);
}

TEST_P(StoreConformance, a_cancelled_operation_still_calls_back_exactly_once) {
  MustPut(Key("x"), TestBytes(100'000));
  std::string into(100'000, '\0');
  std::atomic<int> calls{0};
  std::promise<Code> done;
  store_->executor().Post([&] {
    const auto op = store_->StartRead({.key = Key("x"),
                                       .etag = "",
                                       .range = {0, into.size()},
                                       .target = {std::as_writable_bytes(std::span(into))}},
                                      [&](Result<store::ReadResult> result) {
                                        if (++calls == 1) done.set_value(result.code());
                                      });
    EXPECT_NE(op, 0U);
    store_->Cancel(op);
    EXPECT_EQ(calls, 0);
    store_->Cancel(op);
  });
  const Code code = done.get_future().get();
  EXPECT_TRUE(code == Code::kCancelled || code == Code::kOk);
  EXPECT_TRUE(Read(Key("x"), 0, 10).status.ok());  // whatever was still queued has run by now
  EXPECT_EQ(calls, 1);
}

TEST_P(StoreConformance, a_deadline_that_passed_ends_the_operation) {
  MustPut(Key("x"), "0123456789");
  std::string into(10, '\0');
  const Time past = store_->executor().Now() - std::chrono::milliseconds(1);
  EXPECT_EQ(sync_
                ->Read({.key = Key("x"),
                        .etag = "",
                        .range = {0, 10},
                        .target = {std::as_writable_bytes(std::span(into))},
                        .options = {.deadline = past}})
                .code(),
            Code::kDeadlineExceeded);
}

}  // namespace forebay::testing
