// Something of each public header, so that a symbol that is not exported is seen.
#include <forebay/loader.h>
#include <forebay/options.h>
#include <forebay/status.h>
#include <forebay/store.h>
#include <forebay/video.h>

#include <cstdio>
#include <cstring>
#include <string>

namespace {

int Fail(const forebay::Status& status) {
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}

}  // namespace

// main FOLDER VIDEO
int main(int argc, char** argv) {
  if (argc != 3 || !forebay::ConfigureLog("error").ok()) return 2;
  const auto store = forebay::Store::Open({});
  if (!store.ok()) return Fail(store.status());
  const std::string uri = std::string(argv[1]) + "/hello", text = "hello";
  const auto put = (*store)->Put(uri, std::as_bytes(std::span(text)));
  if (!put.ok()) return Fail(put.status());
  std::string back(text.size(), '\0');
  forebay::Status read = (*store)->ReadRange(uri, *put, 0, std::as_writable_bytes(std::span(back)));
  if (!read.ok()) return Fail(std::move(read).WithContext("reading it back"));
  const auto video = forebay::Video::Open(argv[2], {}, {});
  if (!video.ok()) return Fail(video.status());
  forebay::ClipsOptions clips;
  clips.uri = argv[1];
  const auto loader = forebay::Loader::Make({{.name = "", .data = clips}}, {}, {});
  if (loader.code() != forebay::Code::kNotFound) return Fail(loader.status());  // no catalog
  std::printf("%s, %u frames\n", back.c_str(), (*video)->frame_count());
  return 0;
}
