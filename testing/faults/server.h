// The fault server: listens, spreads connections over its loops, and answers the control port.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"
#include "testing/faults/plan.h"
#include "testing/faults/shard.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {

// Where the control port's requests live; refused on the port that clients use.
inline constexpr std::string_view kControlPath = "/_faults";

struct ServerOptions {
  std::string listen = "127.0.0.1:0";
  std::string control;   // "": none; must be a loopback address
  std::string upstream;  // "http://HOST:PORT"; exactly one of this and `root`
  std::string root;
  PlanSettings plan;
  Limits limits;
  size_t threads = 2;
  size_t log_limit = 65'536;  // records kept of the last requests
};

class Server {
 public:
  // Blocking (resolves names). After it returns, connections are accepted.
  static Result<std::unique_ptr<Server>> Start(const ServerOptions& options);
  // Closes every connection at once and joins the loops.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const Address& address() const { return address_; }
  const Address& control_address() const { return control_address_; }
  // {"schema":"forebay.faults/1","endpoint":URL,"port":..,"control":URL,"control_port":..}
  std::string DescribeJson() const;

  // One request to the control port; any thread.
  struct ControlReply {
    int status = 200;
    std::string json;
  };
  ControlReply Control(std::string_view method, std::string_view target, std::string_view body);

 private:
  class ControlConnection;
  Server() = default;
  Status Bind(const ServerOptions& options);
  Status StartLoops(const ServerOptions& options);
  sys::EventLoop& main_loop() { return shards_.front()->loop(); }
  // On the main loop from here.
  void StartAccepting();
  void Accept();
  void TakeClient(Fd client);
  void AcceptControl();
  void RefuseFor(std::chrono::nanoseconds duration);
  ControlReply ControlRefuse(std::string_view body);

  Shared shared_;
  Address address_;
  Address control_address_;
  Fd listener_;
  Fd control_listener_;
  size_t next_shard_ = 0;
  std::vector<std::unique_ptr<Shard>> shards_;  // last: their loops refer to the rest
};

}  // namespace forebay::faults
