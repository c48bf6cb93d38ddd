// The only file that knows the option parser: global flags (command line over FOREBAY_* over the
// config file), subcommands, shell completion.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "command.h"
#include "numbers.h"
#include "output.h"
#include "signals.h"
#include "size.h"

namespace forebay::cli {
namespace {

constexpr int kServiceUnavailable = 503;
constexpr const char* kLogLevels[] = {"error", "warn", "info", "debug", "trace"};

std::optional<bool> ParseBool(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  if (text == "1" || text == "true" || text == "yes" || text == "on") return true;
  if (text == "0" || text == "false" || text == "no" || text == "off") return false;
  return std::nullopt;
}

// An option that is given has a value; a shell variable that was never set is a mistake.
const CLI::Validator kNotEmpty(
    [](const std::string& text) {
      return text.empty() ? std::string("the value is empty") : std::string();
    },
    "");

class CliFlags : public Flags {
 public:
  explicit CliFlags(CLI::App* app) : app_(app) {}
  void Argument(const std::string& name, std::string* value, const std::string& help) override {
    app_->add_option(Own(name), *value, help)->required();
  }
  void OptionalArgument(const std::string& name, std::string* value,
                        const std::string& help) override {
    app_->add_option(Own(name), *value, help);
  }
  void Arguments(const std::string& name, std::vector<std::string>* values,
                 const std::string& help) override {
    app_->add_option(Own(name), *values, help)->required();
  }
  void Option(const std::string& name, std::string* value, const std::string& help) override {
    app_->add_option(Own(name), *value, help)->check(kNotEmpty);
  }
  void Options(const std::string& name, std::vector<std::string>* values,
               const std::string& help) override {
    app_->add_option(Own(name), *values, help)->allow_extra_args(false)->check(kNotEmpty);
  }
  void Option(const std::string& name, int64_t* value, const std::string& help) override {
    Whole(name, value, help);
  }
  void Option(const std::string& name, uint64_t* value, const std::string& help) override {
    Whole(name, value, help);
  }
  void Option(const std::string& name, double* value, const std::string& help) override {
    app_->add_option(Own(name), *value, help);
  }
  void Choice(const std::string& name, std::string* value, const std::vector<std::string>& choices,
              const std::string& help) override {
    app_->add_option(Own(name), *value, help)->check(CLI::IsMember(choices));
  }
  void Size(const std::string& name, uint64_t* value, const std::string& help) override {
    app_->add_option_function<std::string>(
            Own(name),
            [value, name](const std::string& text) {
              const auto size = ParseSize(text);
              if (!size) throw CLI::ValidationError(name, "\"" + text + "\" is no size");
              *value = *size;
            },
            help)
        ->type_name("SIZE");
  }
  void Flag(const std::string& name, bool* value, const std::string& help) override {
    app_->add_flag(Own(name), *value, help);
  }

 private:
  // CLI11 from 2.4 on takes an argument for the option that is called so.
  std::string Own(const std::string& name) {
    if (names_.insert(name.substr(name.find_first_not_of('-'))).second) return name;
    WriteErr(fmt::format("two of one name: {}\n", name));
    std::abort();
  }

  // The parser's own conversion takes the nearest number for one that is too large.
  template <class T>
  void Whole(const std::string& name, T* value, const std::string& help) {
    app_->add_option_function<std::string>(
            Own(name),
            [value, name](const std::string& text) {
              const auto number = ParseNumber<T>(text);
              if (!number) {
                throw CLI::ValidationError(
                    name,
                    fmt::format("\"{}\" is no whole number from {} to {}", text,
                                std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
              }
              *value = *number;
            },
            help)
        ->type_name("INT");
  }

  CLI::App* app_;
  std::set<std::string> names_;
};

// A flag that every command has, its environment variable and its line in the config file.
struct Global {
  std::string name;  // "endpoint-url"
  CLI::Option* option = nullptr;
  std::function<bool(const std::string&)> set;  // false: not a valid value
};

class GlobalFlags {
 public:
  void Define(CLI::App& app) {
    Text(app, "endpoint-url", &options.store.endpoint_url, "the S3 service, else as AWS_* says");
    Text(app, "region", &options.store.region, "else AWS_REGION, profile");
    Text(app, "profile", &options.store.profile, "of the AWS config files, else AWS_PROFILE");
    Switch(
        app, "no-sign-request", [this](bool on) { options.store.no_sign_request = on; },
        "anonymous requests");
    Choice(app, "request-payer", {"requester"}, &payer, "requester: the reader pays");
    Text(app, "ca-bundle", &options.store.ca_bundle, "PEM file of certificate authorities");
    Switch(
        app, "no-verify-ssl", [this](bool on) { options.store.verify_ssl = !on; },
        "accept any certificate");
    app.add_option("--config", config_file,
                   "settings, one \"name = value\" a line (~/.config/forebay/config.toml)")
        ->check(kNotEmpty);
    Switch(app, "json", [this](bool on) { options.json = on; }, "JSON Lines on stdout");
    Switch(app, "quiet", [this](bool on) { options.quiet = on; }, "errors only", "-q,");
    Switch(app, "no-progress", [this](bool on) { options.no_progress = on; }, "no progress");
    Switch(app, "no-color", [this](bool on) { options.no_color = on; }, "no colour");
    Choice(app, "log", {std::begin(kLogLevels), std::end(kLogLevels)}, &options.log,
           "log level on stderr");
  }

  // Fills what the command line left open from the environment, then from the config file.
  Status Complete() {
    std::map<std::string, std::string> file;
    FB_RETURN_IF_ERROR(ReadConfig(&file));
    for (const Global& global : globals_) {
      if (global.option->count() > 0) continue;
      std::string variable = "FOREBAY_" + global.name;
      std::ranges::transform(variable, variable.begin(), [](unsigned char c) {
        return c == '-' ? '_' : static_cast<char>(std::toupper(c));
      });
      const char* text = std::getenv(variable.c_str());
      const auto line = file.find(global.name);
      if (text != nullptr && *text != '\0') {
        if (!global.set(text)) return Invalid(variable, text);
      } else if (line != file.end() && !global.set(line->second)) {
        return Invalid(config_file + ": " + global.name, line->second);
      }
    }
    options.store.request_payer = payer == "requester";
    return ConfigureLog(options.log);
  }

  GlobalOptions options;
  std::string config_file;
  std::string payer;

 private:
  static Status Invalid(const std::string& where, const std::string& value) {
    return Status(Code::kInvalidArgument, fmt::format("{} has no use for \"{}\"", where, value));
  }
  void Text(CLI::App& app, const std::string& name, std::string* value, const std::string& help) {
    CLI::Option* option = app.add_option("--" + name, *value, help)->check(kNotEmpty);
    globals_.push_back({name, option, [value](const std::string& text) {
                          *value = text;
                          return true;
                        }});
  }
  void Choice(CLI::App& app, const std::string& name, const std::vector<std::string>& choices,
              std::string* value, const std::string& help) {
    CLI::Option* option = app.add_option("--" + name, *value, help)->check(CLI::IsMember(choices));
    globals_.push_back({name, option, [value, choices](const std::string& text) {
                          *value = text;
                          return std::ranges::find(choices, text) != choices.end();
                        }});
  }
  void Switch(CLI::App& app, const std::string& name, std::function<void(bool)> set,
              const std::string& help, const std::string& alias = "") {
    CLI::Option* option = app.add_flag_callback(alias + "--" + name, [set] { set(true); }, help);
    globals_.push_back({name, option, [set](const std::string& text) {
                          const auto on = ParseBool(text);
                          if (on) set(*on);
                          return on.has_value();
                        }});
  }

  // "name = value" lines, values bare or in double quotes; '#' begins a comment line.
  Status ReadConfig(std::map<std::string, std::string>* out) {
    bool wanted = !config_file.empty();
    if (const char* text = std::getenv("FOREBAY_CONFIG"); !wanted && text != nullptr && *text) {
      config_file = text;
      wanted = true;
    }
    if (!wanted) {
      const char* base = std::getenv("XDG_CONFIG_HOME");
      const char* home = std::getenv("HOME");
      if (base != nullptr && *base == '/') {
        config_file = std::string(base) + "/forebay/config.toml";
      } else if (home != nullptr) {
        config_file = std::string(home) + "/.config/forebay/config.toml";
      }
    }
    std::ifstream in(config_file);
    if (!in) {
      if (!wanted) return {};
      return Status(Code::kInvalidArgument, fmt::format("{} cannot be read", config_file));
    }
    int number = 0;
    for (std::string line; std::getline(in, line);) {
      ++number;
      const std::string text = CLI::detail::trim_copy(line);
      if (text.empty() || text[0] == '#') continue;
      const size_t equals = text.find('=');
      std::string name = CLI::detail::trim_copy(text.substr(0, equals));
      std::ranges::replace(name, '_', '-');
      const bool known = std::ranges::any_of(
          globals_, [&name](const Global& global) { return global.name == name; });
      if (equals == text.npos || !known) {
        return Status(Code::kInvalidArgument,
                      fmt::format("{}:{}: not a setting", config_file, number));
      }
      std::string value = CLI::detail::trim_copy(text.substr(equals + 1));
      if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
        value = value.substr(1, value.size() - 2);
      }
      (*out)[name] = value;
    }
    return {};
  }

  std::vector<Global> globals_;
};

std::vector<std::string> OptionNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::string Join(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

std::string BashCompletion(const CLI::App& app) {
  std::string names;
  std::string cases;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    names += (names.empty() ? "" : " ") + sub->get_name();
    cases += fmt::format("    {}) words=\"{}\" ;;\n", sub->get_name(), Join(OptionNames(*sub)));
  }
  return fmt::format(R"(_forebay() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" command="" words="" word
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$word" in -*) ;; *) command="$word"; break ;; esac
  done
  case "$command" in
    "") words="{}" ;;
{}  esac
  if [[ "$current" == -* || -z "$command" ]]; then
    COMPREPLY=($(compgen -W "$words {}" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _forebay forebay
)",
                     names, cases, Join(OptionNames(app)));
}

std::string ZshCompletion(const CLI::App& app) {
  return "#compdef forebay\nautoload -U +X bashcompinit && bashcompinit\n" + BashCompletion(app);
}

std::string FishCompletion(const CLI::App& app) {
  std::string out;
  const auto add = [&out](const std::string& condition, const CLI::Option* option) {
    for (const std::string& name : option->get_lnames()) {
      out += fmt::format("complete -c forebay {} -l {} -d '{}'\n", condition, name,
                         CLI::detail::find_and_replace(option->get_description(), "'", ""));
    }
  };
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    out +=
        fmt::format("complete -c forebay -n __fish_use_subcommand -a {} -d '{}'\n", sub->get_name(),
                    CLI::detail::find_and_replace(sub->get_description(), "'", ""));
    for (const CLI::Option* option : sub->get_options()) {
      add(fmt::format("-n '__fish_seen_subcommand_from {}'", sub->get_name()), option);
    }
  }
  for (const CLI::Option* option : app.get_options()) add("", option);
  return out;
}

// No command was recognised: which word stands in its place, and which there are. `otherwise`: what
// the parser says, where it is about an option.
std::string NoCommand(const CLI::App& app, const std::string& otherwise) {
  std::string names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    names += (names.empty() ? "" : ", ") + sub->get_name();
  }
  const std::vector<std::string> rest = app.remaining();
  const auto word = std::ranges::find_if(rest, [](const auto& w) { return !w.starts_with('-'); });
  if (word != rest.end()) return fmt::format("\"{}\" is no command; there are {}", *word, names);
  if (!rest.empty()) return fmt::format("\"{}\" is no option that all commands have", rest[0]);
  return otherwise.contains("subcommand") ? "a command is missing; there are " + names : otherwise;
}

int PrintCompletion(const CLI::App& app, const std::string& shell) {
  const std::string script = shell == "bash"  ? BashCompletion(app)
                             : shell == "zsh" ? ZshCompletion(app)
                                              : FishCompletion(app);
  return WriteOut(script) ? kExitOk : kExitOther;
}

}  // namespace

int ExitCodeFor(const Status& status) {
  const ErrorDetail& detail = status.detail();
  if (detail.from_settings) return kExitEnvironment;
  const bool answered = detail.http_status != 0;
  const bool asked_s3 = detail.uri.starts_with("s3://");
  // No answer came: the endpoint, its name, the way there or its certificate is the reason.
  const bool unanswered = asked_s3 && detail.attempt > 0 && !answered;
  switch (status.code()) {
    case Code::kOk:
      return kExitOk;
    case Code::kInvalidArgument:
      if (unanswered) return kExitEnvironment;
      return detail.attempt > 0 ? kExitService : kExitUsage;
    case Code::kPermissionDenied:
      return answered ? kExitService : kExitEnvironment;
    case Code::kNotFound:
    case Code::kPreconditionFailed:
    case Code::kDataLoss:
      return kExitService;
    case Code::kUnavailable:
      // The answer to a HEAD has no body that would say more.
      if (detail.http_status == kServiceUnavailable) return kExitAgain;
      return answered ? kExitService : unanswered ? kExitEnvironment : kExitOther;
    case Code::kDeadlineExceeded:
      return unanswered ? kExitEnvironment : kExitOther;
    case Code::kResourceExhausted:
      return answered ? kExitAgain : kExitOther;
    case Code::kCancelled:
      return Interrupted() ? 128 + InterruptSignal() : kExitOther;
    case Code::kUnimplemented:
    case Code::kInternal:
      break;
  }
  return kExitOther;
}

int Context::Fail(const Status& status) const {
  WriteErr(fmt::format("forebay {}: {}\n", command, Escaped(status.ToString())));
  return ExitCodeFor(status);
}

int Context::FailObject(const Status& status) const {
  const int code = Fail(status);
  const ErrorDetail& detail = status.detail();
  const bool asked = detail.attempt > 0 || detail.http_status != 0 || detail.from_settings;
  const bool unusable = status.code() == Code::kDataLoss || status.code() == Code::kUnimplemented ||
                        (status.code() == Code::kInvalidArgument && !detail.uri.empty());
  if (asked) return code;
  // What is missing is inside an object that is there: it should not have been asked for.
  if (status.code() == Code::kNotFound && !detail.uri.empty()) return kExitUsage;
  return unusable ? kExitFailed : code;
}

int Context::FailUsage(std::string_view message) const {
  WriteErr(fmt::format("forebay {}: {}\n", command, message));
  return kExitUsage;
}

void Context::Note(std::string_view text) const {
  if (!globals.quiet) WriteErr(fmt::format("forebay {}: {}\n", command, Escaped(text)));
}

std::unique_ptr<Store> Context::OpenStore() const {
  Result<std::unique_ptr<Store>> store = Store::Open(globals.store);
  if (store.ok()) return *std::move(store);
  WriteErr(fmt::format("forebay {}: {}\n", command, store.status().ToString()));
  return nullptr;
}

int RunApp(int argc, char** argv, CommandList commands) {
  InstallSignals();
  CLI::App app("Feeds GPUs straight from object storage.", "forebay");
  app.set_version_flag("--version", "forebay " FOREBAY_VERSION);
  app.require_subcommand(1);
  app.fallthrough();
  GlobalFlags globals;
  globals.Define(app);
  for (const auto& command : commands) {
    CLI::App* sub = app.add_subcommand(command->name(), command->summary());
    sub->fallthrough();
    CliFlags flags(sub);
    command->Define(flags);
  }
  std::string shell;
  CLI::App* completion = app.add_subcommand("completion", "print a completion script");
  completion->add_option("shell", shell)->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help, --version
    std::ostringstream text;
    app.exit(success, text, text);
    return WriteOut(text.str()) ? kExitOk : kExitOther;
  } catch (const CLI::ParseError& error) {
    std::string message = error.what();
    if (app.get_subcommands().empty()) message = NoCommand(app, message);
    WriteErr(fmt::format("forebay: {}\nRun with --help for more.\n", message));
    return kExitUsage;
  }
  if (const Status status = globals.Complete(); !status.ok()) {
    WriteErr(fmt::format("forebay: {}\n", status.ToString()));
    return kExitEnvironment;
  }
  if (completion->parsed()) return PrintCompletion(app, shell);
  for (const auto& command : commands) {
    if (!app.got_subcommand(command->name())) continue;
    const Context context{.globals = globals.options, .command = command->name()};
    const int code = command->Run(context);
    return Interrupted() && code != kExitOk ? 128 + InterruptSignal() : code;
  }
  return kExitUsage;
}

}  // namespace forebay::cli
