// forebay doctor URI
#include "forebay/doctor.h"

#include <fmt/core.h>

#include "command.h"
#include "output.h"

namespace forebay::cli {
namespace {

std::string_view NameOf(Finding::Level level) {
  switch (level) {
    case Finding::Level::kOk:
      return "ok";
    case Finding::Level::kNote:
      return "note";
    case Finding::Level::kWarning:
      return "warning";
    case Finding::Level::kFailure:
      break;
  }
  return "failure";
}

class Doctor : public Command {
 public:
  std::string name() const override { return "doctor"; }
  std::string summary() const override {
    return "look at what stands between this machine and a store, and say what to do";
  }
  void Define(Flags& flags) override {
    flags.Argument("uri", &uri_, "a bucket, a prefix or an object");
  }

  int Run(const Context& context) override {
    int code = kExitOk;
    bool written = true;
    const Status status = Diagnose(uri_, context.globals.store, [&](const Finding& finding) {
      if (finding.level == Finding::Level::kFailure && code == kExitOk) code = CodeOf(finding);
      written = WriteOut(context.globals.json ? Json(finding) : Text(finding)) && written;
    });
    if (!status.ok()) return context.Fail(status);
    return written ? code : kExitOther;
  }

 private:
  // A machine that is set up wrong, unless the service itself has refused.
  static int CodeOf(const Finding& finding) {
    const int code = finding.status.ok() ? kExitEnvironment : ExitCodeFor(finding.status);
    return code == kExitService || code == kExitAgain ? code : kExitEnvironment;
  }
  static std::string Text(const Finding& finding) {
    std::string text =
        fmt::format("{:<8} {:<12} {}\n", NameOf(finding.level), finding.check, finding.text);
    if (!finding.fix.empty()) text += fmt::format("{:<22}-> {}\n", "", finding.fix);
    return text;
  }
  static std::string Json(const Finding& finding) {
    return JsonLine("doctor")
        .Add("check", finding.check)
        .Add("level", NameOf(finding.level))
        .Add("text", finding.text)
        .Add("fix", finding.fix)
        .Take();
  }

  std::string uri_;
};

}  // namespace

std::unique_ptr<Command> MakeDoctor() { return std::make_unique<Doctor>(); }

}  // namespace forebay::cli
