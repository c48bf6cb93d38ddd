// CPU, memory and throughput of the HTTP transports under the S3 store's signed reads, beside a raw
// epoll loop.
//
//   http_bench PLAIN_URL TLS_URL CA_BUNDLE BUCKET [ROUNDS] [SHAPE]     (bench/http_bench.py starts
//   it with nginx; the server offers TLS_AES_128_GCM_SHA256 alone)
//
// In turns: the floor, our own transport, libcurl. Every request is signed, every body's CRC-32C is
// computed as it arrives and checked, buffers are used again. CPU is that of the thread that does
// all of it; connections are made before. Targets, against the floor of the same round: 8 MiB
// ranges at most 1.10 of its CPU in the clear and 1.05 over TLS; 64 KiB ranges at most 1.15 of its
// CPU per request; throughput at least 0.95 of it. Then the memory of 5,000 idle connections: at
// most 20 KiB each in the clear, 40 KiB over TLS.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "bench/http_floor.h"
#include "net/curl_transport.h"
#include "net/lean/lean_transport.h"
#include "store/s3/s3_store.h"
#include "sys/event_loop.h"

namespace forebay::bench {
namespace {

// Computes the CRC of each body as it arrives: a transport around another.
class CrcTransport final : public net::HttpTransport {
 public:
  explicit CrcTransport(net::HttpTransport& inner) : inner_(inner) {}

  RequestId Start(net::HttpRequest request, net::HttpHandler* handler) override {
    if (spare_.empty()) spare_.push_back(std::make_unique<Check>(*this));
    Check* check = spare_.back().release();
    spare_.pop_back();
    check->Begin(handler);
    return inner_.Start(std::move(request), check);
  }
  void Cancel(RequestId id) override { inner_.Cancel(id); }
  void Close(Task on_closed) override { inner_.Close(std::move(on_closed)); }
  Executor& executor() override { return inner_.executor(); }
  // Of the exchange whose OnDone runs.
  uint32_t crc() const { return crc_; }

 private:
  class Check final : public net::HttpHandler {
   public:
    explicit Check(CrcTransport& owner) : owner_(owner) {}
    void Begin(net::HttpHandler* handler) {
      handler_ = handler;
      crc_ = 0;
    }
    void Expect() const override { handler_->Expect(); }
    Result<net::BodyTarget> OnHead(const net::HttpHead& head) override {
      return handler_->OnHead(head);
    }
    void OnBody(ByteView piece) override {
      crc_ = Crc32c(crc_, piece);
      handler_->OnBody(piece);
    }
    void OnDone(Status status, const net::HttpTiming& timing) override {
      owner_.crc_ = crc_;
      net::HttpHandler* const handler = handler_;
      owner_.spare_.emplace_back(this);
      handler->OnDone(std::move(status), timing);
    }

   private:
    CrcTransport& owner_;
    net::HttpHandler* handler_ = nullptr;
    uint32_t crc_ = 0;
  };

  net::HttpTransport& inner_;
  std::vector<std::unique_ptr<Check>> spare_;
  uint32_t crc_ = 0;
};

// One transport with one store, whose loop's thread does all the work.
class Client {
 public:
  using MakeTransport = std::function<std::unique_ptr<net::HttpTransport>(sys::EventLoop& loop,
                                                                          const Server& server)>;
  Client(const MakeTransport& make, const Server& server)
      : loop_(*sys::EventLoop::Make("http-bench")), inner_(make(*loop_, server)), crc_(*inner_) {
    auto store = store::s3::MakeS3Store(
        {.bucket = server.bucket,
         .config = {.credentials = {.access_key_id = kAccessKey, .secret_access_key = kSecretKey},
                    .region = "us-east-1",
                    .endpoint_url = server.endpoint}},
        crc_);
    if (!store.ok()) Die(store.status().ToString());
    store_ = *std::move(store);
  }
  ~Client() {
    loop_->Stop();
    store_.reset();
  }

  Measured Run(const Shape& shape, std::span<std::byte> buffers,
               const std::vector<uint32_t>& crcs) {
    // Connections are made, and all is warm, before the clock starts.
    Pass({.name = "",
          .object = "64K",
          .bytes = 64 * 1024,
          .in_flight = shape.in_flight,
          .requests = 2 * shape.in_flight},
         buffers, nullptr);
    return Pass(shape, buffers, &crcs);
  }

 private:
  struct Work {
    const Shape& shape;
    std::span<std::byte> buffers;
    const std::vector<uint32_t>* crcs;
    size_t sent = 0;
    size_t done = 0;
    Measured before;
    std::promise<Measured> over;
  };

  Measured Pass(const Shape& shape, std::span<std::byte> buffers,
                const std::vector<uint32_t>* crcs) {
    Work work{.shape = shape, .buffers = buffers, .crcs = crcs, .before = {}, .over = {}};
    loop_->Post([&] {
      work.before = ThreadUsage();
      for (size_t i = 0; i < std::min(shape.in_flight, shape.requests); ++i) Next(work, i);
    });
    return work.over.get_future().get();
  }

  void Next(Work& work, size_t slot) {
    const size_t object = work.sent++ % kObjects;
    const Shape& shape = work.shape;
    store_->StartRead({.key = fmt::format("{}-{}", shape.object, object),
                       .range = {0, shape.bytes},
                       .target = {work.buffers.subspan(slot * shape.bytes, shape.bytes)}},
                      [this, &work, slot, object](Result<store::ReadResult> result) {
                        if (!result.ok()) Die(result.status().ToString());
                        if (work.crcs != nullptr && crc_.crc() != (*work.crcs)[object]) {
                          Die("wrong bytes");
                        }
                        if (work.sent < work.shape.requests) Next(work, slot);
                        if (++work.done == work.shape.requests) End(work);
                      });
  }

  static void End(Work& work) {
    const Measured after = ThreadUsage();
    work.over.set_value({after.cpu_s - work.before.cpu_s, after.user_s - work.before.user_s,
                         after.wall_s - work.before.wall_s});
  }

  std::unique_ptr<sys::EventLoop> loop_;
  std::unique_ptr<net::HttpTransport> inner_;
  CrcTransport crc_;
  std::shared_ptr<store::ObjectStore> store_;
};

std::unique_ptr<net::HttpTransport> MakeLean(sys::EventLoop& loop, const Server& server) {
  auto made = net::MakeLeanTransport(loop, {.ca_bundle = server.ca_bundle});
  if (!made.ok()) Die(made.status().ToString());
  return *std::move(made);
}

std::unique_ptr<net::HttpTransport> MakeCurl(sys::EventLoop& loop, const Server& server) {
  auto made =
      net::MakeCurlTransport(loop, {.ca_bundle = server.ca_bundle, .max_connections = 2048});
  if (!made.ok()) Die(made.status().ToString());
  return *std::move(made);
}

double Median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

struct Rows {
  std::vector<double> cpu, wall, user, cpu_ratio, rate_ratio;
  void Add(const Measured& mine, const Measured& floor) {
    cpu.push_back(mine.cpu_s);
    user.push_back(mine.user_s);
    wall.push_back(mine.wall_s);
    cpu_ratio.push_back(mine.cpu_s / floor.cpu_s);
    rate_ratio.push_back(floor.wall_s / mine.wall_s);
  }
  void Print(const char* name, const Shape& shape, const std::string& target) const {
    const double bytes = static_cast<double>(shape.bytes * shape.requests);
    fmt::print(
        "  {:6} {:6.3f} s/GiB {:6.1f} us/request ({:4.1f} user) {:5.2f} GB/s", name,
        Median(cpu) / bytes * 0x1p30, 1e6 * Median(cpu) / static_cast<double>(shape.requests),
        1e6 * Median(user) / static_cast<double>(shape.requests), bytes / Median(wall) / 1e9);
    if (!target.empty()) {
      fmt::print("   CPU {:.3f} x the floor ({}), throughput {:.2f} x (target 0.95)",
                 Median(cpu_ratio), target, Median(rate_ratio));
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
};

void Compare(const Server& server, const Shape& shape, int rounds, std::span<std::byte> buffers,
             bool with_curl) {
  std::vector<uint32_t> crcs(kObjects);
  RunFloor(server, shape, buffers, crcs);
  Rows floor;
  Rows lean;
  Rows curl;
  Client lean_client(MakeLean, server);
  Client curl_client(MakeCurl, server);
  for (int round = 0; round < rounds; ++round) {
    const Measured low = RunFloor(server, shape, buffers, crcs);
    floor.Add(low, low);
    lean.Add(lean_client.Run(shape, buffers, crcs), low);
    if (with_curl) curl.Add(curl_client.Run(shape, buffers, crcs), low);
  }
  const double most = shape.bytes < (1 << 20) ? 1.15 : server.tls() ? 1.05 : 1.10;
  fmt::print("{}, {}\n", shape.name, server.tls() ? "TLS" : "plain");
  floor.Print("floor", shape, "");
  lean.Print("lean", shape, fmt::format("target {:.2f}", most));
  if (with_curl) curl.Print("curl", shape, "libcurl");
}

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t pages = 0;
  file >> pages >> pages;
  return pages * 4096;
}

// Counts heads; what follows comes slowly.
class Held final : public net::HttpHandler {
 public:
  std::span<std::byte> buffer;
  std::function<void()> on_head;
  Result<net::BodyTarget> OnHead(const net::HttpHead&) override {
    on_head();
    return net::BodyTarget{.pieces = {buffer}};
  }
  void OnBody(ByteView) override {}
  void OnDone(Status status, const net::HttpTiming&) override {
    if (!status.ok()) Die(status.ToString());
  }
};

// What `count` connections take, each with an answer under way.
void Hold(const Server& server, std::span<std::byte> buffers, size_t count, double most_kib) {
  auto loop = *sys::EventLoop::Make("http-bench");
  auto transport = MakeLean(*loop, server);
  std::vector<Held> held(count);
  std::promise<size_t> all;
  size_t heads = 0;
  const size_t before = ResidentBytes();
  loop->Post([&] {
    for (Held& one : held) {
      one.buffer = buffers.first(64 * 1024);
      one.on_head = [&] {
        if (++heads == count) all.set_value(ResidentBytes());
      };
      transport->Start({.url = server.endpoint + "/slow/64K-1",
                        .connect_timeout = std::chrono::seconds(60),
                        .first_byte_timeout = std::chrono::seconds(60),
                        .body_hint = 64 * 1024},
                       &one);
    }
  });
  const size_t after = all.get_future().get();
  fmt::print("{} connections held, {}: {:.1f} KiB each (target {})\n", count,
             server.tls() ? "TLS" : "plain",
             static_cast<double>(after - before) / 1024 / static_cast<double>(count), most_kib);
  std::fflush(stdout);
  loop->Stop();
}

}  // namespace

int Main(int argc, char** argv) {
  if (argc < 5) Die("PLAIN_URL TLS_URL CA_BUNDLE BUCKET [ROUNDS] [SHAPE]");
  const std::vector<Server> servers = {{argv[1], argv[3], argv[4]}, {argv[2], argv[3], argv[4]}};
  const int rounds = argc > 5 ? std::atoi(argv[5]) : 7;
  const std::string only = argc > 6 ? argv[6] : "";
  const bool with_curl = argc <= 7;
  const std::vector<Shape> shapes = {
      {.name = "8 MiB x 32", .object = "8M", .bytes = 8 << 20, .in_flight = 32, .requests = 96},
      {.name = "64 KiB x 64",
       .object = "64K",
       .bytes = 64 << 10,
       .in_flight = 64,
       .requests = 8000},
      {.name = "64 KiB x 1000",
       .object = "64K",
       .bytes = 64 << 10,
       .in_flight = 1000,
       .requests = 8000}};
  std::vector<std::byte> buffers(32UL * (8 << 20));  // touched: their pages are there
  for (const Server& server : servers) {  // first: memory that others gave back would hide theirs
    if (only.empty() || only == "hold") Hold(server, buffers, 5000, server.tls() ? 40 : 20);
  }
  for (const Server& server : servers) {
    for (const Shape& shape : shapes) {
      const std::string name = shape.name + (server.tls() ? " tls" : " plain");
      if (only.empty() || name == only) Compare(server, shape, rounds, buffers, with_curl);
    }
  }
  return 0;
}

}  // namespace forebay::bench

int main(int argc, char** argv) { return forebay::bench::Main(argc, argv); }
