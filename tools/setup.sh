#!/bin/bash
# tools/setup.sh [build|test|demo|check|bench|frameworks|all]...: install what that job
# needs and does not find.
#
# Debian packages (12 or 13, as root or through sudo) and, in .venv, the exact PyPI packages of
# tools/requirements/; the frameworks, which are gigabytes, in a .venv-frameworks of their own and
# not with "all". Nothing is touched when nothing is missing, which takes a fraction of a
# second. Every wait on the network is bounded. docs/dependencies.md says what each one is for.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PYTHONNOUSERSITE=1
unset PYTHONPATH PYTHONHOME

build_packages="g++ cmake ninja-build ccache mold pkg-config ca-certificates
  python3 python3-dev python3-venv python3-numpy
  libcurl4-openssl-dev libssl-dev libpugixml-dev nlohmann-json3-dev libfmt-dev libcli11-dev
  libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libspng-dev libarchive-dev
  zlib1g-dev libzstd-dev
  libjpeg62-turbo-dev libwebp-dev
  libgtest-dev libgmock-dev"
test_packages="librapidcheck-dev ffmpeg openssl python3-pil python3-protobuf"
server_packages="ceph-mon ceph-osd radosgw ceph-common ceph-base"
demo_packages="ffmpeg"
check_packages="clang-19 clang-tidy-19 clang-format-19 libclang-rt-19-dev git"
bench_packages="ffmpeg nginx-light openssl"

say() { printf 'setup: %s\n' "$*"; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# What the named jobs add up to: packages, requirement files, and whether torch is wanted.
packages=$build_packages requirements="build" want_torch=no want_frameworks=no
add_job() {
  case $1 in
    build) ;;
    test)
      packages+=" $test_packages $server_packages"
      requirements+=" test server ministack"
      want_torch=yes
      ;;
    demo) packages+=" $demo_packages" requirements+=" server" want_torch=yes ;;
    check) packages+=" $test_packages $check_packages" requirements+=" test" ;;
    bench) packages+=" $bench_packages" ;;
    frameworks) packages+=" ffmpeg" want_frameworks=yes ;;
    all) for job in test demo check bench; do add_job "$job"; done ;;
    *) die "unknown job '$1' (build, test, demo, check, bench, frameworks or all)" ;;
  esac
}
[ $# -gt 0 ] || set -- build
for job in "$@"; do add_job "$job"; done

missing_packages() {
  local wanted present
  wanted=$(printf '%s\n' $packages | sort -u)
  # A package may be listed once per architecture; db:Status-Abbrev "ii " is properly installed.
  present=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' $wanted 2>/dev/null |
    sed -n 's/^ii  *//p' | sort -u || true)
  comm -23 <(printf '%s\n' "$wanted") <(printf '%s\n' "$present") | tr '\n' ' '
}

# Whichever torch the environment's interpreter would import; otherwise Debian's CPU build.
torch_importable() {
  local python=/usr/bin/python3
  [ -x .venv/bin/python ] && python=.venv/bin/python
  "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null
}

install_packages() {
  local as_root=() started=$SECONDS attempt
  command -v apt-get >/dev/null || die "needs apt-get (Debian 12 or 13) to install: $*"
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "neither root nor sudo; please install: $*"
    as_root=(sudo env DEBIAN_FRONTEND=noninteractive)
  fi
  say "installing $# Debian packages and what they need: $*"
  local apt=("${as_root[@]}" timeout --kill-after=30 2400 apt-get -q -y
    -o Acquire::Retries=5 -o Acquire::http::Timeout=60 -o Acquire::https::Timeout=60
    -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
  for attempt in 1 2 3; do
    if "${apt[@]}" update >build/logs/apt.log 2>&1 &&
      "${apt[@]}" install --no-install-recommends "$@" >>build/logs/apt.log 2>&1; then
      say "Debian packages installed in $((SECONDS - started)) s"
      return
    fi
    tail -n 15 build/logs/apt.log >&2
    say "apt-get failed (try $attempt of 3)"
    # An install that was cut short leaves packages to configure.
    "${as_root[@]}" timeout 600 dpkg --configure -a >>build/logs/apt.log 2>&1 || true
    sleep $((attempt * 5))
  done
  die "apt-get did not succeed; its output is in build/logs/apt.log"
}

# A .venv of another interpreter (a copied checkout, an upgraded system) is made anew.
venv_usable() {
  local version='import sys; print("python%d.%d" % sys.version_info[:2])'
  [ -x .venv/bin/python ] &&
    [ -d ".venv/lib/$(.venv/bin/python -c "$version" 2>/dev/null)" ] &&
    grep -qx 'include-system-site-packages = true' .venv/pyvenv.cfg &&
    grep -q '^home = /usr/bin$' .venv/pyvenv.cfg
}

setup_venv() {
  if ! venv_usable; then
    rm -rf .venv
    /usr/bin/python3 -m venv --system-site-packages .venv
    say "made .venv from $(/usr/bin/python3 --version)"
  fi
  local args=() files=() paths=() name started=$SECONDS
  for name in $(printf '%s\n' $requirements | sort -u); do
    cmp -s "tools/requirements/$name.txt" ".venv/installed/$name.txt" && continue
    files+=("$name")
    paths+=("tools/requirements/$name.txt")
    args+=(-r "tools/requirements/$name.txt")
  done
  [ ${#files[@]} -gt 0 ] || return 0
  [ -d "$HOME/.cache/pip" ] || args+=(--no-cache-dir)  # leave nothing outside this folder
  say "installing into .venv: $(grep -hv '^#' "${paths[@]}" | tr '\n' ' ')"
  # --no-deps: the files are complete, so that nothing (NumPy above all) shadows Debian's.
  timeout --kill-after=30 1800 .venv/bin/python -m pip install --quiet --no-deps --no-input \
    --disable-pip-version-check --retries 5 --timeout 60 "${args[@]}" >build/logs/pip.log 2>&1 ||
    { tail -n 20 build/logs/pip.log >&2; die "pip failed; its output is in build/logs/pip.log"; }
  mkdir -p .venv/installed
  for name in "${files[@]}"; do cp "tools/requirements/$name.txt" .venv/installed/; done
  say "Python packages installed in $((SECONDS - started)) s"
}

# With what they need: torch names its CUDA packages itself. PIP_EXTRA_INDEX_URL may lead to a build
# without CUDA; a torch that a .pth file in there makes importable is taken as it is.
setup_frameworks() {
  local venv=.venv-frameworks file=tools/requirements/frameworks.txt started=$SECONDS
  cmp -s "$file" $venv/installed.txt && [ -x $venv/bin/python ] && return 0
  [ -x $venv/bin/python ] || /usr/bin/python3 -m venv $venv
  say "installing the frameworks into $venv (gigabytes)"
  timeout --kill-after=30 3600 $venv/bin/python -m pip install --quiet --no-input \
    --disable-pip-version-check --retries 5 --timeout 60 -r "$file" >build/logs/pip.log 2>&1 ||
    { tail -n 20 build/logs/pip.log >&2; die "pip failed; its output is in build/logs/pip.log"; }
  cp "$file" $venv/installed.txt
  say "frameworks installed in $((SECONDS - started)) s"
}

mkdir -p build/logs
exec 9>build/.setup.lock
flock -w 3600 9 || die "another setup has been running for an hour"
missing=$(missing_packages)
if [ "$want_torch" = yes ] && ! torch_importable; then missing+="python3-torch "; fi
[ -z "$missing" ] || install_packages $missing
setup_venv
[ $want_frameworks = no ] || setup_frameworks
