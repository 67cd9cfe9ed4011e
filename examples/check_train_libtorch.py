#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs a small made-up dataset, and checks that a network of libtorch learns it.

check_train_libtorch.py <pack_webdataset> <train_libtorch>
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile

from drawn_shards import make_split, npy, write_shard

pack, train = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])


def run(*command, expect=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != expect:
        sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def epochs_of(output):
    """Loss, accuracy and test accuracy of each epoch."""
    found = re.findall(r"^epoch \d+: loss (\S+), accuracy (\S+), \d+ samples/s, test accuracy (\S+)$", output, re.M)
    return [tuple(map(float, epoch)) for epoch in found]


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(1)
    make_split(folder, "train", 1230, source)
    make_split(folder, "t10k", 230, source)
    shards = folder / "shards"
    run(pack, "--input", folder, "--output", shards, "--samples-per-shard", 100)
    training = [train, "--shards", shards, "--batch", 50, "--window", 4]

    out = run(*training, "--workers", 2)
    print(out)
    epochs = epochs_of(out)
    check(len(epochs) == 3, "each epoch has its line")
    check(epochs[-1][0] < 0.5 * epochs[0][0], "the loss falls")
    check(epochs[-1][1] > 0.9 and epochs[-1][2] > 0.9, "the made-up classes are learnt")

    error = run(train, "--shards", folder / "nothing", expect=1)
    check("nothing" in error and len(error.splitlines()) == 1, "shards that are not there are named")
    write_shard(folder / "train-0.tar", [("0", {"npy": npy((30, 28, bytes(30 * 28 * 3))), "cls": b"1"})])
    check("28 x 28" in run(train, "--shards", folder, expect=1), "images of another size are refused")
