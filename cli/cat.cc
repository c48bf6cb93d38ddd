// forebay cat [--range A-B] URI
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "command.h"
#include "output.h"

namespace forebay::cli {
namespace {

constexpr uint64_t kChunkBytes = 8ULL << 20;

class Cat : public Command {
 public:
  std::string name() const override { return "cat"; }
  std::string summary() const override { return "write an object's bytes to stdout"; }
  void Define(Flags& flags) override {
    flags.Argument("uri", &uri_, "the object");
    flags.Option("--range", &range_, "bytes A-B, both included; A- to the end; -N the last N");
  }

  int Run(const Context& context) override {
    const auto store = context.OpenStore();
    if (!store) return kExitEnvironment;
    if (!range_.empty() && !ParseRange()) {
      return context.FailUsage(fmt::format("--range \"{}\" is not A-B, A- or -N", range_));
    }
    const Result<ObjectStat> object = store->Stat(uri_);
    if (!object.ok()) return context.Fail(object.status());
    uint64_t offset = 0;
    uint64_t end = object->size;
    if (!range_.empty()) {
      // As HTTP has it: the end is clamped, a start at or past the end is refused.
      offset = has_first_ ? first_ : object->size - std::min(last_, object->size);
      if (has_first_ && has_last_) end = std::min(end, last_ + 1);
      if (offset >= end) {
        return context.Fail(Status(
            Code::kInvalidArgument, fmt::format("the object has only {} bytes", object->size),
            ErrorDetail{.uri = object->uri, .attempt = 1, .http_status = 416}));
      }
    }
    return Write(context, *store, *object, offset, end);
  }

 private:
  int Write(const Context& context, Store& store, const ObjectStat& object, uint64_t offset,
            uint64_t end) {
    std::vector<std::byte> buffer(std::min(kChunkBytes, end - offset));
    while (offset < end) {
      const std::span<std::byte> chunk(buffer.data(),
                                       std::min<uint64_t>(buffer.size(), end - offset));
      const Status status = store.ReadRange(uri_, object.etag, offset, chunk);
      if (!status.ok()) return context.Fail(status);
      if (!WriteOut(std::span<const std::byte>(chunk))) return kExitOther;
      offset += chunk.size();
    }
    return kExitOk;
  }

  static bool ParseNumber(std::string_view text, uint64_t* value) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && rest == text.data() + text.size() && *value < UINT64_MAX;
  }

  bool ParseRange() {
    std::string_view text = range_;
    if (text.starts_with("bytes=")) text.remove_prefix(6);
    const size_t dash = text.find('-');
    if (dash == text.npos) return false;
    has_first_ = dash > 0;
    has_last_ = dash + 1 < text.size();
    if (has_first_ && !ParseNumber(text.substr(0, dash), &first_)) return false;
    if (has_last_ && !ParseNumber(text.substr(dash + 1), &last_)) return false;
    if (has_first_ && has_last_) return first_ <= last_;
    return has_first_ || (has_last_ && last_ > 0);
  }

  std::string uri_;
  std::string range_;
  bool has_first_ = false;
  bool has_last_ = false;
  uint64_t first_ = 0;
  uint64_t last_ = 0;
};

}  // namespace

std::unique_ptr<Command> MakeCat() { return std::make_unique<Cat>(); }

}  // namespace forebay::cli
