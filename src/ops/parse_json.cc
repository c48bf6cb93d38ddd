// Numbers out of a JSON document, by their JSON pointers (RFC 6901). Of a repeated key the last one
// counts, as in Python.
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ops/dtype.h"
#include "ops/parser.h"

namespace forebay::ops {
namespace {

using nlohmann::json;

constexpr size_t kDocumentMost = size_t{64} << 20;  // a tree of it takes a few times as much

// The pointer's steps, unescaped. "~2" and such are left as they are: no key is found then.
std::vector<std::string> StepsOf(std::string_view pointer) {
  std::vector<std::string> steps;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::string_view step = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(step.size());
    std::string& plain = steps.emplace_back();
    for (size_t i = 0; i < step.size(); ++i) {
      const bool escape =
          step[i] == '~' && i + 1 < step.size() && (step[i + 1] == '0' || step[i + 1] == '1');
      plain += !escape ? step[i] : step[++i] == '0' ? '~' : '/';
    }
  }
  return steps;
}

const json* Find(const json& root, const std::vector<std::string>& steps) {
  const json* at = &root;
  for (const std::string& step : steps) {
    if (at->is_object()) {
      const auto found = at->find(step);
      if (found == at->end()) return nullptr;
      at = &*found;
    } else if (at->is_array()) {
      size_t index = 0;
      const char* end = step.data() + step.size();
      const auto [stop, error] = std::from_chars(step.data(), end, index);
      const bool padded = step.size() > 1 && step[0] == '0';
      if (error != std::errc() || stop != end || padded || index >= at->size()) return nullptr;
      at = &(*at)[index];
    } else {
      return nullptr;
    }
  }
  return at;
}

template <class T>
std::byte* Put(T value, std::byte* to) {
  if (to == nullptr) return nullptr;
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
}

// Writes the numbers at `to`, if it is not null, and moves it on. False: not of this type or shape.
class NumberWriter {
 public:
  NumberWriter(const JsonField& field, std::byte* to) : field_(field), to_(to) {}

  bool Write(const json& value, size_t axis = 0) {
    if (axis == field_.shape.size()) return WriteOne(value);
    if (!value.is_array() || value.size() != static_cast<size_t>(field_.shape[axis])) return false;
    for (const json& part : value) {
      if (!Write(part, axis + 1)) return false;
    }
    return true;
  }
  // The numbers of a list, however many.
  bool WriteList(const json& value, std::vector<std::byte>* all) {
    if (!value.is_array()) return false;
    all->resize(value.size() * static_cast<size_t>(BytesOf(field_.dtype)));
    to_ = all->data();
    return std::ranges::all_of(value, [this](const json& part) { return WriteOne(part); });
  }

 private:
  bool WriteOne(const json& value) {
    if (field_.dtype == "bool") {
      if (!value.is_boolean()) return false;
      to_ = Put<uint8_t>(value.get<bool>() ? 1 : 0, to_);
      return true;
    }
    if (field_.dtype == "int64") {
      if (!value.is_number_integer()) return false;
      constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
      if (value.is_number_unsigned() && value.get<uint64_t>() > kMost) return false;
      to_ = Put(value.get<int64_t>(), to_);
      return true;
    }
    if (!value.is_number()) return false;
    const auto number = value.get<double>();
    if (field_.dtype == "float64") {
      to_ = Put(number, to_);
      return true;
    }
    if (std::fabs(number) > static_cast<double>(std::numeric_limits<float>::max())) return false;
    to_ = Put(static_cast<float>(number), to_);
    return true;
  }

  const JsonField& field_;
  std::byte* to_;
};

class JsonParser : public Parser {
 public:
  explicit JsonParser(const ParseJsonOp& op) : fields_(op.fields) {
    for (const JsonField& field : fields_) {
      results_.push_back({field.name, field.dtype, field.shape, field.ragged});
      steps_.push_back(StepsOf(field.pointer));
    }
  }
  const std::vector<Parsed>& results() const override { return results_; }
  // "1," is two bytes; the same list may be wanted by several names.
  uint64_t ragged_each() const override {
    constexpr uint64_t kOfDigit = sizeof(int64_t) / 2;
    return kOfDigit * static_cast<uint64_t>(std::ranges::count_if(fields_, &JsonField::ragged));
  }

  Status Parse(ByteView field, const ParserOut& out) const override {
    if (field.size() > kDocumentMost) {
      return Status(Code::kDataLoss, fmt::format("a JSON document of {} bytes", field.size()));
    }
    const std::string_view text = AsText(field);
    const json root = json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (root.is_discarded()) return Status(Code::kDataLoss, "no JSON document");
    for (size_t i = 0; i < fields_.size(); ++i) {
      const json* value = Find(root, steps_[i]);
      if (value == nullptr) {
        return Status(Code::kDataLoss,
                      fmt::format("the JSON document has nothing at '{}'", fields_[i].pointer));
      }
      std::byte* to = out.arrays[i].empty() ? nullptr : out.arrays[i].data();
      NumberWriter writer(fields_[i], to);
      const bool written =
          fields_[i].ragged ? writer.WriteList(*value, &out.ragged[i]) : writer.Write(*value);
      if (!written) {
        return Status(Code::kDataLoss,
                      fmt::format("what the JSON document has at '{}' is no {} of the wanted shape",
                                  fields_[i].pointer, fields_[i].dtype));
      }
    }
    return {};
  }

 private:
  std::vector<JsonField> fields_;
  std::vector<std::vector<std::string>> steps_;
  std::vector<Parsed> results_;
};

}  // namespace

std::unique_ptr<const Parser> MakeJsonParser(const ParseJsonOp& op) {
  return std::make_unique<JsonParser>(op);
}

}  // namespace forebay::ops
