#include "testing/faults/scripted_upstream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace forebay::faults {

ScriptedUpstream::ScriptedUpstream(Serve serve) {
  auto listener = Listen(*ResolveAddress("127.0.0.1:0"));
  if (!listener.ok()) {
    ADD_FAILURE() << listener.status().ToString();
    return;
  }
  listener_ = *std::move(listener);
  address_ = *LocalAddress(listener_.get());
  thread_ = std::thread([this, serve = std::move(serve)] { Run(serve); });
}

ScriptedUpstream::~ScriptedUpstream() {
  stopping_ = true;
  ::shutdown(listener_.get(), SHUT_RDWR);  // wakes the poll
  if (const int fd = client_; fd >= 0) ::shutdown(fd, SHUT_RDWR);
  if (thread_.joinable()) thread_.join();
}

std::string ScriptedUpstream::url() const { return "http://" + address_.ToString(); }

void ScriptedUpstream::Run(const Serve& serve) {
  for (int index = 0; !stopping_;) {
    pollfd poll{.fd = listener_.get(), .events = POLLIN};
    if (::poll(&poll, 1, -1) <= 0) continue;
    const Fd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!client.valid()) continue;
    client_ = client.get();
    if (!stopping_) serve(*this, client.get(), index++);
    client_ = -1;
  }
}

std::string ScriptedUpstream::ReadUntil(int fd, std::string_view end) {
  std::string text;
  while (text.find(end) == std::string::npos) {
    std::array<char, 4096> buffer;
    const ssize_t n = ::recv(fd, buffer.data(), buffer.size(), 0);
    if (n <= 0) return {};
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  const MutexLock lock(mutex_);
  requests_.push_back(text);
  noted_.notify_all();
  return text;
}

void ScriptedUpstream::Write(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
}

bool ScriptedUpstream::WaitForRequests(size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  MutexLock lock(mutex_);
  while (requests_.size() < count) {
    if (noted_.wait_until(mutex_, deadline) == std::cv_status::timeout) return false;
  }
  return true;
}

std::vector<std::string> ScriptedUpstream::requests() {
  const MutexLock lock(mutex_);
  return requests_;
}

}  // namespace forebay::faults
