// Runs every target on its corpus: each file, the file cut short, and with single bytes changed.
//
//   forebay_fuzz_replay CORPUS      CORPUS/NAME/* for every target
//   forebay_fuzz_replay NAME FILE   one input, as libFuzzer left it
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "fuzz/targets.h"

namespace {

namespace fs = std::filesystem;
using forebay::fuzz::Target;

constexpr size_t kVariants = 40;  // cut short, and as many with a byte changed

std::string ReadFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void Run(const Target& target, const std::string& input) {
  // Of its own size exactly, so that a sanitizer sees the first byte read past it.
  const std::vector<std::byte> bytes(forebay::AsBytes(input).begin(),
                                     forebay::AsBytes(input).end());
  target.run(bytes);
}

void RunVariants(const Target& target, const std::string& input) {
  forebay::Random random(input.size());
  Run(target, input);
  for (size_t i = 0; i < kVariants && !input.empty(); ++i) {
    Run(target, input.substr(0, random.NextBelow(input.size())));
    std::string changed = input;
    changed[random.NextBelow(input.size())] = static_cast<char>(random.NextBelow(256));
    Run(target, changed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    const Target* target = forebay::fuzz::FindTarget(argv[1]);
    if (target == nullptr) return 2;
    Run(*target, ReadFile(argv[2]));
    return 0;
  }
  if (argc != 2) return 2;
  int failures = 0;
  for (const Target& target : forebay::fuzz::Targets()) {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(fs::path(argv[1]) / target.name, error)) {
      files.push_back(entry.path());
    }
    std::ranges::sort(files);
    for (const fs::path& file : files) {
      std::printf("%s\n", file.c_str());  // whoever aborts is named last
      std::fflush(stdout);
      RunVariants(target, ReadFile(file));
    }
    if (files.empty()) {
      std::printf("%s has no corpus\n", std::string(target.name).c_str());
      ++failures;
    }
  }
  return failures == 0 ? 0 : 1;
}
