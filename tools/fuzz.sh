#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds the fuzzers and runs them one after another: tools/fuzz.sh [seconds for each] [target]...
#
# Prints executions and findings. Findings are in build/fuzz/findings/<target>, and inputs that reached new
# code in build/fuzz/corpus/<target>, where the next run starts. Fails if there are findings or a fuzzer did
# not run.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" >/dev/null
build=build/fuzz
if [ $# -eq 0 ]; then mapfile -t targets <"$build/fuzz/targets.txt"; else targets=("$@"); fi

# Leaks are checked after each input; an input that takes 10 s or allocates 512 MB at once is a finding.
options=(-max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 -max_len=8192
  -print_final_stats=1 -verbosity=1)
status=0
printf '%-16s %12s %9s\n' target executions findings
for target in "${targets[@]}"; do
  [ -n "$target" ] || continue
  mkdir -p "$build/corpus/$target" "$build/findings/$target"
  log="$build/findings/$target.log"
  code=0
  "$build/fuzz/$target" "${options[@]}" -artifact_prefix="$build/findings/$target/" "$build/corpus/$target" \
    "$build/fuzz/seeds/$target" >"$log" 2>&1 || code=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  if [ -z "$executions" ]; then executions=$(grep -o '^#[0-9]*' "$log" | tail -1 | tr -d '#' || true); fi
  findings=$(find "$build/findings/$target" -type f | wc -l)
  printf '%-16s %12s %9s\n' "$target" "${executions:-0}" "$findings"
  if [ "$code" != 0 ] || [ "$findings" != 0 ] || [ "${executions:-0}" = 0 ]; then
    status=1
    echo "$target ended with status $code: see $log" >&2
  fi
done
exit "$status"
