#include "testing/faults/raw_client.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

namespace forebay::faults {
namespace {

using End = RawReply::End;
constexpr std::chrono::seconds kPatience{10};

bool WaitFor(int fd, short events, std::chrono::milliseconds wait) {
  pollfd poll{.fd = fd, .events = events};
  return ::poll(&poll, 1, static_cast<int>(wait.count())) > 0;
}

double SecondsSince(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

}  // namespace

RawClient::RawClient(const Address& address) {
  auto fd = StartConnect(address);
  const bool decided = fd.ok() && WaitFor(fd->get(), POLLOUT, kPatience);
  const int error = decided ? SocketError(fd->get()) : 0;
  if (!decided || (error != 0 && error != ECONNRESET)) {
    ADD_FAILURE() << "no connection to " << address.ToString() << ": " << std::strerror(error);
    return;
  }
  was_reset_ = error == ECONNRESET;  // connected, and reset before we could look
  fd_ = *std::move(fd);
}

void RawClient::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const Transfer sent = Send(fd_.get(), bytes, false);
    if (sent.io == Io::kFailed) return;  // Read tells what became of the connection
    bytes.remove_prefix(sent.bytes);
    if (sent.io == Io::kWouldBlock && !WaitFor(fd_.get(), POLLOUT, kPatience)) return;
  }
  sent_at_ = std::chrono::steady_clock::now();
}

End RawClient::Fill(std::chrono::milliseconds wait) {
  if (was_reset_) return End::kReset;
  if (!WaitFor(fd_.get(), POLLIN, wait)) return End::kTimeout;
  std::array<char, 64 * 1024> buffer;
  const ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
  if (n == 0) return End::kFin;
  if (n < 0) return errno == ECONNRESET ? End::kReset : End::kBroken;
  in_.append(buffer.data(), static_cast<size_t>(n));
  return End::kComplete;
}

bool RawClient::HasBytesNow() {
  return !in_.empty() || WaitFor(fd_.get(), POLLIN, std::chrono::milliseconds(0));
}

End RawClient::Next(std::chrono::milliseconds wait) {
  const End end = in_.empty() ? Fill(wait) : End::kComplete;
  return end == End::kComplete ? End::kBroken : end;
}

RawReply RawClient::Read(std::string_view method) {
  RawReply reply;
  std::optional<size_t> head_end;
  while (!head_end) {
    const auto found = FindHeadEnd(in_);
    if (!found.ok()) {
      reply.end = End::kBroken;
      return reply;
    }
    head_end = *found;
    if (head_end) break;
    const bool first = in_.empty();
    if (reply.end = Fill(kPatience); reply.end != End::kComplete) return reply;
    if (first) reply.first_byte_s = SecondsSince(sent_at_);
  }
  reply.head_text = in_.substr(0, *head_end);
  in_.erase(0, *head_end);
  auto head = ParseResponseHead(reply.head_text, method);
  if (!head.ok()) {
    ADD_FAILURE() << head.status().ToString() << "\n" << reply.head_text;
    reply.end = End::kBroken;
    return reply;
  }
  reply.head = *std::move(head);
  BodyFramer framer(reply.head.framing, reply.head.content_length);
  while (!framer.done()) {
    if (in_.empty()) {
      reply.end = Fill(kPatience);
      if (reply.end == End::kFin && framer.framing() == Framing::kUntilClose) {
        reply.end = End::kComplete;
        break;
      }
      if (reply.end != End::kComplete) break;
    }
    // Chunks: payload and framing are told apart byte by byte.
    const uint64_t step_limit = framer.framing() == Framing::kChunked ? 1 : UINT64_MAX;
    const auto step = framer.Consume(in_, step_limit);
    if (!step.ok()) {
      reply.end = End::kBroken;
      break;
    }
    reply.body.append(in_, step->raw - step->payload, step->payload);
    in_.erase(0, step->raw);
    reply.body_marks.push_back(reply.body.size());
  }
  if (framer.done()) reply.end = End::kComplete;
  reply.total_s = SecondsSince(sent_at_);
  return reply;
}

std::string GetText(std::string_view target, std::string_view extra_headers) {
  return fmt::format("GET {} HTTP/1.1\r\nHost: faults.test\r\n{}\r\n", target, extra_headers);
}

RawReply RawClient::Get(std::string_view target, std::string_view extra_headers) {
  Write(GetText(target, extra_headers));
  return Read("GET");
}

}  // namespace forebay::faults
