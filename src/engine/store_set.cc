#include "engine/store_set.h"

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <future>
#include <optional>
#include <string_view>
#include <utility>

#include "net/routed_transport.h"
#include "store/file/file_store.h"
#include "store/memory/memory_store.h"
#include "store/s3/s3_store.h"

namespace forebay::engine {

namespace {

// Bytes in "MiB", "MB", "M" (as MB), "B" or ""; none: it is no unit.
std::optional<double> UnitBytes(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  const size_t power = std::string_view("KMGT").find(unit.front());
  const std::string_view rest = unit.substr(1);
  if (power == std::string_view::npos) return std::nullopt;
  if (rest.empty() || rest == "B") return std::pow(1000.0, power + 1);
  if (rest == "iB") return std::pow(1024.0, power + 1);
  return std::nullopt;
}

// Bytes a second: a number and a unit, with or without "/s". "": none.
Result<uint64_t> ParseBandwidth(const std::string& text) {
  if (text.empty()) return uint64_t{0};
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(parsed.ptr, text.data() + text.size());
  if (unit.ends_with("/s")) unit.remove_suffix(2);
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const std::optional<double> factor = UnitBytes(unit);
  const double bytes = number * factor.value_or(0);
  if (parsed.ec != std::errc() || !(bytes >= 1) || bytes > 1e15) {
    return Status(Code::kInvalidArgument,
                  fmt::format("FOREBAY_NODE_BANDWIDTH is '{}', not bytes a second, as 2.5GB or "
                              "300MiB",
                              text),
                  ErrorDetail{.from_settings = true});
  }
  return static_cast<uint64_t>(bytes);
}

}  // namespace

Result<std::shared_ptr<StoreSet>> StoreSet::Make(const StoreOptions& options,
                                                 const StoreTuning& tuning) {
  FB_RETURN_IF_ERROR(options.Validate());
  std::shared_ptr<StoreSet> set(new StoreSet(options, tuning));
  FB_ASSIGN_OR_RETURN(set->loop_, sys::EventLoop::Make("fb-io"));
  return set;
}

StoreSet::~StoreSet() {
  // What runs on the disk threads posts to the loop, and what runs on the loop touches the stores.
  if (disk_) disk_->Stop();
  if (loop_) loop_->Stop();
}

std::shared_ptr<store::ObjectStore> StoreSet::Share(store::ObjectStore* store) {
  return {shared_from_this(), store};
}

Result<std::unique_ptr<store::ObjectStore>> StoreSet::MakeFileStore() {
  if (!disk_) {
    FB_ASSIGN_OR_RETURN(disk_,
                        sys::WorkPool::Make({.name = "fb-disk", .threads = tuning_.disk_threads}));
  }
  return store::MakeFileStore(loop_.get(), disk_.get(),
                              {.root = "/", .direct_reads = tuning_.direct_reads});
}

Result<std::shared_ptr<store::ObjectStore>> StoreSet::MakeBucketStore(const std::string& bucket) {
  if (!aws_) {
    const store::s3::Environment environment = store::s3::Environment::Process();
    auto loaded = store::s3::LoadAwsConfig(options_, environment);
    FB_RETURN_IF_ERROR(loaded.status().WithDetail({.from_settings = true}));
    Status opened = store::s3::OpenCredentials(*loaded, environment, options_.verify_ssl);
    FB_RETURN_IF_ERROR(std::move(opened).WithDetail({.from_settings = true}));
    aws_ = *std::move(loaded);
  }
  if (!transport_) {
    const auto environment = store::s3::Environment::Process();
    const auto variable = [&](const std::string& name) { return environment.Text(name); };
    auto made = net::MakeTransport(*loop_, {.ca_bundle = aws_->ca_bundle,
                                            .verify_tls = options_.verify_ssl,
                                            .proxies = net::ProxyRules(variable)});
    FB_RETURN_IF_ERROR(made.status().WithDetail({.from_settings = true}));
    transport_ = *std::move(made);
  }
  if (!admission_) {
    const auto environment = store::s3::Environment::Process();
    store::LimitOptions limits;
    limits.host = aws_->endpoint_url.empty() ? aws_->region : aws_->endpoint_url;
    limits.bandwidth = options_.node_bandwidth;
    if (limits.bandwidth == 0) {
      FB_ASSIGN_OR_RETURN(limits.bandwidth,
                          ParseBandwidth(environment.Text("FOREBAY_NODE_BANDWIDTH")));
    }
    auto node = store::NodeLimits::OfNode(environment.Text("XDG_RUNTIME_DIR"), "limits");
    admission_ = std::make_shared<store::Admission>(*loop_, limits, std::move(node));
  }
  store::StackOptions stack;
  stack.admission = admission_;
  stack.bare = tuning_.bare;
  FB_ASSIGN_OR_RETURN(auto store,
                      store::s3::MakeS3Stack(options_, *aws_, bucket, *transport_, stack));
  meters_[store->root_uri()] = store;
  return std::shared_ptr<store::ObjectStore>(std::move(store));
}

std::shared_ptr<store::ObjectStore> StoreSet::Metered(std::shared_ptr<store::ObjectStore> store) {
  auto meter = std::make_shared<store::MeterStore>(std::move(store),
                                                   std::make_shared<store::StoreCounters>());
  meters_[meter->root_uri()] = meter;
  return meter;
}

std::map<std::string, store::StoreCounters> StoreSet::Counters() {
  std::map<std::string, std::shared_ptr<store::MeterStore>> meters;
  {
    const MutexLock lock(mutex_);
    meters = meters_;
  }
  std::map<std::string, store::StoreCounters> copies;
  const auto copy = [&] {
    for (const auto& [root, meter] : meters) copies.emplace(root, meter->counters());
  };
  if (loop_->InThread()) {
    copy();
    return copies;
  }
  std::promise<void> done;
  loop_->Post([&] {
    copy();
    done.set_value();
  });
  done.get_future().wait();
  return copies;
}

Result<std::shared_ptr<store::ObjectStore>> StoreSet::StoreFor(const store::Uri& uri) {
  const std::string root =
      store::Uri{.scheme = uri.scheme, .bucket = uri.bucket, .key = ""}.ToString();
  const MutexLock lock(mutex_);
  std::shared_ptr<store::ObjectStore>& store = stores_[root];
  if (store) return Share(store.get());
  switch (uri.scheme) {
    case store::Uri::Scheme::kFile: {
      FB_ASSIGN_OR_RETURN(auto files, MakeFileStore());
      store = Metered(std::move(files));
      break;
    }
    case store::Uri::Scheme::kMemory:
      store =
          Metered(store::MemoryStore::Make(loop_.get(), {.name = uri.bucket, .latency = nullptr}));
      break;
    case store::Uri::Scheme::kS3: {
      FB_ASSIGN_OR_RETURN(store, MakeBucketStore(uri.bucket));
      break;
    }
  }
  return Share(store.get());
}

}  // namespace forebay::engine
