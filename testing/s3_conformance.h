// What every S3 server must do for our client, beside StoreConformance. A server is one file: how
// it starts, and where it deviates.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "testing/store_conformance.h"
#include "testing/test_server.h"

namespace forebay::testing {

struct S3Subject {
  std::string name;
  // Called once; the server lives as long as the test program.
  std::function<Result<std::unique_ptr<TestServer>>(const std::string& bucket)> start;

  // Deviations.
  StoreSubject store;  // its name and `make` are filled in by StoreOn
  bool checks_signatures = true;
  bool versions = true;
  // An upload that is completed twice is the second time not found; else it is done again.
  bool completes_once = true;
  // Stores and checks a CRC-64/NVME; else it only has to leave the object alone.
  bool checks_checksums = true;
  // "http://s3.localhost:PORT"; null: no virtual-host style.
  std::function<std::string(const TestServer&)> virtual_endpoint;
};

// `start` of a server class that has Start(bucket).
template <class Server>
Result<std::unique_ptr<TestServer>> StartServer(const std::string& bucket) {
  FB_ASSIGN_OR_RETURN(std::unique_ptr<Server> server, Server::Start(bucket));
  return std::unique_ptr<TestServer>(std::move(server));
}

// The whole S3 stack (meter, retry, limit, S3, libcurl) on the subject's server.
StoreSubject StoreOn(const S3Subject& subject);

inline std::string S3SubjectName(const ::testing::TestParamInfo<S3Subject>& subject) {
  return subject.param.name;
}
inline void PrintTo(const S3Subject& subject, std::ostream* out) { *out << subject.name; }

class S3Conformance : public ::testing::TestWithParam<S3Subject> {};

}  // namespace forebay::testing

// INSTANTIATE_S3_CONFORMANCE(CephGateway, Subject()): both suites.
#define INSTANTIATE_S3_CONFORMANCE(NAME, SUBJECT)                                       \
  INSTANTIATE_TEST_SUITE_P(NAME, StoreConformance, ::testing::Values(StoreOn(SUBJECT)), \
                           SubjectName);                                                \
  INSTANTIATE_TEST_SUITE_P(NAME, S3Conformance, ::testing::Values(SUBJECT), S3SubjectName)
