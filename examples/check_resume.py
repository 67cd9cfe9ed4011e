#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Packs and trains on a small made-up dataset, and checks that interrupting changes nothing.

check_resume.py <pack_webdataset> <train_fashion_mnist> <prove>

One training runs through; others are stopped after some steps, killed at any moment, and run with other
numbers of workers. All must end with the same checkpoint, byte for byte. What a checkpoint says of the samples
that went into it is compared with the shards.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from drawn_shards import make_split

pack, train, prove = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])


def run(*command, expect=0):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != expect:
        sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    if expect != 0 and len(done.stderr.splitlines()) != 1:
        sys.exit(f"{command} did not say in one line what is wrong:\n{done.stderr}")
    return done.stdout + done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def accuracy(output):
    return float(output.rsplit("test accuracy", 1)[1].split()[0])


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(1)
    make_split(folder, "train", 2050, source)
    make_split(folder, "t10k", 230, source)
    shards = folder / "shards"
    run(pack, "--input", folder, "--output", shards, "--samples-per-shard", 40)
    run(pack, "--input", folder, "--output", shards, "--samples-per-shard", 100)
    tars = sorted(p.name for p in shards.glob("*.tar"))
    check(len(tars) == 21 + 3, "packing a second time leaves the shards of the second time only")
    first = {p.name: p.read_bytes() for p in shards.glob("*.tar")}
    run(pack, "--input", folder, "--output", shards, "--samples-per-shard", 100)
    second = {p.name: p.read_bytes() for p in shards.glob("*.tar")}
    check(second == first, "the same samples give the same shards")

    def training(checkpoint, *more, epochs=3, workers=2):
        return [train, "--shards", shards, "--checkpoint", folder / checkpoint, "--epochs", epochs,
                "--batch", 50, "--window", 4, "--workers", workers, *more]

    out = run(*training("whole"))
    wanted = (folder / "whole").read_bytes()
    check(accuracy(out) > 0.9, "the made-up classes are learnt")
    check("all 3 epochs are done" in run(*training("whole")), "a second start says that all is done")
    check((folder / "whole").read_bytes() == wanted, "and leaves the checkpoint as it is")

    for stop, others in ((7, (0, 1, 3)), (41, (1,))):  # 41 steps are an epoch
        out = run(*training("stopped", "--stop-after", stop))
        for workers in others:
            out = run(*training("stopped", "--stop-after", stop, workers=workers))
            check("continuing at epoch" in out, f"stopped after {stop} steps, it says where it goes on")
        run(*training("stopped"))
        check((folder / "stopped").read_bytes() == wanted, f"stopped every {stop} steps, the same weights")
        (folder / "stopped").unlink()

    for wait in (0.02, 0.05, 0.1):  # whatever the moment, the end is the same
        while True:
            process = subprocess.Popen([str(c) for c in training("killed", "--checkpoint-every", 5)],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(wait)
            if process.poll() is not None:
                break
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            wait *= 1.5
        check(process.returncode == 0 and (folder / "killed").read_bytes() == wanted,
              "killed again and again, the same weights")
        (folder / "killed").unlink()

    error = run(*training("x")[:2], folder / "nothing", *training("x")[3:], expect=1)
    check("nothing" in error, "shards that are not there are named")
    (folder / "short").write_bytes(wanted[:-1])
    check("checkpoint" in run(*training("short"), expect=1), "a checkpoint that was cut is refused")
    error = run(*training("whole", "--window", 5, epochs=4), expect=1)
    check("another sequence" in error, "a checkpoint of another order is refused, with the reason")
    error = run(train, "--epochs", "many", "--shards", shards, "--checkpoint", "x", expect=1)
    check("needs a whole number" in error, "a wrong argument is named")

    # Which samples went into the model: 7 steps of 50, then a whole epoch but for its tail.
    run(*training("some", "--stop-after", 7))
    (folder / "state.json").write_bytes((folder / "some").read_bytes().split(b"\n")[0])
    pattern = folder / "shards" / f"train-{{000000..{len(list(shards.glob('train-*.tar'))) - 1:06d}}}.tar"
    plan = ["--data", pattern, "--seed", 7, "--window", 4, "--global-batch", 50, "--tail", "drop"]
    listed = run(prove, *plan, "--consumed", folder / "state.json", "--keys", "yes").splitlines()
    check(len(listed) == len(set(listed)) == 350, "a checkpoint after 7 steps of 50 names 350 samples")
    ranges = run(prove, *plan, "--consumed", folder / "state.json").splitlines()
    count = sum(int(r.rsplit(" ", 1)[1].split("-")[1]) - int(r.rsplit(" ", 1)[1].split("-")[0]) + 1 for r in ranges)
    check(count == 350 and len(ranges) < 350, "and as ranges the same number")
    error = run(prove, "--data", pattern, "--seed", 8, "--window", 4, "--global-batch", 50, "--tail", "drop",
                "--consumed", folder / "state.json", expect=2)
    check("shuffle(seed 7, window 4)" in error and "shuffle(seed 8, window 4)" in error, "another plan is refused")

    # The same order on other machines; and what does not hold.
    out = run(prove, *plan, "--topologies", "1x1,2x8,7x1,50", "--epochs", 2, "--stops", "0,3,41")
    check("holds" in out and "50 ranks: 41 steps, 2050 samples, 0 dropped" in out, "it holds on four topologies")
    error = run(prove, *plan, "--topologies", "51", expect=2)
    check("no sample for each of 51 ranks" in error, "more ranks than samples in a step are refused")
    error = run(prove, "--samples", "-4", expect=2)
    check("'-4' is no whole number" in error, "a negative number is named")
