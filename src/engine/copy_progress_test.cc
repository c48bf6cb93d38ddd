// What a copy says of how far it has come.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "forebay/store.h"
#include "testing/scripted_server.h"
#include "testing/temp_folder.h"

namespace forebay::engine {
namespace {

TEST(CopyProgress, of_an_upload_counts_what_has_gone_out_and_not_whole_parts) {
  constexpr uint64_t kSize = 16 << 20;  // one part, more than sockets hold
  const testing::TempFolder folder;
  const std::string file = folder.path() + "/from";
  std::ofstream(file, std::ios::binary) << std::string(kSize, 'x');
  // It takes what the system takes for it, and reads nothing.
  const testing::ScriptedServer server([](const auto&) { return testing::ScriptedReply{}; },
                                       {.accept = false});
  const auto store = Store::Open({.endpoint_url = server.url(), .no_sign_request = true});
  ASSERT_TRUE(store.ok()) << store.status().ToString();
  int calls = 0;
  int partly = 0;  // in a row: it stays there
  const auto report =
      (*store)->Copy(file, "s3://bucket/key", {.on_progress = [&](const auto& at) {
                       EXPECT_LE(at.bytes_done, kSize);
                       partly = at.bytes_done > 0 && at.bytes_done < kSize ? partly + 1 : 0;
                       return partly < 6 && ++calls < 400;
                     }});
  EXPECT_EQ(report.code(), Code::kCancelled);
  EXPECT_EQ(partly, 6);
}

}  // namespace
}  // namespace forebay::engine
