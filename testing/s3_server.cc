#include "testing/s3_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "net/curl_transport.h"
#include "store/s3/endpoint.h"
#include "store/s3/sigv4.h"
#include "store/sync_store.h"
#include "sys/event_loop.h"

namespace forebay::testing {
namespace {

constexpr auto kReadyWithin = std::chrono::seconds(60);
constexpr char kAccessKey[] = "forebay-test";
constexpr char kSecretKey[] = "forebay-test-secret";

enum Port { kMaster, kMasterGrpc, kVolume, kVolumeGrpc, kFiler, kFilerGrpc, kS3, kS3Grpc, kHttps };

// Ports that were free a moment ago: all are held open together so that none comes twice.
Status FindPorts(std::array<uint16_t, 9>& ports) {
  std::vector<int> held;
  Status status;
  for (uint16_t& port : ports) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    if (fd < 0 || ::bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      status = Status(Code::kUnavailable, "no free loopback port");
    }
    if (fd >= 0) held.push_back(fd);
    port = ntohs(address.sin_port);
  }
  for (const int fd : held) ::close(fd);
  return status;
}

// Runs `arguments` as a child that dies with this process; its talk goes to `log`.
pid_t Launch(const std::vector<std::string>& arguments, const std::string& folder,
             const std::string& log) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string home = "HOME=" + folder;
  std::array<char*, 3> environment{const_cast<char*>(home.c_str()),
                                   const_cast<char*>("PATH=/usr/bin:/bin"), nullptr};
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (::chdir(folder.c_str()) == 0) ::execvpe(argv[0], argv.data(), environment.data());
  ::_exit(127);
}

Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  return out ? Status() : Status(Code::kInternal, fmt::format("cannot write {}", path));
}

Status MakeCertificate(const std::string& folder) {
  const pid_t pid =
      Launch({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
              "-nodes", "-keyout", folder + "/key.pem", "-out", folder + "/cert.pem", "-days", "2",
              "-subj", "/CN=forebay test", "-addext",
              "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:*.s3.localhost"},
             folder, folder + "/openssl.log");
  int exit_status = 0;
  if (pid < 0 || ::waitpid(pid, &exit_status, 0) != pid || exit_status != 0) {
    return Status(Code::kInternal, "openssl makes no certificate");
  }
  return {};
}

struct StatusOnly : net::HttpHandler {
  Result<net::BodyTarget> OnHead(const net::HttpHead& head) override {
    status_code = head.status;
    return net::BodyTarget{.text = &text, .text_limit = 1 << 20};
  }
  void OnBody(ByteView) override {}
  void OnDone(Status status, const net::HttpTiming&) override { done.set_value(std::move(status)); }
  int status_code = 0;
  std::string text;
  std::promise<Status> done;
};

// One signed PUT, bucket or object; the HTTP status, or why there is none.
Result<int> SignedPut(const store::s3::S3StoreOptions& options, const std::string& key,
                      std::string_view body) {
  FB_ASSIGN_OR_RETURN(auto loop, sys::EventLoop::Make("test-put"));
  FB_ASSIGN_OR_RETURN(auto transport, net::MakeCurlTransport(*loop, {}));
  FB_ASSIGN_OR_RETURN(const auto endpoint,
                      store::s3::ResolveEndpoint({.endpoint_url = options.config.endpoint_url,
                                                  .region = options.config.region,
                                                  .bucket = options.bucket,
                                                  .style = "path"}));
  const std::string path = endpoint.PathOf(key);
  net::HttpRequest request{.method = "PUT", .url = endpoint.UrlOf(path, "")};
  if (!body.empty()) request.body = {AsBytes(body)};
  const std::string payload = store::s3::HexSha256(request.body);
  store::s3::Signer signer(options.config.region, "s3");
  signer.Sign(options.config.credentials,
              {.method = "PUT",
               .host = endpoint.host,
               .path = path,
               .payload_sha256 = payload,
               .unix_time_s = ::time(nullptr)},
              request.headers);
  StatusOnly handler;
  loop->Post([&] { transport->Start(std::move(request), &handler); });
  const Status status = handler.done.get_future().get();
  loop->Stop();
  if (!status.ok()) return status;
  return handler.status_code;
}

}  // namespace

Result<std::unique_ptr<S3Server>> S3Server::Start(const std::string& bucket, bool tls) {
  std::unique_ptr<S3Server> server(new S3Server);
  FB_RETURN_IF_ERROR(server->Prepare(tls));
  FB_RETURN_IF_ERROR(server->Spawn(tls));
  FB_RETURN_IF_ERROR(server->WaitReady(bucket));
  return server;
}

S3Server::~S3Server() {
  Kill();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  for (const auto& entry : std::filesystem::directory_iterator("/tmp", ignored)) {
    const std::string name = entry.path().filename().string();
    for (const uint16_t port : ports_) {
      if (name.starts_with("seaweedfs-") && name.ends_with(fmt::format("-grpc-{}.sock", port))) {
        std::filesystem::remove(entry.path(), ignored);
      }
    }
  }
}

void S3Server::Kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Status S3Server::Prepare(bool tls) {
  std::string pattern = "/tmp/forebay-s3-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return Status(Code::kInternal, fmt::format("mkdtemp: {}", std::strerror(errno)));
  }
  folder_ = pattern;
  for (const char* name : {"log", "vol", "sock"}) {
    std::filesystem::create_directory(folder_ + "/" + name);
  }
  // A bucket takes one volume, not seven.
  FB_RETURN_IF_ERROR(WriteFile(folder_ + "/master.toml", "[master.volume_growth]\ncopy_1 = 1\n"));
  FB_RETURN_IF_ERROR(WriteFile(
      folder_ + "/s3.json",
      fmt::format(R"({{"identities":[{{"name":"admin","credentials":[{{"accessKey":"{}",)"
                  R"("secretKey":"{}"}}],"actions":["Admin","Read","Write","List","Tagging"]}}]}})",
                  kAccessKey, kSecretKey)));
  if (tls) FB_RETURN_IF_ERROR(MakeCertificate(folder_));
  return FindPorts(ports_);
}

Status S3Server::Spawn(bool tls) {
  const char* named = std::getenv("FOREBAY_WEED");
  std::vector<std::string> arguments{named != nullptr && *named != '\0' ? named : "weed"};
  const auto add = [&arguments](std::string argument) { arguments.push_back(std::move(argument)); };
  add("-logdir=" + folder_ + "/log");
  for (const char* flag :
       {"-v=0", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-master.telemetry=false",
        "-master.electionTimeout=1s", "-master.resumeState=false", "-master.volumeSizeLimitMB=64",
        "-master.volumePreallocate=false", "-volume.max=64", "-volume.preStopSeconds=1", "-filer",
        "-s3", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false",
        "-s3.allowDeleteBucketNotEmpty=false", "-s3.domainName=s3.localhost"}) {
    add(flag);
  }
  add("-dir=" + folder_ + "/vol");
  add("-s3.config=" + folder_ + "/s3.json");
  add("-filer.localSocket=" + folder_ + "/sock/filer.sock");
  add("-s3.localSocket=" + folder_ + "/sock/s3.sock");
  const std::array names{"master.port", "master.port.grpc", "volume.port", "volume.port.grpc",
                         "filer.port",  "filer.port.grpc",  "s3.port",     "s3.port.grpc"};
  for (size_t i = 0; i < names.size(); ++i) add(fmt::format("-{}={}", names[i], ports_[i]));
  if (tls) {
    add(fmt::format("-s3.port.https={}", ports_[kHttps]));
    add("-s3.cert.file=" + folder_ + "/cert.pem");
    add("-s3.key.file=" + folder_ + "/key.pem");
  }
  pid_ = Launch(arguments, folder_, folder_ + "/weed.out");
  return pid_ > 0 ? Status() : Status(Code::kInternal, "fork fails");
}

Status S3Server::WaitReady(const std::string& bucket) const {
  const auto deadline = std::chrono::steady_clock::now() + kReadyWithin;
  std::string last = "nothing yet";
  while (std::chrono::steady_clock::now() < deadline) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
      return Status(Code::kUnavailable, "the S3 server ended by itself; is FOREBAY_WEED set?");
    }
    // Healthy is not yet ready: the first volume is made by the first PUT.
    const Status made = MakeBucket(bucket);
    if (made.ok()) {
      const Result<int> put = SignedPut(Options(bucket), "ready", "ready");
      if (put.ok() && *put == 200) return {};
      last = put.ok() ? fmt::format("PUT answers {}", *put) : put.status().ToString();
    } else {
      last = made.ToString();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Status(Code::kDeadlineExceeded, fmt::format("the S3 server is not ready: {}", last));
}

Status S3Server::MakeBucket(const std::string& bucket) const {
  const Result<int> put = SignedPut(Options(bucket), "", "");
  if (!put.ok()) return put.status();
  if (*put == 200 || *put == 409) return {};
  return Status(Code::kUnavailable, fmt::format("creating bucket {} answers {}", bucket, *put));
}

store::s3::S3StoreOptions S3Server::Options(const std::string& bucket) const {
  return {.bucket = bucket,
          .config = {.credentials = {.access_key_id = kAccessKey, .secret_access_key = kSecretKey},
                     .region = "us-east-1",
                     .endpoint_url = endpoint()}};
}

std::string S3Server::endpoint() const { return fmt::format("http://127.0.0.1:{}", ports_[kS3]); }
std::string S3Server::tls_endpoint() const {
  return fmt::format("https://127.0.0.1:{}", ports_[kHttps]);
}
std::string S3Server::virtual_endpoint() const {
  return fmt::format("http://s3.localhost:{}", ports_[kS3]);
}

}  // namespace forebay::testing
