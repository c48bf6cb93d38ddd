// The control port: small JSON requests, one per connection.
#pragma once

#include <functional>
#include <string_view>

#include "sys/event_loop.h"
#include "testing/faults/server.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {

using ControlHandler = std::function<Server::ControlReply(
    std::string_view method, std::string_view target, std::string_view body)>;

// Reads one request from `client`, answers it and closes. Loop thread only. `handler` is called on
// the loop, at most once, and must stay callable until the loop has stopped.
void ServeControl(sys::EventLoop& loop, Fd client, ControlHandler handler);

}  // namespace forebay::faults
