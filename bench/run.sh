#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# run.sh [--quick] [--rows 1,4a,9] [--pairs N] [--keep] [--markdown FILE]
#
# Builds the benchmarks (Release) and prints one table for all of them. Data are written into the build folder and removed at the
# end, but for --keep. The machine should have nothing else to do.
# PENSTOCK_BENCH_BUILD names another build folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${PENSTOCK_BENCH_BUILD:-$root/build/bench}
for argument in "$@"; do
  if [[ $argument == --help ]]; then
    python3 "$root/bench/report.py" --help
    exit 0
  fi
done

cd "$root"
cmake --preset bench -B "$build" > "$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" >> "$build.log" 2>&1 || { tail -n 50 "$build.log" >&2; exit 1; }

# The peer of row 8c, in an environment of its own.
venv=$build/webdataset
if [[ ! -x $venv/bin/python ]] || ! "$venv/bin/python" -c 'import webdataset' 2> /dev/null; then
  python3 -m venv "$venv" > /dev/null 2>&1 && "$venv/bin/pip" --quiet --disable-pip-version-check install webdataset \
    > "$build/webdataset.log" 2>&1 || echo "run.sh: webdataset cannot be installed; row 8c is left out" >&2
fi
if "$venv/bin/python" -c 'import webdataset' 2> /dev/null; then
  export BENCH_WEBDATASET_PYTHON=$venv/bin/python BENCH_WEBDATASET_SCRIPT=$root/bench/tar/webdataset_rate.py
fi

python3 "$root/bench/report.py" "$build" "$@"
