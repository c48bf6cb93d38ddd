// HttpTransport of our own: HTTP/1.1 over epoll, made for many ranged GETs of one host.
//
// Bodies are read straight into the handler's target. A request on a connection that is there costs
// one send, the reads of its answer and the loop's wait for them; no timer, no registration and no
// allocation. Connections idle in a pool for each address of the host and are closed after 4 s. A
// host's addresses take turns, and what fails there is told to the process's HostCache.
//
// Nothing is decoded, followed or retried here, with one exception: a GET or HEAD whose reused
// connection breaks before any byte of an answer is sent again, once, on a new connection, because
// that is how a server's closing of an idle connection looks. Nothing else is ever sent twice.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "net/http.h"
#include "net/resolver.h"
#include "sys/event_loop.h"

namespace forebay::net {

struct LeanTransportOptions {
  std::string ca_bundle;  // PEM file; "": the system's
  bool verify_tls = true;
  std::shared_ptr<HostCache> hosts;  // null: the process's
};

// Any thread. Errors: kInvalidArgument for a CA bundle that cannot be read. As with
// MakeCurlTransport, the transport must be destroyed on the loop's thread after Close has
// completed, or on any thread after the loop has stopped (requests still in flight then end without
// OnDone); in both cases before the loop itself is.
Result<std::unique_ptr<HttpTransport>> MakeLeanTransport(sys::EventLoop& loop,
                                                         const LeanTransportOptions& options);

}  // namespace forebay::net
