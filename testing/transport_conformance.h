// What every HttpTransport must do, as tests. An implementation runs them with
//   INSTANTIATE_TEST_SUITE_P(Name, TransportConformance, ::testing::Values(TransportSubject{...}));
// in a file that is linked with transport_conformance.cc.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "net/http.h"
#include "sys/event_loop.h"
#include "testing/scripted_server.h"

namespace forebay::testing {

struct TransportSubject {
  std::string name;
  // With that CA bundle; "": the system's.
  std::function<std::unique_ptr<net::HttpTransport>(sys::EventLoop& loop, const std::string& ca)>
      make;
  bool tls = false;  // the servers' side
};

inline void PrintTo(const TransportSubject& subject, std::ostream* out) { *out << subject.name; }

class TransportConformance : public ::testing::TestWithParam<TransportSubject> {
 protected:
  void SetUp() override;
  void TearDown() override;
  std::unique_ptr<net::HttpTransport> Make();
  // A server that speaks as the subject is to be spoken to.
  static std::unique_ptr<ScriptedServer> Serve(ScriptedServer::Script script);

  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> transport_;
};

}  // namespace forebay::testing
