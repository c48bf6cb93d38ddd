#include "media/media.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

#include "media/plugin_api.h"

namespace forebay::media {
namespace {

constexpr char kLibraryName[] = "libforebay_media.so";

// Where the library may lie, in the order tried.
std::vector<std::string> Candidates() {
  if (const char* named = std::getenv("FOREBAY_MEDIA_LIBRARY"); named != nullptr && *named != 0) {
    return {named};  // what is asked for by name is not quietly replaced
  }
  std::vector<std::string> paths;
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&Candidates), &info) != 0 && info.dli_fname != nullptr) {
    std::error_code error;
    std::filesystem::path module = std::filesystem::canonical(info.dli_fname, error);
    if (error) module = std::filesystem::canonical("/proc/self/exe", error);
    if (!error) {
      const auto folder = module.parent_path();
      paths.push_back((folder / kLibraryName).string());
      paths.push_back((folder.parent_path() / "lib" / "forebay" / kLibraryName).string());
    }
  }
#ifdef FOREBAY_MEDIA_BUILD_DIR
  paths.push_back(std::string(FOREBAY_MEDIA_BUILD_DIR) + "/" + kLibraryName);
#endif
  return paths;
}

Result<const MediaApi*> LoadFrom(const std::string& path) {
  // Never closed: its functions and FFmpeg's state live as long as the process.
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Status(Code::kUnimplemented, why != nullptr ? why : "cannot be loaded");
  }
  const auto function = reinterpret_cast<MediaApiFunction>(dlsym(library, kMediaSymbol));
  if (function == nullptr) {
    return Status(Code::kUnimplemented, fmt::format("has no symbol {}", kMediaSymbol));
  }
  const MediaApi* api = function();
  if (api == nullptr || api->magic != kMediaMagic || api->size != sizeof(MediaApi) ||
      api->fingerprint != MediaFingerprint()) {
    return Status(Code::kUnimplemented, "belongs to another build of Forebay");
  }
  return api;
}

Result<const MediaApi*> Load() {
  std::string tried;
  for (const std::string& path : Candidates()) {
    auto api = LoadFrom(path);
    if (api.ok()) return api;
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", path, api.status().message());
  }
  return Status(Code::kUnimplemented,
                fmt::format("video support ({}, which needs FFmpeg's libavcodec, libavformat and "
                            "libswscale) cannot be loaded; set FOREBAY_MEDIA_LIBRARY to its path; "
                            "tried {}",
                            kLibraryName, tried));
}

// Loads once; a failure is kept too, so that a thousand objects do not search a thousand times.
const Result<const MediaApi*>& Api() {
  static const Result<const MediaApi*> api = Load();
  return api;
}

}  // namespace

Result<std::vector<VideoIndex>> ScanVideo(const ReadAt& read_at, uint64_t object_size,
                                          const ScanOptions& options, ScanReport* report) {
  const auto& api = Api();
  if (!api.ok()) return api.status();
  return (*api)->scan(read_at, object_size, options, report);
}

Result<std::unique_ptr<VideoDecoder>> VideoDecoder::Make(const Options& options) {
  const auto& api = Api();
  if (!api.ok()) return api.status();
  return (*api)->make_decoder(options);
}

Result<std::string> MediaVersion() {
  const auto& api = Api();
  if (!api.ok()) return api.status();
  return (*api)->version();
}

}  // namespace forebay::media
