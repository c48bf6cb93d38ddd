// The bytes of an HTTP/1.1 answer: its head, and how its body is delimited. Fed with pieces cut
// anywhere; touches no socket. What a sane server never sends is refused with kDataLoss rather than
// guessed at: two ends that read one answer differently are how answers get mixed up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "forebay/status.h"
#include "net/http.h"

namespace forebay::net::lean {

// Of the head with all interim (1xx) heads before it, and again of a chunked body's trailers.
inline constexpr size_t kMaxHeadBytes = 64 * 1024;

enum class Framing : uint8_t {
  kNone,        // no body follows, whatever the head says
  kLength,      // content_length bytes
  kChunked,     // to the last chunk
  kUntilClose,  // to the end of the connection
};

class HeadParser {
 public:
  // Before each answer. `to_head_request`: the answer has no body. Keeps its memory.
  void Reset(bool to_head_request);
  // Takes the head's bytes from the front of `bytes`. True: the final head is complete, and `bytes`
  // is what followed it. False: all of it was taken. After an error only Reset may follow.
  Result<bool> Take(ByteView& bytes);

  // These four hold once the head is complete.
  const HttpHead& head() const { return head_; }
  Framing framing() const { return framing_; }
  // Neither the head's version nor its Connection field ends the connection after this answer.
  bool keeps_alive() const { return keeps_alive_; }
  size_t head_bytes() const { return bytes_; }
  bool started() const { return bytes_ > 0; }

 private:
  void StartHead();
  // One line without its end. True: it was the last.
  Result<bool> TakeLine(std::string_view line);
  Status TakeStatusLine(std::string_view line);
  Status TakeField(std::string_view line);
  Status TakeFramingField(std::string_view name, std::string_view value);
  Result<bool> Finish();

  HttpHead head_;
  std::string partial_;  // the line that the last piece ended in
  size_t bytes_ = 0;
  bool to_head_request_ = false;
  bool http_1_0_ = false;
  bool has_length_ = false;
  bool chunked_ = false;
  bool keeps_alive_ = true;
  Framing framing_ = Framing::kNone;
};

class ChunkDecoder {
 public:
  void Reset() { *this = ChunkDecoder(); }
  // The next bytes of the body, taken from the front of `input`: a view into it. "" when `input` is
  // used up, or the body's end has been reached (then `input` is what follows it).
  Result<ByteView> Next(ByteView& input);
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : uint8_t { kSize, kExtension, kData, kDataEnd, kTrailer, kDone };
  Status TakeByte(char c);
  Status EndSizeLine();

  State state_ = State::kSize;
  uint64_t left_ = 0;      // of the chunk's size or its data
  int digits_ = 0;         // of the size so far
  bool carriage_ = false;  // the last byte was '\r'
  size_t line_bytes_ = 0;  // of the trailer line so far
  size_t overhead_ = 0;    // bytes of the present size line, or of all trailers
};

}  // namespace forebay::net::lean
