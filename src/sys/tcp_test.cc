#include "sys/tcp.h"

#include <gtest/gtest.h>

#include <array>

namespace forebay::sys {
namespace {

TEST(SocketAddress, is_written_as_in_a_url) {
  EXPECT_EQ((SocketAddress{*ParseIpAddress("127.0.0.1"), 80}.ToString()), "127.0.0.1:80");
  EXPECT_EQ((SocketAddress{*ParseIpAddress("fd00::7"), 443}.ToString()), "[fd00::7]:443");
  EXPECT_FALSE(SocketAddress().valid());
}

TEST(Tcp, what_is_sent_to_nobody_is_an_error_and_never_a_signal) {
  const auto socket = StartConnect({*ParseIpAddress("127.0.0.1"), 1});
  if (!socket.ok()) {  // refused at once
    EXPECT_EQ(socket.code(), Code::kUnavailable);
    return;
  }
  EXPECT_NE(PendingError(*socket), 0);
  const std::array<ByteView, 2> pieces{AsBytes("a"), AsBytes("b")};
  EXPECT_FALSE(Send(*socket, pieces).ok());
}

}  // namespace
}  // namespace forebay::sys
