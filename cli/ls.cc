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
    const Status status = store->List(uri_, recursive_, [&](const ObjectStat& object) {
      ++entries;
      written = WriteOut(context.globals.json ? Json(object) : Text(object));
      return written;
    });
    if (!status.ok()) return context.Fail(status);
    if (!written) return kExitOther;
    if (entries == 0) {
      context.Note(fmt::format("nothing is at {}", uri_));
      return kExitService;
    }
    return kExitOk;
  }

 private:
  static std::string Json(const ObjectStat& object) {
    JsonLine line("ls");
    line.Add("uri", object.uri);
    if (object.is_prefix) return line.Add("type", "prefix").Take();
    return line.Add("type", "object")
        .Add("size", object.size)
        .Add("etag", object.etag)
        .Add("modified", IsoTime(object.modified_unix_s))
        .Take();
  }
  std::string Text(const ObjectStat& object) const {
    if (object.is_prefix) return fmt::format("{:>20} {:>14} {}\n", "", "PRE", object.uri);
    const std::string size = human_ ? HumanSize(object.size) : fmt::format("{}", object.size);
    return fmt::format("{:>20} {:>14} {}\n", IsoTime(object.modified_unix_s), size, object.uri);
  }

  std::string uri_;
  bool recursive_ = false;
  bool human_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeLs() { return std::make_unique<Ls>(); }

}  // namespace forebay::cli
