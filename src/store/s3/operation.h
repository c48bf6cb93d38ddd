// One S3 request from signing to its callback: the part common to all verbs. Private to s3/.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "net/http.h"
#include "store/object_store.h"
#include "store/s3/credentials_provider.h"
#include "store/s3/endpoint.h"
#include "store/s3/s3_store.h"
#include "store/s3/sigv4.h"

namespace forebay::store::s3 {

class Operation;

// What all operations of one store share.
class Core {
 public:
  Core(S3StoreOptions options, Endpoint endpoint, net::HttpTransport& transport);

  ObjectStore::OpId Start(std::unique_ptr<Operation> operation);
  void Cancel(ObjectStore::OpId id);
  // Takes the operation out, so that it may end.
  std::unique_ptr<Operation> Take(ObjectStore::OpId id);

  const S3StoreOptions options;
  const Endpoint endpoint;
  const std::string root_uri;
  net::HttpTransport& transport;
  CredentialsClient credentials;
  Signer signer;

 private:
  std::unordered_map<ObjectStore::OpId, std::unique_ptr<Operation>> operations_;
  ObjectStore::OpId last_id_ = 0;
};

// What goes to the wire, before it is signed.
struct WireRequest {
  std::string method;
  std::string key;  // "": the bucket
  Query query;
  net::HeaderList headers;
  std::vector<ByteView> body;
  uint64_t body_hint = 0;
};

class Operation : public net::HttpHandler {
 public:
  Operation(Core& core, std::string verb, const RequestOptions& options)
      : core_(core), verb_(std::move(verb)), request_options_(options) {}

 protected:
  // kInvalidArgument when the request can never be sent.
  virtual Result<WireRequest> Build() = 0;
  // The status is one of `Accepts`: where its body goes, or why it must not be used.
  virtual bool Accepts(int status) const { return status == 200; }
  virtual Result<net::BodyTarget> OnAccepted(const net::HttpHead& head) = 0;
  // Exactly one of the two runs, exactly once.
  virtual void Succeed(const net::HttpTiming& timing) = 0;
  virtual void Fail(Status status) = 0;
  // May turn an error answer into success (then Succeed runs).
  virtual bool Forgives(const net::HttpHead&) { return false; }

  Core& core_;
  net::HttpHead head_;
  std::string text_;    // the body of an answer that is no data
  ErrorDetail detail_;  // uri and range; filled by Build
  // Set by Succeed of verbs whose 200 may hold an error.
  Status ErrorInText() const;

 private:
  friend class Core;
  void Launch(ObjectStore::OpId id);
  // Signs with the credentials of the moment and sends.
  void Send(WireRequest wire, const CredentialsSnapshot& snapshot);
  void WaitForCredentials(WireRequest wire);
  void FinishLater(Status status);
  void Finish(Status status, const net::HttpTiming& timing);
  Result<net::BodyTarget> OnHead(const net::HttpHead& head) override;
  void OnBody(ByteView) override {}
  void OnDone(Status status, const net::HttpTiming& timing) override;

  const std::string verb_;
  const RequestOptions request_options_;
  ObjectStore::OpId id_ = 0;
  CredentialsClient::Ticket ticket_ = 0;  // while it waits for credentials
  net::HttpTransport::RequestId request_id_ = 0;
  int64_t signed_at_ = 0;
  uint64_t signed_epoch_ = 0;  // of the credentials; for CredentialsClient::Invalidate
  bool is_error_ = false;      // the answer's status is none of those accepted
};

inline constexpr size_t kErrorTextLimit = 256 * 1024;
inline constexpr size_t kListTextLimit = 16 * 1024 * 1024;

}  // namespace forebay::store::s3
