#include <algorithm>

#include "format/tar.h"

namespace forebay::format {

std::optional<SampleName> SplitSampleName(std::string_view name) {
  const size_t last_slash = name.rfind('/');
  // A dot of the regular expression matches no line feed: directories before it end there.
  const size_t directories = std::min(name.find('\n'), name.size());
  // Where the part without dots begins: behind a slash, the last first, or at the start.
  size_t start = directories == 0 ? 0 : name.rfind('/', directories - 1) + 1;
  size_t dot = name.find('.', start);
  for (;;) {
    const bool splits = dot != std::string_view::npos && dot != start &&
                        (last_slash == std::string_view::npos || dot > last_slash);
    if (splits) return SampleName{name.substr(0, dot), name.substr(dot + 1)};
    if (start == 0) return std::nullopt;
    const size_t before =
        start >= 2 ? name.rfind('/', start - 2) + 1 : 0;  // npos + 1: the start of the name
    const size_t earlier_dot = name.substr(before, start - before).find('.');
    if (earlier_dot != std::string_view::npos) dot = before + earlier_dot;
    start = before;
  }
}

bool IsMetadataName(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  const bool marked = first.starts_with("__") && first.ends_with("__");
  return marked && (first.size() >= 4 || first.size() == name.size());
}

}  // namespace forebay::format
