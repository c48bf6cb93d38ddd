#include "store/s3/credentials_provider.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "store/s3/s3_store.h"
#include "testing/manual_executor.h"

namespace forebay::store::s3 {
namespace {

using std::chrono::seconds;

// Does what the test says.
class Scripted final : public CredentialsProvider {
 public:
  void Give(const std::string& id, uint64_t epoch) {
    Offer(std::make_shared<CredentialsSnapshot>(CredentialsSnapshot{
        .credentials = {.access_key_id = id, .secret_access_key = "s"}, .epoch = epoch}));
  }
  void Withdraw() { Offer(nullptr); }
  void Refuse(Code code) { Fail(Status(code, "refused")); }
  void Invalidate(uint64_t epoch) override { invalidated.push_back(epoch); }
  void Want() override { ++wanted; }

  std::vector<uint64_t> invalidated;
  int wanted = 0;
};

struct Waiting {
  testing::ManualExecutor executor;
  std::shared_ptr<Scripted> provider = std::make_shared<Scripted>();
  CredentialsClient client{executor, provider};
  std::vector<std::string> got;

  CredentialsClient::Ticket Get(Time deadline = kNever) {
    return client.Get(deadline, [this](Result<CredentialsPtr> answer) {
      got.push_back(answer.ok() ? (*answer)->credentials.access_key_id
                                : std::string(CodeName(answer.code())));
    });
  }
};

TEST(CredentialsClient, says_at_once_what_is_current_and_notices_every_change) {
  Waiting w;
  EXPECT_EQ(w.client.Current(), nullptr);
  w.provider->Give("A", 1);
  EXPECT_EQ(w.client.Current()->credentials.access_key_id, "A");
  w.provider->Give("B", 2);
  EXPECT_EQ(w.client.Current()->credentials.access_key_id, "B");
  w.provider->Withdraw();
  EXPECT_EQ(w.client.Current(), nullptr);
}

TEST(CredentialsClient, waiters_get_what_comes_or_why_nothing_does) {
  Waiting w;
  w.Get();
  w.Get();
  EXPECT_EQ(w.provider->wanted, 2);
  w.provider->Give("A", 1);
  EXPECT_TRUE(w.got.empty()) << "called from inside the provider";
  w.executor.RunReady();
  EXPECT_EQ(w.got, (std::vector<std::string>{"A", "A"}));
  w.Get();
  w.executor.RunReady();
  EXPECT_EQ(w.got.size(), 3U);
  EXPECT_EQ(w.provider->wanted, 2) << "wanted what is there";
  w.provider->Withdraw();
  w.Get();
  w.provider->Refuse(Code::kPermissionDenied);
  w.executor.RunReady();
  EXPECT_EQ(w.got.back(), "permission_denied");
}

TEST(CredentialsClient, what_is_withdrawn_before_the_waiter_ran_is_waited_for_again) {
  Waiting w;
  w.Get();
  w.provider->Give("A", 1);
  w.provider->Withdraw();
  w.executor.RunReady();
  EXPECT_TRUE(w.got.empty());
  w.provider->Give("B", 2);
  w.executor.RunReady();
  EXPECT_EQ(w.got, std::vector<std::string>{"B"});
}

TEST(CredentialsClient, waiting_ends_at_the_deadline_or_when_cancelled_or_with_the_client) {
  Waiting w;
  w.Get(w.executor.Now() + seconds(2));
  const auto cancelled = w.Get();
  w.executor.Advance(seconds(3));
  EXPECT_EQ(w.got, std::vector<std::string>{"deadline_exceeded"});
  w.client.Cancel(cancelled);
  auto other = std::make_unique<CredentialsClient>(w.executor, w.provider);
  other->Get(kNever, [](Result<CredentialsPtr>) { FAIL() << "its client is gone"; });
  w.provider->Give("A", 1);
  other.reset();
  w.executor.RunReady();
  EXPECT_EQ(w.got.size(), 1U);
}

// Keeps what it was asked to send.
class KeepingTransport final : public net::HttpTransport {
 public:
  explicit KeepingTransport(Executor& executor) : executor_(executor) {}
  RequestId Start(net::HttpRequest request, net::HttpHandler* handler) override {
    sent.push_back(std::move(request));
    handlers.push_back(handler);
    return sent.size();
  }
  void Cancel(RequestId) override {}
  void Close(Task) override {}
  Executor& executor() override { return executor_; }

  std::vector<net::HttpRequest> sent;
  std::vector<net::HttpHandler*> handlers;

 private:
  Executor& executor_;
};

struct Signing {
  testing::ManualExecutor executor;
  KeepingTransport transport{executor};
  std::shared_ptr<Scripted> provider = std::make_shared<Scripted>();
  std::shared_ptr<ObjectStore> store =
      *MakeS3Store({.bucket = "b", .config = {.provider = provider, .region = "r"}}, transport);
  std::vector<Code> ended;

  ObjectStore::OpId Head(Time deadline = kNever) {
    return store->StartHead({.key = "k", .options = {.deadline = deadline}},
                            [this](Result<ObjectInfo> info) { ended.push_back(info.code()); });
  }
  std::string Signer(size_t request) const {
    const std::string text(net::FindHeader(transport.sent.at(request).headers, "authorization"));
    const size_t begin = text.find("Credential=") + 11;
    return text.substr(begin, text.find('/') - begin);
  }
};

TEST(S3Store, signs_each_request_with_the_credentials_of_the_moment_it_is_sent) {
  Signing s;
  s.Head();
  s.executor.RunReady();
  EXPECT_TRUE(s.transport.sent.empty()) << "sent without credentials";
  s.provider->Give("FIRST", 1);
  s.executor.RunReady();
  ASSERT_EQ(s.transport.sent.size(), 1U);
  EXPECT_EQ(s.Signer(0), "FIRST");
  s.provider->Give("SECOND", 2);
  s.Head();
  ASSERT_EQ(s.transport.sent.size(), 2U);
  EXPECT_EQ(s.Signer(1), "SECOND");
  for (net::HttpHandler* handler : s.transport.handlers) {
    handler->OnDone(Status(Code::kUnavailable, "reset"), {});
  }
}

TEST(S3Store, an_operation_that_waits_for_credentials_ends_with_their_error_or_when_cancelled) {
  Signing s;
  s.Head();
  s.provider->Refuse(Code::kPermissionDenied);
  s.executor.RunReady();
  EXPECT_EQ(s.ended, std::vector{Code::kPermissionDenied});
  s.store->Cancel(s.Head());
  EXPECT_EQ(s.ended.size(), 1U) << "the callback ran inside Cancel";
  s.executor.RunReady();
  EXPECT_EQ(s.ended.back(), Code::kCancelled);
  s.Head(s.executor.Now() + seconds(1));
  s.executor.Advance(seconds(2));
  EXPECT_EQ(s.ended.back(), Code::kDeadlineExceeded);
  s.provider->Give("LATE", 1);
  s.executor.RunReady();
  EXPECT_TRUE(s.transport.sent.empty());
}

}  // namespace
}  // namespace forebay::store::s3
