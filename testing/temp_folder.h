// A folder for one test, removed with all that is in it.
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/assert.h"

namespace forebay::testing {

class TempFolder {
 public:
  TempFolder() {
    path_ = (std::filesystem::temp_directory_path() / "forebay-test-XXXXXX").string();
    FB_ASSERT(::mkdtemp(path_.data()) != nullptr);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void MakePipe(const std::string& path) { FB_ASSERT(::mkfifo(path.c_str(), 0600) == 0); }

}  // namespace forebay::testing
