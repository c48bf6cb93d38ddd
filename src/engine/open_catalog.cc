#include "engine/open_catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <future>
#include <utility>
#include <vector>

#include "engine/remote_bytes.h"
#include "store/s3/sigv4.h"

namespace forebay::engine {
namespace {

constexpr uint64_t kFirstBytes = 1 << 20;
constexpr uint64_t kPartBytes = 8 << 20;
constexpr uint64_t kCatalogBytesMax = 16ULL << 30;
constexpr uint64_t kFilesWholeBytes = 16ULL << 20;  // a larger one is read in ranges

// What a failure to read a catalog means to whoever wanted it.
Status Explain(Status status, const std::string& root, const std::string& key) {
  if (status.code() != Code::kNotFound) return std::move(status).WithContext("reading the catalog");
  return Status(Code::kNotFound,
                fmt::format("no catalog at {}/{}: run `forebay index` first", root, key));
}

// What `read` makes of the first catalog there is.
template <class Read>
auto OpenFirst(const std::string& source, const std::string& catalog, catalog::DataType type,
               const Read& read) -> decltype(read(store::Uri())) {
  if (!catalog.empty()) {
    FB_ASSIGN_OR_RETURN(const store::Uri uri, store::ParseUri(catalog));
    return read(uri);
  }
  FB_ASSIGN_OR_RETURN(store::Uri uri, store::ParseUri(source));
  uri.key = CatalogKeyOf(uri, type);
  auto beside = read(uri);
  if (beside.ok() ||
      (beside.code() != Code::kNotFound && beside.code() != Code::kPermissionDenied)) {
    return beside;
  }
  const std::string path = LocalCatalogPath(source);
  if (path.empty()) return beside;
  const Result<store::Uri> local = store::ParseUri(path);
  if (!local.ok()) return beside;
  auto cached = read(*local);
  // Not there either: the first place's answer tells more.
  if (!cached.ok() && cached.code() == Code::kNotFound) return beside;
  return cached;
}

}  // namespace

Result<std::vector<std::byte>> ReadWhole(const store::SyncStore& store, const std::string& key,
                                         uint64_t bytes_max) {
  std::vector<std::byte> bytes(kFirstBytes);
  store::ReadRequest first;
  first.key = key;
  first.range = {0, kFirstBytes};
  first.target = {bytes};
  first.clamp_to_object = true;
  FB_ASSIGN_OR_RETURN(const store::ReadResult result, store.Read(std::move(first)));
  if (result.object_size > bytes_max) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} is {} long; at most {} are read whole", key,
                              FormatSize(result.object_size), FormatSize(bytes_max)));
  }
  bytes.resize(result.object_size);
  std::vector<std::future<Status>> parts;
  for (uint64_t at = result.bytes; at < bytes.size(); at += kPartBytes) {
    const uint64_t end = std::min<uint64_t>(bytes.size(), at + kPartBytes);
    store::ReadRequest rest;
    rest.key = key;
    rest.etag = result.etag;
    rest.range = {at, end};
    rest.target = {MutableBytes(bytes).subspan(at, end - at)};
    auto promise = std::make_shared<std::promise<Status>>();
    parts.push_back(promise->get_future());
    store.async().executor().Post([&store, rest = std::move(rest), promise]() mutable {
      store.async().StartRead(std::move(rest), [promise](Result<store::ReadResult> done) {
        promise->set_value(done.ok() ? Status() : std::move(done).status());
      });
    });
  }
  Status status;
  for (std::future<Status>& part : parts) {
    Status one = part.get();  // bounded by the store's own deadline
    if (status.ok()) status = std::move(one);
  }
  if (!status.ok()) return status;
  return bytes;
}

Result<std::shared_ptr<const catalog::Catalog>> ReadCatalog(const store::SyncStore& store,
                                                            const std::string& key) {
  Result<std::vector<std::byte>> bytes = ReadWhole(store, key, kCatalogBytesMax);
  if (!bytes.ok()) return Explain(std::move(bytes).status(), store.async().root_uri(), key);
  auto catalog = catalog::Catalog::Open(*std::move(bytes));
  if (!catalog.ok()) {
    return std::move(catalog).status().WithContext(
        fmt::format("catalog {}/{}", store.async().root_uri(), key));
  }
  return catalog;
}

namespace {

// A catalog of very many things, mapped or read in ranges.
template <class Catalog>
Result<std::shared_ptr<const Catalog>> ReadLarge(StoreSet& stores, const store::Uri& uri) {
  std::shared_ptr<const catalog::CatalogBytes> bytes;
  if (uri.scheme == store::Uri::Scheme::kFile) {
    auto mapped = catalog::MapBytes("/" + uri.key);
    if (!mapped.ok()) return Explain(std::move(mapped).status(), "file://", uri.key);
    bytes = *std::move(mapped);
  } else {
    auto remote = RemoteBytes::Open(stores, uri, kFilesWholeBytes);
    if (!remote.ok()) return Explain(std::move(remote).status(), "s3://" + uri.bucket, uri.key);
    bytes = *std::move(remote);
  }
  auto catalog = Catalog::Open(bytes);
  bytes->Rest();
  if (!catalog.ok()) return std::move(catalog).status().WithContext("catalog " + uri.ToString());
  return catalog;
}

}  // namespace

Result<std::shared_ptr<const catalog::FilesCatalog>> ReadFilesCatalog(StoreSet& stores,
                                                                      const store::Uri& uri) {
  return ReadLarge<catalog::FilesCatalog>(stores, uri);
}

Result<std::shared_ptr<const catalog::RecordsCatalog>> ReadRecordsCatalog(StoreSet& stores,
                                                                          const store::Uri& uri) {
  return ReadLarge<catalog::RecordsCatalog>(stores, uri);
}

Result<std::shared_ptr<const catalog::RecordsCatalog>> OpenRecordsCatalog(
    StoreSet& stores, const std::string& source, const std::string& catalog) {
  return OpenFirst(source, catalog, catalog::DataType::kFolder,
                   [&](const store::Uri& uri) { return ReadRecordsCatalog(stores, uri); });
}

std::string LocalCatalogPath(const std::string& source) {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return "";
  std::string_view bare = source;
  while (bare.ends_with('/')) bare.remove_suffix(1);
  return fmt::format("{}/.cache/forebay/{}", home, store::s3::HexSha256({AsBytes(bare)}));
}

Result<std::shared_ptr<const catalog::Catalog>> OpenCatalog(StoreSet& stores,
                                                            const std::string& source,
                                                            const std::string& catalog) {
  return OpenFirst(source, catalog, catalog::DataType::kFolder,
                   [&](const store::Uri& uri) -> Result<std::shared_ptr<const catalog::Catalog>> {
                     FB_ASSIGN_OR_RETURN(auto store, stores.StoreFor(uri));
                     return ReadCatalog(store::SyncStore(std::move(store)), uri.key);
                   });
}

Result<std::shared_ptr<const catalog::FilesCatalog>> OpenFilesCatalog(StoreSet& stores,
                                                                      const std::string& source,
                                                                      const std::string& catalog,
                                                                      catalog::DataType type) {
  return OpenFirst(source, catalog, type,
                   [&](const store::Uri& uri) { return ReadFilesCatalog(stores, uri); });
}

std::string CatalogKeyOf(const store::Uri& source, catalog::DataType type) {
  const size_t name = source.key.rfind('/') + 1;  // npos + 1 is 0
  if (type == catalog::DataType::kFolder || name == source.key.size()) {
    return catalog::DefaultCatalogKey(PrefixOf(source));
  }
  return fmt::format("{}.forebay/{}.fbc", source.key.substr(0, name), source.key.substr(name));
}

std::string PrefixOf(const store::Uri& source) {
  std::string prefix = source.key;
  if (!prefix.empty() && prefix.back() != '/') prefix += '/';
  return prefix;
}

}  // namespace forebay::engine
