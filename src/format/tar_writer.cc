#include "format/tar_writer.h"

#include <fmt/core.h>

#include <array>
#include <optional>

#include "format/damage.h"
#include "format/little_endian.h"

namespace forebay::format {
namespace {

constexpr uint64_t kBlock = 512;
constexpr size_t kNameBytes = 100;
constexpr size_t kPrefixBytes = 155;
constexpr size_t kChecksumAt = 148;
constexpr size_t kPrefixAt = 345;

struct SplitName {
  std::string_view prefix;
  std::string_view name;
};

// As ustar keeps a long name: none when there is no slash at which it could be cut.
std::optional<SplitName> Split(std::string_view name) {
  if (name.size() <= kNameBytes) return SplitName{"", name};
  // The first slash that leaves a name that fits.
  const size_t slash = name.find('/', name.size() - kNameBytes - 1);
  if (slash == std::string_view::npos || slash == 0 || slash > kPrefixBytes) return std::nullopt;
  return SplitName{name.substr(0, slash), name.substr(slash + 1)};
}

void Put(std::array<char, kBlock>& header, size_t at, std::string_view text) {
  std::copy(text.begin(), text.end(), header.begin() + static_cast<std::ptrdiff_t>(at));
}

std::array<char, kBlock> Header(const SplitName& name, uint64_t size, char type) {
  std::array<char, kBlock> header{};
  Put(header, 0, name.name);
  Put(header, 100, "0000644");
  Put(header, 108, "0000000");
  Put(header, 116, "0000000");
  Put(header, 124, fmt::format("{:011o}", size));
  Put(header, 136, "00000000000");
  Put(header, kChecksumAt, "        ");
  header[156] = type;
  Put(header, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  Put(header, kPrefixAt, name.prefix);
  uint32_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  Put(header, kChecksumAt, fmt::format("{:06o}", sum));
  header[kChecksumAt + 6] = '\0';
  return header;
}

// "<length> path=<name>\n", the length counting itself.
std::string PathRecord(std::string_view name) {
  const size_t rest = name.size() + 7;  // " path=" and the end of the line
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return fmt::format("{} path={}\n", length, name);
}

void AppendMember(std::vector<std::byte>* out, const SplitName& name, ByteView data, char type) {
  const std::array<char, kBlock> header = Header(name, data.size(), type);
  Append(out, std::as_bytes(std::span(header)));
  Append(out, data);
  out->resize(PaddedTo(out->size(), kBlock));
}

}  // namespace

uint64_t TarWriter::BytesOf(std::string_view name, uint64_t data_bytes) {
  const uint64_t member = kBlock + PaddedTo(data_bytes, kBlock);
  if (Split(name)) return member;
  return member + kBlock + PaddedTo(PathRecord(name).size(), kBlock);
}

Status TarWriter::Add(std::string_view name, ByteView data) {
  if (name.empty() || name.ends_with('/') || name.contains('\0')) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' is no name of a tar member", name));
  }
  if (data.size() > kMaxMemberBytes) {
    return Status(Code::kInvalidArgument, fmt::format("'{}' has {} bytes, a tar member at most {}",
                                                      name, data.size(), kMaxMemberBytes));
  }
  std::optional<SplitName> split = Split(name);
  if (!split) {
    AppendMember(&bytes_, {"", "././@PaxHeader"}, AsBytes(PathRecord(name)), 'x');
    split = SplitName{"", name.substr(0, kNameBytes)};
  }
  AppendMember(&bytes_, *split, data, '0');
  return {};
}

std::vector<std::byte> TarWriter::Finish() {
  bytes_.resize(PaddedTo(bytes_.size() + 2 * kBlock, kRecordBytes));
  return std::move(bytes_);
}

}  // namespace forebay::format
