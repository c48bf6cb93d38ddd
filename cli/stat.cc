// forebay stat URI...
#include <fmt/core.h>

#include "command.h"
#include "output.h"

namespace forebay::cli {
namespace {

class Stat : public Command {
 public:
  std::string name() const override { return "stat"; }
  std::string summary() const override { return "show size, ETag and time of objects"; }
  void Define(Flags& flags) override { flags.Arguments("uri", &uris_, "objects"); }

  int Run(const Context& context) override {
    const auto store = context.OpenStore();
    if (!store) return kExitEnvironment;
    int code = kExitOk;
    for (const std::string& uri : uris_) {
      const Result<ObjectStat> object = store->Stat(uri);
      if (!object.ok()) {
        code = context.Fail(object.status());
        continue;
      }
      if (!WriteOut(context.globals.json ? Json(*object) : Text(*object))) return kExitOther;
    }
    return code != kExitOk && uris_.size() > 1 ? kExitFailed : code;
  }

 private:
  static std::string Json(const ObjectStat& object) {
    return JsonLine("stat")
        .Add("uri", object.uri)
        .Add("size", object.size)
        .Add("etag", object.etag)
        .AddRaw("modified", ModifiedJson(object.modified_unix_s))
        .Take();
  }
  static std::string Text(const ObjectStat& object) {
    return fmt::format("uri:      {}\nsize:     {} ({})\netag:     {}\nmodified: {}\n",
                       ForStdout(object.uri), object.size, HumanSize(object.size),
                       ForStdout(object.etag), ModifiedText(object.modified_unix_s));
  }

  std::vector<std::string> uris_;
};

}  // namespace

std::unique_ptr<Command> MakeStat() { return std::make_unique<Stat>(); }

}  // namespace forebay::cli
