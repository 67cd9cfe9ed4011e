#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# run.sh [--quick] [--works 1k,jpeg] [--peers torch,dali] [--rounds N] [--photos FOLDER]
#
# Installs the peers that can be had into environments below build/peers, builds Penstock's side, and measures all of
# them in turn. Table and charts: build/peers/peers.md and *.svg. PENSTOCK_PEERS_BUILD names another folder.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${PENSTOCK_PEERS_BUILD:-$root/build/peers}
cd "$root"
# shellcheck source=tools/install_missing.sh
source "$root/tools/install_missing.sh"
install_missing tests
mkdir -p "$folder"

# FFCV is built here with OpenCV and libturbojpeg; SPDL decodes with FFmpeg's libraries.
if can_install && ! { [ -d /usr/include/opencv4 ] && [ -e /usr/include/turbojpeg.h ] && command -v ffmpeg > /dev/null; }; then
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libopencv-dev \
    libturbojpeg0-dev pkg-config ffmpeg > /dev/null 2>&1 || echo "run.sh: OpenCV or FFmpeg cannot be installed" >&2
fi

# python_of <version>: a Python of that version, also where pyenv has it and does not use it
python_of() {
  local found
  for found in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$1".*/bin/"python$1"; do
    if "$found" -c '' 2> /dev/null; then
      echo "$found"
      return
    fi
  done
  return 1
}

# want <environment> <module> <package>...: installs the packages unless the module can be imported
want() {
  local environment=$folder/$1 module=$2 constraint=()
  shift 2
  [ -e "$environment/bin/python" ] && "$environment/bin/python" -c "import $module" > /dev/null 2>&1 && return
  [ ! -e "$environment/constraint" ] || constraint=(-c "$environment/constraint")
  # uv finds versions that go together within seconds, for which pip takes minutes.
  if ! timeout 1200 nice "$folder/main/bin/uv" pip install --python "$environment/bin/python" "${constraint[@]}" "$@" \
    > "$folder/install.log" 2>&1; then
    echo "run.sh: $* cannot be installed: $(grep -v '^$' "$folder/install.log" | tail -n 1)" >&2
  fi
}

[ -e "$folder/main/bin/python" ] || python3 -m venv "$folder/main"
[ -e "$folder/main/bin/uv" ] || "$folder/main/bin/pip" --quiet --disable-pip-version-check install uv ||
  echo "run.sh: uv cannot be installed, and so no peer" >&2
want main torch torch torchvision
want main matplotlib matplotlib
# A later package must not change the PyTorch of the earlier ones.
"$folder/main/bin/uv" pip freeze --python "$folder/main/bin/python" 2> /dev/null |
  grep -E '^(torch|torchvision)==' > "$folder/main/constraint" || true
want main webdataset webdataset
want main torchdata torchdata
want main datasets datasets
want main lance pylance
want main spdl.io spdl
want main nvidia.dali nvidia-dali-cuda120
want main litdata litdata
want main ffcv ffcv
want main grain grain array-record
want main mlx.data mlx-data
want main tensorflow tensorflow-cpu
want main datago datago
want main nanobind nanobind
want main scikit_build_core scikit-build-core
# MosaicML Streaming wants an older NumPy than the others.
[ -e "$folder/streaming/bin/python" ] || python3 -m venv "$folder/streaming"
want streaming streaming mosaicml-streaming
if python=$(python_of 3.13); then
  [ -e "$folder/py313/bin/python" ] || "$python" -m venv "$folder/py313"
  want py313 dataloader_rs dataloader-rs numpy
else
  echo "run.sh: there is no Python 3.13, which dataloader-rs needs" >&2
fi

log=$folder/build.log
{
  cmake --preset bench -B "$folder/bench" && cmake --build "$folder/bench" --target bench_peers bench_peers_bare &&
    { cmake --build "$folder/bench" --target bench_peers_libtorch || echo "run.sh: there is no libtorch for its loader" >&3; }
} 3>&2 > "$log" 2>&1 || { tail -n 50 "$log" >&2; exit 1; }
export PENSTOCK_BENCH_PROGRAM=$folder/bench/bench/bench_peers
export BENCH_BARE_PROGRAM=$folder/bench/bench/bench_peers_bare
export BENCH_LIBTORCH_PROGRAM=$folder/bench/bench/bench_peers_libtorch
# The module of examples/python, against an installation of this tree.
{
  cmake -S . -B "$folder/installed" -DCMAKE_BUILD_TYPE=Release -DPENSTOCK_BUILD_TESTS=OFF -DPENSTOCK_BUILD_EXAMPLES=OFF \
    -DPENSTOCK_BUILD_BENCH=OFF -DPENSTOCK_BUILD_FUZZ=OFF -DPENSTOCK_ENABLE_JPEG=ON -DPENSTOCK_ENABLE_PNG=ON \
    -DCMAKE_INSTALL_PREFIX="$folder/prefix" &&
    cmake --build "$folder/installed" && cmake --install "$folder/installed" &&
    CMAKE_PREFIX_PATH="$folder/prefix" "$folder/main/bin/pip" install --no-build-isolation --no-deps --upgrade \
      --target "$folder/python" examples/python
} > "$folder/python.log" 2>&1 || echo "run.sh: the Python module cannot be built; see $folder/python.log" >&2
export PENSTOCK_BENCH_MODULE=$folder/python

"$folder/main/bin/python" "$root/bench/peers/peers.py" "$folder" "$@"
