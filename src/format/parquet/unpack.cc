#include "format/parquet/unpack.h"

#include <arrow/util/compression.h>
#include <fmt/core.h>

#include "base/ascii.h"

namespace forebay::format::parquet {
namespace {

Status Odd(std::string_view what) {
  constexpr size_t kSaid = 1024;
  return Status(Code::kDataLoss, fmt::format("an LZ4 frame: {}", Printable(what, kSaid)));
}

Status Unpack(ByteView packed, MutableBytes into) {
  auto codec = arrow::util::Codec::Create(arrow::Compression::LZ4_FRAME);
  if (!codec.ok()) return Status(Code::kUnimplemented, "this Arrow cannot undo LZ4");
  const auto found = (*codec)->Decompress(
      static_cast<int64_t>(packed.size()), reinterpret_cast<const uint8_t*>(packed.data()),
      static_cast<int64_t>(into.size()), reinterpret_cast<uint8_t*>(into.data()));
  if (!found.ok()) return Odd(found.status().message());
  if (static_cast<uint64_t>(*found) == into.size()) return {};
  return Odd(fmt::format("expected {} bytes, found {}", into.size(), *found));
}

}  // namespace

Status UnpackLz4Frame(ByteView packed, MutableBytes into) {
  try {
    return Unpack(packed, into);
  } catch (const std::exception& error) {
    return Odd(error.what());
  }
}

}  // namespace forebay::format::parquet
