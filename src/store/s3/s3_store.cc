#include "store/s3/s3_store.h"

#include <fmt/core.h>

#include <random>
#include <utility>

#include "store/s3/operation.h"
#include "store/s3/read.h"
#include "store/s3/session.h"
#include "store/s3/verbs.h"
#include "store/stack.h"

namespace forebay::store::s3 {
namespace {

class S3Store final : public ObjectStore {
 public:
  S3Store(const S3StoreOptions& options, const Endpoint& endpoint, net::HttpTransport& transport)
      : iam_(endpoint.directory_bucket
                 ? std::make_shared<Core>(options, endpoint, transport, SignsFor(options))
                 : nullptr),
        core_(options, endpoint, transport, iam_ ? MakeSessionProvider(iam_) : SignsFor(options),
              iam_ ? "x-amz-s3session-token" : "x-amz-security-token") {}

  OpId StartRead(ReadRequest request, Callback<ReadResult> on_done) override {
    return core_.Start(MakeRead(core_, std::move(request), std::move(on_done)));
  }
  OpId StartHead(HeadRequest request, Callback<ObjectInfo> on_done) override {
    return core_.Start(MakeHead(core_, std::move(request), std::move(on_done)));
  }
  OpId StartList(ListRequest request, Callback<ListPage> on_done) override {
    return core_.Start(MakeList(core_, std::move(request), std::move(on_done)));
  }
  OpId StartPut(PutRequest request, Callback<PutResult> on_done) override {
    return core_.Start(MakePut(core_, std::move(request), std::move(on_done)));
  }
  OpId StartCreateUpload(UploadRequest request, Callback<std::string> on_done) override {
    return core_.Start(MakeCreateUpload(core_, std::move(request), std::move(on_done)));
  }
  OpId StartPutPart(PartRequest request, Callback<PutResult> on_done) override {
    return core_.Start(MakePutPart(core_, std::move(request), std::move(on_done)));
  }
  OpId StartCompleteUpload(UploadRequest request, Callback<PutResult> on_done) override {
    return core_.Start(MakeCompleteUpload(core_, std::move(request), std::move(on_done)));
  }
  OpId StartAbortUpload(UploadRequest request, Callback<Unit> on_done) override {
    return core_.Start(MakeAbortUpload(core_, std::move(request), std::move(on_done)));
  }
  OpId StartDelete(HeadRequest request, Callback<Unit> on_done) override {
    return core_.Start(MakeDelete(core_, std::move(request), std::move(on_done)));
  }
  void Cancel(OpId op) override { core_.Cancel(op); }
  const std::string& root_uri() const override { return core_.root_uri; }
  // Others than Amazon's buckets may list in whatever order; directory buckets do.
  ListCut list_cut() const override {
    const Endpoint& endpoint = core_.endpoint();
    return endpoint.is_aws && !endpoint.directory_bucket ? ListCut::kKeys : ListCut::kFolders;
  }
  Executor& executor() override { return core_.transport.executor(); }

 private:
  static std::shared_ptr<CredentialsProvider> SignsFor(const S3StoreOptions& options) {
    return options.config.provider ? options.config.provider
                                   : StaticCredentials(options.config.credentials);
  }

  const std::shared_ptr<Core> iam_;  // signs the sessions of a directory bucket
  Core core_;
};

}  // namespace

EndpointOptions S3StoreOptions::EndpointFor(const std::string& region) const {
  return {.endpoint_url = config.endpoint_url,
          .region = region,
          .bucket = bucket,
          .style = config.addressing_style,
          .dualstack = config.use_dualstack,
          .fips = config.use_fips,
          .accelerate = config.use_accelerate};
}

Result<std::shared_ptr<ObjectStore>> MakeS3Store(S3StoreOptions options,
                                                 net::HttpTransport& transport) {
  const AwsConfig& config = options.config;
  FB_ASSIGN_OR_RETURN(const Endpoint endpoint, ResolveEndpoint(options.EndpointFor(config.region)));
  if (!config.provider && !config.credentials.anonymous &&
      config.credentials.access_key_id.empty()) {
    return Status(Code::kPermissionDenied,
                  fmt::format("no credentials were given for s3://{}", options.bucket));
  }
  return std::shared_ptr<ObjectStore>(std::make_shared<S3Store>(options, endpoint, transport));
}

Result<std::shared_ptr<MeterStore>> MakeS3Stack(const StoreOptions& options,
                                                const AwsConfig& config, const std::string& bucket,
                                                net::HttpTransport& transport, StackOptions stack) {
  FB_ASSIGN_OR_RETURN(
      std::shared_ptr<ObjectStore> store,
      MakeS3Store({.bucket = bucket, .config = config, .request_payer = options.request_payer},
                  transport));
  // Jitter has to differ between processes that start together.
  stack.retry = {.max_attempts = config.max_attempts,
                 .budget = std::chrono::milliseconds(options.request_timeout_ms),
                 .seed = std::random_device{}(),
                 .tokens = RetryTokens::OfProcess(config.endpoint_url + " " + bucket)};
  return MakeStack(std::move(store), std::move(stack));
}

}  // namespace forebay::store::s3
