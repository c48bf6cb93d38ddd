// Several brokers, as of several processes, on one file, in virtual time.
#include "store/s3/credentials/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <list>

#include "base/assert.h"
#include "testing/fake_environment.h"
#include "testing/manual_executor.h"
#include "testing/temp_folder.h"

namespace forebay::store::s3 {
namespace {

using std::chrono::seconds;

constexpr int64_t kStart = 1'780'000'000;

// Waits for the test.
class HeldSource final : public Source {
 public:
  void Fetch(OnFetched on_fetched) override { pending = std::move(on_fetched); }
  OnFetched pending;
};

class NoTransport final : public net::HttpTransport {
 public:
  explicit NoTransport(Executor& executor) : executor_(executor) {}
  RequestId Start(net::HttpRequest, net::HttpHandler*) override {
    FB_ASSERT(false);
    return 0;
  }
  void Cancel(RequestId) override {}
  void Close(Task) override {}
  Executor& executor() override { return executor_; }

 private:
  Executor& executor_;
};

class BrokerTest : public ::testing::Test {
 protected:
  struct Process {
    HeldSource* source = nullptr;
    std::unique_ptr<Broker> broker;
    std::vector<std::string> got;
  };

  Process& NewProcess(bool shared = true) {
    Process& process = processes_.emplace_back();
    auto source = std::make_unique<HeldSource>();
    process.source = source.get();
    std::optional<sys::SharedFile> file;
    if (shared) file = *sys::SharedFile::Open(folder.path(), "c");
    process.broker = std::make_unique<Broker>(context_, std::move(source), std::move(file));
    return process;
  }
  void Fetch(Process& process, const std::string& rejected = "") {
    process.broker->Fetch(rejected, [&process](Result<Fetched> fetched) {
      process.got.push_back(fetched.ok() ? fetched->credentials.access_key_id
                                         : fetched.status().ToString());
    });
  }
  Fetched Keys(const std::string& id, int64_t life) const {
    return {.credentials = {.access_key_id = id,
                            .secret_access_key = id + "-secret",
                            .session_token = "t"},
            .expires_unix_s = kStart + Now() + life};
  }
  int64_t Now() const {
    return std::chrono::duration_cast<seconds>(executor.Now().time_since_epoch()).count();
  }
  void Answer(Process& process, Result<Fetched> fetched) {
    ASSERT_TRUE(process.source->pending != nullptr);
    std::exchange(process.source->pending, nullptr)(std::move(fetched));
  }

  testing::TempFolder folder;
  testing::ManualExecutor executor;

 private:
  NoTransport transport_{executor};
  ServiceCalls calls_{transport_, 1};
  SourceContext context_{.executor = executor,
                         .http = calls_,
                         .environment = testing::FakeEnvironment({}),
                         .unix_time_s = [this] { return kStart + Now(); },
                         .run_program = nullptr,
                         .write_file = nullptr};
  std::list<Process> processes_;
};

TEST_F(BrokerTest, of_many_processes_one_fetches_and_all_have_it) {
  std::vector<Process*> all;
  for (int i = 0; i < 20; ++i) all.push_back(&NewProcess());
  for (Process* process : all) Fetch(*process);
  executor.Advance(seconds(1));
  Answer(*all[0], Keys("A", 3600));
  executor.Advance(seconds(1));
  int fetches = 0;
  for (Process* process : all) {
    EXPECT_EQ(process->got, std::vector<std::string>{"A"});
    fetches += process->broker->fetches();
  }
  EXPECT_EQ(fetches, 1);
}

TEST_F(BrokerTest, what_is_in_the_file_is_used_until_it_is_to_be_renewed) {
  Process& one = NewProcess();
  Process& other = NewProcess();
  Fetch(one);
  Answer(one, Keys("A", 3600));
  executor.Advance(std::chrono::minutes(40));
  Fetch(other);
  EXPECT_EQ(other.got, std::vector<std::string>{"A"});
  executor.Advance(std::chrono::minutes(3));
  Fetch(other);
  ASSERT_EQ(other.broker->fetches(), 1) << "within the window of renewal the old ones came back";
  Answer(other, Keys("B", 3600));
  Fetch(one);
  EXPECT_EQ(one.got.back(), "B");
  EXPECT_EQ(one.broker->fetches(), 1);
}

TEST_F(BrokerTest, tokens_that_live_five_seconds_are_shared_too) {
  Process& one = NewProcess();
  Process& other = NewProcess();
  Fetch(one);
  Answer(one, Keys("A", 5));
  executor.Advance(seconds(2));
  Fetch(other);
  EXPECT_EQ(other.got, std::vector<std::string>{"A"});
  executor.Advance(std::chrono::milliseconds(1500));
  Fetch(other);
  EXPECT_EQ(other.broker->fetches(), 1);
}

TEST_F(BrokerTest, keys_that_a_server_refused_are_not_taken_from_the_file) {
  Process& one = NewProcess();
  Process& other = NewProcess();
  Fetch(one);
  Answer(one, Keys("A", 3600));
  Fetch(other, "A");
  ASSERT_EQ(other.broker->fetches(), 1);
  Answer(other, Keys("B", 3600));
  Fetch(one, "A");
  EXPECT_EQ(one.got.back(), "B");
  EXPECT_EQ(one.broker->fetches(), 1);
}

TEST_F(BrokerTest, a_failure_is_everybodys_for_a_while_that_grows) {
  Process& one = NewProcess();
  Process& other = NewProcess();
  const Status throttled(Code::kUnavailable, "429");
  int64_t fetches = 0;
  for (int i = 0; i < 600; ++i) {
    for (Process* process : {&one, &other}) {
      Fetch(*process);
      if (process->source->pending) Answer(*process, throttled);
      EXPECT_THAT(process->got.back(), ::testing::HasSubstr("429"));
    }
    executor.Advance(seconds(1));
  }
  fetches = one.broker->fetches() + other.broker->fetches();
  EXPECT_GE(fetches, 10);
  EXPECT_LE(fetches, 20) << "each process tries for itself";
}

TEST_F(BrokerTest, a_refusal_is_everybodys_for_a_second_however_often_it_comes) {
  Process& one = NewProcess();
  Process& other = NewProcess();
  for (int i = 0; i < 20; ++i) {
    Fetch(one);
    Answer(one, Status(Code::kPermissionDenied, "log in"));
    Fetch(other);
    EXPECT_EQ(other.got.back(), "permission_denied: log in");
    executor.Advance(seconds(1));
  }
  EXPECT_EQ(other.broker->fetches(), 0);
}

TEST_F(BrokerTest, while_the_service_fails_what_has_not_ended_is_an_answer) {
  Process& one = NewProcess();
  Process& other = NewProcess();
  Fetch(one);
  Answer(one, Keys("A", 3600));
  executor.Advance(std::chrono::minutes(50));
  Fetch(other);
  Answer(other, Status(Code::kUnavailable, "429"));
  EXPECT_EQ(other.got, std::vector<std::string>{"A"});
  Fetch(one);
  EXPECT_EQ(one.got.back(), "A");
  EXPECT_EQ(one.broker->fetches(), 1);
  executor.Advance(std::chrono::minutes(11));
  Fetch(one);
  Answer(one, Status(Code::kUnavailable, "429"));
  EXPECT_THAT(one.got.back(), ::testing::HasSubstr("429"));
}

TEST_F(BrokerTest, a_holder_that_never_ends_holds_nobody_for_ever) {
  Process& stuck = NewProcess();
  Process& other = NewProcess();
  Fetch(stuck);
  Fetch(other);
  executor.Advance(seconds(29));
  EXPECT_EQ(other.broker->fetches(), 0);
  executor.Advance(seconds(2));
  ASSERT_EQ(other.broker->fetches(), 1);
  Answer(other, Keys("B", 3600));
  EXPECT_EQ(other.got, std::vector<std::string>{"B"});
  Answer(stuck, Keys("A", 3600));
  EXPECT_EQ(stuck.got, std::vector<std::string>{"A"});
}

TEST_F(BrokerTest, a_file_that_is_not_ours_alone_or_is_damaged_is_not_believed) {
  Process& one = NewProcess();
  Fetch(one);
  Answer(one, Keys("A", 3600));
  const std::string path = folder / "forebay/c";
  namespace fs = std::filesystem;
  const fs::perms own = fs::perms::owner_read | fs::perms::owner_write;
  EXPECT_EQ(fs::status(path).permissions(), own);
  fs::permissions(path, own | fs::perms::group_read);
  Process& other = NewProcess();
  Fetch(other);
  EXPECT_EQ(other.broker->fetches(), 1);
  Answer(other, Keys("B", 3600));
  EXPECT_EQ(other.got, std::vector<std::string>{"B"});
  fs::permissions(path, own);
  for (const char* damaged : {"", "{", "{\"version\":\"9\",\"id\":\"X\",\"secret\":\"x\"}"}) {
    std::ofstream(path) << damaged;
    Process& third = NewProcess();
    Fetch(third);
    ASSERT_EQ(third.broker->fetches(), 1) << damaged;
    Answer(third, Status(Code::kCancelled, "closing"));
  }
}

TEST_F(BrokerTest, without_a_file_every_fetch_asks) {
  Process& alone = NewProcess(false);
  Fetch(alone);
  Answer(alone, Keys("A", 3600));
  Fetch(alone);
  EXPECT_EQ(alone.broker->fetches(), 2);
}

}  // namespace
}  // namespace forebay::store::s3
