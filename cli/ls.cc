// forebay ls [-r] URI
#include <fmt/core.h>

#include "command.h"
#include "output.h"

namespace forebay::cli {
namespace {

class Ls : public Command {
 public:
  std::string name() const override { return "ls"; }
  std::string summary() const override { return "list the objects below a prefix"; }
  void Define(Flags& flags) override {
    flags.Argument("uri", &uri_, "s3://bucket/prefix/, file:///folder/ or a path");
    flags.Flag("-r,--recursive", &recursive_, "every object below, not one level");
    flags.Flag("--human-readable", &human_, "sizes as KiB, MiB, GiB");
  }

  int Run(const Context& context) override {
    const auto store = context.OpenStore();
    if (!store) return kExitEnvironment;
    bool written = true;
    uint64_t entries = 0;
    bool left_out = false;
    const Status status = store->List(
        uri_, recursive_,
        [&](const ObjectStat& object) {
          ++entries;
          written = WriteOut(context.globals.json ? Json(object) : Text(object));
          return written;
        },
        [&](const ObjectSkip& skip) {
          left_out = true;
          WriteErr(fmt::format("forebay ls: left out {}: {}\n", Escaped(skip.uri), skip.why));
        });
    if (!status.ok()) return context.Fail(status);
    if (!written) return kExitOther;
    if (left_out) return kExitSkipped;
    // An empty bucket or folder is there; a prefix is there only by what begins so.
    if (entries == 0 && IsPrefix(uri_)) {
      WriteErr(fmt::format("forebay ls: nothing is at {}\n", uri_));
      return kExitService;
    }
    return kExitOk;
  }

 private:
  static bool IsPrefix(const std::string& uri) {
    constexpr std::string_view kScheme = "s3://";
    if (!uri.starts_with(kScheme)) return false;
    const size_t slash = uri.find('/', kScheme.size());
    return slash != uri.npos && slash + 1 < uri.size();
  }
  static std::string Json(const ObjectStat& object) {
    JsonLine line("ls");
    line.Add("uri", object.uri);
    if (object.is_prefix) return line.Add("type", "prefix").Take();
    return line.Add("type", "object")
        .Add("size", object.size)
        .Add("etag", object.etag)
        .AddRaw("modified", ModifiedJson(object.modified_unix_s))
        .Take();
  }
  std::string Text(const ObjectStat& object) const {
    const std::string uri = ForStdout(object.uri);
    if (object.is_prefix) return fmt::format("{:>20} {:>14} {}\n", "", "PRE", uri);
    const std::string size = human_ ? HumanSize(object.size) : fmt::format("{}", object.size);
    return fmt::format("{:>20} {:>14} {}\n", ModifiedText(object.modified_unix_s), size, uri);
  }

  std::string uri_;
  bool recursive_ = false;
  bool human_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLs() { return std::make_unique<Ls>(); }

}  // namespace forebay::cli
