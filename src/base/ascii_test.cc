#include "base/ascii.h"

#include <gtest/gtest.h>

#include <string>

namespace forebay {
namespace {

// Every byte at every place of texts around a word's size.
TEST(Ascii, control_characters_are_found_wherever_they_stand) {
  for (size_t size = 1; size <= 18; ++size) {
    for (size_t at = 0; at < size; ++at) {
      for (int byte = 0; byte < 256; ++byte) {
        for (const char other : {'a', '\x80', ' ', '\xff'}) {
          std::string text(size, other);
          text[at] = static_cast<char>(byte);
          const bool control = byte < 0x20 || byte == 0x7f;
          ASSERT_EQ(HasControl(text), control) << size << " " << at << " " << byte;
          ASSERT_EQ(HasControl(text, Tab::kAllowed), control && byte != '\t');
        }
      }
    }
  }
  EXPECT_FALSE(HasControl(""));
}

TEST(Ascii, a_password_in_a_url_is_hidden_however_broken_the_url_is) {
  EXPECT_EQ(HideUserinfo("http://host:1/a"), "http://host:1/a");
  EXPECT_EQ(HideUserinfo("http://user:pass@host:1/a"), "http://***@host:1/a");
  EXPECT_EQ(HideUserinfo("no scheme for 'ftp://u:p@ss w'ord://x@host:1'"),
            "no scheme for 'ftp://***@host:1'");
  EXPECT_EQ(HideUserinfo("no syntax in 'u:p@ss@host'"), "no syntax in '***@host'");
  EXPECT_EQ(HideUserinfo("u:p@host"), "***@host");
  EXPECT_EQ(HideUserinfo(""), "");
}

TEST(Ascii, hex_digits) {
  const std::string_view digits = "0123456789abcdef";
  for (int c = -128; c < 128; ++c) {
    const size_t lower = digits.find(static_cast<char>(c));
    const size_t upper = std::string_view("0123456789ABCDEF").find(static_cast<char>(c));
    const size_t value = lower != digits.npos ? lower : upper;
    EXPECT_EQ(HexValue(static_cast<char>(c)), value == digits.npos ? -1 : static_cast<int>(value));
  }
}

TEST(Printable, keeps_what_people_read_and_blanks_what_terminals_obey) {
  EXPECT_EQ(Printable("r\x1b[2Jid\n\x7f", 99), "r [2Jid  ");
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "b\xc2\x80"
                      "c\xc2\xa0"
                      "d",
                      99),
            "a b c\xc2\xa0"
            "d");  // C1
  EXPECT_EQ(Printable("a\x9b"
                      "b\xff\xc3",
                      99),
            "a b  ");  // no UTF-8
  EXPECT_EQ(Printable("\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", 99),
            "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(Printable("\xe0\x80\x80\xed\xa0\x80", 99), "      ");
  EXPECT_EQ(Printable("ab\xc3\xbc", 3), "ab") << "no half a character";
}

}  // namespace
}  // namespace forebay
