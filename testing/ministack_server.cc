#include "testing/ministack_server.h"

#include <fmt/core.h>

#include <cstdlib>

namespace forebay::testing {

Result<std::unique_ptr<MinistackServer>> MinistackServer::Start(const std::string& bucket) {
  std::unique_ptr<MinistackServer> server(new MinistackServer);
  FB_RETURN_IF_ERROR(server->MakeFolder());
  FB_ASSIGN_OR_RETURN(const std::vector<uint16_t> ports, FreePorts(1));
  server->endpoint_ = fmt::format("http://127.0.0.1:{}", ports[0]);
  const char* named = std::getenv("FOREBAY_MINISTACK");
  const std::string program = named != nullptr && *named != '\0' ? named : "ministack";
  FB_RETURN_IF_ERROR(server
                         ->Launch({program}, "ministack.out",
                                  {"BIND_HOST=127.0.0.1", fmt::format("GATEWAY_PORT={}", ports[0])})
                         .status());
  Status ready = server->WaitReady(bucket, std::chrono::seconds(30));
  if (!ready.ok()) return std::move(ready).WithContext(server->Log("ministack.out"));
  return server;
}

}  // namespace forebay::testing
