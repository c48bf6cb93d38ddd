#include "base/ascii.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace forebay {

namespace {

// Whether one of eight bytes is below 0x20 or 0x7f, or seems to be for what is beside it.
bool MayBeControl(const char* at) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = kOnes * 0x80;
  uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  const uint64_t low = (word - kOnes * 0x20) & ~word;
  const uint64_t flipped = word ^ (kOnes * 0x7f);
  const uint64_t del = (flipped - kOnes) & ~flipped;
  return ((low | del) & kHighs) != 0;
}

}  // namespace

// Eight bytes at a time, as long as they are innocent: this runs over every header byte that is
// sent and received.
bool HasControl(std::string_view text, Tab tab) {
  if (text.size() >= 8) {
    const char* at = text.data();
    const char* const last = at + text.size() - 8;
    while (at < last && !MayBeControl(at)) at += 8;
    if (at >= last && !MayBeControl(last)) return false;
  }
  return std::any_of(text.begin(), text.end(), [tab](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && (c != '\t' || tab == Tab::kIsControl)) ||
           c == 0x7f;
  });
}

namespace {

// Of the UTF-8 sequence at the front, 0 when there is none.
size_t SequenceLength(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
  const bool surrogate = lead == 0xed && byte(1) >= 0xa0;
  const bool beyond = lead == 0xf4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

std::string Printable(std::string_view text, size_t limit) {
  std::string out;
  while (!text.empty()) {
    const auto first = static_cast<unsigned char>(text[0]);
    const size_t length = SequenceLength(text);
    const size_t taken = length == 0 ? 1 : length;
    if (out.size() + taken > limit) break;
    const bool c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    const bool control = length == 0 || c1 || (length == 1 && (first < 0x20 || first == 0x7f));
    out += control ? std::string_view(" ") : text.substr(0, taken);
    text.remove_prefix(taken);
  }
  return out;
}

std::string HideUserinfo(std::string_view text) {
  // A password may hold any character, this one too.
  const size_t end = text.rfind('@');
  if (end == text.npos) return std::string(text);
  size_t begin = text.find("://");
  if (begin < end) {
    begin += 3;
  } else {
    begin = text.find('\'');
    begin = begin < end ? begin + 1 : 0;
  }
  return std::string(text.substr(0, begin)) + "***" + std::string(text.substr(end));
}

}  // namespace forebay
