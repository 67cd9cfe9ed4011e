#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# run.sh [--quick] [--rows 1,4a,9] [--pairs N] [--takes N] [--keep] [--markdown FILE]
#
# Installs what is missing, as tools/test.sh does, builds the benchmarks (Release) and prints one table for
# all of them. Data are written into the build folder and removed at the end, unless --keep is given. The
# machine should be idle. PENSTOCK_BENCH_BUILD names another build folder.
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
# The reference of row 23c.
if ! command -v wrk > /dev/null; then
  { can_install && as_root apt-get install -y wrk > /dev/null 2>&1; } ||
    echo "run.sh: wrk cannot be installed; row 23c is left out" >&2
fi
mkdir -p "$(dirname "$build")"
cuda=OFF
[ ! -e "${CUDA_PATH:-/usr/local/cuda}/include/cuda_runtime_api.h" ] || cuda=ON
# Arrow C++, of PyPI if the machine has none, for rows 26m to 26s, 26x and 63.
arrow=$(arrow_python "$build/arrow") || { arrow=; echo "run.sh: pyarrow cannot be installed; rows 26m to 26x and 63 need it" >&2; }
[ -z "$arrow" ] || export BENCH_ARROW_PYTHON=$arrow
cmake --preset bench "-DPENSTOCK_ENABLE_CUDA=$cuda" "-DPENSTOCK_ARROW_PYTHON=$arrow" -B "$build" > "$build.log" 2>&1 ||
  { cat "$build.log" >&2; exit 1; }
cmake --build "$build" >> "$build.log" 2>&1 || { tail -n 50 "$build.log" >&2; exit 1; }

# The peer of row 8c, in an environment of its own.
if python=$(webdataset_python "$build/webdataset"); then
  export BENCH_WEBDATASET_PYTHON=$python BENCH_WEBDATASET_SCRIPT=$root/bench/tar/webdataset_rate.py
else
  echo "run.sh: webdataset cannot be installed; row 8c is left out" >&2
fi

# The peers of row 18, and of row 21. PyTorch is large, and FFCV is built here with OpenCV and libturbojpeg (libopencv-dev,
# libturbojpeg0-dev, pkg-config); an environment that already has them can be used too.
peers=${PENSTOCK_BENCH_PEERS:-$build/peers}
pip_install() {
  timeout 600 "$peers/bin/pip" --quiet --disable-pip-version-check --timeout 15 --retries 1 install "$@" > /dev/null 2>&1
}
[ -e "$peers/bin/python" ] || python3 -m venv "$peers" > /dev/null 2>&1 || true
export BENCH_PEERS_SCRIPTS=$root/bench/tar
if "$peers/bin/python" -c 'import torch, numpy' 2> /dev/null || pip_install torch numpy; then
  export BENCH_TORCH_PYTHON=$peers/bin/python
else
  echo "run.sh: PyTorch cannot be installed; rows 18, 21e and 21l go without it" >&2
fi
if ! "$peers/bin/python" -c 'import ffcv' 2> /dev/null && can_install; then
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libopencv-dev \
    libturbojpeg0-dev pkg-config > /dev/null 2>&1 || true
fi
if "$peers/bin/python" -c 'import ffcv' 2> /dev/null || pip_install ffcv pillow; then
  export BENCH_FFCV_PYTHON=$peers/bin/python
else
  echo "run.sh: FFCV cannot be installed; rows 18, 21i, 27c and 27f go without it" >&2
fi

# The peers of rows 21e, 21h to 21j, 21l, and 22c.
export BENCH_IMAGES_SCRIPT=$root/bench/images/peer_images.py
"$peers/bin/python" -c 'import torchvision' 2> /dev/null || pip_install torchvision || true
for python in "$peers/bin/python" /usr/bin/python3 python3; do
  if "$python" -c 'import torch, torchvision, PIL' 2> /dev/null; then
    export BENCH_TORCHVISION_PYTHON=$python
    break
  fi
done
if "$peers/bin/python" -c 'import nvidia.dali' 2> /dev/null || pip_install nvidia-dali-cuda120; then
  export BENCH_DALI_PYTHON=$peers/bin/python
else
  echo "run.sh: DALI cannot be installed; row 21h goes without it" >&2
fi
if "$peers/bin/python" -c 'import tensorflow' 2> /dev/null || pip_install tensorflow-cpu; then
  export BENCH_TF_PYTHON=$peers/bin/python
else
  echo "run.sh: TensorFlow cannot be installed; row 21j goes without it" >&2
fi
# The peers of row 24.
export BENCH_S3_SCRIPT=$root/bench/s3/peer_s3.py
if "$peers/bin/python" -c 'import boto3, obstore' 2> /dev/null || pip_install boto3 obstore; then
  export BENCH_S3_PYTHON=$peers/bin/python
  "$peers/bin/python" -c 'import s3torchconnector' 2> /dev/null || pip_install s3torchconnector ||
    echo "run.sh: s3torchconnector cannot be installed; row 24 goes without it" >&2
else
  echo "run.sh: boto3 and obstore cannot be installed; row 24 is left out" >&2
fi
# The peers of rows 26 and 27.
export BENCH_FORMATS_SCRIPTS=$root/bench/formats
if "$peers/bin/python" -c 'import torch, streaming' 2> /dev/null || pip_install mosaicml-streaming; then
  export BENCH_STREAMING_PYTHON=$peers/bin/python
else
  echo "run.sh: mosaicml-streaming cannot be installed; rows 26e and 26k go without it" >&2
fi
if "$peers/bin/python" -c 'import torch, tfrecord' 2> /dev/null || pip_install tfrecord; then
  export BENCH_TFRECORD_PYTHON=$peers/bin/python
else
  echo "run.sh: tfrecord cannot be installed; rows 26f and 26l go without it" >&2
fi
if "$peers/bin/python" -c 'import torch, litdata' 2> /dev/null || pip_install litdata; then
  export BENCH_LITDATA_PYTHON=$peers/bin/python
else
  echo "run.sh: LitData cannot be installed; rows 27b and 27e go without it" >&2
fi
if "$peers/bin/python" -c 'import torch, datasets' 2> /dev/null || pip_install datasets; then
  export BENCH_DATASETS_PYTHON=$peers/bin/python
else
  echo "run.sh: datasets cannot be installed; row 26q goes without it" >&2
fi
# The peer of rows 42 and 49, which needs PyTorch too; 49 also needs soundfile.
export BENCH_UTTERANCES_SCRIPT=$root/bench/audio/peer_utterances.py
if "$peers/bin/python" -c 'import torch, numpy, soundfile, lhotse' 2> /dev/null ||
  pip_install torch torchaudio numpy soundfile urllib3 lhotse; then
  export BENCH_LHOTSE_PYTHON=$peers/bin/python
else
  echo "run.sh: Lhotse cannot be installed; rows 42a to 42c and 49 are left out" >&2
fi
# The peers of row 44.
export BENCH_TOKENISE_SCRIPT=$root/bench/sequences/tokenise_rate.py
if "$peers/bin/python" -c 'import tokenizers, tiktoken' 2> /dev/null || pip_install tokenizers tiktoken; then
  export BENCH_TOKENISE_PYTHON=$peers/bin/python
else
  echo "run.sh: tokenizers and tiktoken cannot be installed; row 44 is left out" >&2
fi
# The peers of row 48; the others are shown beside it where they are.
export BENCH_SOUND_SCRIPT=$root/bench/audio/sound_rate.py
if "$peers/bin/python" -c 'import soundfile, soxr' 2> /dev/null || pip_install soundfile soxr; then
  export BENCH_SOUND_PYTHON=$peers/bin/python
else
  echo "run.sh: soundfile and soxr cannot be installed; row 48 is left out" >&2
fi
"$peers/bin/python" -c 'import torchaudio, torchcodec' 2> /dev/null || pip_install torchaudio torchcodec || true
# The peer of row 47.
export BENCH_LOG_MEL_SCRIPT=$root/bench/audio/log_mel_rate.py
if "$peers/bin/python" -c 'import numpy, torchaudio' 2> /dev/null || pip_install torch torchaudio numpy; then
  export BENCH_TORCHAUDIO_PYTHON=$peers/bin/python
else
  echo "run.sh: torchaudio cannot be installed; row 47 is left out" >&2
fi
# The peers of row 62, each of which may be missing.
export BENCH_VIDEO_SCRIPT=$root/bench/video/peer_video.py
for package in torchcodec av decord; do
  "$peers/bin/python" -c "import torch, $package" 2> /dev/null || pip_install torch "$package" ||
    echo "run.sh: $package cannot be installed; row 62 goes without it" >&2
done
[ ! -e "$peers/bin/python" ] || export BENCH_VIDEO_PYTHON=$peers/bin/python
# The peer of row 63. It pins versions of what it needs: an environment of its own.
export BENCH_LEROBOT_SCRIPT=$root/bench/robots/peer_lerobot.py
lerobot_imports() { "$build/lerobot/bin/python" -c 'from lerobot.datasets.lerobot_dataset import LeRobotDataset' 2> /dev/null; }
if lerobot_imports ||
  { python3 -m venv "$build/lerobot" > /dev/null 2>&1 &&
    timeout 900 "$build/lerobot/bin/pip" --quiet --disable-pip-version-check install lerobot==0.4.4 > /dev/null 2>&1 &&
    lerobot_imports; }; then
  export BENCH_LEROBOT_PYTHON=$build/lerobot/bin/python
else
  echo "run.sh: lerobot cannot be installed; row 63 is left out" >&2
fi
# Petastorm needs old versions of its libraries: an environment of its own.
petastorm_imports() { "$build/petastorm/bin/python" -c 'import torch; from petastorm import make_batch_reader' 2> /dev/null; }
if petastorm_imports ||
  { python3 -m venv "$build/petastorm" > /dev/null 2>&1 &&
    timeout 600 "$build/petastorm/bin/pip" --quiet --disable-pip-version-check install petastorm==0.13.1 'pyarrow<13' \
      'numpy<2' 'pandas<2.1' 'setuptools<81' torch > /dev/null 2>&1 &&
    petastorm_imports; }; then
  export BENCH_PETASTORM_PYTHON=$build/petastorm/bin/python
else
  echo "run.sh: Petastorm cannot be installed; row 26r goes without it" >&2
fi
# The peers of rows 40 and 41, and the lengths of 40c, 40f and 41: the functions that are compared import little.
export BENCH_SEQUENCES_SCRIPTS=$root/bench/sequences
if "$peers/bin/python" -c 'import importlib.util as u, numpy, pyarrow, tokenizers
[u.find_spec(name).name for name in ("trl", "megatron")]' 2> /dev/null ||
  { pip_install numpy pyarrow tokenizers && pip_install --no-deps trl megatron-core; }; then
  export BENCH_SEQUENCES_PYTHON=$peers/bin/python
else
  echo "run.sh: TRL, Megatron or tokenizers cannot be installed; rows 40a and 41b go without them" >&2
fi
if can_install; then
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends librust-rand-dev \
    librust-rayon-dev librust-serde-dev librust-serde-derive-dev librust-serde-json-dev librust-smallvec-dev \
    librust-thiserror-dev linux-doc postgresql-doc python3-doc > /dev/null 2>&1 || true
fi
if BENCH_SEQPACKER=$("$root/bench/sequences/build_seqpacker.sh" "$build/seqpacker" 2> /dev/null); then
  export BENCH_SEQPACKER
else
  echo "run.sh: seqpacker cannot be built; row 40d is left out, and 40a goes without it" >&2
fi
words=${PENSTOCK_TEST_DATA:-$root/../shared/data}/tokens/gpt2_bpe
[ -e "$build/sections.u32" ] || [ -z "${BENCH_SEQUENCES_PYTHON:-}" ] ||
  "$BENCH_SEQUENCES_PYTHON" "$BENCH_SEQUENCES_SCRIPTS/lengths.py" "$words/gpt2_bpe_encoder.json" \
    "$words/gpt2_bpe_vocab.bpe" "$build/pages.u32" "$build/sections.u32" > /dev/null 2>&1 || true
if [ -s "$build/sections.u32" ]; then
  export BENCH_SEQUENCES_LENGTHS=$build/sections.u32
else
  echo "run.sh: the manuals cannot be tokenised; rows 40c, 40f and 41 are left out" >&2
fi
[ -n "${BENCH_TORCHVISION_PYTHON:-}" ] || echo "run.sh: there is no torchvision; rows 21e, 21l and 22c go without it" >&2

python3 "$root/bench/report.py" "$build" "$@"
