// NumPy's array files. The header is a Python dict, of which only literals are read: it is never
// evaluated, and an array of objects, which is a pickle, is refused.
#include <fmt/core.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "ops/dtype.h"
#include "ops/parser.h"

namespace forebay::ops {
namespace {

constexpr size_t kHeaderMost = 10'000;  // NumPy's own limit
constexpr size_t kAxesMost = 32;

Status Bad(std::string text) { return Status(Code::kDataLoss, std::move(text)); }

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
  ByteView data;
};

// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class LiteralDict {
 public:
  explicit LiteralDict(std::string_view text) : text_(text) {}

  bool Read(Header* header) {
    bool descr = false, order = false, shape = false;
    if (!Take('{')) return false;
    while (!Take('}')) {
      std::string key;
      if (!String(&key) || !Take(':')) return false;
      if (key == "descr" && !std::exchange(descr, true)) {
        if (!String(&header->descr)) return false;
      } else if (key == "fortran_order" && !std::exchange(order, true)) {
        if (!Boolean(&header->fortran_order)) return false;
      } else if (key == "shape" && !std::exchange(shape, true)) {
        if (!Shape(&header->shape)) return false;
      } else {
        return false;
      }
      if (!Take(',')) {
        if (!Take('}')) return false;
        break;
      }
    }
    SkipSpaces();
    return text_.empty() && descr && order && shape;
  }

 private:
  void SkipSpaces() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) {
      text_.remove_prefix(1);
    }
  }
  bool Take(char c) {
    SkipSpaces();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool TakeWord(std::string_view word) {
    SkipSpaces();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  // Without escapes: none of what is wanted needs one.
  bool String(std::string* to) {
    SkipSpaces();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return false;
    const size_t end = text_.find(text_[0], 1);
    if (end == text_.npos) return false;
    *to = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return to->find('\\') == to->npos;
  }
  bool Boolean(bool* to) {
    *to = TakeWord("True");
    return *to || TakeWord("False");
  }
  bool Number(int64_t* to) {
    constexpr int64_t kMost = int64_t{1} << 48;
    SkipSpaces();
    size_t digits = 0;
    *to = 0;
    for (; digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9'; ++digits) {
      *to = *to * 10 + (text_[digits] - '0');
      if (*to > kMost) return false;
    }
    text_.remove_prefix(digits);
    if (digits > 0 && !text_.empty() && text_[0] == 'L') text_.remove_prefix(1);  // Python 2
    return digits > 0;
  }
  bool Shape(std::vector<int64_t>* to) {
    if (!Take('(')) return false;
    while (!Take(')')) {
      int64_t side = 0;
      if (to->size() == kAxesMost || !Number(&side)) return false;
      to->push_back(side);
      if (!Take(',')) return to->size() > 1 && Take(')');
    }
    return true;
  }

  std::string_view text_;
};

Result<Header> ReadHeader(ByteView file) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  constexpr size_t kVersionAt = 6, kLengthAt = 8;
  const std::string_view text = AsText(file);
  if (!text.starts_with(kMagic) || text.size() < kLengthAt) {
    return Bad("no NumPy array file: it does not begin as one");
  }
  const auto version = static_cast<uint8_t>(text[kVersionAt]);
  if (version < 1 || version > 3 || text[kVersionAt + 1] != 0) {
    return Bad(fmt::format("a NumPy array file of version {}.{}", version,
                           static_cast<uint8_t>(text[kVersionAt + 1])));
  }
  const size_t length_size = version == 1 ? 2 : 4;
  uint32_t length = 0;
  const size_t header_at = kLengthAt + length_size;
  if (text.size() < header_at) return Bad("a NumPy array file that is cut short");
  for (size_t i = 0; i < length_size; ++i) {
    length |= static_cast<uint32_t>(static_cast<uint8_t>(text[kLengthAt + i])) << (8 * i);
  }
  if (length > kHeaderMost) return Bad(fmt::format("a NumPy header of {} bytes", length));
  if (text.size() - header_at < length) return Bad("a NumPy array file that is cut short");
  Header header;
  if (!LiteralDict(text.substr(header_at, length)).Read(&header)) {
    return Bad("a NumPy header that is no plain array's");
  }
  header.data = file.subspan(header_at + length);
  return header;
}

struct Element {
  std::string dtype;
  bool swapped = false;
};

std::optional<Element> ElementOf(std::string_view descr) {
  if (descr.size() != 3) return std::nullopt;
  const char order = descr[0], kind = descr[1];
  const int bytes = descr[2] - '0';
  if (std::string_view("<>|=").find(order) == std::string_view::npos) return std::nullopt;
  std::string dtype;
  if (kind == 'b' && bytes == 1) {
    dtype = "bool";
  } else if (kind == 'i' || kind == 'u' || kind == 'f') {
    dtype = fmt::format("{}{}", kind == 'i' ? "int" : kind == 'u' ? "uint" : "float", 8 * bytes);
  }
  if (BytesOf(dtype) != bytes) return std::nullopt;
  return Element{dtype, order == '>' && bytes > 1};
}

void SwapBytes(MutableBytes values, size_t size) {
  for (size_t at = 0; at < values.size(); at += size) {
    std::ranges::reverse(values.subspan(at, size));
  }
}

// Column-major to row-major.
void Reorder(ByteView from, const std::vector<int64_t>& shape, size_t size, MutableBytes to) {
  std::vector<size_t> steps, at(shape.size());
  size_t step = size;
  for (const int64_t side : shape) {
    steps.push_back(step);
    step *= static_cast<size_t>(side);
  }
  size_t source = 0;
  for (size_t done = 0; done < to.size(); done += size) {
    std::memcpy(to.data() + done, from.data() + source, size);
    for (size_t axis = shape.size(); axis-- > 0;) {
      source += steps[axis];
      if (++at[axis] < static_cast<size_t>(shape[axis])) break;
      source -= steps[axis] * static_cast<size_t>(shape[axis]);
      at[axis] = 0;
    }
  }
}

class NpyParser : public Parser {
 public:
  explicit NpyParser(const ParseNpyOp& op)
      : results_{{op.field, op.dtype, op.shape}}, bytes_(BytesOf(op.dtype, op.shape)) {}
  const std::vector<Parsed>& results() const override { return results_; }

  Status Parse(ByteView field, const ParserOut& out) const override {
    FB_ASSIGN_OR_RETURN(const Header header, ReadHeader(field));
    const Parsed& wanted = results_[0];
    const auto element = ElementOf(header.descr);
    if (!element) {
      return Bad(fmt::format("a NumPy array of dtype '{}'{}", header.descr,
                             header.descr.find('O') == std::string::npos
                                 ? ""
                                 : ": objects are pickles, which are never loaded"));
    }
    if (element->dtype != wanted.dtype || header.shape != wanted.shape) {
      return Bad(fmt::format("a NumPy array of {} [{}], and {} [{}] is wanted", element->dtype,
                             fmt::join(header.shape, ", "), wanted.dtype,
                             fmt::join(wanted.shape, ", ")));
    }
    if (header.data.size() != bytes_) {
      return Bad(fmt::format("a NumPy array of {} bytes, of which {} are there", bytes_,
                             header.data.size()));
    }
    const bool is_bool = wanted.dtype == "bool";
    if (is_bool && std::ranges::any_of(header.data, [](std::byte b) { return b > std::byte{1}; })) {
      return Bad("a NumPy array of bool that holds neither 0 nor 1");
    }
    if (!out.arrays[0].empty()) Write(header, *element, out.arrays[0]);
    return {};
  }

 private:
  void Write(const Header& header, const Element& element, MutableBytes to) const {
    const auto size = static_cast<size_t>(BytesOf(element.dtype));
    if (header.fortran_order && header.shape.size() > 1) {
      Reorder(header.data, header.shape, size, to);
    } else {
      std::memcpy(to.data(), header.data.data(), to.size());
    }
    if (element.swapped) SwapBytes(to, size);
  }

  std::vector<Parsed> results_;
  uint64_t bytes_;
};

}  // namespace

std::unique_ptr<const Parser> MakeNpyParser(const ParseNpyOp& op) {
  return std::make_unique<NpyParser>(op);
}

}  // namespace forebay::ops
