#include "net/lean/lean_transport.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>

#include "testing/scripted_server.h"
#include "testing/temp_folder.h"
#include "testing/tls_identity.h"
#include "testing/transport_conformance.h"

namespace forebay::testing {
namespace {

using namespace std::chrono_literals;
using Then = ScriptedReply::Then;

std::unique_ptr<net::HttpTransport> Make(sys::EventLoop& loop, const std::string& ca) {
  return *net::MakeLeanTransport(loop, {.ca_bundle = ca});
}

INSTANTIATE_TEST_SUITE_P(Lean, TransportConformance,
                         ::testing::Values(TransportSubject{.name = "lean", .make = Make}));
INSTANTIATE_TEST_SUITE_P(LeanTls, TransportConformance,
                         ::testing::Values(TransportSubject{
                             .name = "lean", .make = Make, .tls = true}));

class Answer : public net::HttpHandler {
 public:
  Result<net::BodyTarget> OnHead(const net::HttpHead& head) override {
    status_code = head.status;
    if (on_head) on_head();
    return net::BodyTarget{.text = &text, .text_limit = 1 << 20};
  }
  void OnBody(ByteView) override {}
  void OnDone(Status result, const net::HttpTiming& times) override {
    status = std::move(result);
    timing = times;
    over.set_value();
  }
  void Wait() { ASSERT_EQ(over.get_future().wait_for(20s), std::future_status::ready); }

  int status_code = 0;
  std::string text;
  Status status{Code::kInternal, "not done"};
  net::HttpTiming timing;
  std::function<void()> on_head;
  std::promise<void> over;
};

TEST(LeanTransportTls, reads_a_bundle_again_when_it_is_another_file) {
  const TempFolder folder;
  const std::string bundle = folder.path() + "/ca.pem";
  const auto loop = *sys::EventLoop::Make("test-net");
  const auto made = [&] {
    auto transport = net::MakeLeanTransport(*loop, {.ca_bundle = bundle});
    if (!transport.ok()) return transport.code();
    std::promise<void> closed;
    loop->Post([&] { (*transport)->Close([&] { closed.set_value(); }); });
    EXPECT_EQ(closed.get_future().wait_for(20s), std::future_status::ready);
    return Code::kOk;
  };
  EXPECT_EQ(made(), Code::kInvalidArgument);  // there is none
  std::filesystem::copy_file(TlsIdentity::OfProcess().certificate_file(), bundle);
  EXPECT_EQ(made(), Code::kOk);
  EXPECT_EQ(made(), Code::kOk);
  std::ofstream(bundle) << "no certificate";
  EXPECT_EQ(made(), Code::kInvalidArgument);
  loop->Stop();
}

// A transport for which every name is 127.0.0.1, 127.0.0.2 and 127.0.0.3.
class LeanTransport : public ::testing::Test {
 protected:
  void SetUp() override {
    loop_ = *sys::EventLoop::Make("test-net");
    net::HostCache::Options options;
    options.lookup = [](const std::string&, net::HostCache::OnAnswer on_answer) {
      net::Addresses addresses;
      for (const char* ip : {"127.0.0.1", "127.0.0.2", "127.0.0.3"}) {
        addresses.push_back(*sys::ParseIpAddress(ip));
      }
      on_answer(std::move(addresses));
    };
    transport_ =
        *net::MakeLeanTransport(*loop_, {.ca_bundle = TlsIdentity::OfProcess().certificate_file(),
                                         .hosts = net::HostCache::Make(std::move(options))});
  }
  void TearDown() override {
    std::promise<void> closed;
    loop_->Post([&] { transport_->Close([&] { closed.set_value(); }); });
    EXPECT_EQ(closed.get_future().wait_for(20s), std::future_status::ready);
    loop_->Stop();
  }
  void Perform(net::HttpRequest request, Answer& answer) {
    loop_->Post([&] { transport_->Start(std::move(request), &answer); });
    answer.Wait();
  }
  static std::string Named(const ScriptedServer& server,
                           const std::string& host = "a.bucket.test") {
    const std::string url = server.url();
    return url.substr(0, url.find("127.")) + host + url.substr(url.rfind(':'));
  }

  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> transport_;
};

ScriptedServer::Script Always(ScriptedReply reply) {
  return [reply](const SeenRequest&) { return reply; };
}

TEST_F(LeanTransport, never_sends_a_put_twice) {
  ScriptedServer server([](const SeenRequest& request) {
    if (request.method == "PUT") return ScriptedReply{"", Then::kClose};
    return ScriptedReply{HttpText(200, {}, "b")};
  });
  Answer warm;
  Perform({.url = server.url() + "/x"}, warm);
  Answer put;
  Perform({.method = "PUT", .url = server.url() + "/x", .body = {AsBytes("a")}}, put);
  EXPECT_EQ(put.status.code(), Code::kUnavailable) << put.status.ToString();
  EXPECT_EQ(server.seen().size(), 2U);
}

TEST_F(LeanTransport, sends_a_get_again_only_once) {
  ScriptedServer server([](const SeenRequest& request) {
    if (request.number > 1) return ScriptedReply{"", Then::kClose};
    return ScriptedReply{HttpText(200, {}, "b")};
  });
  Answer warm;
  Perform({.url = server.url() + "/x"}, warm);
  Answer get;
  Perform({.url = server.url() + "/x"}, get);
  EXPECT_EQ(get.status.code(), Code::kUnavailable) << get.status.ToString();
  EXPECT_EQ(server.seen().size(), 3U);
}

TEST_F(LeanTransport, goes_to_another_address_when_one_refuses) {
  ScriptedServer server(Always({HttpText(200, {}, "b")}));  // listens on 127.0.0.1 alone
  for (int i = 0; i < 6; ++i) {
    Answer answer;
    Perform({.url = Named(server) + "/x", .headers = {{"Connection", "close"}}}, answer);
    EXPECT_TRUE(answer.status.ok()) << answer.status.ToString();
    EXPECT_EQ(answer.timing.peer.ip.ToString(), "127.0.0.1");
  }
}

TEST_F(LeanTransport, uses_all_addresses_and_another_one_when_told) {
  ScriptedServer server(Always({HttpText(200, {}, "b")}), {.all_addresses = true});
  std::vector<std::unique_ptr<Answer>> answers;
  answers.reserve(3);
  for (int i = 0; i < 3; ++i) answers.push_back(std::make_unique<Answer>());
  loop_->Post([&] {
    for (const auto& answer : answers) {
      transport_->Start({.url = Named(server) + "/x", .other_address = true}, answer.get());
    }
  });
  for (const auto& answer : answers) answer->Wait();
  // With all of them idle, they take turns.
  std::set<std::string> used;
  for (int i = 0; i < 12; ++i) {
    Answer answer;
    Perform({.url = Named(server) + "/y"}, answer);
    used.insert(answer.timing.peer.ToString());
  }
  EXPECT_EQ(used.size(), 3U);
}

TEST_F(LeanTransport, closes_a_connection_that_speaks_unasked) {
  ScriptedServer server([](const SeenRequest& request) {
    std::string answer = HttpText(200, {}, request.target);
    if (request.number == 1) answer += HttpText(200, {}, "planted");
    return ScriptedReply{answer};
  });
  for (const char* target : {"/a", "/b"}) {
    Answer answer;
    Perform({.url = server.url() + target}, answer);
    EXPECT_EQ(answer.text, target);
    EXPECT_FALSE(answer.timing.reused_connection);
  }
}

TEST_F(LeanTransport, a_server_that_never_accepts_is_unavailable_in_time) {
  // A listener whose queue is full drops what comes.
  ScriptedServer server(Always({""}), {.backlog = 0, .accept = false});
  std::vector<std::unique_ptr<Answer>> answers;
  answers.reserve(4);
  for (int i = 0; i < 4; ++i) answers.push_back(std::make_unique<Answer>());
  loop_->Post([&] {
    for (const auto& answer : answers) {
      transport_->Start(
          {.url = server.url() + "/x", .connect_timeout = 50ms, .first_byte_timeout = 80ms},
          answer.get());
    }
  });
  for (const auto& answer : answers) {
    answer->Wait();
    EXPECT_EQ(answer->status.code(), Code::kUnavailable) << answer->status.ToString();
  }
}

TEST_F(LeanTransport, a_name_that_does_not_resolve_is_unavailable) {
  net::HostCache::Options options;
  options.lookup = [](const std::string&, net::HostCache::OnAnswer on_answer) {
    on_answer(Status(Code::kUnavailable, "no such name"));
  };
  auto transport =
      *net::MakeLeanTransport(*loop_, {.hosts = net::HostCache::Make(std::move(options))});
  Answer answer;
  loop_->Post([&] { transport->Start({.url = "http://nowhere.test/x"}, &answer); });
  answer.Wait();
  EXPECT_EQ(answer.status.code(), Code::kUnavailable) << answer.status.ToString();
  std::promise<void> closed;
  loop_->Post([&] {
    transport->Close([&] {
      transport.reset();
      closed.set_value();
    });
  });
  closed.get_future().wait();
}

// Requests go out together at the end of the loop's turn, or when there are many of them.
TEST_F(LeanTransport, sends_what_begins_together_but_for_what_is_cancelled_before) {
  ScriptedServer server(
      [](const SeenRequest& request) { return ScriptedReply{HttpText(200, {}, request.target)}; });
  constexpr size_t kCount = 40;
  for (const size_t count : {kCount, kCount, size_t{12}}) {  // the first opens the connections
    const size_t seen = server.seen().size();
    const bool cancels = count < kCount;
    std::vector<std::unique_ptr<Answer>> answers;
    for (size_t i = 0; i < count; ++i) answers.push_back(std::make_unique<Answer>());
    loop_->Post([&] {
      for (size_t i = 0; i < count; ++i) {
        const auto id =
            transport_->Start({.url = server.url() + "/" + std::to_string(i)}, answers[i].get());
        if (cancels && i % 3 == 0) transport_->Cancel(id);
      }
    });
    for (size_t i = 0; i < count; ++i) {
      answers[i]->Wait();
      const bool cancelled = cancels && i % 3 == 0;
      EXPECT_EQ(answers[i]->status.code(), cancelled ? Code::kCancelled : Code::kOk) << i;
      EXPECT_EQ(answers[i]->text, cancelled ? "" : "/" + std::to_string(i));
    }
    EXPECT_EQ(server.seen().size() - seen, cancels ? 8 : count);
  }
}

// The connections of both are freed before the turn ends in which requests go out.
TEST_F(LeanTransport, forgets_what_was_to_be_sent_on_a_connection_that_is_gone) {
  ScriptedServer server([](const SeenRequest& request) {
    if (request.target == "/never") return ScriptedReply{"", Then::kHang};
    return ScriptedReply{HttpText(200, {}, request.target)};
  });
  Answer first;
  Answer second;
  Answer never;
  loop_->Post([&] {
    transport_->Start({.url = server.url() + "/1"}, &first);
    transport_->Start({.url = server.url() + "/2"}, &second);
  });
  first.Wait();
  second.Wait();  // two connections
  net::HttpTransport::RequestId id = 0;
  loop_->Post([&] { id = transport_->Start({.url = server.url() + "/never"}, &never); });
  for (int i = 0; i < 20'000 && server.seen().size() < 3; ++i) std::this_thread::sleep_for(1ms);
  Answer cancelled;
  Answer last;
  loop_->Post([&] {
    transport_->Cancel(id);
    transport_->Cancel(transport_->Start({.url = server.url() + "/no"}, &cancelled));
    transport_->Start({.url = server.url() + "/yes"}, &last);
  });
  for (Answer* answer : {&never, &cancelled, &last}) answer->Wait();
  EXPECT_EQ(never.status.code(), Code::kCancelled);
  EXPECT_EQ(cancelled.status.code(), Code::kCancelled);
  EXPECT_EQ(last.text, "/yes");
  EXPECT_EQ(server.seen().size(), 4U);
}

TEST_F(LeanTransport, many_more_requests_than_connections_being_made_all_end) {
  ScriptedServer server([](const SeenRequest& request) {
    return ScriptedReply{HttpText(200, {}, request.target),
                         request.number % 7 == 0 ? Then::kClose : Then::kKeep};
  });
  constexpr size_t kCount = 400;
  std::vector<std::unique_ptr<Answer>> answers;
  answers.reserve(kCount);
  for (size_t i = 0; i < kCount; ++i) answers.push_back(std::make_unique<Answer>());
  loop_->Post([&] {
    for (size_t i = 0; i < kCount; ++i) {
      transport_->Start({.url = server.url() + "/" + std::to_string(i)}, answers[i].get());
    }
  });
  for (size_t i = 0; i < kCount; ++i) {
    answers[i]->Wait();
    // One that is sent on a connection which the server is about to close is sent again, once.
    EXPECT_TRUE(answers[i]->status.ok() || answers[i]->status.code() == Code::kUnavailable)
        << answers[i]->status.ToString();
    if (answers[i]->status.ok()) {
      EXPECT_EQ(answers[i]->text, "/" + std::to_string(i));
    }
  }
}

TEST_F(LeanTransport, resumes_tls_sessions) {
  ScriptedServer server(Always({HttpText(200, {{"Connection", "close"}}, "b")}), {.tls = true});
  for (int i = 0; i < 3; ++i) {
    Answer answer;
    Perform({.url = server.url() + "/x"}, answer);
    ASSERT_TRUE(answer.status.ok()) << answer.status.ToString();
    EXPECT_EQ(server.seen().back().resumed, i > 0);
  }
}

TEST_F(LeanTransport, names_the_host_it_wants_and_takes_no_other_certificate) {
  ScriptedServer server(Always({HttpText(200, {}, "b")}), {.tls = true});
  Answer right;
  Perform({.url = Named(server) + "/x"}, right);
  EXPECT_TRUE(right.status.ok()) << right.status.ToString();
  for (const char* host : {"a.bucket.example", "a.b.bucket.test", "127.0.0.4"}) {
    Answer wrong;
    Perform({.url = Named(server, host) + "/x"}, wrong);
    EXPECT_FALSE(wrong.status.ok()) << host;
    if (std::string(host) != "127.0.0.4") {  // where nobody listens
      EXPECT_EQ(wrong.status.code(), Code::kInvalidArgument) << wrong.status.ToString();
      EXPECT_NE(wrong.status.ToString().find(host), std::string::npos) << wrong.status.ToString();
    }
  }
  EXPECT_EQ(server.seen().size(), 1U);
}

TEST_F(LeanTransport, takes_an_unknown_authority_only_when_told_not_to_verify) {
  ScriptedServer server(Always({HttpText(200, {}, "b")}), {.tls = true});
  for (const bool verify : {true, false}) {
    auto loop = *sys::EventLoop::Make("test-net");
    auto transport = *net::MakeLeanTransport(*loop, {.verify_tls = verify});
    Answer answer;
    loop->Post([&] { transport->Start({.url = server.url() + "/x"}, &answer); });
    answer.Wait();
    loop->Stop();
    EXPECT_EQ(answer.status.code(), verify ? Code::kInvalidArgument : Code::kOk)
        << answer.status.ToString();
  }
}

TEST_F(LeanTransport, believes_in_the_end_of_a_body_only_when_tls_says_it) {
  for (const Then then : {Then::kClose, Then::kCut}) {
    ScriptedServer server(Always({"HTTP/1.1 200 OK\r\n\r\nbody", then}), {.tls = true});
    Answer answer;
    Perform({.url = server.url() + "/x"}, answer);
    EXPECT_EQ(answer.status.code(), then == Then::kClose ? Code::kOk : Code::kDataLoss)
        << answer.status.ToString();
    ScriptedServer whole(Always({HttpText(200, {}, "body"), then}), {.tls = true});
    Answer counted;
    Perform({.url = whole.url() + "/x"}, counted);
    EXPECT_TRUE(counted.status.ok()) << counted.status.ToString();
  }
}

TEST_F(LeanTransport, plain_words_where_tls_was_asked_for_are_unavailable) {
  ScriptedServer server(Always({HttpText(200, {}, "b")}));
  std::string url = server.url();
  url.insert(4, "s");
  Answer answer;
  Perform({.url = url + "/x", .connect_timeout = 300ms}, answer);
  EXPECT_EQ(answer.status.code(), Code::kUnavailable) << answer.status.ToString();
}

}  // namespace
}  // namespace forebay::testing
