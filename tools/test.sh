#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Builds and tests everything on a machine that has git and a shell: tools/test.sh [--full]
#
# Installs missing packages (Debian, Ubuntu), builds with GCC, then runs ctest: the unit tests, the examples,
# the outside projects, the checks of the sources, and Clang over the same sources. They are built against
# penstock::compiled; some of them header-only too.
# --full adds the sanitizers, Clang's own build, the header-only, unity and minimal builds, the single header, the
# parsers on 64-bit ARM and on a big-endian machine (emulated), a program with musl, Conan, every header by itself,
# the benchmarks, and longer property tests.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/install_missing.sh
source tools/install_missing.sh

full=0
for argument in "$@"; do
  case "$argument" in
    --full) full=1 ;;
    *) echo "usage: tools/test.sh [--full]" >&2; exit 2 ;;
  esac
done

[ "$full" = 1 ] && needs=full || needs=tests
install_missing "$needs"
jobs=$(nproc)
parallel=$((3 * jobs)) # most tests wait
compilers='^(second_compiler|compile_fail|consumer|model)$' # these do not
clang=$(newest_clang)
export PYTHONDONTWRITEBYTECODE=1
# The peer with which samples are compared; tests say so if it is missing.
if [ -z "${PENSTOCK_TEST_PYTHON:-}" ] && peer=$(webdataset_python "$PWD/build/webdataset"); then
  export PENSTOCK_TEST_PYTHON=$peer
fi
# Larger tools, one for each way of packaging, and S3 servers; CI always has them.
if [ "$full" = 1 ] || [ "${CI:-}" = true ]; then
  if [ -z "${PENSTOCK_TEST_WEED:-}" ] && weed=$(weed_program "$PWD/build/weed"); then
    export PENSTOCK_TEST_WEED=$weed
  fi
  if [ -z "${PENSTOCK_TEST_JUICEFS:-}" ] && juicefs=$(juicefs_program "$PWD/build/juicefs"); then
    export PENSTOCK_TEST_JUICEFS=$juicefs
  fi
  if [ -z "${PENSTOCK_TEST_ARROW:-}" ] && arrow=$(arrow_python "$PWD/build/arrow"); then
    export PENSTOCK_TEST_ARROW=$arrow
  fi
  if [ -z "${PENSTOCK_TEST_TINK:-}" ] && tink=$(tink_python "$PWD/build/tink"); then
    export PENSTOCK_TEST_TINK=$tink
  fi
  if [ -z "${PENSTOCK_TEST_FORMATS:-}" ] && formats=$(formats_python "$PWD/build/formats"); then
    export PENSTOCK_TEST_FORMATS=$formats
  fi
  if [ -z "${PENSTOCK_TEST_NANOBIND:-}" ] && nanobind=$(nanobind_python "$PWD/build/nanobind"); then
    export PENSTOCK_TEST_NANOBIND=$nanobind
  fi
  if [ -z "${PENSTOCK_TEST_CONAN:-}" ] && conan=$(conan_program "$PWD/build/conan"); then
    export PENSTOCK_TEST_CONAN=$conan
  fi
fi
# Only with --full: it builds a C++ library for musl first.
if [ "$full" = 1 ] && [ -z "${PENSTOCK_TEST_ZIG:-}" ] && zig=$(zig_python "$PWD/build/zig"); then
  export PENSTOCK_TEST_ZIG=$zig
fi
# Hundreds of tests start it: the program itself, not a version manager's script before it.
settings=("-DPython3_EXECUTABLE=$(python3 -c 'import sys; print(sys.executable)')")
# CUDA's toolkit is in no free package; without it the device's logic is tested with the tests' fake runtime.
if have_header cuda_runtime_api.h || [ -e "${CUDA_PATH:-/usr/local/cuda}/include/cuda_runtime_api.h" ]; then
  cuda=(-DPENSTOCK_ENABLE_CUDA=ON)
  # CMake looks for the packages where these say.
  if [ "$full" = 1 ] || [ "${CI:-}" = true ]; then
    if [ -z "${PenstockNvjpeg_ROOT:-}" ] && wheels=$(nvidia_wheels "$PWD/build/nvidia"); then
      export PenstockNvjpeg_ROOT=$wheels PenstockCufile_ROOT=$wheels
    fi
    if [ -z "${PenstockNvjpeg_ROOT:-}" ] && [ "${CI:-}" = true ]; then
      echo "CI must have nvJPEG and cuFile, with which nvjpeg and cufile are linked" >&2
      exit 1
    fi
  fi
else
  cuda=()
  echo "no CUDA toolkit here: what nvcc compiles is skipped" >&2
fi

if [ -n "${PENSTOCK_TEST_ARROW:-}" ]; then
  arrow=("-DPENSTOCK_ARROW_PYTHON=$PENSTOCK_TEST_ARROW")
elif [ "${CI:-}" = true ]; then
  echo "CI must have pyarrow, whose Arrow C++ arrow_files is tested with" >&2
  exit 1
else
  arrow=()
  echo "no Arrow C++ here: arrow_files is not tested" >&2
fi

# With --full the presets also compile every header by itself, and build the benchmarks.
if [ "$full" = 1 ]; then
  targets=()
else
  targets=(--target all)
  settings+=(-DPENSTOCK_BUILD_BENCH=OFF)
fi

# preset <name> [setting]...: configures, builds and tests one preset
preset() {
  local name=$1
  shift
  echo "== $name"
  cmake --preset "$name" "${settings[@]}" "$@"
  cmake --build --preset "$name" -j "$jobs" "${targets[@]}"
  # If address randomisation is wider than the thread sanitizer supports, it aborts before main.
  plain=()
  if [ "$name" = gcc-tsan ] && setarch "$(uname -m)" -R true 2>/dev/null; then
    plain=(setarch "$(uname -m)" -R)
  fi
  if [ "$name" != dev ]; then
    "${plain[@]}" ctest --preset "$name" -j "$parallel" --no-label-summary
    return
  fi
  local compiled=0 ran=0
  ctest --preset "$name" -j "$jobs" -L "$compilers" --no-label-summary || compiled=1
  ctest --preset "$name" -j "$parallel" -LE "$compilers" --no-label-summary || ran=1
  [ "$compiled" = 0 ] || echo "test.sh: the first of these two runs, with compilers, had failures; see above" >&2
  return $((compiled | ran))
}

if [ "$full" = 1 ]; then
  preset gcc-asan-ubsan
  preset gcc-tsan
  # Thousands of stops and failures at random moments, under the thread sanitizer.
  PENSTOCK_LONG_TESTS=1 "${plain[@]}" ctest --preset gcc-tsan -R '^run/random_moments$' --no-label-summary
  preset clang "-DCMAKE_CXX_COMPILER=$(command -v "$clang")"
  preset header-only
  preset unity
  preset minimal
  preset single-header
  for machine in aarch64 s390x; do
    if command -v "$machine-linux-gnu-g++" >/dev/null && command -v "qemu-$machine" >/dev/null; then
      preset "$machine"
    elif [ "${CI:-}" = true ]; then
      echo "CI must have $machine-linux-gnu-g++ and qemu-$machine" >&2
      exit 1
    else
      echo "== $machine left out: there is no $machine-linux-gnu-g++ or no qemu-$machine"
    fi
  done
  export PENSTOCK_LONG_TESTS=1
fi
# Several test files in one unit: they share most of what they include. Clang reads them so as well.
# No line numbers: they are a tenth of the time, and the preset dev alone has them.
preset dev "-DCMAKE_CXX_COMPILER=$(command -v g++)" "-DPENSTOCK_SECOND_COMPILER=$clang" \
  "-DPENSTOCK_TESTED_ELSEWHERE=${PENSTOCK_TESTED_ELSEWHERE:-}" -DPENSTOCK_TEST_UNITY=ON \
  -DPENSTOCK_TEST_UNITY_SIZE=8 -DCMAKE_CXX_FLAGS_DEBUG=-O0 "${cuda[@]}" "${arrow[@]}"
