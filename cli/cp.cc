// forebay cp [-r] FROM TO
#include <fmt/core.h>

#include "command.h"
#include "output.h"
#include "signals.h"

namespace forebay::cli {
namespace {

class Cp : public Command {
 public:
  std::string name() const override { return "cp"; }
  std::string summary() const override { return "copy an object, or all below a prefix"; }
  void Define(Flags& flags) override {
    flags.Argument("from", &from_, "an object; with -r a prefix or a folder");
    flags.Argument("to", &to_, "its new URI; ending in '/': the name is kept");
    flags.Flag("-r,--recursive", &recursive_,
               "every object below, except .forebay/ and *.forebay-part");
  }

  int Run(const Context& context) override {
    const auto store = context.OpenStore();
    if (!store) return kExitEnvironment;
    const KeepPartialWork keep;  // a .part file is what the next run resumes from
    Progress progress(context, "copied");
    CopyOptions options{
        .recursive = recursive_, .on_progress = [&](const CopyProgress& at) {
          progress.Update(
              at.bytes_done, at.bytes_total, true,
              recursive_ ? fmt::format("{} of {} objects", at.objects_done, at.objects_total) : "");
          return !Interrupted();
        }};
    const Result<CopyReport> report = store->Copy(from_, to_, options);
    progress.Finish();
    if (!report.ok()) {
      const int code = context.Fail(report.status());
      // Of an upload that was stopped nothing is kept.
      const bool resumes = recursive_ || !to_.starts_with("s3://");
      if (report.code() == Code::kCancelled && resumes) {
        context.Note("the same command resumes the copy");
      }
      return code;
    }
    for (const Status& failure : report->failures) {
      WriteErr(fmt::format("forebay cp: {}\n", Escaped(failure.ToString())));
    }
    for (const ObjectSkip& skip : report->left_out) {
      WriteErr(fmt::format("forebay cp: left out {}: {}\n", Escaped(skip.uri), skip.why));
    }
    const bool printed = Print(context, *report);
    if (report->objects_failed > 0) return kExitFailed;
    if (!printed) return kExitOther;
    return report->objects_left_out > 0 ? kExitSkipped : kExitOk;
  }

 private:
  // False: stdout could not be written.
  bool Print(const Context& context, const CopyReport& report) const {
    if (context.globals.json) {
      return WriteOut(JsonLine("cp")
                          .Add("from", from_)
                          .Add("to", to_)
                          .Add("objects_copied", report.objects_copied)
                          .Add("objects_skipped", report.objects_skipped)
                          .Add("objects_failed", report.objects_failed)
                          .Add("objects_left_out", report.objects_left_out)
                          .Add("bytes_copied", report.bytes_copied)
                          .Take());
    }
    std::string text =
        fmt::format("copied {} objects, {}", report.objects_copied, HumanSize(report.bytes_copied));
    if (report.objects_skipped > 0) {
      text += fmt::format("; {} were there already", report.objects_skipped);
    }
    if (report.objects_left_out > 0) {
      text += fmt::format("; {} left out", report.objects_left_out);
    }
    if (report.objects_failed > 0) text += fmt::format("; {} failed", report.objects_failed);
    context.Note(text);
    return true;
  }

  std::string from_;
  std::string to_;
  bool recursive_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeCp() { return std::make_unique<Cp>(); }

}  // namespace forebay::cli
