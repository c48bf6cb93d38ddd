#include "testing/s3_server.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace forebay::testing {
namespace {

constexpr std::chrono::seconds kReadyWithin{60};

enum Port { kMaster, kMasterGrpc, kVolume, kVolumeGrpc, kFiler, kFilerGrpc, kS3, kS3Grpc, kHttps };
constexpr size_t kPorts = kHttps + 1;

}  // namespace

Result<std::unique_ptr<S3Server>> S3Server::Start(const std::string& bucket, bool tls) {
  std::unique_ptr<S3Server> server(new S3Server);
  FB_RETURN_IF_ERROR(server->Prepare(tls));
  FB_RETURN_IF_ERROR(server->Spawn(tls));
  FB_RETURN_IF_ERROR(server->WaitReady(bucket, kReadyWithin));
  return server;
}

S3Server::~S3Server() {
  Kill();
  // It leaves its sockets in /tmp.
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/tmp", ignored)) {
    const std::string name = entry.path().filename().string();
    for (const uint16_t port : ports_) {
      if (name.starts_with("seaweedfs-") && name.ends_with(fmt::format("-grpc-{}.sock", port))) {
        std::filesystem::remove(entry.path(), ignored);
      }
    }
  }
}

Status S3Server::Prepare(bool tls) {
  FB_RETURN_IF_ERROR(MakeFolder());
  for (const char* name : {"log", "vol", "sock"}) {
    std::filesystem::create_directory(folder_ + "/" + name);
  }
  // A bucket takes one volume, not seven.
  FB_RETURN_IF_ERROR(Write("master.toml", "[master.volume_growth]\ncopy_1 = 1\n"));
  FB_RETURN_IF_ERROR(Write(
      "s3.json",
      fmt::format(R"({{"identities":[{{"name":"admin","credentials":[{{"accessKey":"{}",)"
                  R"("secretKey":"{}"}}],"actions":["Admin","Read","Write","List","Tagging"]}}]}})",
                  kAccessKey, kSecretKey)));
  if (tls) {
    FB_RETURN_IF_ERROR(
        Run({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-keyout", folder_ + "/key.pem", "-out", folder_ + "/cert.pem", "-days", "2",
             "-subj", "/CN=forebay test", "-addext",
             "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:*.s3.localhost"},
            "openssl.log"));
  }
  FB_ASSIGN_OR_RETURN(ports_, FreePorts(kPorts));
  endpoint_ = fmt::format("http://127.0.0.1:{}", ports_[kS3]);
  return {};
}

Status S3Server::Spawn(bool tls) {
  const char* named = std::getenv("FOREBAY_WEED");
  Arguments arguments{named != nullptr && *named != '\0' ? named : "weed"};
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
  FB_ASSIGN_OR_RETURN(pid_, Launch(arguments, "weed.out"));
  return {};
}

std::string S3Server::tls_endpoint() const {
  return fmt::format("https://127.0.0.1:{}", ports_[kHttps]);
}
std::string S3Server::virtual_endpoint() const {
  return fmt::format("http://s3.localhost:{}", ports_[kS3]);
}

}  // namespace forebay::testing
