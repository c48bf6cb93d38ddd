// What the S3 servers of the tests have in common: each is one or more child processes in a folder
// of their own, on free loopback ports, and dies with the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "net/http.h"
#include "store/s3/s3_store.h"

namespace forebay::testing {

class TestServer {
 public:
  virtual ~TestServer();  // kills it and removes its files
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  // Options of a store for `bucket`, with this server's endpoint and credentials.
  store::s3::S3StoreOptions Options(const std::string& bucket) const;
  // Creates a bucket; it may exist.
  Status MakeBucket(const std::string& bucket) const;
  std::string endpoint() const { return endpoint_; }  // http://127.0.0.1:PORT

 protected:
  using Arguments = std::vector<std::string>;
  static constexpr char kAccessKey[] = "forebay-test";
  static constexpr char kSecretKey[] = "forebay-test-secret";

  TestServer() = default;
  Status MakeFolder();
  Status Write(const std::string& name, const std::string& text) const;
  // A child of this process, in the folder, that dies with it; its talk goes to LOG in the folder.
  Result<pid_t> Launch(const Arguments& arguments, const std::string& log,
                       const Arguments& environment = {});
  // One that has to end by itself, well. Says what it has said when it does not.
  Status Run(const Arguments& arguments, const std::string& log);
  // Until the server takes a signed PUT into `bucket`, which exists then.
  Status WaitReady(const std::string& bucket, std::chrono::seconds within) const;
  bool HasEnded() const;                           // one of the children
  std::string Log(const std::string& name) const;  // its last lines
  void Kill();
  // Ports that were free a moment ago, none of which the kernel gives to connections.
  static Result<std::vector<uint16_t>> FreePorts(size_t count);

  std::string folder_;
  std::string endpoint_;

 private:
  std::vector<pid_t> children_;
};

// One signed request, for what no store does; the HTTP status, or why there is none.
struct RawRequest {
  std::string method;
  std::string key;  // "": the bucket
  std::string query;
  net::HeaderList headers;
  std::string body;
};
Result<int> SendRaw(const store::s3::S3StoreOptions& options, const RawRequest& raw);

}  // namespace forebay::testing
