#!/bin/bash
# tools/fuzz.sh SECONDS [TARGET...]: build/fuzz's targets, one after the other, each from its corpus
# of fuzz/corpus/. What it finds on the way is kept in build/fuzz/corpus/, what fails in
# build/fuzz/found/: `forebay_fuzz_replay TARGET FILE` shows it again. Every run, the seconds
# of a processor that it had and how it ended are a line of fuzz/runs.tsv; `tools/fuzz.sh sum` adds
# up what has run clean.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ "$1" = sum ]; then
  awk -F'\t' 'NR > 1 && $5 == "ok" {s[$2] += $3; n[$2] += $4}
    END {for (t in s) printf "%-18s %6.1f min %14d inputs\n", t, s[t] / 60, n[t]}' \
    fuzz/runs.tsv | sort
  exit
fi
seconds=$1; shift
[ $# -gt 0 ] || set -- $(ls fuzz/corpus)
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
mkdir -p build/fuzz/found build/logs
failed=0
for target in "$@"; do
  mkdir -p "build/fuzz/corpus/$target"
  status=0
  TIMEFORMAT='%U %S'
  { time FOREBAY_FUZZ_TARGET=$target build/fuzz/fuzz/forebay_fuzz -max_total_time="$seconds" \
    -max_len=8192 -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=1 \
    -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" \
    "fuzz/corpus/$target" >"build/logs/fuzz-$target.log" 2>&1 || status=$?
  } 2>"build/logs/fuzz-$target.time"
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/logs/fuzz-$target.log")
  ended=$([ $status -eq 0 ] && echo ok || echo failed)
  grep -q 'run interrupted' "build/logs/fuzz-$target.log" && ended=stopped
  spent=$(awk '{print int($1 + $2)}' "build/logs/fuzz-$target.time")
  printf '%s\t%s\t%s\t%s\t%s\n' "$(date -u +%F)" "$target" "$spent" \
    "${runs:-0}" "$ended" >>fuzz/runs.tsv
  if [ $status -eq 0 ]; then
    printf '%-14s ok, %s inputs in %s s\n' "$target" "$runs" "$seconds"
  else
    tail -n 40 "build/logs/fuzz-$target.log"
    printf '%-14s FAILED; all of it is in build/logs/fuzz-%s.log\n' "$target" "$target"
    failed=1
  fi
done
exit $failed
