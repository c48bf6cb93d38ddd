#include "output.h"

#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>

namespace forebay::cli {
namespace {

bool WriteAll(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::write(fd, data, size);
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
  return true;
}

// Length of the valid UTF-8 sequence at the front of `text`, 0 when there is none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;   // overlong
  if (lead == 0xed && byte(1) >= 0xa0) return 0;  // surrogate
  if (lead == 0xf0 && byte(1) < 0x90) return 0;   // overlong
  if (lead == 0xf4 && byte(1) >= 0x90) return 0;  // past U+10FFFF
  return length;
}

std::string Quantity(uint64_t value, bool bytes) {
  return bytes ? HumanSize(value) : fmt::format("{}", value);
}

}  // namespace

bool WriteOut(std::string_view text) {
  if (WriteAll(STDOUT_FILENO, text.data(), text.size())) return true;
  if (errno != EPIPE) {  // a reader that went away knows it
    WriteErr(fmt::format("forebay: writing to stdout: {}\n", std::strerror(errno)));
  }
  return false;
}

bool WriteOut(std::span<const std::byte> bytes) {
  return WriteOut(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

void WriteErr(std::string_view text) { WriteAll(STDERR_FILENO, text.data(), text.size()); }

std::string Escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = Utf8Length(text);
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (text[0] == '\n') {
      out += "\\n";
    } else if (length == 0 || first < 0x20 || first == 0x7f) {
      out += fmt::format("\\x{:02x}", first);
    } else if (c1) {
      out += fmt::format("\\x{:02x}\\x{:02x}", first, static_cast<unsigned char>(text[1]));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return out;
}

std::string ForStdout(std::string_view text) {
  static const bool terminal = isatty(STDOUT_FILENO) == 1;
  return terminal ? Escaped(text) : std::string(text);
}

std::string HumanSize(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  size_t unit = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string IsoTime(int64_t unix_s) {
  const std::time_t seconds = unix_s;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", parts);
}

std::string ModifiedText(int64_t unix_s) { return unix_s == 0 ? "-" : IsoTime(unix_s); }
std::string ModifiedJson(int64_t unix_s) {
  return unix_s == 0 ? "null" : JsonString(IsoTime(unix_s));
}

std::string JsonString(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text[0]);
    size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c == '\n') {
      out += "\\n";
    } else if (c < 0x20 || c == 0x7f) {
      out += fmt::format("\\u{:04x}", c);
    } else if (length = Utf8Length(text); length > 0) {
      out += text.substr(0, length);
    } else {
      out += "\xef\xbf\xbd";
      length = 1;
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

JsonLine::JsonLine(std::string_view command)
    : text_(fmt::format("{{\"schema\":\"forebay.{}/1\"", command)) {}

JsonLine& JsonLine::AddRaw(std::string_view name, std::string_view json) {
  text_ += fmt::format(",{}:{}", JsonString(name), json);
  return *this;
}

JsonLine& JsonLine::Add(std::string_view name, std::string_view value) {
  return AddRaw(name, JsonString(value));
}
JsonLine& JsonLine::Add(std::string_view name, uint64_t value) {
  return AddRaw(name, fmt::format("{}", value));
}
JsonLine& JsonLine::Add(std::string_view name, int64_t value) {
  return AddRaw(name, fmt::format("{}", value));
}
JsonLine& JsonLine::Add(std::string_view name, double value) {
  return AddRaw(name, std::isfinite(value) ? fmt::format("{}", value) : "null");
}
JsonLine& JsonLine::Add(std::string_view name, bool value) {
  return AddRaw(name, value ? "true" : "false");
}

std::string JsonLine::Take() { return std::move(text_) + "}\n"; }

Progress::Progress(const Context& context, std::string verb)
    : verb_(std::move(verb)),
      enabled_(!context.globals.quiet && !context.globals.no_progress),
      terminal_(isatty(STDERR_FILENO) == 1) {
  const char* term = std::getenv("TERM");
  if (term != nullptr && std::string_view(term) == "dumb") terminal_ = false;
}

Progress::~Progress() { Finish(); }

void Progress::Update(uint64_t done, uint64_t total, bool unit_bytes, std::string_view detail) {
  if (!enabled_) return;
  const auto now = Clock::now();
  const auto interval =
      terminal_ ? std::chrono::milliseconds(100) : std::chrono::milliseconds(30'000);
  if (now - last_ < interval) return;
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  std::string line = fmt::format("{} {}", verb_, Quantity(done, unit_bytes));
  if (total > 0) {
    line += fmt::format(" of {} ({:.0f}%)", Quantity(total, unit_bytes),
                        100.0 * static_cast<double>(done) / static_cast<double>(total));
  }
  const auto rate = static_cast<uint64_t>(static_cast<double>(done) / std::max(seconds, 0.001));
  line += fmt::format(", {}/s", Quantity(rate, unit_bytes));
  if (!detail.empty()) line += fmt::format(", {}", detail);
  if (!terminal_) {
    WriteErr(fmt::format("forebay: {}\n", line));
    return;
  }
  constexpr size_t kBar = 24;
  std::string bar;
  if (total > 0) {
    const size_t full = std::min<size_t>(kBar, done * kBar / std::max<uint64_t>(total, 1));
    bar = fmt::format("[{}{}] ", std::string(full, '#'), std::string(kBar - full, '.'));
  }
  WriteErr(fmt::format("\r\x1b[K{}{}", bar, line.substr(0, 100)));
  drawn_ = true;
}

void Progress::Finish() {
  if (drawn_) WriteErr("\r\x1b[K");
  drawn_ = false;
}

}  // namespace forebay::cli
