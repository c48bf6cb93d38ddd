// Heads and body framing of HTTP/1.1, as far as a proxy needs them: strict on what it accepts,
// bounded in what it stores, and silent about bytes of bodies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "forebay/status.h"

namespace forebay::faults {

inline constexpr size_t kMaxHeadBytes = 64 * 1024;
inline constexpr size_t kMaxFields = 256;

struct Field {
  std::string name;
  std::string value;
};

// How the end of a body is found.
enum class Framing : uint8_t { kNone, kLength, kChunked, kUntilClose };

struct RequestHead {
  std::string method;
  std::string target;  // as received, never normalised
  int minor_version = 1;
  std::vector<Field> fields;
  Framing framing = Framing::kNone;
  uint64_t content_length = 0;
  bool keep_alive = true;
  bool expects_continue = false;
};

struct ResponseHead {
  int minor_version = 1;
  int status = 0;
  std::string reason;
  std::vector<Field> fields;
  Framing framing = Framing::kNone;
  uint64_t content_length = 0;
  bool keep_alive = true;
};

// The size of the head at the front of `bytes`, its empty line included; nullopt: not whole yet.
// kInvalidArgument when it can no longer fit kMaxHeadBytes.
Result<std::optional<size_t>> FindHeadEnd(std::string_view bytes);

// `head` is exactly one head with its empty line. kInvalidArgument says what is wrong with it.
Result<RequestHead> ParseRequestHead(std::string_view head);
// `request_method` decides with the status whether a body follows.
Result<ResponseHead> ParseResponseHead(std::string_view head, std::string_view request_method);

// Names compare without case. The first field of that name, or null.
const Field* FindField(const std::vector<Field>& fields, std::string_view name);
void RemoveFields(std::vector<Field>& fields, std::string_view name);
void SetField(std::vector<Field>& fields, std::string_view name, std::string value);
bool SameName(std::string_view a, std::string_view b);

// Fields that end at this hop: Connection, those it names, Keep-Alive and Proxy-Connection.
void RemoveHopFields(std::vector<Field>& fields);

std::string FormatRequestHead(const RequestHead& head);
std::string FormatResponseHead(const ResponseHead& head);

// Follows a body through its framing. Positions are payload bytes: chunk lines do not count.
class BodyFramer {
 public:
  struct Step {
    size_t raw = 0;        // bytes of the data that belong to this step
    uint64_t payload = 0;  // how many of them are payload
  };

  BodyFramer() : BodyFramer(Framing::kNone, 0) {}
  BodyFramer(Framing framing, uint64_t length);

  // Takes from the front of `data` up to `max_payload` bytes of payload, with the framing around
  // them, and stops right after the last of these. kInvalidArgument: broken chunks.
  Result<Step> Consume(std::string_view data, uint64_t max_payload);
  bool done() const { return done_; }
  // Payload bytes that follow without any framing between; all of the body unless it is chunked.
  uint64_t plain_bytes() const;
  // Those bytes went by without being looked at. Not for chunked bodies.
  void SkipPlain(uint64_t bytes);
  Framing framing() const { return framing_; }

 private:
  enum class Chunk : uint8_t { kSize, kExtension, kSizeLf, kData, kDataCr, kDataLf, kTrailer };
  Status TakeFramingByte(char c);
  Status TakeTrailerByte(char c);

  Framing framing_;
  uint64_t left_ = 0;  // of the body, or of the present chunk
  bool done_ = false;
  Chunk chunk_ = Chunk::kSize;
  uint32_t line_bytes_ = 0;  // of the present chunk line, or of all trailers
  uint32_t size_digits_ = 0;
  uint32_t trailer_column_ = 0;
  bool trailer_cr_ = false;
};

// "a%2Fb" -> "a/b"; broken escapes stay as they are; `plus_is_space` as in a query.
std::string PercentDecode(std::string_view text, bool plus_is_space);
std::string PercentEncode(std::string_view text, std::string_view keep);

}  // namespace forebay::faults
