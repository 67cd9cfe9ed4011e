#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains on small made-up pictures, and checks that they are learnt, whatever the number of workers.

check_train_images.py <bake> <train_images> <preview>

The pictures are drawn here as npy, and `bake` makes JPEGs of some. `preview` shows both kinds.
"""

import pathlib
import random
import re
import struct
import subprocess
import sys
import tarfile
import tempfile

from drawn_shards import npy, picture, write_shard

bake, train, preview = (str(pathlib.Path(p).resolve()) for p in sys.argv[1:4])


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
    """The loss and the accuracy of each epoch, as text."""
    return re.findall(r"^epoch \d+: loss (\S+), accuracy (\S+), \d+ images/s, stall \S+ %$", output, re.M)


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    source = random.Random(1)
    samples = []
    for i in range(240):
        image = picture(source.randrange(36, 48), source.randrange(36, 48), i % 4, source)
        samples.append((f"{i:04d}", {"npy": npy(image), "cls": b"%d" % (i % 4)}))
    write_shard(folder / "drawn.tar", samples)
    run(bake, "--shards", folder / "drawn.tar", "--out", folder / "baked", "--max-side", 40, "--raw", 0.5,
        "--samples-per-shard", 100)
    shards = ["--shards", folder / "baked" / "baked-*.tar", "--classes", 4, "--size", 32]
    training = [train, *shards, "--batch", 8, "--epochs"]

    out = run(*training, 6, "--workers", 2)
    epochs = epochs_of(out)
    print(out)
    check(len(epochs) == 6, "each epoch has its line")
    check(float(epochs[-1][0]) < 0.5 * float(epochs[0][0]), "the loss falls")
    check(float(epochs[-1][1]) > 0.8, "the classes are learnt, from JPEGs and raw pixels side by side")
    epochs = epochs_of(run(*training, 1, "--workers", 2))
    for workers in (0, 1, 3):
        check(epochs_of(run(*training, 1, "--workers", workers)) == epochs, f"{workers} workers: the same loss")
    check(epochs_of(run(*training, 1, "--seed", 8)) != epochs, "another seed: another loss")

    # The same pictures as files in folders of classes.
    for shard in sorted((folder / "baked").glob("*.tar")):
        with tarfile.open(shard) as archive:
            for entry in archive:
                key, suffix = entry.name.split(".")
                if suffix == "cls":
                    continue
                (folder / "files" / f"class{int(key) % 4}").mkdir(parents=True, exist_ok=True)
                (folder / "files" / f"class{int(key) % 4}" / entry.name).write_bytes(archive.extractfile(entry).read())
    epochs = epochs_of(run(train, "--folder", folder / "files", "--size", 32, "--batch", 8, "--epochs", 6))
    check(float(epochs[-1][1]) > 0.8, "a folder of files is learnt too")

    out = run(train, *shards, "--accelerator", 2, "--epochs", 2)
    lines = re.findall(r"^epoch \d: \d+ images/s, stall \S+ %$", out, re.M)
    check(len(lines) == 2, "a simulated accelerator: images/s and stall")
    check("are 3 classes" in run(train, *shards[:2], "--classes", 3, expect=1), "a label beyond the classes is refused")
    check("either" in run(train, "--size", 32, expect=1), "no data is an error")
    check("multiple of 4" in run(train, *shards[:2], "--size", 30, expect=1), "a wrong size is an error")

    check("--epochs" in run(train, *shards, "--epochs", 0, expect=1), "no epoch is an error")
    check("at most 1024" in run(train, *shards, "--workers", 4294967297, expect=1), "too many workers are refused")
    error = run(train, "--folder", folder / "files", "--classes", 3, "--size", 32, expect=1)
    check("has 4 classes" in error, "other classes than the folder's are refused")
    for path in (folder / "files" / "class0").iterdir():
        (folder / "one" / "class0").mkdir(parents=True, exist_ok=True)
        (folder / "one" / "class0" / path.name).write_bytes(path.read_bytes())
    check("nothing to tell apart" in run(train, "--folder", folder / "one", expect=1), "one class is refused")

    for option, value, words in (("--count", 4294967312, "at most 10000"), ("--columns", 4294967297, "at most 10000"),
                                 ("--size", 5000, "at most 4096"), ("--count", 0, "at least 1")):
        check(words in run(preview, *shards[:2], "--out", folder / "no.png", option, value, expect=1),
              f"preview {option} {value} is refused")
    error = run(preview, *shards[:2], "--out", folder / "no.png", "--count", 1000, "--size", 4096, expect=1)
    check("more than 1 GB" in error and "room for 4" in error, "a sheet beyond the memory is refused")
    run(preview, *shards[:2], "--out", folder / "sheet.png", "--count", 7, "--size", 32)
    sheet = (folder / "sheet.png").read_bytes()
    check(sheet[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", sheet[16:24]) == (308, 130),
          "preview draws seven pairs in two rows of four")
    (folder / "names.txt").write_text("cat\ndog\n")
    run(preview, *shards[:2], "--out", folder / "named.png", "--count", 7, "--size", 32, "--names", folder / "names.txt")
    check((folder / "named.png").read_bytes() != sheet, "preview writes the names of labels")
    check("cannot read" in run(preview, *shards[:2], "--out", folder / "no.png", "--names", folder / "none", expect=1),
          "a file of names that is not there is an error")
