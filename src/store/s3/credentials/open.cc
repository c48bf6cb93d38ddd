// What fetches credentials, put together: a thread of its own, so that neither a slow service nor a
// token's file on a slow disk holds up a store.
#include <atomic>
#include <ctime>
#include <map>
#include <random>

#include "base/log.h"
#include "base/mutex.h"
#include "net/curl_transport.h"
#include "store/s3/credentials.h"
#include "store/s3/credentials/broker.h"
#include "store/s3/credentials/refreshing.h"
#include "store/s3/credentials/spec.h"
#include "store/s3/sigv4.h"
#include "sys/event_loop.h"
#include "sys/per_process.h"
#include "sys/process.h"
#include "sys/shared_file.h"
#include "sys/thread.h"

namespace forebay::store::s3 {
namespace {

constexpr size_t kMaxProgramOutput = 64 * 1024;

class Engine {
 public:
  static Result<std::shared_ptr<Engine>> Make(const CredentialSpec& spec,
                                              const Environment& environment,
                                              const net::CurlTransportOptions& http) {
    auto engine = std::make_shared<Engine>();
    FB_ASSIGN_OR_RETURN(engine->loop_, sys::EventLoop::Make("fb-creds"));
    FB_ASSIGN_OR_RETURN(engine->transport_, net::MakeCurlTransport(*engine->loop_, http));
    FB_ASSIGN_OR_RETURN(engine->programs_, sys::WorkPool::Make({.name = "fb-creds-run"}));
    engine->PutTogether(spec, environment);
    return engine;
  }

  // Also on the thread of a store, but never on its own. A program that runs is ended.
  ~Engine() {
    stop_ = true;
    if (programs_) programs_->Stop();
    if (loop_) loop_->Stop();
  }

  RefreshingProvider& provider() { return *provider_; }

 private:
  void PutTogether(const CredentialSpec& spec, const Environment& environment);
  void RunProgram(std::vector<std::string> argv, Duration limit, SourceContext::OnRun on_run);

  std::atomic<bool> stop_ = false;
  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> transport_;
  std::unique_ptr<sys::WorkPool> programs_;
  std::unique_ptr<ServiceCalls> calls_;
  std::unique_ptr<SourceContext> context_;
  std::unique_ptr<Broker> broker_;
  std::unique_ptr<RefreshingProvider> provider_;
};

void Engine::RunProgram(std::vector<std::string> argv, Duration limit,
                        SourceContext::OnRun on_run) {
  auto shared = std::make_shared<SourceContext::OnRun>(std::move(on_run));
  Task task = [this, argv = std::move(argv), limit, shared] {
    Result<sys::ProcessResult> result = sys::RunProcess(argv, limit, kMaxProgramOutput, stop_);
    loop_->Post([shared, result = std::move(result)]() mutable { (*shared)(std::move(result)); });
  };
  if (programs_->TrySubmit(task)) return;
  (*shared)(Status(Code::kCancelled, "closing"));
}

void Engine::PutTogether(const CredentialSpec& spec, const Environment& environment) {
  const uint64_t seed = (uint64_t{std::random_device{}()} << 32) | std::random_device{}();
  const auto unix_time_s = [] { return int64_t{::time(nullptr)}; };
  calls_ = std::make_unique<ServiceCalls>(*transport_, seed);
  context_ = std::make_unique<SourceContext>(SourceContext{
      .executor = *loop_,
      .http = *calls_,
      .environment = environment,
      .unix_time_s = unix_time_s,
      .run_program =
          [this](std::vector<std::string> argv, Duration limit, SourceContext::OnRun on_run) {
            RunProgram(std::move(argv), limit, std::move(on_run));
          },
      .write_file = sys::ReplacePrivateFile});
  std::optional<sys::SharedFile> file;
  const std::string name = "credentials-" + HexSha256({AsBytes(spec.Identity())}).substr(0, 32);
  Result<sys::SharedFile> shared = sys::SharedFile::Open(environment.Text("XDG_RUNTIME_DIR"), name);
  if (shared.ok()) {
    file = *std::move(shared);
  } else {
    Log(LogLevel::kWarn,
        "credentials are not shared with this user's other processes, each "
        "fetches its own: " +
            shared.status().ToString());
  }
  broker_ = std::make_unique<Broker>(*context_, MakeSource(spec, *context_), std::move(file));
  provider_ = std::make_unique<RefreshingProvider>(
      *loop_,
      [this](std::string rejected, OnFetched on_fetched) {
        broker_->Fetch(std::move(rejected), std::move(on_fetched));
      },
      RefreshOptions{.source = spec.name, .unix_time_s = unix_time_s, .seed = seed});
  provider_->Start();
}

struct Registry {
  Mutex mutex;
  std::map<std::string, std::weak_ptr<Engine>> engines FB_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static sys::PerProcess<Registry*> registry;
  return *registry.Get([] { return new Registry; });
}

}  // namespace

Status OpenCredentials(AwsConfig& config, const Environment& environment, bool verify_tls) {
  if (!config.fetched_by) return {};
  const std::string key =
      config.fetched_by->Identity() + "\n" + config.ca_bundle + (verify_tls ? "" : "\nunverified");
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  std::weak_ptr<Engine>& known = registry.engines[key];
  std::shared_ptr<Engine> engine = known.lock();
  if (!engine) {
    FB_ASSIGN_OR_RETURN(engine,
                        Engine::Make(*config.fetched_by, environment,
                                     {.ca_bundle = config.ca_bundle, .verify_tls = verify_tls}));
    known = engine;
  }
  CredentialsProvider* provider = &engine->provider();
  config.provider = std::shared_ptr<CredentialsProvider>(std::move(engine), provider);
  return {};
}

}  // namespace forebay::store::s3
