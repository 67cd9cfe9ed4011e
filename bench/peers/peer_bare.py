#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No loader: runs bench_peers_bare, which $BENCH_BARE_PROGRAM names and which only copies, over a mapped npy file."""

import json
import os
import subprocess

import common


def run(work, seconds):
    """The program's own measurement."""
    command = [os.environ["BENCH_BARE_PROGRAM"], work.name, str(seconds), str(work.samples), str(work.batch),
               str(work.workers), work.once_rows()]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


SETTINGS = {"raw": "no loader: each thread copies every n-th batch out of a mapped file, for nobody"}

if __name__ == "__main__":
    common.main([], SETTINGS, program=run)
