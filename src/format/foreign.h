// What a shard turns out to be when it is not what it was taken for.
#pragma once

#include <string_view>

#include "base/bytes.h"
#include "format/damage.h"

namespace forebay::format {

enum class Foreign : uint8_t {
  kNone,
  kGzip,
  kZlib,
  kZstd,
  kBzip2,
  kXz,
  kZip,
  kErrorPage,  // XML or HTML in place of the object
  kGitLfs,     // a pointer file: the data was never checked out
};

// By the first bytes; a whole kibibyte is enough.
Foreign ForeignKind(ByteView head);
// "gzip-compressed data: it cannot be read at random; unpack it" and so on. "": kNone.
std::string_view ForeignAdvice(Foreign kind);

// An error when the shard begins as one of these: kUnimplemented for what is compressed, kDataLoss
// for what is no data.
Status RefuseForeign(ByteView head, const Place& place);

}  // namespace forebay::format
