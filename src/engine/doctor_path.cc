// What lies between this machine and an endpoint, and who asks.
#include <fmt/core.h>

#include <cmath>
#include <ctime>
#include <future>
#include <utility>

#include "engine/doctor.h"
#include "net/proxy.h"
#include "net/routed_transport.h"
#include "store/s3/credentials_provider.h"
#include "store/s3/error.h"
#include "sys/address.h"
#include "sys/event_loop.h"

namespace forebay::engine {
namespace {

using Level = Finding::Level;
using Clock = std::chrono::steady_clock;

constexpr double kClockRefused = 300;  // S3 refuses 900 s, others less
constexpr double kClockOff = 5;
constexpr double kSlowLookup = 0.2;
constexpr double kFarConnect = 0.05;
constexpr auto kPatience = std::chrono::seconds(15);

double Seconds(Duration time) { return std::chrono::duration<double>(time).count(); }

// One exchange that nobody signs: whatever the answer, its head tells.
struct Probe : net::HttpHandler {
  Result<net::BodyTarget> OnHead(const net::HttpHead& answer) override {
    head = answer;
    return net::BodyTarget{.text = &text, .text_limit = 1 << 20};
  }
  void OnBody(ByteView) override {}
  void OnDone(Status result, const net::HttpTiming& times) override {
    status = std::move(result);
    timing = times;
    const auto finished = done;  // this object may be gone before set_value returns
    finished->set_value();
  }

  net::HttpHead head;
  std::string text;
  Status status;
  net::HttpTiming timing;
  double local_time_s = 0;  // in the middle of the exchange
  std::shared_ptr<std::promise<void>> done = std::make_shared<std::promise<void>>();
};

net::ProxyRules Proxies() {
  const auto environment = store::s3::Environment::Process();
  return net::ProxyRules([&](const std::string& name) { return environment.Text(name); });
}

std::string BareHost(const store::s3::Endpoint& endpoint) {
  const size_t colon = endpoint.host.rfind(':');
  const bool port = colon != std::string::npos && !endpoint.host.ends_with(']');
  return port ? endpoint.host.substr(0, colon) : endpoint.host;
}

double UnixTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Status RunProbe(const StoreOptions& options, const store::s3::AwsConfig& config,
                const store::s3::Endpoint& endpoint, Probe* probe) {
  FB_ASSIGN_OR_RETURN(const auto loop, sys::EventLoop::Make("fb-doctor"));
  FB_ASSIGN_OR_RETURN(auto transport, net::MakeTransport(*loop, {.ca_bundle = config.ca_bundle,
                                                                 .verify_tls = options.verify_ssl,
                                                                 .proxies = Proxies()}));
  net::HttpRequest request{.method = "HEAD", .url = endpoint.UrlOf(endpoint.PathOf(""), "")};
  request.deadline = Clock::now() + kPatience;
  request.headers.emplace_back("User-Agent", "forebay/" FOREBAY_VERSION);
  auto done = probe->done->get_future();
  const double begun = UnixTime();
  loop->Post([&] { transport->Start(std::move(request), probe); });
  done.wait();  // the deadline ends it
  probe->local_time_s = UnixTime() - Seconds(probe->timing.first_byte) / 2;
  if (probe->local_time_s < begun) probe->local_time_s = begun;
  std::promise<void> closed;
  loop->Post([&] { transport->Close([&] { closed.set_value(); }); });
  closed.get_future().wait();
  loop->Stop();
  return probe->status;
}

bool IsPrivate(const sys::IpAddress& ip) {
  if (ip.is_v6) return (ip.bytes[0] & 0xfe) == 0xfc;
  return ip.bytes[0] == 10 || (ip.bytes[0] == 172 && (ip.bytes[1] & 0xf0) == 16) ||
         (ip.bytes[0] == 192 && ip.bytes[1] == 168) || ip.bytes[0] == 127;
}

bool LookUp(const store::s3::Endpoint& endpoint, const OnFinding& on_finding) {
  const std::string host = BareHost(endpoint);
  if (sys::ParseIpAddress(host)) {
    on_finding({.check = "dns", .text = fmt::format("{} is an address", host)});
    return true;
  }
  const auto begun = Clock::now();
  const auto found = sys::LookUpHost(host);
  const double seconds = Seconds(Clock::now() - begun);
  if (!found.ok()) {
    on_finding({.check = "dns",
                .level = Level::kFailure,
                .text = found.status().ToString(),
                .fix = fmt::format("check the region, --endpoint-url and /etc/resolv.conf; "
                                   "`getent hosts {}` asks the same",
                                   host),
                .status = found.status()});
    return false;
  }
  const bool slow = seconds > kSlowLookup;
  on_finding({.check = "dns",
              .level = slow ? Level::kWarning : Level::kOk,
              .text = fmt::format("{}: {} addresses in {:.1f} ms ({}, ...)", host, found->size(),
                                  seconds * 1e3, found->front().ToString()),
              .fix = slow ? "a caching resolver on the node (systemd-resolved, nscd, NodeLocal "
                            "DNSCache) answers in under a millisecond"
                          : ""});
  return true;
}

Finding JudgePath(const store::s3::Endpoint& endpoint, const Probe& probe, bool proxy) {
  const double connect = Seconds(probe.timing.connect);
  const sys::IpAddress& ip = probe.timing.peer.ip;
  Finding finding{.check = "path"};
  finding.text = fmt::format("{} at {}, connected in {:.1f} ms, answered after {:.1f} ms",
                             endpoint.scheme, probe.timing.peer.ToString(), connect * 1e3,
                             Seconds(probe.timing.first_byte) * 1e3);
  if (proxy) {
    finding.level = Level::kNote;
    finding.text += ", through a proxy of the environment";
    finding.fix = "NO_PROXY with the endpoint's host makes requests go straight";
  } else if (connect > kFarConnect) {
    finding.level = Level::kWarning;
    finding.fix = "the endpoint is far away: run in its region";
  } else if (endpoint.is_aws && !IsPrivate(ip)) {
    finding.level = Level::kNote;
    finding.text += ", a public address";
    finding.fix =
        "inside a VPC see that its route table has a gateway endpoint for S3: it is free, and "
        "without it a NAT gateway bills every byte";
  }
  return finding;
}

const char* RegionSource(const StoreOptions& options) {
  const auto environment = store::s3::Environment::Process();
  if (!options.region.empty()) return "--region";
  if (!environment.Text("AWS_REGION").empty()) return "AWS_REGION";
  if (!environment.Text("AWS_DEFAULT_REGION").empty()) return "AWS_DEFAULT_REGION";
  return "the profile, or by default";
}

}  // namespace

Finding JudgeClock(double offset_s) {
  const double off = std::abs(offset_s);
  Finding finding{.check = "clock"};
  finding.text = off < 1.5 ? std::string("within a second of the server's")
                           : fmt::format("{:.0f} s {} the server's", off,
                                         offset_s > 0 ? "ahead of" : "behind");
  if (off > kClockOff) {
    finding.level = off > kClockRefused ? Level::kFailure : Level::kWarning;
    finding.fix =
        "timedatectl set-ntp true, or chronyc makestep: requests that are signed minutes "
        "off are refused";
  }
  return finding;
}

Finding JudgeRegion(const std::string& configured, const std::string& told) {
  if (told.empty()) {
    return {.check = "region", .text = fmt::format("{}; the server names none", configured)};
  }
  if (told == configured) return {.check = "region", .text = told + ", as the server says"};
  return {.check = "region",
          .level = Level::kWarning,
          .text = fmt::format("the bucket is in {}, requests are made for {}", told, configured),
          .fix = fmt::format("AWS_REGION={}: it saves every process a redirect; and reading across "
                             "regions is slow and billed by the byte",
                             told)};
}

bool LookAtSettings(const StoreOptions& options, const store::s3::AwsConfig& config,
                    const store::s3::Endpoint& endpoint, const OnFinding& on_finding) {
  std::string text = fmt::format("region {} ({}), {}://{}, {} attempts, retries {}", config.region,
                                 RegionSource(options), endpoint.scheme, endpoint.host,
                                 config.max_attempts, config.retry_mode);
  if (options.no_sign_request) text += ", unsigned";
  if (options.request_payer) text += ", the requester pays";
  const bool unverified = endpoint.scheme == "https" && !options.verify_ssl;
  on_finding({.check = "settings",
              .level = unverified ? Level::kWarning : Level::kOk,
              .text = text + (unverified ? ", certificates are not verified" : ""),
              .fix = unverified ? "--ca-bundle FILE instead of --no-verify-ssl" : ""});
  return true;
}

bool LookAtCredentials(const store::s3::AwsConfig& config, const OnFinding& on_finding) {
  if (config.credentials.anonymous) {
    on_finding({.check = "credentials", .text = "none, as asked for: requests are not signed"});
    return true;
  }
  store::s3::CredentialsPtr found;
  if (config.provider) {
    auto loop = sys::EventLoop::Make("fb-doctor");
    if (!loop.ok()) return false;
    auto answer = std::make_shared<std::promise<Result<store::s3::CredentialsPtr>>>();
    auto future = answer->get_future();
    store::s3::CredentialsClient client(**loop, config.provider);
    (*loop)->Post([&client, answer] {
      (void)client.Get(Clock::now() + kPatience,
                       [answer](Result<store::s3::CredentialsPtr> result) {
                         answer->set_value(std::move(result));
                       });
    });
    Result<store::s3::CredentialsPtr> got = future.get();
    (*loop)->Stop();
    if (!got.ok()) {
      on_finding({.check = "credentials",
                  .level = Level::kFailure,
                  .text = got.status().ToString(),
                  .fix = FixFor(Status(Code::kPermissionDenied, "")),
                  .status = got.status()});
      return false;
    }
    found = *std::move(got);
  } else {
    found = store::s3::StaticCredentials(config.credentials)->Current();
  }
  const std::string& id = found->credentials.access_key_id;
  std::string text = fmt::format(
      "from {}, key ..{}", found->source.empty() ? "the environment or profile" : found->source,
      id.size() > 8 ? id.substr(id.size() - 4) : "");
  Finding finding{.check = "credentials"};
  if (found->expires_unix_s > 0) {
    const auto left = static_cast<double>(found->expires_unix_s) - UnixTime();
    text += fmt::format(", for another {:.0f} min", left / 60);
    if (left < 0) {
      finding.level = Level::kFailure;
      finding.fix = "they have expired: sign in again, or let a role renew them";
    }
  }
  finding.text = std::move(text);
  on_finding(finding);
  return finding.level != Level::kFailure;
}

bool LookAtPath(const StoreOptions& options, const store::s3::AwsConfig& config,
                const store::s3::Endpoint& endpoint, const OnFinding& on_finding) {
  const bool proxy = Proxies().Applies(endpoint.scheme == "https", BareHost(endpoint));
  if (!proxy && !LookUp(endpoint, on_finding)) return false;
  Probe probe;
  const Status status = RunProbe(options, config, endpoint, &probe);
  // Any answer is one.
  if (probe.head.status == 0) {
    on_finding({.check = "path",
                .level = Level::kFailure,
                .text = status.ToString(),
                .fix = FixFor(status),
                .status = status});
    return false;
  }
  on_finding(JudgePath(endpoint, probe, proxy));
  const int64_t date = store::s3::ParseHttpDate(net::FindHeader(probe.head.headers, "date"));
  if (date > 0) {
    // A date has whole seconds: on the average half of one more has passed.
    on_finding(JudgeClock(probe.local_time_s - (static_cast<double>(date) + 0.5)));
  } else {
    on_finding({.check = "clock", .level = Level::kNote, .text = "the server tells no time"});
  }
  const std::string told(net::FindHeader(probe.head.headers, "x-amz-bucket-region"));
  on_finding(JudgeRegion(config.region, store::s3::IsRegionName(told) ? told : std::string()));
  return true;
}

}  // namespace forebay::engine
