#include "format/foreign.h"

#include <algorithm>

namespace forebay::format {
namespace {

using std::string_view_literals::operator""sv;

bool IsErrorPage(std::string_view head) {
  const size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return false;
  head.remove_prefix(start);
  const auto begins = [head](std::string_view with) {
    return head.size() >= with.size() &&
           std::ranges::equal(head.substr(0, with.size()), with, [](char a, char b) {
             return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
           });
  };
  return begins("<?xml") || begins("<!doctype html") || begins("<html") || begins("<error>");
}

// A zlib header is valid as two bytes; a frame or count that begins so has zeros behind them.
bool IsZlib(std::string_view head) {
  if (head.size() < 8 || head[0] != '\x78') return false;
  const auto second = static_cast<unsigned char>(head[1]);
  const bool known = second == 0x01 || second == 0x5e || second == 0x9c || second == 0xda;
  return known && head.substr(2, 6).find_first_not_of('\0') != std::string_view::npos;
}

}  // namespace

Foreign ForeignKind(ByteView bytes) {
  const std::string_view head = AsText(bytes);
  if (head.starts_with("\x1f\x8b\x08"sv)) return Foreign::kGzip;
  if (head.starts_with("\x28\xb5\x2f\xfd"sv)) return Foreign::kZstd;
  if (head.size() >= 4 && (head[0] & '\xf0') == '\x50' && head.substr(1, 3) == "\x2a\x4d\x18"sv) {
    return Foreign::kZstd;  // a skippable frame
  }
  if (head.size() >= 10 && head.starts_with("BZh"sv) && head.substr(4, 6) == "1AY&SY"sv) {
    return Foreign::kBzip2;
  }
  if (head.starts_with("\xfd"
                       "7zXZ\0"sv)) {
    return Foreign::kXz;
  }
  if (head.starts_with("PK\x03\x04"sv) || head.starts_with("PK\x05\x06"sv)) return Foreign::kZip;
  if (head.starts_with("version https://git-lfs"sv)) return Foreign::kGitLfs;
  if (IsErrorPage(head)) return Foreign::kErrorPage;
  if (IsZlib(head)) return Foreign::kZlib;
  return Foreign::kNone;
}

std::string_view ForeignAdvice(Foreign kind) {
  switch (kind) {
    case Foreign::kNone:
      return "";
    case Foreign::kGzip:
      return "gzip-compressed data: its records cannot be read at random; unpack it";
    case Foreign::kZlib:
      return "zlib-compressed data: its records cannot be read at random; unpack it";
    case Foreign::kZstd:
      return "zstd-compressed data: its records cannot be read at random; unpack it";
    case Foreign::kBzip2:
      return "bzip2-compressed data: its records cannot be read at random; unpack it";
    case Foreign::kXz:
      return "xz-compressed data: its records cannot be read at random; unpack it";
    case Foreign::kZip:
      return "a zip file";
    case Foreign::kErrorPage:
      return "an XML or HTML page in place of data";
    case Foreign::kGitLfs:
      return "a Git LFS pointer in place of data: fetch the files of the repository";
  }
  return "";
}

Status RefuseForeign(ByteView head, const Place& place) {
  const Foreign kind = ForeignKind(head);
  if (kind == Foreign::kNone) return {};
  if (kind == Foreign::kErrorPage || kind == Foreign::kGitLfs) {
    return Damaged(place, "records", ForeignAdvice(kind));
  }
  return Refused(place, ForeignAdvice(kind));
}

}  // namespace forebay::format
