#include "catalog/catalog_bytes.h"

#include <utility>

#include "sys/mapped_file.h"

namespace forebay::catalog {
namespace {

class InMemory : public CatalogBytes {
 public:
  explicit InMemory(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  std::optional<ByteView> view() const override { return bytes_; }
  void StartRead(ByteRange range, OnRead on_read) const override {
    const ByteView part = ByteView(bytes_).subspan(range.offset, range.size());
    on_read(std::vector<std::byte>(part.begin(), part.end()));
  }

 private:
  std::vector<std::byte> bytes_;
};

class Mapped : public CatalogBytes {
 public:
  explicit Mapped(std::shared_ptr<const sys::MappedFile> file) : file_(std::move(file)) {}
  uint64_t size() const override { return file_->bytes().size(); }
  std::optional<ByteView> view() const override { return file_->bytes(); }
  void StartRead(ByteRange range, OnRead on_read) const override {
    const ByteView part = file_->bytes().subspan(range.offset, range.size());
    on_read(std::vector<std::byte>(part.begin(), part.end()));
  }

 private:
  std::shared_ptr<const sys::MappedFile> file_;
};

}  // namespace

std::shared_ptr<const CatalogBytes> BytesInMemory(std::vector<std::byte> bytes) {
  return std::make_shared<InMemory>(std::move(bytes));
}

Result<std::shared_ptr<const CatalogBytes>> MapBytes(const std::string& path) {
  FB_ASSIGN_OR_RETURN(auto file, sys::MappedFile::Open(path));
  return std::shared_ptr<const CatalogBytes>(std::make_shared<Mapped>(std::move(file)));
}

}  // namespace forebay::catalog
