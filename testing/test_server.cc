#include "testing/test_server.h"

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
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <random>
#include <thread>

#include "net/curl_transport.h"
#include "store/s3/endpoint.h"
#include "store/s3/sigv4.h"
#include "sys/event_loop.h"

namespace forebay::testing {
namespace {

// Below what the kernel gives to connections, which might take the port before the server does.
constexpr int kFirstPort = 10'000;
constexpr int kLastPort = 32'000;

// A socket bound to the port, or -1.
int Hold(int port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
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

}  // namespace

Result<int> SendRaw(const store::s3::S3StoreOptions& options, const RawRequest& raw) {
  FB_ASSIGN_OR_RETURN(auto loop, sys::EventLoop::Make("test-raw"));
  FB_ASSIGN_OR_RETURN(auto transport, net::MakeCurlTransport(*loop, {}));
  FB_ASSIGN_OR_RETURN(const auto endpoint,
                      store::s3::ResolveEndpoint(options.EndpointFor(options.config.region)));
  const std::string path = endpoint.PathOf(raw.key);
  net::HttpRequest request{
      .method = raw.method, .url = endpoint.UrlOf(path, raw.query), .headers = raw.headers};
  if (!raw.body.empty()) request.body = {AsBytes(raw.body)};
  const std::string payload = store::s3::HexSha256(request.body);
  store::s3::Signer signer(endpoint.region, "s3");
  signer.Sign(options.config.credentials,
              {.method = raw.method,
               .host = endpoint.host,
               .path = path,
               .query = raw.query,
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

TestServer::~TestServer() {
  Kill();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

store::s3::S3StoreOptions TestServer::Options(const std::string& bucket) const {
  return {.bucket = bucket,
          .config = {.credentials = {.access_key_id = kAccessKey, .secret_access_key = kSecretKey},
                     .region = "us-east-1",
                     .endpoint_url = endpoint_}};
}

Status TestServer::MakeBucket(const std::string& bucket) const {
  FB_ASSIGN_OR_RETURN(const int put, SendRaw(Options(bucket), {.method = "PUT"}));
  if (put == 200 || put == 409) return {};
  return Status(Code::kUnavailable, fmt::format("creating bucket {} answers {}", bucket, put));
}

Status TestServer::MakeFolder() {
  std::string pattern = "/tmp/forebay-s3-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return Status(Code::kInternal, fmt::format("mkdtemp: {}", std::strerror(errno)));
  }
  folder_ = pattern;
  return {};
}

Status TestServer::Write(const std::string& name, const std::string& text) const {
  std::ofstream out(folder_ + "/" + name, std::ios::binary);
  out << text;
  out.close();
  return out ? Status() : Status(Code::kInternal, fmt::format("cannot write {}", name));
}

Result<pid_t> TestServer::Launch(const Arguments& arguments, const std::string& log,
                                 const Arguments& environment) {
  const auto pointers = [](const Arguments& texts) {
    std::vector<char*> all;
    for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
    all.push_back(nullptr);
    return all;
  };
  Arguments variables = environment;
  variables.push_back("HOME=" + folder_);
  variables.emplace_back("PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
  const std::vector<char*> argv = pointers(arguments);
  const std::vector<char*> envp = pointers(variables);
  const std::string log_path = folder_ + "/" + log;
  const pid_t pid = ::fork();
  if (pid < 0) return Status(Code::kInternal, "fork fails");
  if (pid > 0) {
    children_.push_back(pid);
    return pid;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = ::open(log_path.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
  ::dup2(out, 1);
  ::dup2(out, 2);
  if (::chdir(folder_.c_str()) == 0) ::execvpe(argv[0], argv.data(), envp.data());
  ::_exit(127);
}

Status TestServer::Run(const Arguments& arguments, const std::string& log) {
  FB_ASSIGN_OR_RETURN(const pid_t pid, Launch(arguments, log));
  int exit_status = 0;
  const bool waited = ::waitpid(pid, &exit_status, 0) == pid;
  std::erase(children_, pid);
  if (waited && WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0) return {};
  const bool missing = WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 127;
  return Status(Code::kInternal,
                fmt::format("{} fails{}: {}", arguments[0],
                            missing ? " (run tools/setup.sh test)" : "", Log(log)));
}

Status TestServer::WaitReady(const std::string& bucket, std::chrono::seconds within) const {
  const auto deadline = std::chrono::steady_clock::now() + within;
  std::string last = "nothing yet";
  while (std::chrono::steady_clock::now() < deadline) {
    if (HasEnded()) {
      return Status(Code::kUnavailable,
                    "the S3 server ended by itself; has tools/setup.sh test been run?");
    }
    // Healthy is not yet ready: some servers make their first storage for the first PUT.
    const Status made = MakeBucket(bucket);
    if (made.ok()) {
      const Result<int> put =
          SendRaw(Options(bucket), {.method = "PUT", .key = "ready", .body = "ready"});
      if (put.ok() && *put == 200) return {};
      last = put.ok() ? fmt::format("PUT answers {}", *put) : put.status().ToString();
    } else {
      last = made.ToString();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return Status(Code::kDeadlineExceeded, fmt::format("the S3 server is not ready: {}", last));
}

bool TestServer::HasEnded() const {
  for (const pid_t pid : children_) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid != 0) {
      return true;
    }
  }
  return false;
}

std::string TestServer::Log(const std::string& name) const {
  std::ifstream in(folder_ + "/" + name, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return text.substr(text.size() - std::min<size_t>(text.size(), 600));
}

void TestServer::Kill() {
  for (const pid_t pid : children_) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  children_.clear();
}

Result<std::vector<uint16_t>> TestServer::FreePorts(size_t count) {
  std::random_device random;
  std::uniform_int_distribution<int> any(kFirstPort, kLastPort);
  std::vector<int> held;  // together, so that none comes twice
  std::vector<uint16_t> ports;
  for (int tries = 0; tries < 1000 && ports.size() < count; ++tries) {
    const int port = any(random);
    const int fd = Hold(port);
    if (fd < 0) continue;
    held.push_back(fd);
    ports.push_back(static_cast<uint16_t>(port));
  }
  for (const int fd : held) ::close(fd);
  if (ports.size() < count) return Status(Code::kUnavailable, "no free loopback port");
  return ports;
}

}  // namespace forebay::testing
