#include "net/http.h"

#include <strings.h>

namespace forebay::net {
namespace {

template <class Headers>
std::string_view Find(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && ::strncasecmp(key.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return {};
}

}  // namespace

std::string_view FindHeader(const HeaderList& headers, std::string_view name) {
  return Find(headers, name);
}

std::string_view FindHeader(const HeaderBlock& headers, std::string_view name) {
  return Find(headers, name);
}

void HeaderBlock::emplace_back(std::string_view name, std::string_view value) {
  places_.push_back({.offset = static_cast<uint32_t>(text_.size()),
                     .name_size = static_cast<uint32_t>(name.size()),
                     .value_size = static_cast<uint32_t>(value.size())});
  text_.append(name);
  text_.append(value);
}

void HeaderBlock::Clear() {
  text_.clear();
  places_.clear();
}

HeaderBlock::Field HeaderBlock::operator[](size_t i) const {
  const Place& place = places_[i];
  const std::string_view text(text_);
  return {text.substr(place.offset, place.name_size),
          text.substr(place.offset + place.name_size, place.value_size)};
}

}  // namespace forebay::net
