#include "catalog/catalog.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/hash.h"
#include "base/mutex.h"
#include "catalog/block_file.h"
#include "catalog/coding.h"
#include "catalog/video_codec.h"

namespace forebay::catalog {
namespace {

constexpr std::string_view kMagic = "FBCATLG\n";
constexpr uint32_t kVersion = 1;
constexpr size_t kHeaderBytes = 40;  // magic, version, reserved, file bytes, hash of the rest

Status Damaged(std::string_view what) {
  return Status(Code::kDataLoss, fmt::format("not a whole catalog: {}", what));
}

struct VideoEntry {
  uint64_t offset = 0;  // in the file
  uint64_t bytes = 0;
  uint32_t object = 0;
};

class CatalogFile : public Catalog {
 public:
  explicit CatalogFile(std::vector<std::byte> bytes) : bytes_(std::move(bytes)) {}

  Status Parse() {
    if (bytes_.size() < kHeaderBytes) return Damaged(fmt::format("{} bytes", bytes_.size()));
    if (AsText(ByteView(bytes_).first(kMagic.size())) != kMagic) {
      const std::string_view of = CatalogOf(bytes_);
      if (of.empty()) return Damaged("wrong magic");
      return Status(Code::kInvalidArgument,
                    fmt::format("it is a catalog of {}: `forebay index --format video` makes one "
                                "of videos",
                                of));
    }
    Reader head(ByteView(bytes_).subspan(kMagic.size()));
    const auto version = head.Word<uint32_t>();
    if (version != kVersion) {
      return Status(
          Code::kUnimplemented,
          fmt::format("catalog version {}; this Forebay reads version {}", version, kVersion));
    }
    (void)head.Word<uint32_t>();
    const auto file_bytes = head.Word<uint64_t>();
    const Hash128 told{head.Word<uint64_t>(), head.Word<uint64_t>()};
    if (file_bytes != bytes_.size()) {
      return Damaged(fmt::format("{} bytes, {} expected", bytes_.size(), file_bytes));
    }
    const ByteView body = ByteView(bytes_).subspan(kHeaderBytes);
    if (HashBytes(body) != told) return Damaged("its hash differs");
    return ParseBody(body);
  }

  const std::string& source_uri() const override { return source_uri_; }
  const std::string& content_hash() const override { return hash_; }
  uint32_t object_count() const override { return static_cast<uint32_t>(objects_.size()); }
  const CatalogObject& object(uint32_t i) const override { return objects_[i]; }
  uint32_t video_count() const override { return static_cast<uint32_t>(videos_.size()); }
  uint32_t object_of_video(uint32_t i) const override { return videos_[i].object; }
  uint64_t video_packed_bytes(uint32_t i) const override { return videos_[i].bytes; }

  Result<std::shared_ptr<const media::VideoIndex>> video(uint32_t i) const override {
    const MutexLock lock(mutex_);
    if (open_.empty()) open_.resize(videos_.size());
    if (!open_[i]) {
      auto index = UnpackVideo(ByteView(bytes_).subspan(videos_[i].offset, videos_[i].bytes));
      if (!index.ok()) {
        return std::move(index).status().WithContext(objects_[videos_[i].object].key);
      }
      open_[i] = std::make_shared<const media::VideoIndex>(*std::move(index));
    }
    return open_[i];
  }

 private:
  Status ParseBody(ByteView body) {
    Reader in(body);
    source_uri_ = in.Text();
    // Where the data lies is no part of what it is.
    hash_ = HashBytes(body.subspan(in.at())).ToHex();
    objects_.resize(in.Count(5));
    uint64_t videos = 0;
    for (CatalogObject& object : objects_) {
      object.key = in.Text();
      object.size = in.Varint();
      object.etag = in.Text();
      object.error = in.Text();
      object.first_video = static_cast<uint32_t>(videos);
      object.video_count = static_cast<uint32_t>(in.Varint());
      videos += object.video_count;
    }
    if (videos > body.size()) return Damaged("more videos than bytes");
    for (uint32_t i = 0; i < objects_.size(); ++i) {
      for (uint32_t k = 0; k < objects_[i].video_count; ++k) {
        videos_.push_back({.offset = 0, .bytes = in.Varint(), .object = i});
      }
    }
    uint64_t at = in.at();
    for (VideoEntry& video : videos_) {
      if (!in.ok() || video.bytes > body.size() - at) return Damaged("a video index is cut off");
      video.offset = at + (bytes_.size() - body.size());
      at += video.bytes;
    }
    if (!in.ok() || at != body.size()) return Damaged("lengths do not add up");
    return {};
  }

  std::vector<std::byte> bytes_;
  std::string source_uri_;
  std::string hash_;
  std::vector<CatalogObject> objects_;
  std::vector<VideoEntry> videos_;
  mutable Mutex mutex_;
  mutable std::vector<std::shared_ptr<const media::VideoIndex>> open_ FB_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::shared_ptr<const Catalog>> Catalog::Open(std::vector<std::byte> bytes) {
  auto catalog = std::make_shared<CatalogFile>(std::move(bytes));
  FB_RETURN_IF_ERROR(catalog->Parse());
  return std::shared_ptr<const Catalog>(std::move(catalog));
}

Result<std::vector<std::byte>> WriteCatalog(CatalogInput input) {
  auto& objects = input.objects;
  std::ranges::sort(objects, {}, &CatalogInput::Object::key);
  Writer body;
  body.Text(input.source_uri);
  body.Varint(objects.size());
  std::vector<std::vector<std::byte>> packed;
  for (size_t i = 0; i < objects.size(); ++i) {
    const CatalogInput::Object& object = objects[i];
    if (i > 0 && objects[i - 1].key == object.key) {
      return Status(Code::kInvalidArgument, fmt::format("object {} comes twice", object.key));
    }
    body.Text(object.key);
    body.Varint(object.size);
    body.Text(object.etag);
    body.Text(object.error);
    body.Varint(object.videos.size());
    for (const media::VideoIndex& video : object.videos) packed.push_back(PackVideo(video));
  }
  for (const auto& video : packed) body.Varint(video.size());
  for (const auto& video : packed) body.Append(video);
  const Hash128 hash = HashBytes(body.bytes());
  Writer file;
  file.Append(AsBytes(kMagic));
  file.Word(kVersion);
  file.Word(uint32_t{0});
  file.Word(uint64_t{kHeaderBytes + body.size()});
  file.Word(hash.low);
  file.Word(hash.high);
  file.Append(body.bytes());
  return std::move(file.bytes());
}

std::string DefaultCatalogKey(std::string_view source_prefix) {
  std::string key(source_prefix);
  if (!key.empty() && key.back() != '/') key += '/';
  return key + ".forebay/catalog.fbc";
}

}  // namespace forebay::catalog
