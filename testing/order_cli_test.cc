// `forebay order` against itself and against the library.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/cli_process.h"

namespace forebay::testing {
namespace {

TEST_F(CliTest, order_shows_where_each_sample_comes) {
  const Args run = {"--samples", "1000", "--batch-size", "8", "--world-size", "4",
                    "--seed",    "5",    "--epoch",      "2", "--json"};
  Args show = {"order", "show", "--step", "3", "--rank", "2"};
  show.insert(show.end(), run.begin(), run.end());
  const Ran shown = Run(show);
  ASSERT_EQ(shown.code, 0) << shown.err;
  EXPECT_EQ(std::ranges::count(shown.out, '\n'), 8);
  const size_t at = shown.out.find("\"sample\":") + 9;
  const std::string sample = shown.out.substr(at, shown.out.find(',', at) - at);
  Args find = {"order", "find", "--sample", sample};
  find.insert(find.end(), run.begin(), run.end());
  EXPECT_THAT(Run(find).out, HasSubstr("\"position\":112,\"step\":3,\"rank\":2,\"row\":0"));
}

TEST_F(CliTest, order_proves_that_each_sample_comes_once) {
  for (const std::string tail : {"drop", "pad", "ragged"}) {
    for (const std::string shuffle : {"global", "none", "blocks:2,3,4"}) {
      const Ran proof =
          Run({"order", "verify", "--samples", "103", "--block", "10", "--batch-size", "4",
               "--world-size", "3", "--tail", tail, "--shuffle", shuffle, "--json"});
      EXPECT_EQ(proof.code, 0) << proof.out << proof.err;
      EXPECT_THAT(proof.out, HasSubstr("\"ok\":true"));
      EXPECT_THAT(proof.out,
                  HasSubstr(tail == "drop"  ? "\"delivered\":96,\"padded\":0,\"dropped\":7"
                            : tail == "pad" ? "\"delivered\":105,\"padded\":2,\"dropped\":0"
                                            : "\"delivered\":103,\"padded\":0,\"dropped\":0"));
    }
  }
  const Ran chain = Run({"order", "verify", "--samples", "103", "--tail", "pad", "--chain",
                         "8x3:2,2x5:1,1x7", "--json"});
  EXPECT_EQ(chain.code, 0) << chain.out << chain.err;
  // The samples are the same, so the digest is.
  const Ran digest = Run({"order", "digest", "--samples", "103"});
  EXPECT_THAT(chain.out, HasSubstr(digest.out.substr(0, 32)));
}

TEST_F(CliTest, order_prices_a_shuffle) {
  const Ran global = Run({"order", "price", "--samples", "100000", "--block", "100", "--batch-size",
                          "256", "--world-size", "4", "--json"});
  EXPECT_THAT(global.out, HasSubstr("\"gets_per_sample\":1,"));
  const Ran blocks = Run({"order", "price", "--samples", "100000", "--block", "100", "--batch-size",
                          "256", "--world-size", "4", "--shuffle", "blocks:16,4,256", "--json"});
  EXPECT_THAT(blocks.out, HasSubstr("\"gets_per_sample\":0.0"));
}

TEST_F(CliTest, order_refuses_what_it_cannot_do) {
  const std::vector<Args> bad = {
      {"order"},
      {"order", "show"},
      {"order", "show", "--samples", "-1"},
      {"order", "dance", "--samples", "5"},
      {"order", "show", folder_.path(), "--samples", "5"},
      {"order", "show", "--samples", "5", "--shuffle", "blocks:x"},
      {"order", "show", "--samples", "5", "--shuffle", "blocks:1,2,3,4"},
      {"order", "show", "--samples", "5", "--shuffle", "blocks:0"},
      {"order", "show", "--samples", "5", "--rank", "1"},
      {"order", "verify", "--samples", "5", "--chain", "8"},
      {"order", "verify", "--samples", "5", "--chain", "8x0"},
      {"order", "find", "--samples", "5"},
      {"order", "find", "--samples", "5", "--sample", "5"},
      {"order", "digest", "--samples", "5", "--position", "6"},
  };
  for (const Args& args : bad) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, 252) << ran.out << ran.err;
    EXPECT_FALSE(ran.err.empty());
  }
}

}  // namespace
}  // namespace forebay::testing
