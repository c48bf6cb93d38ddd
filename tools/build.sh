#!/bin/bash
# tools/build.sh PRESET [TARGET...]: configure build/PRESET when it is not (or no longer) right,
# then build those targets, or everything.
set -euo pipefail
preset=$1; shift
ninja=build/$preset/build.ninja
if [ ! -e "$ninja" ] || [ CMakePresets.json -nt "$ninja" ]; then
  /usr/bin/cmake --preset "$preset"
fi
exec /usr/bin/cmake --build "build/$preset" ${1:+--target "$@"}
