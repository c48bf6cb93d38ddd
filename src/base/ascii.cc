#include "base/ascii.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace forebay {

// Eight bytes at a time, as long as they are innocent: this runs over every header byte that is
// sent and received.
bool HasControl(std::string_view text, Tab tab) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kHighs = kOnes * 0x80;
  while (text.size() >= 8) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), 8);
    const uint64_t low = (word - kOnes * 0x20) & ~word;  // a byte below 0x20
    const uint64_t flipped = word ^ (kOnes * 0x7f);
    const uint64_t del = (flipped - kOnes) & ~flipped;  // a byte 0x7f
    if (((low | del) & kHighs) != 0) break;             // or a borrow: look closely
    text.remove_prefix(8);
  }
  return std::any_of(text.begin(), text.end(), [tab](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && (c != '\t' || tab == Tab::kIsControl)) ||
           c == 0x7f;
  });
}

}  // namespace forebay
