#!/bin/bash
# tools/stage.sh [-l LOCK] [-s REGEX] NAME COMMAND...: one stage of the Makefile on one line.
#
# The command's output goes to build/logs/NAME.log; it is shown when the command fails. While it
# runs, its last line is told every 30 s. -l: only one such stage at a time per lock. -s: lines of
# the output worth showing after success (a test runner's closing line).
set -u
lock='' show=''
while getopts l:s: flag; do
  case $flag in
    l) lock=$OPTARG ;;
    s) show=$OPTARG ;;
    *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
name=$1; shift
mkdir -p build/logs
log=build/logs/$name.log
if [ -n "$lock" ]; then
  exec 9>"build/.$lock.lock"
  flock -w 3600 9 || { echo "$name: build/.$lock.lock has been held for an hour" >&2; exit 1; }
fi
printf '%-14s ...\n' "$name"
started=$SECONDS
(
  exec 9>&-
  while sleep 30 9>&- >/dev/null 2>&1; do
    printf '%-14s %4d s  %s\n' "$name" $((SECONDS - started)) \
      "$(tail -c 400 "$log" | tail -n 1 | cut -c1-90)"
  done
) & watcher=$!
trap 'kill $watcher 2>/dev/null' EXIT
"$@" >"$log" 2>&1 9>&-
status=$?
if [ $status -ne 0 ]; then
  tail -n "${FOREBAY_LOG_LINES:-80}" "$log"
  printf '%-14s FAILED after %d s (exit %d); all of it is in %s\n' \
    "$name" $((SECONDS - started)) $status "$log"
  exit $status
fi
[ -z "$show" ] || grep -E "$show" "$log" || true
printf '%-14s ok in %d s\n' "$name" $((SECONDS - started))
