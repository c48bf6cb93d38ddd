// Libraries of Forebay's own that link what is slow to load or may be missing; each is opened on
// first use and never closed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "forebay/status.h"

namespace forebay::format {

struct Plugin {
  const char* file;        // "libforebay_archive.so"
  const char* variable;    // an environment variable that names it, instead of looking for it
  const char* build_dir;   // where it lies in the build tree
  const char* symbol;      // a function without arguments that returns its interface
  const char* what_needs;  // "tar files (..., which needs libarchive)"
};

// The interface: what `symbol` returned. kUnimplemented: none can be loaded, with what was tried.
// Looks beside the module this code is in, then in ../lib/forebay of its folder, then in the build
// tree. `fits` says whether it belongs to this build.
Result<const void*> LoadPlugin(const Plugin& plugin, bool (*fits)(const void* api));

// Libraries that the next plugin needs, from the folder that `variable` names: a program that does
// not have them on its search path. What cannot be loaded is left for the plugin's own loading to
// say.
void LoadBefore(const char* variable, std::initializer_list<const char*> files);

// Changes with the release, the compiler and `sizes` (of what crosses the boundary).
constexpr uint64_t PluginFingerprint(std::initializer_list<uint64_t> sizes) {
  constexpr std::string_view kBuild = FOREBAY_VERSION " " __VERSION__;
  uint64_t hash = 0xcbf29ce484222325ULL;
  const auto add = [&hash](uint64_t value) { hash = (hash ^ value) * 0x100000001b3ULL; };
  for (const char c : kBuild) add(static_cast<unsigned char>(c));
  for (const uint64_t size : sizes) add(size);
  return hash;
}

}  // namespace forebay::format
