#!/bin/bash
# tools/format.sh [--check]: format every C++ file, or say which are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
[ "${1:-}" = --check ] && mode=(--dry-run --Werror)
find include src cli python/bind testing sim fuzz bench \
  \( -name '*.h' -o -name '*.cc' \) -print0 2>/dev/null |
  xargs -0 -P "$(nproc)" -n 20 clang-format-19 "${mode[@]}"
