#!/bin/bash
# tools/tidy.sh [FILE...]: clang-tidy on those files, or on every source that differs from the
# main branch (on all when there is none to compare with), as build/clang compiles them.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then
  base=$(git merge-base HEAD origin/main 2>/dev/null || git merge-base HEAD main || true)
  if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
    mapfile -t files < <(git diff --name-only --diff-filter=d "$base" -- '*.cc')
  else
    mapfile -t files < <(find src cli testing sim -name '*.cc')
  fi
  set -- "${files[@]}"
fi
[ $# -gt 0 ] || { echo "tidy: no source differs"; exit 0; }
built=()
for file in "$@"; do
  if grep -qF "/$file\"" build/clang/compile_commands.json; then built+=("$file"); fi
done
[ ${#built[@]} -gt 0 ] || { echo "tidy: none of the sources is built here"; exit 0; }
printf '%s\0' "${built[@]}" |
  xargs -0 -P "$(nproc)" -n 4 clang-tidy-19 --quiet -p build/clang --warnings-as-errors='*'
