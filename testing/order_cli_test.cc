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

TEST_F(CliTest, order_knows_a_source_that_grew) {
  const Args sizes = {"--samples", "20", "--sizes", "0:20,2:33", "--seed", "5"};
  const auto run = [&](Args args) {
    args.insert(args.begin(), "order");
    args.insert(args.end(), sizes.begin(), sizes.end());
    return Run(args);
  };
  for (const auto& [epoch, samples] : {std::pair("1", "20"), {"2", "33"}, {"7", "33"}}) {
    for (const std::string tail : {"drop", "pad", "ragged"}) {
      const Ran proof = run({"verify", "--epoch", epoch, "--batch-size", "4", "--tail", tail});
      EXPECT_EQ(proof.code, 0) << proof.out << proof.err;
      EXPECT_THAT(proof.out, HasSubstr(std::string(" of ") + samples + " samples"));
    }
    // An epoch of another length cuts into the source's own.
    const Ran cut = run({"verify", "--epoch", epoch, "--epoch-samples", "27"});
    EXPECT_EQ(cut.code, 0) << cut.out << cut.err;
  }
  // As long as it is small nothing is otherwise; behind that the samples are more.
  const Args plain = {"order", "digest", "--samples", "20", "--seed", "5"};
  const auto plain_at = [&](const std::string& epoch) {
    Args args = plain;
    args.insert(args.end(), {"--epoch", epoch, "--position", "0"});
    return Run(args).out;
  };
  EXPECT_EQ(run({"digest", "--epoch", "2", "--position", "0"}).out, plain_at("2"));
  EXPECT_NE(run({"digest", "--epoch", "3", "--position", "0"}).out, plain_at("3"));
  EXPECT_THAT(run({"find", "--epoch", "2", "--sample", "32"}).out, HasSubstr("position"));
  EXPECT_EQ(run({"find", "--epoch", "1", "--sample", "32"}).out, "");
  for (const std::string bad : {"0:20,2:10", "1:20", "0:20,2", "0:0", "x:1", "0:20,0:30", ""}) {
    EXPECT_EQ(Run({"order", "verify", "--samples", "20", "--sizes", bad}).code, 252) << bad;
  }
}

TEST_F(CliTest, order_shows_finds_and_proves_a_mixture) {
  for (int i = 0; i < 30; ++i) {
    WriteFile(folder_ / ("a/" + std::to_string(100 + i)), "x");
    if (i < 10) WriteFile(folder_ / ("b/" + std::to_string(200 + i)), "y");
  }
  for (const std::string part : {"a", "b"}) {
    ASSERT_EQ(Run({"index", folder_ / part, "--format", "files"}).code, 0);
  }
  const Args mix = {"--source",        "web=" + (folder_ / "a") + ":0.75",
                    "--source",        "code=" + (folder_ / "b") + ":0.25",
                    "--format",        "files",
                    "--mixture-block", "4"};
  const auto run = [&](Args args) {
    args.insert(args.begin(), "order");
    args.insert(args.end(), mix.begin(), mix.end());
    return Run(args);
  };
  const Ran shown = run({"show", "--batch-size", "8", "--step", "2"});
  ASSERT_EQ(shown.code, 0) << shown.err;
  const auto times = [&](const std::string& what) {
    size_t count = 0;
    for (size_t at = 0; (at = shown.out.find(what, at)) != shown.out.npos; ++at) ++count;
    return count;
  };
  EXPECT_EQ(times("  web  sample"), 6U) << shown.out;
  EXPECT_EQ(times("  code  sample"), 2U) << shown.out;
  const Ran proof = run({"verify", "--batch-size", "3", "--world-size", "2", "--tail", "pad"});
  EXPECT_EQ(proof.code, 0) << proof.out << proof.err;
  EXPECT_THAT(proof.out, HasSubstr("of 40 samples"));
  EXPECT_THAT(run({"find", "--sample", "3", "--of", "code"}).out, HasSubstr("position"));
  EXPECT_EQ(run({"find", "--sample", "3"}).code, 252);
  EXPECT_EQ(run({"find", "--sample", "3", "--of", "none"}).code, 252);
  // Loader and command agree: the state's digest is that of the library's mixture.
  EXPECT_EQ(run({"digest"}).out.size(), 33U);
  // One of it grows.
  WriteFile(folder_ / "b/300", "z");
  ASSERT_EQ(Run({"index", folder_ / "b", "--append"}).code, 0);
  const Ran grown = run({"verify", "--sizes", "code=0:10,1:11", "--epoch", "3"});
  EXPECT_EQ(grown.code, 0) << grown.out << grown.err;
  EXPECT_EQ(run({"verify", "--sizes", "code=0:9"}).code, 252) << "it never had nine";
  for (const std::string bad : {"a", "=x", "a=", ""}) {
    EXPECT_EQ(Run({"order", "show", "--source", bad}).code, 252) << bad;
  }
}

TEST_F(CliTest, order_has_every_seed_that_a_loader_has) {
  // The first samples of fb.Loader(seed=2**64 - 1) on 23 of them.
  std::string first;
  for (const char* step : {"0", "1", "2"}) {
    const Ran shown = Run({"order", "show", "--samples", "23", "--seed", "18446744073709551615",
                           "--step", step, "--json"});
    ASSERT_EQ(shown.code, 0) << shown.err;
    const size_t at = shown.out.find("\"sample\":") + 9;
    first += shown.out.substr(at, shown.out.find(',', at) - at) + " ";
  }
  EXPECT_EQ(first, "5 4 9 ");
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
      {"order", "show", "--samples", "9223372036854775808"},
      {"order", "verify", "--samples", "1000000000000"},
      {"order", "verify", "--samples", "5", "--sizes", "0:9223372036854775807"},
      {"order", "find", "--samples", "5", "--sample", "1", "--epoch-samples", "1000000000"},
      {"order", "show", "--samples", "5", "--seed", "18446744073709551616"},
      {"order", "show", "--samples", "5", "--seed", "-1"},
  };
  for (const Args& args : bad) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, 252) << ran.out << ran.err;
    EXPECT_FALSE(ran.err.empty());
  }
}

}  // namespace
}  // namespace forebay::testing
