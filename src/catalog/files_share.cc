#include "catalog/files_share.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/hash.h"

namespace forebay::catalog {
namespace {

class Share : public FilesCatalog {
 public:
  Share(std::shared_ptr<const FilesCatalog> all, uint64_t host, uint64_t hosts)
      : all_(std::move(all)), host_(host), hosts_(hosts) {
    for (const Generation& of_all : all_->generations()) {
      const uint64_t samples = (of_all.samples + hosts - 1 - host) / hosts;
      const std::string id = fmt::format("{} host {} of {}", of_all.content_hash, host, hosts);
      generations_.push_back({samples, HashBytes(AsBytes(std::string_view(id))).ToHex()});
    }
  }

  const std::string& source_uri() const override { return all_->source_uri(); }
  KeyOrder key_order() const override { return all_->key_order(); }
  const std::vector<Generation>& generations() const override { return generations_; }
  uint64_t total_bytes() const override { return all_->LargestBytes(count()); }
  uint64_t LargestBytes(uint64_t count) const override { return all_->LargestBytes(count); }
  Result<FileEntry> At(uint64_t i) const override { return all_->At(InAll(i)); }
  Result<uint64_t> SizeOf(uint64_t i) const override { return all_->SizeOf(InAll(i)); }
  bool reads() const override { return all_->reads(); }
  void WillRead(std::span<const uint64_t> files) const override {
    std::vector<uint64_t> in_all;
    in_all.reserve(files.size());
    for (const uint64_t file : files) in_all.push_back(InAll(file));
    all_->WillRead(in_all);
  }
  void Rest() const override { all_->Rest(); }
  const FilesCatalog& whole() const override { return all_->whole(); }

 private:
  uint64_t InAll(uint64_t i) const { return host_ + i * hosts_; }

  std::shared_ptr<const FilesCatalog> all_;
  const uint64_t host_, hosts_;
  std::vector<Generation> generations_;
};

}  // namespace

Result<std::shared_ptr<const FilesCatalog>> ShareOf(std::shared_ptr<const FilesCatalog> catalog,
                                                    uint64_t host, uint64_t hosts) {
  if (host >= hosts) {
    return Status(Code::kInvalidArgument, fmt::format("host {} of {} hosts", host, hosts));
  }
  if (host >= catalog->count()) {
    return Status(Code::kInvalidArgument,
                  fmt::format("there are {} objects for {} hosts, none of them for host {}",
                              catalog->count(), hosts, host));
  }
  return std::shared_ptr<const FilesCatalog>(
      std::make_shared<const Share>(std::move(catalog), host, hosts));
}

}  // namespace forebay::catalog
