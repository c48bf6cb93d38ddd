// Characters as protocols define them: ASCII, whatever the locale.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace forebay {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Of a hexadecimal digit of either case; -1: it is none.
constexpr int HexValue(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Tab { kIsControl, kAllowed };
// Whether there is a byte below 0x20, or 0x7f. Bytes from 0x80 on are none: they are somebody's
// UTF-8.
bool HasControl(std::string_view text, Tab tab = Tab::kIsControl);

// What somebody else says, for a text that people read: at most `limit` bytes of it, and a blank in
// place of each control character (those from U+0080 on too) and byte that is no UTF-8.
std::string Printable(std::string_view text, size_t limit);

// A text that names one URL, in quotes or alone, with "***" in place of the name and the password
// that the URL may begin with; also of one that is no right URL.
std::string HideUserinfo(std::string_view text);

}  // namespace forebay
