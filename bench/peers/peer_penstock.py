#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Penstock: writes tar shards and runs the C++ program bench_peers, which $PENSTOCK_BENCH_PROGRAM names."""

import json
import os
import pathlib
import subprocess

import common
import peer_tar


def run(work, seconds):
    """The program's own measurement."""
    field, contents = ("jpg", (pathlib.Path(name).read_bytes() for name in work.photos())) if work.kind == "jpeg" else (
        "bin", (row.tobytes() for row in work.rows()))
    names = peer_tar.shards(work, 4, field, contents)
    # Indexes that the library derives are kept here.
    environment = os.environ | {"XDG_CACHE_HOME": str(work.folder.resolve())}
    command = [os.environ["PENSTOCK_BENCH_PROGRAM"], work.name, str(seconds), str(work.samples), str(work.batch), *names]
    return json.loads(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout)


SETTINGS = dict.fromkeys(("raw", "jpeg", "resume"), "4 tar shards, webdataset(path), default settings")

if __name__ == "__main__":
    common.main([], SETTINGS, program=run)
