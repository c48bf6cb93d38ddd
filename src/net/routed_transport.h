// The transport of S3's data: our own, and libcurl's for what has to go through a proxy.
#pragma once

#include <memory>
#include <string>

#include "net/http.h"
#include "net/proxy.h"
#include "net/resolver.h"
#include "sys/event_loop.h"

namespace forebay::net {

struct TransportOptions {
  std::string ca_bundle;  // PEM file; "": the system's
  bool verify_tls = true;
  ProxyRules proxies;
  std::shared_ptr<HostCache> hosts;  // null: the process's
};

// Destroyed as MakeLeanTransport's. Errors: kInvalidArgument for a CA bundle that cannot be read.
Result<std::unique_ptr<HttpTransport>> MakeTransport(sys::EventLoop& loop,
                                                     const TransportOptions& options);

}  // namespace forebay::net
