// InspectJson: a catalog or a video, told in JSON.
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "catalog/catalog.h"
#include "engine/open_catalog.h"
#include "engine/scanned_object.h"
#include "forebay/video.h"

namespace forebay {
namespace engine {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kSchema[] = "forebay.inspect/1";

const char* NameOf(media::Verified verified) {
  switch (verified) {
    case media::Verified::kFull:
      return "full";
    case media::Verified::kHeads:
      return "heads";
    case media::Verified::kNone:
      break;
  }
  return "none";
}

Json StreamJson(const media::VideoIndex& index) {
  const media::StreamParameters& p = index.parameters;
  const media::DisplaySize size = media::DisplaySizeOf(p);
  uint64_t sync = 0, unreferenced = 0, hidden = 0, bytes = 0, group = 0, group_max = 0;
  for (const media::Packet& packet : index.packets) {
    const bool key = (packet.flags & media::Packet::kKey) != 0;
    sync += key ? 1 : 0;
    group = key ? 1 : group + 1;
    group_max = std::max(group_max, group);
    unreferenced += (packet.flags & media::Packet::kDisposable) != 0 ? 1 : 0;
    hidden += (packet.flags & media::Packet::kDiscard) != 0 ? 1 : 0;
    bytes += packet.size;
  }
  const auto frames = static_cast<uint32_t>(index.frames.size());
  Json json;
  json["stream"] = index.stream;
  json["codec"] = p.codec;
  json["width"] = size.width;
  json["height"] = size.height;
  json["rotation"] = p.rotation;
  json["flip"] = p.flip;
  json["pixel_format"] = p.pixel_format;
  json["frames"] = frames;
  json["frame_rate"] = index.MeanFrameRate();
  json["seconds"] = frames > 0 ? index.FrameSeconds(frames - 1) : 0.0;
  json["time_base"] = fmt::format("{}/{}", p.time_base.num, p.time_base.den);
  json["times_ascend"] = index.pts_monotonic;
  json["packets"] = index.packets.size();
  json["packet_bytes"] = bytes;
  json["sync_points"] = sync;
  json["longest_group_packets"] = group_max;
  json["unreferenced_packets"] = unreferenced;
  json["discarded_packets"] = hidden;
  json["parameter_sets"] = 1 + index.parameter_sets.size();
  json["extradata_bytes"] = p.extradata.size();
  json["color_space"] = p.color_space;
  json["color_range"] = p.color_range;
  json["access"] = index.access == media::Access::kDemux ? "demux" : "packets";
  json["verified"] = NameOf(index.verified);
  json["truncated"] = index.truncated;
  return json;
}

Result<std::string> VideoJson(ScannedObject& object) {
  FB_ASSIGN_OR_RETURN(const std::vector<media::VideoIndex> videos, object.Scan("heads"));
  Json json;
  json["schema"] = kSchema;
  json["kind"] = "video";
  json["uri"] = object.uri();
  json["size"] = object.object().info().size;
  json["etag"] = object.object().info().etag;
  json["container"] = videos.empty() ? std::string() : videos.front().container;
  json["bytes_read"] = object.object().bytes();
  json["requests"] = object.object().requests();
  json["had_sample_table"] = object.report().had_sample_table;
  json["sync_points_removed"] = object.report().sync_points_removed;
  json["warnings"] = object.report().warnings;
  json["streams"] = Json::array();
  for (const media::VideoIndex& index : videos) json["streams"].push_back(StreamJson(index));
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> CatalogJson(ScannedObject& opened) {
  FB_ASSIGN_OR_RETURN(const auto catalog, ReadCatalog(opened.store(), opened.object().info().key));
  Json json;
  json["schema"] = kSchema;
  json["kind"] = "catalog";
  json["uri"] = opened.uri();
  json["size"] = opened.object().info().size;
  json["etag"] = opened.object().info().etag;
  json["source"] = catalog->source_uri();
  json["content_hash"] = catalog->content_hash();
  json["videos"] = catalog->video_count();
  json["objects"] = Json::array();
  for (uint32_t i = 0; i < catalog->object_count(); ++i) {
    const catalog::CatalogObject& object = catalog->object(i);
    Json row{{"key", object.key}, {"size", object.size}, {"etag", object.etag}};
    if (!object.error.empty()) row["error"] = object.error;
    row["streams"] = Json::array();
    for (uint32_t v = 0; v < object.video_count; ++v) {
      FB_ASSIGN_OR_RETURN(const auto index, catalog->video(object.first_video + v));
      Json stream = StreamJson(*index);
      stream["index_bytes"] = catalog->video_packed_bytes(object.first_video + v);
      row["streams"].push_back(std::move(stream));
    }
    json["objects"].push_back(std::move(row));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

constexpr uint64_t kFilesShown = 1000;

Result<std::string> FilesJson(ScannedObject& opened, const catalog::FilesCatalog& files) {
  Json json;
  json["schema"] = kSchema;
  json["kind"] = "files_catalog";
  json["uri"] = opened.uri();
  json["size"] = opened.object().info().size;
  json["etag"] = opened.object().info().etag;
  json["source"] = files.source_uri();
  json["content_hash"] = files.content_hash();
  json["key_order"] = files.key_order() == catalog::KeyOrder::kBytes ? "bytes" : "listed";
  json["bytes"] = files.total_bytes();
  json["largest_bytes"] = files.LargestBytes(1);
  json["generations"] = Json::array();
  for (const catalog::Generation& generation : files.generations()) {
    json["generations"].push_back(
        {{"samples", generation.samples}, {"content_hash", generation.content_hash}});
  }
  json["samples"] = files.count();
  json["objects"] = Json::array();  // the first ones of very many
  for (uint64_t i = 0; i < std::min(files.count(), kFilesShown); ++i) {
    FB_ASSIGN_OR_RETURN(const catalog::FileEntry entry, files.At(i));
    Json row{{"key", entry.key}, {"size", entry.size}, {"etag", entry.etag}};
    if (!entry.version_id.empty()) row["version_id"] = entry.version_id;
    json["objects"].push_back(std::move(row));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> AnyCatalogJson(ScannedObject& opened, const std::string& uri,
                                   const StoreOptions& options) {
  std::vector<std::byte> magic(std::min<uint64_t>(8, opened.object().info().size));
  FB_RETURN_IF_ERROR(opened.object().Read({0, magic.size()}, magic));
  if (!catalog::IsFilesCatalog(magic)) return CatalogJson(opened);
  FB_ASSIGN_OR_RETURN(const auto stores, StoreSet::Make(options));
  FB_ASSIGN_OR_RETURN(const store::Uri parsed, store::ParseUri(uri));
  FB_ASSIGN_OR_RETURN(const auto files, ReadFilesCatalog(*stores, parsed));
  return FilesJson(opened, *files);
}

}  // namespace
}  // namespace engine

Result<std::string> InspectJson(const std::string& uri, const StoreOptions& store) {
  FB_ASSIGN_OR_RETURN(auto object, engine::ScannedObject::Open(uri, store));
  return uri.ends_with(".fbc") ? engine::AnyCatalogJson(*object, uri, store)
                               : engine::VideoJson(*object);
}

}  // namespace forebay
