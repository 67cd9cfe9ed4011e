#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# run.sh [--quick] [--rows 1,4a,9] [--pairs N] [--keep] [--markdown FILE]
#
# Installs what is missing, as tools/test.sh does, builds the benchmarks (Release) and prints one table for all of them. Data
# are written into the build folder and removed at the end, but for --keep. The machine should have nothing else to do.
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
# shellcheck source=tools/install_missing.sh
source "$root/tools/install_missing.sh"
install_missing tests
mkdir -p "$(dirname "$build")"
cuda=OFF
[ ! -e "${CUDA_PATH:-/usr/local/cuda}/include/cuda_runtime_api.h" ] || cuda=ON
cmake --preset bench "-DPENSTOCK_ENABLE_CUDA=$cuda" -B "$build" > "$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
cmake --build "$build" >> "$build.log" 2>&1 || { tail -n 50 "$build.log" >&2; exit 1; }

# The peer of row 8c, in an environment of its own.
if python=$(webdataset_python "$build/webdataset"); then
  export BENCH_WEBDATASET_PYTHON=$python BENCH_WEBDATASET_SCRIPT=$root/bench/tar/webdataset_rate.py
else
  echo "run.sh: webdataset cannot be installed; row 8c is left out" >&2
fi

python3 "$root/bench/report.py" "$build" "$@"
