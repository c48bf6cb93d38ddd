// What is written in order and never replaced: devices, FIFOs, and what this process has open
// already (/dev/stdout, /dev/fd/N). Blocking; one thread.
#pragma once

#include <functional>
#include <string>

#include "base/bytes.h"
#include "forebay/status.h"
#include "sys/fd.h"

namespace forebay::sys {

class StreamFile {
 public:
  // `path` is absolute. False for what is not there, for regular files and for folders.
  static bool IsOne(const std::string& path);
  // Waits for the reader of a FIFO, until `stop` says true (kCancelled). What an open descriptor
  // leads to is neither cut nor written from its beginning.
  static Result<StreamFile> Open(const std::string& path, std::function<bool()> stop);

  // All of it. Errors: kUnavailable when the reader went away, kCancelled.
  Status Write(ByteView bytes);

 private:
  StreamFile(Fd fd, std::string path, std::function<bool()> stop)
      : fd_(std::move(fd)), path_(std::move(path)), stop_(std::move(stop)) {}

  Fd fd_;
  std::string path_;
  std::function<bool()> stop_;
};

}  // namespace forebay::sys
