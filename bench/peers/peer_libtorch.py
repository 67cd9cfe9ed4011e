#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""libtorch's C++ DataLoader: runs bench_peers_libtorch, which $BENCH_LIBTORCH_PROGRAM names, over a mapped npy file."""

import json
import os
import subprocess

import common


def run(work, seconds):
    """The program's own measurement."""
    command = [os.environ["BENCH_LIBTORCH_PROGRAM"], work.name, str(seconds), str(work.samples), str(work.batch),
               str(work.workers), work.once_rows()]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


SETTINGS = {"raw": "a BatchDataset over a mapped file, which makes whole batches by memcpy"}

if __name__ == "__main__":
    common.main([], SETTINGS, program=run)
