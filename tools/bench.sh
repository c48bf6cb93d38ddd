#!/bin/bash
# tools/bench.sh: runs every benchmark of build/bench; says the machine and the versions.
#
# SOURCE=VIDEO: the footage that decode_bench cuts its videos from; without it a test picture with
# noise is made, whose ratios differ a little from those of a camera's.
# TORCHCODEC_PYTHON=PYTHON: an interpreter that imports torch and torchcodec; then torchcodec
# decodes the same clips beside ours.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8

echo "machine   $(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) CPUs," \
  "$(awk '/^MemTotal/ { printf "%.0f GiB", $2 / 1048576 }' /proc/meminfo), load$(
    cut -d' ' -f1-3 /proc/loadavg | sed 's/^/ /'), $(uname -sr)"
echo "versions  forebay $(git describe --always --dirty 2>/dev/null || echo unknown)," \
  "$(g++ --version | head -n 1), libavcodec $(pkg-config --modversion libavcodec)," \
  "libcurl $(pkg-config --modversion libcurl)"

# Its first line of comment says what a benchmark measures.
title() { printf '\n%s: %s\n' "$1" "$(sed -n '1s,^// ,,p' "bench/$1.cc")"; }

source_video() {
  if [ -n "${SOURCE:-}" ]; then echo "$SOURCE"; return; fi
  local made=build/bench/source.mkv
  if [ ! -e "$made" ]; then
    ffmpeg -nostdin -v error -y -f lavfi -i 'testsrc2=size=1280x720:rate=30,noise=alls=8:allf=t' \
      -frames:v 120 -c:v libx264 -preset ultrafast -qp 12 -f matroska "$made.new"
    mv "$made.new" "$made"
  fi
  echo "$made"
}

for source in bench/*_bench.cc; do
  name=$(basename "$source" .cc)
  [ "$name" = s3_bench ] && continue  # bench/s3_peers.py runs it beside other clients
  title "$name"
  case $name in
    decode_bench)
      "build/bench/bench/$name" "$(source_video)" 9 40 \
        ${TORCHCODEC_PYTHON:+"$TORCHCODEC_PYTHON bench/torchcodec_peer.py"}
      ;;
    http_bench) bench/http_bench.py ;;
    *) "build/bench/bench/$name" ;;
  esac
done
