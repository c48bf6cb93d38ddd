#include "format/plugin.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace forebay::format {
namespace {

std::vector<std::string> Candidates(const Plugin& plugin) {
  if (const char* named = std::getenv(plugin.variable); named != nullptr && *named != 0) {
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
      paths.push_back((folder / plugin.file).string());
      paths.push_back((folder.parent_path() / "lib" / "forebay" / plugin.file).string());
    }
  }
  paths.push_back(std::string(plugin.build_dir) + "/" + plugin.file);
  return paths;
}

Result<const void*> LoadFrom(const std::string& path, const Plugin& plugin,
                             bool (*fits)(const void* api)) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return Status(Code::kUnimplemented, why != nullptr ? why : "cannot be loaded");
  }
  const auto function = reinterpret_cast<const void* (*)()>(dlsym(library, plugin.symbol));
  if (function == nullptr) {
    return Status(Code::kUnimplemented, fmt::format("has no symbol {}", plugin.symbol));
  }
  const void* api = function();
  if (api == nullptr || !fits(api)) {
    return Status(Code::kUnimplemented, "belongs to another build of Forebay");
  }
  return api;
}

}  // namespace

Result<const void*> LoadPlugin(const Plugin& plugin, bool (*fits)(const void* api)) {
  std::string tried;
  for (const std::string& path : Candidates(plugin)) {
    auto api = LoadFrom(path, plugin, fits);
    if (api.ok()) return api;
    tried += fmt::format("{}{}: {}", tried.empty() ? "" : "; ", path, api.status().message());
  }
  return Status(Code::kUnimplemented,
                fmt::format("{} cannot be read; set {} to the path of {}; tried {}",
                            plugin.what_needs, plugin.variable, plugin.file, tried));
}

void LoadBefore(const char* variable, std::initializer_list<const char*> files) {
  const char* folder = std::getenv(variable);
  if (folder == nullptr || *folder == 0) return;
  for (const char* file : files) {
    (void)dlopen((std::filesystem::path(folder) / file).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
}

}  // namespace forebay::format
