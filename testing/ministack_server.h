// ministack (PyPI): AWS's services in Python, the widest S3 API of the three; checks no signature.
// The program is $FOREBAY_MINISTACK or `ministack` in PATH.
#pragma once

#include <memory>
#include <string>

#include "testing/test_server.h"

namespace forebay::testing {

class MinistackServer final : public TestServer {
 public:
  // Waits until it takes a PUT into `bucket`, which exists then (30 s at most).
  static Result<std::unique_ptr<MinistackServer>> Start(const std::string& bucket);

 private:
  MinistackServer() = default;
};

}  // namespace forebay::testing
