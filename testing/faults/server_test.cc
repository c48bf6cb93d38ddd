// The proxy's manners: what passes through untouched, what ends a connection, what is refused.
#include "testing/faults/server.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "testing/faults/raw_client.h"
#include "testing/faults/scripted_upstream.h"
#include "testing/faults/temp_folder.h"

namespace forebay::faults {
namespace {

using End = RawReply::End;
using namespace std::chrono_literals;

std::unique_ptr<Server> StartProxy(const std::string& upstream, const std::string& rules = "{}",
                                   Limits limits = {}) {
  ServerOptions options;
  options.upstream = upstream;
  options.limits = limits;
  EXPECT_TRUE(ApplyRulesJson(rules, options.plan).ok());
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  return server.ok() ? *std::move(server) : nullptr;
}

std::unique_ptr<Server> StartFolder(const std::string& root, const std::string& rules = "{}") {
  ServerOptions options;
  options.root = root;
  options.control = "127.0.0.1:0";
  EXPECT_TRUE(ApplyRulesJson(rules, options.plan).ok());
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << server.status().ToString();
  return server.ok() ? *std::move(server) : nullptr;
}

// Answers every request of a connection with the same bytes.
ScriptedUpstream::Serve Always(std::string answer) {
  return [answer](ScriptedUpstream& upstream, int fd, int) {
    while (!upstream.ReadUntil(fd, "\r\n\r\n").empty()) upstream.Write(fd, answer);
  };
}

constexpr const char* kHello = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

TEST(Proxy, the_upstream_sees_the_request_as_the_client_signed_it) {
  ScriptedUpstream upstream(Always(kHello));
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  const std::string head =
      "GET /b/a%2Fb//c?list-type=2&x=%20 HTTP/1.1\r\nHost: bucket.example:1234\r\n"
      "x-amz-date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 Credential=x\r\n";
  client.Write(head + "Connection: close\r\n\r\n");
  const RawReply reply = client.Read();
  EXPECT_EQ(reply.body, "hello");
  EXPECT_EQ(reply.Value("Connection"), "close");
  EXPECT_EQ(client.Next(), End::kFin);
  EXPECT_EQ(upstream.requests(), std::vector<std::string>{head + "\r\n"});
}

TEST(Proxy, the_upstream_is_asked_at_once_while_the_client_waits) {
  ScriptedUpstream upstream(Always(kHello));
  const auto proxy = StartProxy(upstream.url(), R"({"latency":"constant:700ms"})");
  RawClient client(proxy->address());
  client.Write(GetText("/b/k"));
  ASSERT_TRUE(upstream.WaitForRequests(1));
  EXPECT_FALSE(client.HasBytesNow());
  const RawReply reply = client.Read();
  EXPECT_EQ(reply.body, "hello");
  EXPECT_GE(reply.first_byte_s, 0.69);
}

TEST(Proxy, both_connections_are_kept_for_the_next_request) {
  ScriptedUpstream upstream(Always(kHello));
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client.Get("/b/k").body, "hello");
  const std::string stats = proxy->Control("GET", "/_faults/stats", "").json;
  EXPECT_NE(stats.find(R"("accepted":1,)"), std::string::npos) << stats;
  EXPECT_NE(stats.find(R"("upstream_opened":1)"), std::string::npos) << stats;
}

TEST(Proxy, a_kept_connection_that_the_upstream_closed_costs_no_error) {
  ScriptedUpstream upstream([](ScriptedUpstream& self, int fd, int) {
    // Without "Connection: close": the proxy cannot know.
    if (!self.ReadUntil(fd, "\r\n\r\n").empty()) self.Write(fd, kHello);
  });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.Get("/b/k").head.status, 200) << i;
}

TEST(Proxy, chunks_pass_through_and_the_connection_goes_on) {
  const std::string chunks = "5\r\nhello\r\n6;x\r\n world\r\n0\r\nT: 1\r\n\r\n";
  ScriptedUpstream upstream(
      Always("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks));
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  for (int i = 0; i < 3; ++i) {
    const RawReply reply = client.Get("/b/k");
    EXPECT_EQ(reply.body, "hello world");
    EXPECT_EQ(reply.end, End::kComplete);
  }
}

TEST(Proxy, offsets_in_a_chunked_body_count_its_payload) {
  const std::string answer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n";
  ScriptedUpstream upstream(Always(answer));
  auto proxy = StartProxy(upstream.url(), R"({"rules":[{"actions":[{"do":"flip_byte","at":6}]}]})");
  EXPECT_EQ(RawClient(proxy->address()).Get("/b/k").body, "hello vorld");
  proxy = StartProxy(upstream.url(), R"({"rules":[{"actions":[{"do":"reset","at":7}]}]})");
  const RawReply reply = RawClient(proxy->address()).Get("/b/k");
  EXPECT_EQ(reply.body, "hello w");
  EXPECT_EQ(reply.end, End::kReset);
}

TEST(Proxy, request_bodies_pass_in_both_framings) {
  ScriptedUpstream upstream([](ScriptedUpstream& self, int fd, int) {
    self.ReadUntil(fd, "END");
    self.Write(fd, kHello);
    self.ReadUntil(fd, "0\r\n\r\n");
    self.Write(fd, kHello);
  });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  const std::string sized = "PUT /b/k HTTP/1.1\r\nHost: h\r\nContent-Length: 200003\r\n\r\n" +
                            std::string(200'000, 'x') + "END";
  client.Write(sized);
  EXPECT_EQ(client.Read("PUT").body, "hello");
  const std::string chunked =
      "PUT /b/k HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  client.Write(chunked);
  EXPECT_EQ(client.Read("PUT").body, "hello");
  EXPECT_TRUE(upstream.requests() == (std::vector<std::string>{sized, chunked}));
}

TEST(Proxy, a_client_that_expects_100_gets_it_from_the_upstream) {
  ScriptedUpstream upstream([](ScriptedUpstream& self, int fd, int) {
    self.ReadUntil(fd, "\r\n\r\n");
    self.Write(fd, "HTTP/1.1 100 Continue\r\n\r\n");
    self.ReadUntil(fd, "body");
    self.Write(fd, kHello);
  });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  client.Write("PUT /b/k HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client.Read("PUT").head.status, 100);
  client.Write("body");
  const RawReply reply = client.Read("PUT");
  EXPECT_EQ(reply.head.status, 200);
  EXPECT_EQ(reply.Value("Connection"), "(none)");
}

TEST(Proxy, a_final_answer_instead_of_100_ends_the_connection) {
  ScriptedUpstream upstream(Always("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"));
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  client.Write("PUT /b/k HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  const RawReply reply = client.Read("PUT");
  EXPECT_EQ(reply.head.status, 403);
  EXPECT_EQ(reply.body, "no");
  EXPECT_EQ(reply.Value("Connection"), "close");
  EXPECT_EQ(client.Next(), End::kFin);
}

TEST(Proxy, answers_without_a_body_leave_the_connection_usable) {
  ScriptedUpstream upstream([](ScriptedUpstream& self, int fd, int) {
    for (const char* answer :
         {"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n",
          "HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", kHello}) {
      if (self.ReadUntil(fd, "\r\n\r\n").empty()) return;
      self.Write(fd, answer);
    }
  });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  client.Write("HEAD /b/k HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(client.Read("HEAD").Value("Content-Length"), "99");
  EXPECT_EQ(client.Get("/b/k").head.status, 204);
  EXPECT_EQ(client.Get("/b/k").head.status, 304);
  EXPECT_EQ(client.Get("/b/k").body, "hello");
}

TEST(Proxy, a_body_that_ends_with_the_connection_ends_the_clients_too) {
  ScriptedUpstream upstream([](ScriptedUpstream& self, int fd, int) {
    self.ReadUntil(fd, "\r\n\r\n");
    self.Write(fd, "HTTP/1.1 200 OK\r\n\r\n" + std::string(300'000, 'z'));
  });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  const RawReply reply = client.Get("/b/k");
  EXPECT_EQ(reply.body, std::string(300'000, 'z'));
  EXPECT_EQ(reply.Value("Connection"), "close");
}

TEST(Proxy, an_upstream_that_breaks_off_shows_as_a_short_body) {
  ScriptedUpstream upstream([](ScriptedUpstream& self, int fd, int) {
    self.ReadUntil(fd, "\r\n\r\n");
    self.Write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc");
  });
  const auto proxy = StartProxy(upstream.url());
  const RawReply reply = RawClient(proxy->address()).Get("/b/k");
  EXPECT_EQ(reply.body, "abc");
  EXPECT_EQ(reply.end, End::kFin);
}

TEST(Proxy, an_upstream_that_cannot_be_reached_or_understood_is_a_502) {
  Fd closed = *Listen(*ResolveAddress("127.0.0.1:0"));
  const std::string nowhere = "http://" + LocalAddress(closed.get())->ToString();
  closed.Close();
  const auto proxy = StartProxy(nowhere);
  RawReply reply = RawClient(proxy->address()).Get("/b/k");
  EXPECT_EQ(reply.head.status, 502);
  EXPECT_NE(reply.body.find("<Code>BadGateway</Code>"), std::string::npos);

  for (const char* nonsense : {"SSH-2.0-OpenSSH_9.2\r\n\r\n", "HTTP/1.1 101 Switch\r\n\r\n",
                               "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"}) {
    ScriptedUpstream upstream(Always(nonsense));
    const auto other = StartProxy(upstream.url());
    EXPECT_EQ(RawClient(other->address()).Get("/b/k").head.status, 502) << nonsense;
  }
}

TEST(Proxy, an_upstream_that_says_nothing_is_a_504) {
  ScriptedUpstream upstream(
      [](ScriptedUpstream& self, int fd, int) { self.ReadUntil(fd, "never"); });
  const auto proxy = StartProxy(upstream.url(), "{}", {.origin_s = 0.1});
  EXPECT_EQ(RawClient(proxy->address()).Get("/b/k").head.status, 504);
}

TEST(Proxy, a_signed_range_stays_and_the_rest_of_the_object_is_zeros) {
  ScriptedUpstream upstream(Always(
      "HTTP/1.1 206 Partial Content\r\nContent-Length: 4\r\nContent-Range: bytes 3-6/10\r\n\r\n"
      "3456"));
  const auto proxy =
      StartProxy(upstream.url(), R"({"rules":[{"actions":[{"do":"ignore_range"}]}]})");
  RawClient client(proxy->address());
  const RawReply reply =
      client.Get("/b/k",
                 "Range: bytes=3-6\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a, "
                 "SignedHeaders=host;range;x-amz-date, Signature=b\r\n");
  EXPECT_EQ(reply.head.status, 200);
  EXPECT_EQ(reply.Value("Content-Range"), "(none)");
  EXPECT_EQ(reply.body, std::string(3, '\0') + "3456" + std::string(3, '\0'));
  EXPECT_NE(upstream.requests().at(0).find("Range: bytes=3-6"), std::string::npos);
}

TEST(Proxy, a_client_that_does_not_read_holds_the_upstream_back) {
  std::atomic<size_t> written = 0;
  ScriptedUpstream upstream([&written](ScriptedUpstream& self, int fd, int) {
    self.ReadUntil(fd, "\r\n\r\n");
    self.Write(fd, "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
    const std::string block(1 << 20, 'x');
    while (true) {
      const ssize_t n = ::send(fd, block.data(), block.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      written += static_cast<size_t>(n);
    }
  });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  const int small = 64 * 1024;
  ::setsockopt(client.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  client.Write(GetText("/b/k"));
  // Until the writer stands still; it would have sent everything long before.
  size_t last = 0;
  for (int still = 0; still < 5;) {
    std::this_thread::sleep_for(50ms);
    still = written == last && last > 0 ? still + 1 : 0;
    last = written;
    ASSERT_LT(last, 64U << 20);
  }
  EXPECT_LT(last, 64U << 20);
}

TEST(Server, five_hundred_connections_at_once_each_get_their_bytes) {
  TempFolder folder;
  std::string bytes(100'000, '\0');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7 % 251);
  folder.Write("b/k", bytes);
  const auto origin = StartFolder(folder.path());
  const auto proxy =
      StartProxy("http://" + origin->address().ToString(), R"({"latency":"constant:300ms"})");
  std::vector<std::unique_ptr<RawClient>> clients;
  for (size_t i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<RawClient>(proxy->address()));
    clients.back()->Write(GetText("/b/k", fmt::format("Range: bytes={}-{}\r\n", i, i + 50'000)));
  }
  for (size_t i = 0; i < clients.size(); ++i) {
    const RawReply reply = clients[i]->Read();
    ASSERT_EQ(reply.head.status, 206) << i;
    ASSERT_TRUE(reply.body == bytes.substr(i, 50'001)) << i;
  }
  const std::string stats = proxy->Control("GET", "/_faults/stats", "").json;
  EXPECT_NE(stats.find(R"("open_peak":500,)"), std::string::npos) << stats;
  EXPECT_NE(stats.find(R"("outcomes":{"complete":500})"), std::string::npos) << stats;
}

TEST(Server, pipelined_requests_are_refused) {
  TempFolder folder;
  const auto server = StartFolder(folder.path());
  RawClient client(server->address());
  client.Write(GetText("/b/k") + GetText("/b/k"));
  EXPECT_EQ(client.Read().head.status, 400);
  EXPECT_EQ(client.Next(), End::kFin);
}

TEST(Server, broken_heads_get_400_and_lose_the_connection) {
  TempFolder folder;
  const auto server = StartFolder(folder.path());
  for (const std::string& text :
       {std::string("GET /\r\n\r\n"), std::string("GET / HTTP/1.1\r\nA : b\r\n\r\n"),
        "GET / HTTP/1.1\r\nA: " + std::string(2 * kMaxHeadBytes, 'x')}) {
    RawClient client(server->address());
    client.Write(text);
    const RawReply reply = client.Read();
    EXPECT_EQ(reply.head.status, 400);
    EXPECT_EQ(reply.Value("Connection"), "close");
    EXPECT_EQ(client.Next(), End::kFin);
  }
}

TEST(Server, broken_chunks_of_a_request_get_400) {
  ScriptedUpstream upstream(
      [](ScriptedUpstream& self, int fd, int) { self.ReadUntil(fd, "never"); });
  const auto proxy = StartProxy(upstream.url());
  RawClient client(proxy->address());
  client.Write("PUT /b/k HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n");
  const RawReply reply = client.Read("PUT");
  EXPECT_EQ(reply.head.status, 400);
  EXPECT_EQ(reply.Value("Connection"), "close");
}

TEST(Server, idle_connections_are_closed) {
  TempFolder folder;
  ServerOptions options;
  options.root = folder.path();
  options.limits.idle_s = 0.05;
  const auto server = Server::Start(options);
  ASSERT_TRUE(server.ok());
  RawClient client((*server)->address());
  EXPECT_EQ(client.Next(), End::kFin);
}

TEST(Server, the_control_port_answers_and_the_other_port_refuses_its_paths) {
  TempFolder folder;
  folder.Write("b/k", "x");
  const auto server = StartFolder(folder.path(), R"({"latency":"constant:10ms"})");
  EXPECT_EQ(RawClient(server->address()).Get("/_faults/stats").head.status, 403);

  RawClient stats(server->control_address());
  const RawReply reply = stats.Get("/_faults/stats");
  EXPECT_EQ(reply.head.status, 200);
  EXPECT_NE(reply.body.find(R"("schema":"forebay.faults.stats/1")"), std::string::npos);

  const auto post = [&](const std::string& path, const std::string& body) {
    RawClient client(server->control_address());
    client.Write(fmt::format("POST {} HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}", path,
                             body.size(), body));
    return client.Read("POST");
  };
  EXPECT_EQ(post("/_faults/rules", R"({"latency_scale":8})").head.status, 200);
  EXPECT_GE(RawClient(server->address()).Get("/b/k").first_byte_s, 0.078);
  const RawReply bad = post("/_faults/rules", R"({"rules":[{"actions":[{"do":"x"}]}]})");
  EXPECT_EQ(bad.head.status, 400);
  EXPECT_NE(bad.body.find("rules[0].actions[0]"), std::string::npos) << bad.body;
  // A request is counted when it is over for the server, which may be after its client has it all.
  const auto reset = [&] {
    EXPECT_EQ(post("/_faults/reset", "").head.status, 200);
    return server->Control("GET", "/_faults/stats", "").json.find(R"("requests":0,)") !=
           std::string::npos;
  };
  bool zero = reset();
  for (int i = 0; i < 1000 && !zero; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    zero = reset();
  }
  EXPECT_TRUE(zero);
  EXPECT_EQ(post("/_faults/nothing", "").head.status, 404);
  EXPECT_EQ(post("/rules", "{}").head.status, 404);
}

TEST(Server, the_port_can_be_closed_for_a_while) {
  TempFolder folder;
  folder.Write("b/k", "x");
  const auto server = StartFolder(folder.path());
  RawClient kept(server->address());
  EXPECT_EQ(kept.Get("/b/k").head.status, 200);
  RawClient control(server->control_address());
  const std::string body = R"({"for":"200ms"})";
  control.Write(
      fmt::format("POST /_faults/refuse HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  EXPECT_EQ(control.Read("POST").head.status, 200);
  const auto connects = [&] {
    auto fd = StartConnect(server->address());
    if (!fd.ok()) return false;
    int error = 0;
    for (int i = 0; i < 20 && error == 0; ++i) {
      error = SocketError(fd->get());
      if (Send(fd->get(), "G", false).io == Io::kOk) return true;
      std::this_thread::sleep_for(1ms);
    }
    return false;
  };
  EXPECT_FALSE(connects());
  EXPECT_EQ(kept.Get("/b/k").head.status, 200);
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  while (!connects()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    std::this_thread::sleep_for(10ms);
  }
}

TEST(Server, options_that_make_no_sense_are_refused) {
  const auto code = [](const ServerOptions& options) { return Server::Start(options).code(); };
  EXPECT_EQ(code({}), Code::kInvalidArgument);
  EXPECT_EQ(code({.upstream = "http://a:1", .root = "/"}), Code::kInvalidArgument);
  EXPECT_EQ(code({.upstream = "https://127.0.0.1:1"}), Code::kInvalidArgument);
  EXPECT_EQ(code({.upstream = "http://127.0.0.1:1/path"}), Code::kInvalidArgument);
  EXPECT_EQ(code({.root = "/no/such/folder"}), Code::kInvalidArgument);
  EXPECT_EQ(code({.control = "0.0.0.0:0", .root = "/"}), Code::kInvalidArgument);
  EXPECT_EQ(code({.listen = "127.0.0.1", .root = "/"}), Code::kInvalidArgument);
}

}  // namespace
}  // namespace forebay::faults
