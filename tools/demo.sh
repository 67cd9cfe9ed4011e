#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The demonstration, from scratch: packs Fashion-MNIST into shards, trains a small model from them, then
# resumes from the checkpoint. Everything it makes is in build/.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/install_missing.sh
source tools/install_missing.sh

install_missing build
input=/usr/share/datasets/fashion-mnist
if [ ! -d "$input" ]; then
  echo "no $input: the package dataset-fashion-mnist has it" >&2
  exit 1
fi

mkdir -p build/demo
cmake --preset demo >build/demo/configure.log 2>&1 || { cat build/demo/configure.log >&2; exit 1; }
cmake --build --preset demo -j "$(nproc)" --target pack_webdataset train_fashion_mnist
programs=build/demo/examples
shards=build/demo/shards
checkpoint=build/demo/checkpoint

rm -rf "$shards" "$checkpoint"
step() {
  printf '\n$ %s\n' "$*"
  "$@"
}
step "$programs/pack_webdataset" --input "$input" --output "$shards"
step "$programs/train_fashion_mnist" --shards "$shards" --checkpoint "$checkpoint" --epochs 1
step "$programs/train_fashion_mnist" --shards "$shards" --checkpoint "$checkpoint" --epochs 2 |
  tee build/demo/second_start.log

accuracy=$(sed -n 's/.*test accuracy \([0-9.]*\).*/\1/p' build/demo/second_start.log | tail -n 1)
if ! awk -v found="${accuracy:-0}" 'BEGIN { exit !(found >= 0.85) }'; then
  echo "a test accuracy of ${accuracy:-nothing}, where this model reaches 0.85 and more" >&2
  exit 1
fi
