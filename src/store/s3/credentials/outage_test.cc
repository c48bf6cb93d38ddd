// Metadata service, broker and provider together, in virtual time.
#include <gtest/gtest.h>

#include <map>

#include "store/s3/credentials/broker.h"
#include "store/s3/credentials/flat_json.h"
#include "store/s3/credentials/refreshing.h"
#include "store/s3/credentials/spec.h"
#include "testing/fake_environment.h"
#include "testing/manual_executor.h"
#include "testing/temp_folder.h"

namespace forebay::store::s3 {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int64_t kStart = 1'780'000'000;

// A metadata service behind a network of 1 ms.
class VirtualService final : public net::HttpTransport {
 public:
  enum class Mood : uint8_t { kWell, kThrottling, kSilent };

  explicit VirtualService(testing::ManualExecutor& executor) : executor_(executor) {}

  RequestId Start(net::HttpRequest request, net::HttpHandler* handler) override {
    ++requests;
    const bool silent = mood == Mood::kSilent;
    const Duration after = silent ? request.first_byte_timeout : Duration(milliseconds(1));
    executor_.PostAt(executor_.Now() + after,
                     [this, request = std::move(request), handler, silent] {
                       if (silent) {
                         handler->OnDone(Status(Code::kUnavailable, "no answer came in time"), {});
                       } else {
                         Answer(request, handler);
                       }
                     });
    return static_cast<RequestId>(requests);
  }
  void Cancel(RequestId) override {}
  void Close(Task) override {}
  Executor& executor() override { return executor_; }

  int64_t Now() const {
    return kStart + std::chrono::duration_cast<seconds>(executor_.Now().time_since_epoch()).count();
  }

  Mood mood = Mood::kWell;
  int64_t life = 3600;
  int requests = 0;
  std::map<std::string, int64_t> issued;  // the end of each key

 private:
  void Answer(const net::HttpRequest& request, net::HttpHandler* handler) {
    std::string body = "t";
    if (request.url.ends_with("/security-credentials/")) {
      body = "role";
    } else if (request.method == "GET") {
      const std::string id = "K" + std::to_string(issued.size() + 1);
      issued[id] = Now() + life;
      body = WriteFlatJson({{"Code", "Success"},
                            {"AccessKeyId", id},
                            {"SecretAccessKey", "s"},
                            {"Token", "t"},
                            {"Expiration", FormatUtcTime(issued[id])}});
    }
    const bool well = mood == Mood::kWell;
    const auto target = handler->OnHead({.status = well ? 200 : 429});
    if (well && target.ok()) *target->text = body;
    handler->OnDone(Status(), {});
  }

  testing::ManualExecutor& executor_;
};

// What one process of a node has.
class Process {
 public:
  Process(testing::ManualExecutor& executor, VirtualService& service, const std::string& folder,
          uint64_t seed)
      : calls_(service, seed),
        context_{.executor = executor,
                 .http = calls_,
                 .environment = testing::FakeEnvironment({}),
                 .unix_time_s = [&service] { return service.Now(); },
                 .run_program = nullptr,
                 .write_file = nullptr},
        broker_(
            context_,
            MakeSource({.kind = CredentialSpec::Kind::kMetadata, .name = "m", .url = "http://m"},
                       context_),
            *sys::SharedFile::Open(folder, "c")),
        provider_(std::make_shared<RefreshingProvider>(
            executor,
            [this](std::string rejected, OnFetched on_fetched) {
              broker_.Fetch(std::move(rejected), std::move(on_fetched));
            },
            RefreshOptions{
                .source = "m", .unix_time_s = [&service] { return service.Now(); }, .seed = seed})),
        client_(executor, provider_) {
    provider_->Start();
  }

  // "" while there is nothing to sign with.
  std::string Key() {
    const CredentialsSnapshot* now = client_.Current();
    return now == nullptr ? "" : now->credentials.access_key_id;
  }

 private:
  ServiceCalls calls_;
  SourceContext context_;
  Broker broker_;
  std::shared_ptr<RefreshingProvider> provider_;
  CredentialsClient client_;
};

class Node : public ::testing::Test {
 protected:
  void StartProcesses(int count) {
    for (int i = 0; i < count; ++i) {
      processes.push_back(std::make_unique<Process>(executor, service, folder.path(),
                                                    static_cast<uint64_t>(i + 1)));
    }
  }

  testing::TempFolder folder;
  testing::ManualExecutor executor;
  VirtualService service{executor};
  std::vector<std::unique_ptr<Process>> processes;
};

TEST_F(Node, a_day_of_thirty_processes_costs_one_fetch_for_each_life) {
  StartProcesses(30);
  for (int minute = 0; minute < 24 * 60; ++minute) {
    executor.Advance(minutes(1));
    for (const auto& process : processes) {
      ASSERT_NE(process->Key(), "") << minute;
      ASSERT_GT(service.issued.at(process->Key()), service.Now()) << minute;
    }
  }
  // Each is renewed 12 to 18 minutes before its end.
  EXPECT_LE(service.issued.size(), 24U * 60 / 42 + 1);
}

TEST_F(Node, an_hour_of_429_and_silence_stops_nobody) {
  StartProcesses(8);
  executor.Advance(minutes(30));
  const std::string before = processes[0]->Key();
  const int calm = service.requests;
  for (int minute = 0; minute < 60; ++minute) {
    service.mood =
        minute % 2 == 0 ? VirtualService::Mood::kThrottling : VirtualService::Mood::kSilent;
    executor.Advance(minutes(1));
    for (const auto& process : processes) ASSERT_EQ(process->Key(), before) << minute;
  }
  // Six attempts and a pause of up to a minute, of one process at a time while the file's
  // credentials last, of each when they have ended.
  EXPECT_LE(service.requests - calm, 6 * 60 * 2);
  service.mood = VirtualService::Mood::kWell;
  executor.Advance(minutes(3));
  for (const auto& process : processes) {
    EXPECT_NE(process->Key(), before);
    EXPECT_GT(service.issued.at(process->Key()), service.Now());
  }
  EXPECT_EQ(service.issued.size(), 2U);
}

TEST_F(Node, tokens_that_live_five_seconds_serve_all_day_to_all) {
  service.life = 5;
  StartProcesses(10);
  executor.Advance(milliseconds(500));
  for (int i = 0; i < 1000; ++i) {
    executor.Advance(milliseconds(100));
    for (const auto& process : processes) {
      ASSERT_NE(process->Key(), "") << i;
      ASSERT_GT(service.issued.at(process->Key()), service.Now()) << i;
    }
  }
  EXPECT_LE(service.issued.size(), 60U) << "ten processes fetch for themselves";
}

}  // namespace
}  // namespace forebay::store::s3
