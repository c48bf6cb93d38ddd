// The program's measuring and diagnosing commands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/cli_process.h"

namespace forebay::testing {
namespace {

using CliToolsTest = CliTest;

TEST_F(CliToolsTest, bench_prints_one_line_for_a_cell) {
  WriteFile(folder_ / "root/bucket/d/a", Noise(3'000'000));
  WriteFile(folder_ / "root/bucket/d/b", Noise(1'000'000));
  ServeFolder(folder_ / "root", "20ms");
  const Ran ran = Run({"bench", "store", "s3://bucket/d/", "--range", "64KiB", "--inflight", "8",
                       "--requests", "48", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(std::ranges::count(ran.out, '\n'), 1);
  EXPECT_THAT(ran.out, ::testing::StartsWith("{\"schema\":\"forebay.bench/1\","));
  EXPECT_EQ(NumberOf(ran.out, "requests"), 48);
  EXPECT_EQ(NumberOf(ran.out, "bytes"), 48 * 65536);
  EXPECT_EQ(NumberOf(ran.out, "errors"), 0);
  // Six rounds of 20 ms.
  EXPECT_GE(NumberOf(ran.out, "wall_s"), 0.120);
  EXPECT_GE(NumberOf(ran.out, "p50"), 20);
  EXPECT_GT(NumberOf(ran.out, "maxrss_kib"), 1000);
}

TEST_F(CliToolsTest, bench_never_reads_a_place_twice) {
  WriteFile(folder_ / "d/a", Noise(1 << 20));
  const Args cell = {"bench", "store", folder_ / "d", "--range", "64KiB", "--inflight", "2"};
  const auto with = [&](Args more) {
    more.insert(more.begin(), cell.begin(), cell.end());
    return Run(more);
  };
  EXPECT_EQ(with({"--requests", "16"}).code, 0);
  const Ran refused = with({"--requests", "17"});
  EXPECT_EQ(refused.code, 252);
  EXPECT_THAT(refused.err, HasSubstr("--requests 16 would fit"));
  for (const Args& bad : {Args{"--range", "64KB,,1"}, Args{"--inflight", "0"}, Args{"--op", "list"},
                          Args{"--requests", "-1"}}) {
    EXPECT_EQ(with(bad).code, 252) << bad[1];
  }
  EXPECT_EQ(Run({"bench", "network", folder_ / "d"}).code, 252);
  EXPECT_EQ(Run({"bench", "store", folder_ / "none"}).code, 254);
}

TEST_F(CliToolsTest, bench_that_measures_nothing_says_why_and_fails) {
  WriteFile(folder_ / "d/small", "0123456789");
  WriteFile(folder_ / "d/large", Noise(1 << 20));
  for (const Args& args :
       {Args{folder_ / "d/small"}, Args{folder_ / "d/large", "--range", "1TiB"},
        Args{folder_ / "d/large", "--memory", "1"},
        Args{folder_ / "d/large", "--range", "512KiB", "--inflight", "8", "--json"}}) {
    Args all = {"bench", "store"};
    all.insert(all.end(), args.begin(), args.end());
    const Ran ran = Run(all);
    EXPECT_EQ(ran.code, 252) << ::testing::PrintToString(args);
    EXPECT_THAT(ran.err, AllOf(HasSubstr("left out: "), HasSubstr("nothing was measured")));
    if (args.back() == "--json") {
      EXPECT_THAT(ran.err, HasSubstr("--requests 2 asks for them"));
    }
  }
}

TEST_F(CliToolsTest, bench_sweeps_files_and_a_bucket_side_by_side_and_says_what_follows) {
  for (const std::string name : {"a", "b", "c"}) {
    WriteFile(folder_ / ("root/bucket/d/" + name), Noise(8 << 20));
  }
  ServeFolder(folder_ / "root", "5ms");
  const std::string page = folder_ / "page.html";
  const Ran ran =
      Run({"bench", "store", "s3://bucket/d/", folder_ / "root/bucket/d", "--range",
           "4KiB,64KiB,512KiB", "--inflight", "4,2", "--requests", "5", "--report", page});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const std::string text :
       {"s3://bucket: 3 objects, 24.0 MiB", "file://: 3 objects", "512KiB", "runway"}) {
    EXPECT_THAT(ran.out, HasSubstr(text));
  }
  const std::string html = ReadFile(page);
  EXPECT_THAT(html, AllOf(HasSubstr("<svg"), HasSubstr("s3://bucket"), HasSubstr("</html>")));
  EXPECT_THAT(html, Not(HasSubstr("http://")));  // needs nothing from elsewhere
}

TEST_F(CliToolsTest, bench_puts_and_takes_away_again) {
  const Ran ran = Run({"bench", "store", folder_ / "new", "--op", "put", "--range", "10KiB",
                       "--inflight", "4", "--requests", "20", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(NumberOf(ran.out, "bytes"), 20 * 10240);
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "new")) {
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
  }
}

TEST_F(CliToolsTest, bench_adds_up_over_the_ranks_of_a_launcher) {
  WriteFile(folder_ / "d/a", Noise(4 << 20));
  fs::create_directories(folder_ / "meet");
  environment_["WORLD_SIZE"] = "3";
  const Args args = {"bench",          "store", folder_ / "d", "--range", "64KiB",
                     "--inflight",     "2",     "--requests",  "20",      "--nodes",
                     folder_ / "meet", "--json"};
  std::vector<std::unique_ptr<Process>> ranks;
  for (const std::string rank : {"2", "1", "0"}) {
    environment_["RANK"] = rank;
    ranks.push_back(Start(args));
  }
  for (const auto& rank : ranks) EXPECT_EQ(rank->Wait(), 0) << rank->err();
  EXPECT_EQ(ranks[0]->out() + ranks[1]->out(), "");  // one of them speaks for all
  const std::string line = ranks[2]->out();
  EXPECT_EQ(NumberOf(line, "ranks"), 3);
  EXPECT_EQ(NumberOf(line, "requests"), 60);
  EXPECT_EQ(NumberOf(line, "bytes"), 60 * 65536);
  EXPECT_TRUE(fs::is_empty(folder_ / "meet"));
  // All ranks together may not read a place twice either.
  environment_["WORLD_SIZE"] = "1";
  environment_["RANK"] = "0";
  Args more = args;
  more[8] = "65";
  EXPECT_EQ(Run(more).code, 252);
}

TEST_F(CliToolsTest, bench_says_which_ranks_did_not_come) {
  WriteFile(folder_ / "d/a", Noise(1 << 20));
  fs::create_directories(folder_ / "meet");
  environment_["WORLD_SIZE"] = "4";
  const Args args = {"bench", "store",   folder_ / "d",    "--range",    "64KiB", "--inflight",
                     "2",     "--nodes", folder_ / "meet", "--requests", "4",     "--wait",
                     "1"};
  std::vector<std::unique_ptr<Process>> ranks;
  for (const std::string rank : {"0", "2"}) {
    environment_["RANK"] = rank;
    ranks.push_back(Start(args));
  }
  for (const auto& rank : ranks) {
    EXPECT_NE(rank->Wait(), 0);
    EXPECT_THAT(rank->err(), HasSubstr("ranks 1, 3 of 4 did not come to"));
    EXPECT_THAT(rank->err(), HasSubstr("within 1 s"));
  }
}

TEST_F(CliToolsTest, doctor_looks_at_everything_between_here_and_the_store) {
  WriteFile(folder_ / "root/bucket/d/a", Noise(200'000));
  ServeFolder(folder_ / "root", "2ms");
  const Ran ran = Run({"doctor", "s3://bucket/d/"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  for (const std::string check : {"settings", "dns", "path", "clock", "region", "credentials",
                                  "access", "first byte", "open files", "memory", "requests"}) {
    EXPECT_THAT(ran.out, HasSubstr(" " + check + " "));
  }
  EXPECT_THAT(ran.out, Not(HasSubstr("failure")));
  const Ran json = Run({"doctor", "--json", folder_ / "root"});
  EXPECT_EQ(json.code, 0) << json.out;
  EXPECT_THAT(json.out, HasSubstr("{\"schema\":\"forebay.doctor/1\",\"check\":\"first byte\","
                                  "\"level\":\"ok\""));
}

TEST_F(CliToolsTest, doctor_says_what_is_wrong_with_its_fix_and_fails) {
  environment_["AWS_EC2_METADATA_DISABLED"] = "true";
  const auto failing = [&](const Args& args, int code, const std::string& check) {
    const Ran ran = Run(args);
    EXPECT_EQ(ran.code, code) << ran.out << ran.err;
    const size_t at = ran.out.find("failure  " + check);
    EXPECT_NE(at, std::string::npos) << check << " in\n" << ran.out;
    if (at == std::string::npos) return;
    EXPECT_THAT(ran.out.substr(at), HasSubstr("-> "));
  };
  const std::string nowhere = "http://127.0.0.1:9";
  failing({"doctor", "s3://b/", "--endpoint-url", nowhere, "--no-sign-request"}, 253, "path");
  failing({"doctor", "s3://b/", "--endpoint-url", nowhere}, 253, "credentials");
  failing({"doctor", "s3://b/", "--endpoint-url", "http://name.invalid", "--no-sign-request"}, 253,
          "dns");
  failing({"doctor", "s3://b/", "--region", "no region"}, 253, "");
  failing({"doctor", folder_ / "none/x"}, 254, "access");
  WriteFile(folder_ / "root/bucket/x", "x");
  WriteFile(folder_ / "rules.json", R"({"rules": [{"actions": [
      {"do": "header", "name": "Date", "value": "Mon, 02 Jan 2023 03:04:05 GMT"}]}]})");
  ServeFolder(folder_ / "root", "0ms", folder_ / "rules.json");
  failing({"doctor", "s3://bucket/x"}, 253, "clock");
  failing({"doctor", "s3://bucket/none/y"}, 253, "clock");
  EXPECT_EQ(Run({"doctor", "gs://bucket"}).code, 252);
}

}  // namespace
}  // namespace forebay::testing
