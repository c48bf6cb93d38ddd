// stdout is data, stderr is talk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "command.h"

namespace forebay::cli {

// Writes all of it. False once the reader has gone or the disk is full: stop then, the failure has
// been reported.
bool WriteOut(std::string_view text);
bool WriteOut(std::span<const std::byte> bytes);
void WriteErr(std::string_view text);

// `text` with what a terminal would obey, or show as something else, written out: control
// characters (those from U+0080 on too) as \n or \x1b, bytes that are no UTF-8 as \xff.
std::string Escaped(std::string_view text);
// For a line on stdout: escaped where that is a terminal, else as it is.
std::string ForStdout(std::string_view text);

// 1234567 -> "1.2 MiB"
std::string HumanSize(uint64_t bytes);
// UTC, "2026-11-30T02:47:21Z"
std::string IsoTime(int64_t unix_s);
// When an object was written; "-" and null where the store does not say.
std::string ModifiedText(int64_t unix_s);
std::string ModifiedJson(int64_t unix_s);

// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

// One object of a JSON Lines stream: {"schema":"forebay.<command>/1", ...}
class JsonLine {
 public:
  explicit JsonLine(std::string_view command);
  JsonLine& Add(std::string_view name, std::string_view value);
  JsonLine& Add(std::string_view name, const char* value) {
    return Add(name, std::string_view(value));
  }
  JsonLine& Add(std::string_view name, uint64_t value);
  JsonLine& Add(std::string_view name, int64_t value);
  JsonLine& Add(std::string_view name, double value);
  JsonLine& Add(std::string_view name, bool value);
  // `json` is JSON already.
  JsonLine& AddRaw(std::string_view name, std::string_view json);
  // With the final newline.
  std::string Take();

 private:
  std::string text_;
};

// A bar on stderr when that is a terminal; otherwise a line every 30 s; nothing with --quiet or
// --no-progress. One thread.
class Progress {
 public:
  Progress(const Context& context, std::string verb);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `total` 0: not known yet. `unit_bytes`: show sizes, else plain counts.
  void Update(uint64_t done, uint64_t total, bool unit_bytes, std::string_view detail = "");
  // Removes the bar.
  void Finish();

 private:
  using Clock = std::chrono::steady_clock;
  std::string verb_;
  bool enabled_;
  bool terminal_;
  bool drawn_ = false;
  Clock::time_point started_ = Clock::now();
  Clock::time_point last_ = Clock::now();
};

}  // namespace forebay::cli
