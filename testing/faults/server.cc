#include "testing/faults/server.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <future>
#include <nlohmann/json.hpp>
#include <utility>

#include "testing/faults/control.h"

namespace forebay::faults {
namespace {

constexpr int kAcceptsPerEvent = 64;
constexpr std::chrono::milliseconds kAcceptPause{50};

Result<Address> UpstreamAddress(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) {
    return Status(Code::kInvalidArgument, "the upstream must be http://HOST:PORT");
  }
  std::string host(url.substr(kScheme.size()));
  if (host.ends_with('/')) host.pop_back();
  if (host.find('/') != std::string::npos) {
    return Status(Code::kInvalidArgument, "the upstream must have no path");
  }
  if (host.find(':', host.rfind(']') + 1) == std::string::npos) host += ":80";
  return ResolveAddress(host);
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  std::unique_ptr<Server> server(new Server);
  if (options.upstream.empty() == options.root.empty()) {
    return Status(Code::kInvalidArgument, "exactly one of upstream and root must be given");
  }
  if (options.upstream.empty()) {
    FB_ASSIGN_OR_RETURN(server->shared_.directory, Directory::Open(options.root));
  } else {
    FB_ASSIGN_OR_RETURN(server->shared_.upstream, UpstreamAddress(options.upstream));
  }
  server->shared_.limits = options.limits;
  server->shared_.plan = std::make_unique<Plan>(options.plan, Plan::Clock::now());
  server->shared_.stats = std::make_unique<Stats>(options.log_limit);
  FB_RETURN_IF_ERROR(server->Bind(options));
  FB_RETURN_IF_ERROR(server->StartLoops(options));
  return server;
}

Status Server::Bind(const ServerOptions& options) {
  FB_ASSIGN_OR_RETURN(const Address address, ResolveAddress(options.listen));
  FB_ASSIGN_OR_RETURN(listener_, Listen(address));
  FB_ASSIGN_OR_RETURN(address_, LocalAddress(listener_.get()));
  if (options.control.empty()) return {};
  FB_ASSIGN_OR_RETURN(const Address control, ResolveAddress(options.control));
  if (!control.is_loopback()) {
    return {Code::kInvalidArgument, "the control port must be on a loopback address"};
  }
  FB_ASSIGN_OR_RETURN(control_listener_, Listen(control));
  FB_ASSIGN_OR_RETURN(control_address_, LocalAddress(control_listener_.get()));
  return {};
}

Status Server::StartLoops(const ServerOptions& options) {
  for (size_t i = 0; i < std::max<size_t>(options.threads, 1); ++i) {
    FB_ASSIGN_OR_RETURN(auto loop, sys::EventLoop::Make(fmt::format("faults-{}", i)));
    shards_.push_back(std::make_unique<Shard>(std::move(loop), shared_));
    shards_.back()->Start();
  }
  main_loop().Post([this] { StartAccepting(); });
  return {};
}

Server::~Server() {
  if (shards_.empty()) return;
  // No new connection may reach a shard that has closed its own.
  std::promise<void> stopped;
  main_loop().Post([this, &stopped] {
    if (listener_.valid()) main_loop().Unwatch(listener_.get());
    listener_.Close();
    if (control_listener_.valid()) main_loop().Unwatch(control_listener_.get());
    control_listener_.Close();
    stopped.set_value();
  });
  stopped.get_future().wait();
  for (const auto& shard : shards_) shard->Stop();
}

std::string Server::DescribeJson() const {
  nlohmann::ordered_json json = {{"schema", "forebay.faults/1"},
                                 {"endpoint", "http://" + address_.ToString()},
                                 {"port", address_.port()}};
  if (control_listener_.valid()) {
    json["control"] = fmt::format("http://{}{}", control_address_.ToString(), kControlPath);
    json["control_port"] = control_address_.port();
  }
  return json.dump();
}

void Server::StartAccepting() {
  const Status watched =
      main_loop().Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
  if (!watched.ok()) fmt::print(stderr, "forebay-faults: {}\n", watched.ToString());
  if (!control_listener_.valid()) return;
  const Status control =
      main_loop().Watch(control_listener_.get(), EPOLLIN, [this](uint32_t) { AcceptControl(); });
  if (!control.ok()) fmt::print(stderr, "forebay-faults: {}\n", control.ToString());
}

void Server::Accept() {
  for (int i = 0; i < kAcceptsPerEvent; ++i) {
    Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.valid()) {
      TakeClient(std::move(client));
      continue;
    }
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return;
    // Out of descriptors: wait for some to close instead of spinning on the same event.
    main_loop().Unwatch(listener_.get());
    main_loop().PostAt(main_loop().Now() + kAcceptPause, [this] {
      if (!listener_.valid()) return;
      const Status again =
          main_loop().Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
      if (!again.ok()) fmt::print(stderr, "forebay-faults: {}\n", again.ToString());
    });
    return;
  }
}

void Server::TakeClient(Fd client) {
  if (shared_.plan->Refuses(Plan::Clock::now())) {
    SetResetOnClose(client.get());
    shared_.stats->ConnectionRefused();
    return;
  }
  Shard* shard = shards_[next_shard_++ % shards_.size()].get();
  // A task must own what it carries: a stopped loop destroys it without running it.
  shard->loop().Post([shard, fd = std::move(client)]() mutable { shard->Adopt(std::move(fd)); });
}

void Server::AcceptControl() {
  Fd client(::accept4(control_listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!client.valid()) return;
  ServeControl(main_loop(), std::move(client),
               [this](std::string_view method, std::string_view target, std::string_view body) {
                 return Control(method, target, body);
               });
}

void Server::RefuseFor(std::chrono::nanoseconds duration) {
  if (!listener_.valid()) return;  // closed already
  main_loop().Unwatch(listener_.get());
  listener_.Close();
  main_loop().PostAt(main_loop().Now() + duration, [this] {
    auto listener = Listen(address_);
    if (!listener.ok()) {
      fmt::print(stderr, "forebay-faults: {}\n", listener.status().ToString());
      return;
    }
    listener_ = *std::move(listener);
    const Status watched =
        main_loop().Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); });
    if (!watched.ok()) fmt::print(stderr, "forebay-faults: {}\n", watched.ToString());
  });
}

}  // namespace forebay::faults
