#include "net/http.h"

#include <strings.h>

#include "base/prefetch.h"

namespace forebay::net {
namespace {

// What a signed request takes, so that filling a list allocates twice and no more.
constexpr size_t kTextBytes = 768;
constexpr size_t kFields = 12;

}  // namespace

std::string_view FindHeader(const HeaderList& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && ::strncasecmp(key.data(), name.data(), name.size()) == 0) {
      return value;
    }
  }
  return {};
}

void HeaderList::emplace_back(std::string_view name, std::string_view value) {
  if (places_.capacity() == 0) {
    places_.reserve(kFields);
    text_.reserve(kTextBytes);
  }
  places_.push_back({.offset = static_cast<uint32_t>(text_.size()),
                     .name_size = static_cast<uint32_t>(name.size()),
                     .value_size = static_cast<uint32_t>(value.size())});
  text_.append(name);
  text_.append(value);
}

void HeaderList::Clear() {
  text_.clear();
  places_.clear();
}

void HeaderList::Expect() const {
  Prefetch(text_.data(), kCacheLine);
  Prefetch(places_.data(), kCacheLine);
}

HeaderList::Field HeaderList::operator[](size_t i) const {
  const Place& place = places_[i];
  const std::string_view text(text_);
  return {text.substr(place.offset, place.name_size),
          text.substr(place.offset + place.name_size, place.value_size)};
}

}  // namespace forebay::net
