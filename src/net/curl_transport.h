// HttpTransport over libcurl's multi interface, driven by an EventLoop through epoll.
//
// Bodies are copied once, from libcurl's receive buffer into the handler's target. Nothing is
// decoded, followed or retried here, with one exception that libcurl does not let us switch off: a
// request on a reused connection that dies before any byte of the answer is sent again on a fresh
// one. POST is never sent on a reused connection, so that this cannot repeat it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "net/http.h"
#include "sys/event_loop.h"

namespace forebay::net {

struct CurlTransportOptions {
  std::string ca_bundle;  // PEM file; "": the system's
  bool verify_tls = true;
  // Idle connections kept, at most. libcurl's own default shrinks with the handles in use and so
  // closes warm connections at every lull.
  size_t max_connections = 512;
};

// Any thread. The transport must be destroyed on the loop's thread after Close has completed, or on
// any thread after the loop has stopped (requests still in flight then end without OnDone); in both
// cases before the loop itself is.
Result<std::unique_ptr<HttpTransport>> MakeCurlTransport(sys::EventLoop& loop,
                                                         const CurlTransportOptions& options);

}  // namespace forebay::net
