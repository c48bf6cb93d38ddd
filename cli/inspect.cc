// forebay inspect URI
#include "command.h"
#include "forebay/video.h"
#include "output.h"

namespace forebay::cli {
namespace {

// JSON text broken into lines and indented. The text is valid JSON without spaces between tokens.
std::string Indented(const std::string& json) {
  std::string out;
  size_t depth = 0;
  bool quoted = false;
  const auto line = [&] { out += "\n" + std::string(2 * depth, ' '); };
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (quoted) {
      out += c;
      if (c == '\\' && i + 1 < json.size()) out += json[++i];
      quoted = c != '"';
      continue;
    }
    const bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
    const bool empty = opens && i + 1 < json.size() && (json[i + 1] == '}' || json[i + 1] == ']');
    if (empty) {
      out += {c, json[++i]};
      continue;
    }
    if (closes) --depth, line();
    out += c;
    if (opens) ++depth, line();
    if (c == ',') line();
    if (c == ':') out += ' ';
    quoted = c == '"';
  }
  return out;
}

class Inspect : public Command {
 public:
  std::string name() const override { return "inspect"; }
  std::string summary() const override { return "tell what a video or a catalog holds"; }
  void Define(Flags& flags) override {
    flags.Argument("uri", &uri_, "a video, or a catalog (.fbc)");
  }

  int Run(const Context& context) override {
    const Result<std::string> json = InspectJson(uri_, context.globals.store);
    if (!json.ok()) return context.FailObject(json.status());
    return WriteOut((context.globals.json ? *json : Indented(*json)) + "\n") ? kExitOk : kExitOther;
  }

 private:
  std::string uri_;
};

}  // namespace

std::unique_ptr<Command> MakeInspect() { return std::make_unique<Inspect>(); }

}  // namespace forebay::cli
