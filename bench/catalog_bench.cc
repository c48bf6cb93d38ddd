// Opening a catalog of a billion plain objects with keys and sizes of their own: seconds, memory,
// and what looking one up costs; mapped from a file, and in ranges as from a store.
//
//   catalog_bench [OBJECTS]    target: open in < 1 s and < 100 MB; floor of a lookup: a page's read
//
// The catalog is real to the byte where it is looked at: head, index and 256 of its blocks. The
// others are holes of the length that a block has, so that it needs no 28 GB of disk.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/random.h"
#include "catalog/coding.h"
#include "catalog/files_catalog.h"
#include "catalog/files_format.h"
#include "catalog/largest_sums.h"
#include "engine/remote_bytes.h"
#include "forebay/loader.h"
#include "sys/fd.h"
#include "sys/usage.h"

namespace forebay {
namespace {

using catalog::kFilesPerBlock;
constexpr size_t kTemplates = 64;
constexpr size_t kRealBlocks = 256;

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::vector<std::byte>> Templates() {
  Random random(7);
  std::vector<std::vector<std::byte>> blocks;
  for (size_t b = 0; b < kTemplates; ++b) {
    std::vector<catalog::FileEntry> entries;
    for (uint64_t i = 0; i < kFilesPerBlock; ++i) {
      entries.push_back({fmt::format("train/{:05}/{:09}_{:0{}x}.jpg", b, b * kFilesPerBlock + i,
                                     random.Next() >> 40, 6 + random.NextBelow(12)),
                         20'000 + random.NextBelow(random.NextBelow(100) == 0 ? 1 << 24 : 200'000),
                         fmt::format("{:016x}{:016x}", random.Next(), random.Next()), ""});
    }
    blocks.push_back(catalog::PackFiles(entries));
  }
  return blocks;
}

uint64_t RealBlock(size_t i, uint64_t blocks) { return i * (blocks / kRealBlocks); }

void Check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.ToString());
  std::exit(1);
}

// As catalog/files_writer.cc does it, but for the holes.
uint64_t WriteCatalog(const std::filesystem::path& path, uint64_t objects) {
  const auto templates = Templates();
  const uint64_t blocks = (objects + kFilesPerBlock - 1) / kFilesPerBlock;
  const auto folder = sys::OpenDirectory(path.parent_path());
  Check(folder.status());
  const auto file = sys::CreateFile(*folder, path.filename());
  Check(file.status());
  catalog::Writer index;
  index.Text("s3://bucket/");
  index.Varint(1);
  index.Varint(objects * 120'000);
  index.Varint(1);
  index.Varint(objects);
  index.Varint(blocks);
  index.Text(std::string(32, '0'));
  index.Varint(catalog::kLargestSums);
  for (int k = 0; k < catalog::kLargestSums; ++k) index.Varint(uint64_t{1} << (24 + k));
  uint64_t at = catalog::kBlockFileHeadBytes;
  size_t real = 0;
  for (uint64_t b = 0; b < blocks; ++b) {
    const auto& block = templates[b % kTemplates];
    index.Word(at);
    if (real < kRealBlocks && b == RealBlock(real, blocks)) {
      Check(sys::WriteAt(*file, at, block, path.native()));
      ++real;
    }
    at += block.size();
  }
  index.Word(at);
  const Hash128 hash = HashBytes(index.bytes());
  catalog::Writer head;
  head.Append(AsBytes(catalog::kFilesKind.magic));
  head.Word(catalog::kFilesKind.version);
  head.Word(uint32_t{0});
  head.Word(at + index.size());
  head.Word(at);
  head.Word(blocks);
  head.Word(hash.low);
  head.Word(hash.high);
  head.Word(HashBytes(head.bytes()).low);
  Check(sys::WriteAt(*file, 0, head.bytes(), path.native()));
  Check(sys::WriteAt(*file, at, index.bytes(), path.native()));
  return at + index.size();
}

double MemoryMb() { return static_cast<double>(sys::UsageOfProcess().maxrss_kib) * 1024 / 1e6; }

void Measure(const char* how, uint64_t objects,
             const std::function<Result<std::shared_ptr<const catalog::CatalogBytes>>()>& bytes) {
  const double start = Now();
  auto opened = bytes();
  Check(opened.status());
  const auto made = catalog::FilesCatalog::Open(*std::move(opened));
  Check(made.status());
  const double open_s = Now() - start;
  const double open_mb = MemoryMb();
  const uint64_t blocks = (objects + kFilesPerBlock - 1) / kFilesPerBlock;
  constexpr uint64_t kLookups = 20'000;
  Random random(3);
  uint64_t key_bytes = 0;
  const double lookups = Now();
  for (uint64_t i = 0; i < kLookups; ++i) {
    const uint64_t block = RealBlock(random.NextBelow(kRealBlocks), blocks);
    const auto entry = (*made)->At(block * kFilesPerBlock + random.NextBelow(kFilesPerBlock));
    Check(entry.status());
    key_bytes += entry->key.size();
  }
  const double lookup_us = (Now() - lookups) / kLookups * 1e6;
  fmt::print("{:<10} open {:.3f} s, process {:.1f} MB; {:.1f} us a lookup, then {:.1f} MB {}\n",
             how, open_s, open_mb, lookup_us, MemoryMb(),
             open_s < 1 && open_mb < 100 ? "" : "MISSED");
  if (key_bytes == 0) std::exit(1);
}

void MeasureLoader(const std::string& path) {
  const double start = Now();
  const RecordsOptions records{.uri = "/", .format = "files", .catalog = path};
  const auto loader =
      Loader::Make({{.name = "", .data = records}}, {.place = {.batch_size = 16}}, {});
  Check(loader.status());
  fmt::print("{:<10} open {:.3f} s, process {:.1f} MB\n", "loader", Now() - start, MemoryMb());
}

int Run(const std::string& what, uint64_t objects, const std::filesystem::path& path) {
  if (what == "nothing") {
    fmt::print("{:<10} process {:.1f} MB\n", what, MemoryMb());
  } else if (what == "mapped") {
    Measure("mapped", objects, [&] { return catalog::MapBytes(path); });
  } else if (what == "ranges") {
    Measure("in ranges", objects, [&]() -> Result<std::shared_ptr<const catalog::CatalogBytes>> {
      FB_ASSIGN_OR_RETURN(const auto stores, engine::StoreSet::Make({}));
      FB_ASSIGN_OR_RETURN(const auto uri, store::ParseUri(path.native()));
      return engine::RemoteBytes::Open(*stores, uri, 0);
    });
  } else {
    MeasureLoader(path);
  }
  return 0;
}

int RunAll(const std::string& self, uint64_t objects) {
  const auto path = std::filesystem::temp_directory_path() / "forebay-catalog-bench.fbc";
  std::filesystem::remove(path);
  const uint64_t size = WriteCatalog(path, objects);
  fmt::print("{} objects, {:.1f} GB of catalog, {:.1f} bytes an object\n", objects,
             static_cast<double>(size) / 1e9,
             static_cast<double>(size) / static_cast<double>(objects));
  std::fflush(stdout);
  int failed = 0;
  for (const char* what : {"nothing", "mapped", "ranges", "loader"}) {
    // Each in a process of its own, so that its memory is its own.
    failed |=
        std::system(fmt::format("'{}' {} {} '{}'", self, what, objects, path.native()).c_str());
  }
  std::filesystem::remove(path);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace forebay

int main(int argc, char** argv) {
  const auto number = [](const char* text) { return std::strtoull(text, nullptr, 10); };
  if (argc == 4) return forebay::Run(argv[1], number(argv[2]), argv[3]);
  return forebay::RunAll(argv[0], argc > 1 ? number(argv[1]) : 1'000'000'000);
}
