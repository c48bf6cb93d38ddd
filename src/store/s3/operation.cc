#include "store/s3/operation.h"

#include <fmt/core.h>

#include <ctime>

#include "base/assert.h"
#include "store/s3/error.h"

namespace forebay::store::s3 {

Core::Core(S3StoreOptions given, Endpoint where, net::HttpTransport& http)
    : options(std::move(given)),
      endpoint(std::move(where)),
      root_uri("s3://" + options.bucket),
      transport(http),
      credentials(http.executor(), options.config.provider
                                       ? options.config.provider
                                       : StaticCredentials(options.config.credentials)),
      signer(endpoint.region, endpoint.service) {}

ObjectStore::OpId Core::Start(std::unique_ptr<Operation> operation) {
  FB_ASSERT(transport.executor().InThread());
  const ObjectStore::OpId id = ++last_id_;
  Operation& op = *(operations_[id] = std::move(operation));
  op.Launch(id);
  return id;
}

void Core::Cancel(ObjectStore::OpId id) {
  FB_ASSERT(transport.executor().InThread());
  const auto found = operations_.find(id);
  if (found == operations_.end()) return;
  Operation& op = *found->second;
  if (op.ticket_ != 0) {
    credentials.Cancel(std::exchange(op.ticket_, 0));
    op.FinishLater(Status(Code::kCancelled, "the request was cancelled"));
  } else {
    transport.Cancel(op.request_id_);
  }
}

std::unique_ptr<Operation> Core::Take(ObjectStore::OpId id) {
  auto node = operations_.extract(id);
  FB_ASSERT(!node.empty());
  return std::move(node.mapped());
}

void Operation::Launch(ObjectStore::OpId id) {
  id_ = id;
  Result<WireRequest> built = Build();
  if (!built.ok()) {
    FinishLater(built.status());
    return;
  }
  if (const CredentialsSnapshot* current = core_.credentials.Current()) {
    Send(*std::move(built), *current);
  } else {
    WaitForCredentials(*std::move(built));
  }
}

void Operation::WaitForCredentials(WireRequest wire) {
  ticket_ = core_.credentials.Get(
      request_options_.deadline,
      [this, wire = std::move(wire)](Result<CredentialsPtr> credentials) mutable {
        ticket_ = 0;
        if (credentials.ok()) {
          Send(std::move(wire), **credentials);
          return;
        }
        const std::unique_ptr<Operation> self = core_.Take(id_);
        self->Finish(std::move(credentials).status(), {});
      });
}

void Operation::FinishLater(Status status) {
  core_.transport.executor().Post([&core = core_, id = id_, status = std::move(status)]() mutable {
    const std::unique_ptr<Operation> self = core.Take(id);
    self->Finish(std::move(status), {});
  });
}

void Operation::Send(WireRequest wire, const CredentialsSnapshot& snapshot) {
  const S3StoreOptions& options = core_.options;
  const std::string path = core_.endpoint.PathOf(wire.key);
  const std::string query = EncodeQuery(wire.query);
  net::HttpRequest http{.method = std::move(wire.method),
                        .url = core_.endpoint.UrlOf(path, query),
                        .headers = std::move(wire.headers),
                        .body = std::move(wire.body),
                        .connect_timeout = options.connect_timeout,
                        .first_byte_timeout = options.first_byte_timeout,
                        .stall_timeout = options.stall_timeout,
                        .deadline = request_options_.deadline,
                        .body_hint = wire.body_hint};
  if (options.request_payer) http.headers.emplace_back("x-amz-request-payer", "requester");
  signed_at_ = options.unix_time_s ? options.unix_time_s() : ::time(nullptr);
  signed_epoch_ = snapshot.epoch;
  const std::string payload = http.body.empty() ? kEmptySha256 : HexSha256(http.body);
  core_.signer.Sign(snapshot.credentials,
                    {.method = http.method,
                     .host = core_.endpoint.host,
                     .path = path,
                     .query = query,
                     .payload_sha256 = payload,
                     .unix_time_s = signed_at_},
                    http.headers);
  http.headers.emplace_back("User-Agent", "forebay/" FOREBAY_VERSION);
  request_id_ = core_.transport.Start(std::move(http), this);
}

Result<net::BodyTarget> Operation::OnHead(const net::HttpHead& head) {
  head_ = head;
  detail_.http_status = head.status;
  detail_.request_id = net::FindHeader(head.headers, "x-amz-request-id");
  is_error_ = !Accepts(head.status);
  if (is_error_) return net::BodyTarget{.text = &text_, .text_limit = kErrorTextLimit};
  return OnAccepted(head);
}

void Operation::OnDone(Status status, const net::HttpTiming& timing) {
  const std::unique_ptr<Operation> self = core_.Take(id_);  // keeps this alive to the end
  // The status line has said it all: what happened to the rest of an error's body is no matter,
  // unless the caller gave up.
  const bool gave_up =
      status.code() == Code::kCancelled || status.code() == Code::kDeadlineExceeded;
  if (is_error_ && !gave_up) {
    if (Forgives(head_)) {
      status = Status();
    } else {
      status = ErrorFromResponse(head_, text_,
                                 {.region = core_.options.config.region,
                                  .endpoint = core_.options.config.endpoint_url,
                                  .unix_time_s = signed_at_});
    }
  }
  Finish(std::move(status), timing);
}

void Operation::Finish(Status status, const net::HttpTiming& timing) {
  if (status.ok()) {
    Succeed(timing);
    return;
  }
  Fail(std::move(status).WithContext(verb_).WithDetail(detail_));
}

Status Operation::ErrorInText() const {
  if (ParseErrorBody(text_).code.empty()) return {};
  // Without its own status the code decides; one that is unknown is worth another try.
  net::HttpHead as_error = head_;
  as_error.status = 500;
  return ErrorFromResponse(as_error, text_,
                           {.region = core_.options.config.region, .unix_time_s = signed_at_});
}

}  // namespace forebay::store::s3
