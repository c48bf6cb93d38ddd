#!/bin/bash
# tools/headers.sh: every public header compiles alone, with nothing but the standard library.
set -euo pipefail
cd "$(dirname "$0")/.."
for header in include/forebay/*.h; do
  "${CXX:-g++}" -std=c++23 -Wall -Wextra -Werror -fsyntax-only -Iinclude -x c++ \
    -include "$header" /dev/null
done
