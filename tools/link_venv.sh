#!/bin/bash
# tools/link_venv.sh: make .venv use build/release: its programs in .venv/bin, its Python package
# on the path. Links are relative, so that a moved checkout keeps working programs.
set -euo pipefail
for program in cli/forebay testing/forebay-faults; do
  name=${program##*/}
  if [ -x "build/release/$program" ]; then
    ln -sfn "../../build/release/$program" ".venv/bin/$name"
  fi
done
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n' "$PWD/build/release/python" >"$site/forebay_build.pth.new"
mv "$site/forebay_build.pth.new" "$site/forebay_build.pth"
