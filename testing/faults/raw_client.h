// A blocking HTTP client on a raw socket, for tests: it shows what a server really did to the
// bytes and to the connection. Every wait ends after ten seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "testing/faults/http_head.h"
#include "testing/faults/sockets.h"

namespace forebay::faults {

struct RawReply {
  enum class End : uint8_t { kComplete, kFin, kReset, kTimeout, kBroken };
  End end = End::kTimeout;
  ResponseHead head;
  std::string head_text;
  std::string body;                // payload
  std::vector<size_t> body_marks;  // payload bytes known after each receive
  double first_byte_s = 0;         // since the request was sent
  double total_s = 0;

  std::string Value(std::string_view name) const {
    const Field* field = FindField(head.fields, name);
    return field == nullptr ? std::string("(none)") : field->value;
  }
};

class RawClient {
 public:
  // Fails the test when that is not possible.
  explicit RawClient(const Address& address);

  void Write(std::string_view bytes);
  // One answer; interim ones are answers too.
  RawReply Read(std::string_view method = "GET");
  // What comes next on the connection: kFin, kReset, kTimeout (nothing within `wait`), or kBroken
  // when it is bytes.
  RawReply::End Next(std::chrono::milliseconds wait = std::chrono::seconds(10));
  bool HasBytesNow();
  RawReply Get(std::string_view target, std::string_view extra_headers = "");
  int fd() const { return fd_.get(); }

 private:
  // Appends to in_. kComplete: something came.
  RawReply::End Fill(std::chrono::milliseconds wait);

  Fd fd_;
  bool was_reset_ = false;
  std::string in_;
  std::chrono::steady_clock::time_point sent_at_;
};

std::string GetText(std::string_view target, std::string_view extra_headers = "");

}  // namespace forebay::faults
