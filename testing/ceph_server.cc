#include "testing/ceph_server.h"

#include <fmt/core.h>

#include <filesystem>

namespace forebay::testing {
namespace {

constexpr std::chrono::seconds kReadyWithin{90};
constexpr int kStartsMost = 3;
constexpr char kCluster[] = "3f0c1e1a-5d1b-4c63-9c56-0c5b7a0a8d01";
constexpr char kStore[] = "9b1f6a52-64b0-4b0b-8a3f-2c1d7e9f4a02";

}  // namespace

// On a busy machine a port that was free may be taken, and a monitor too late for its client: then
// another cluster, from nothing.
Result<std::unique_ptr<CephServer>> CephServer::Start(const std::string& bucket) {
  Result<std::unique_ptr<CephServer>> server = StartOnce(bucket);
  for (int again = 0; again < kStartsMost - 1 && !server.ok(); ++again) server = StartOnce(bucket);
  return server;
}

Result<std::unique_ptr<CephServer>> CephServer::StartOnce(const std::string& bucket) {
  std::unique_ptr<CephServer> server(new CephServer);
  FB_RETURN_IF_ERROR(server->MakeFolder());
  FB_RETURN_IF_ERROR(server->Configure());
  FB_RETURN_IF_ERROR(server->MakeKeys());
  FB_RETURN_IF_ERROR(server->StartCluster());
  FB_RETURN_IF_ERROR(server->StartGateway());
  Status ready = server->WaitReady(bucket, kReadyWithin);
  if (!ready.ok()) return std::move(ready).WithContext(server->Log("radosgw.out"));
  return server;
}

TestServer::Arguments CephServer::Program(const std::string& name,
                                          const Arguments& arguments) const {
  Arguments all{name, "-c", folder_ + "/ceph.conf"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

// Debian 13's own value of it is relative.
static std::string ClassFolder() {
  std::string found;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib")) {
    const std::filesystem::path folder = entry.path() / "rados-classes";
    if (std::filesystem::exists(folder)) found = folder.string();
  }
  return found.empty() ? "/usr/lib/rados-classes" : found;
}

Status CephServer::Configure() {
  FB_ASSIGN_OR_RETURN(const std::vector<uint16_t> ports, FreePorts(2));
  monitor_port_ = fmt::format("{}", ports[0]);
  gateway_port_ = fmt::format("{}", ports[1]);
  endpoint_ = "http://127.0.0.1:" + gateway_port_;
  // One copy of everything; the monitor does not gather changes for a second before it agrees with
  // itself; the store's file is sparse. A monitor whose disk
  // is nearly full ends without a word to its client.
  return Write("ceph.conf",
               fmt::format(R"([global]
fsid = {cluster}
mon host = v2:127.0.0.1:{monitor}
public network = 127.0.0.0/8
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
osd pool default size = 1
osd pool default min size = 1
mon allow pool size one = true
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
mon max pg per osd = 2000
mon data avail crit = 0
mon data avail warn = 0
osd crush chooseleaf type = 0
osd class dir = {classes}
osd objectstore = bluestore
paxos propose interval = 0.02
paxos min wait = 0.01
ms bind ipv6 = false
ms bind port min = 10000
ms bind port max = 32000
[mon.a]
mon data = {folder}/mon
[osd.0]
osd data = {folder}/osd
bluestore block size = 4294967296
bluestore block create = true
[client.gateway]
rgw frontends = beast endpoint=127.0.0.1:{gateway} tcp_nodelay=1
rgw dns name = s3.localhost
rgw thread pool size = 32
)",
                           fmt::arg("cluster", kCluster), fmt::arg("monitor", monitor_port_),
                           fmt::arg("folder", folder_), fmt::arg("gateway", gateway_port_),
                           fmt::arg("classes", ClassFolder())));
}

Status CephServer::MakeKeys() {
  struct Key {
    const char* name;
    Arguments grants;
  };
  const std::vector<Key> keys{
      {"mon.", {"--cap", "mon", "allow *"}},
      {"client.admin", {"--cap", "mon", "allow *", "--cap", "osd", "allow *"}},
      {"osd.0", {"--cap", "mon", "allow profile osd", "--cap", "osd", "allow *"}},
      {"client.gateway", {"--cap", "mon", "allow rwx", "--cap", "osd", "allow rwx"}}};
  for (const Key& key : keys) {
    Arguments arguments{"ceph-authtool", folder_ + "/keyring", "--gen-key", "-n", key.name};
    if (&key == keys.data()) arguments.emplace_back("--create-keyring");
    arguments.insert(arguments.end(), key.grants.begin(), key.grants.end());
    FB_RETURN_IF_ERROR(Run(arguments, "keys.out"));
  }
  return {};
}

Status CephServer::StartCluster() {
  const std::string map = folder_ + "/monmap";
  std::filesystem::create_directory(folder_ + "/mon");
  std::filesystem::create_directory(folder_ + "/osd");
  FB_RETURN_IF_ERROR(Run({"monmaptool", "--create", "--fsid", kCluster, "--addv", "a",
                          fmt::format("[v2:127.0.0.1:{}]", monitor_port_), map},
                         "mon.out"));
  FB_RETURN_IF_ERROR(Run(Program("ceph-mon", {"--mkfs", "-i", "a", "--monmap", map, "--keyring",
                                              folder_ + "/keyring"}),
                         "mon.out"));
  FB_RETURN_IF_ERROR(Launch(Program("ceph-mon", {"-i", "a", "-f"}), "mon.out").status());
  FB_RETURN_IF_ERROR(
      Run(Program("ceph", {"--connect-timeout", "30", "osd", "new", kStore}), "osd.out"));
  FB_RETURN_IF_ERROR(
      Run(Program("ceph-osd", {"-i", "0", "--mkfs", "--osd-uuid", kStore}), "osd.out"));
  return Launch(Program("ceph-osd", {"-i", "0", "-f"}), "osd.out").status();
}

// Both make the gateway's pools, whoever comes first.
Status CephServer::StartGateway() {
  FB_RETURN_IF_ERROR(
      Launch(Program("radosgw", {"-n", "client.gateway", "-f"}), "radosgw.out").status());
  return Run(Program("radosgw-admin", {"user", "create", "--uid=test", "--display-name=test",
                                       fmt::format("--access-key={}", kAccessKey),
                                       fmt::format("--secret-key={}", kSecretKey)}),
             "user.out");
}

}  // namespace forebay::testing
