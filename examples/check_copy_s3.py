#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies to and from a store on loopback that serve_s3.py starts, and checks that killing changes nothing.

check_copy_s3.py <copy>

What is in the store is read by boto3. Whatever is under its own name there, or in a folder, must be whole after each
kill, and what was finished in the store must not be sent again.
"""

import hashlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

from stored_data import check, client, inside_store

inside_store("data")
copy = str(pathlib.Path(sys.argv[1]).resolve())
draw = random.Random(2)
RECORD = ".penstock-copy"


def run(*command, expect=0):
    done = subprocess.run([copy, *map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != expect:
        sys.exit(f"{command} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    if expect != 0 and len(done.stderr.splitlines()) != 1:
        sys.exit(f"{command} did not say in one line what is wrong:\n{done.stderr}")
    return done.stdout + done.stderr


def stored(prefix):
    """The objects below a prefix, without records, each with its hash and its time; and the records' names."""
    objects, records = {}, set()
    for line in client("digests", "data"):
        digest, changed, key = line.split(" ", 2)
        if not key.startswith(prefix + "/"):
            continue
        name = key[len(prefix) + 1:]
        if name.endswith(RECORD):
            records.add(name[:-len(RECORD)])
        else:
            objects[name] = digest, changed
    return objects, records


def finished(prefix, names):
    """Those whose records say that they were compared."""
    with tempfile.TemporaryDirectory() as place:
        files = {name: pathlib.Path(place) / name for name in names}
        client("get", "data", *(part for name, file in files.items() for part in (f"{prefix}/{name}{RECORD}", file)))
        return {name for name, file in files.items() if len(file.read_text().split()) == 4}


def digest_of(body):
    return hashlib.sha256(body).hexdigest()


def hashes(objects):
    return {name: digest for name, (digest, _) in objects.items()}


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


def killed_often(command, pause, grows, each_time):
    """Starts the program until it ends by itself; returns what it said, and how often it was killed."""
    kills = 0
    while True:
        process = subprocess.Popen([copy, *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   text=True)
        time.sleep(pause * draw.uniform(0.5, 1.5))
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        said = process.communicate()[0]
        if process.returncode != -signal.SIGKILL:
            check(process.returncode == 0, f"it ends, after {kills} kills\n{said}")
            return said, kills
        kills += 1
        each_time(kills)
        pause *= grows


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    sizes = (11_000_000, 7_000_000, 6_000_001, 5_242_880, 0, 10_000, 1, 70_001, 30_000, 20_000)
    wanted = {f"a-{i}.bin": draw.randbytes(size) for i, size in enumerate(sizes)}
    digests = {name: digest_of(body) for name, body in wanted.items()}
    total = f"{sum(sizes) / 1e6:.1f} MB"
    for name, body in wanted.items():
        (folder / name).write_bytes(body)
    from_files = ["--from", folder / "a-*.bin", "--parallel", 2, "--part-size", 2_000_000]

    # To the store.
    said = run(*from_files, "--to", "s3://data/whole/")
    objects, records = stored("whole")
    check(hashes(objects) == digests and records == set(wanted), "all files are in the store, and a record of each")
    check(f"10 of 10 objects, {total} copied, 0.0 MB were there" in said, f"and the last line says so: {said.strip()}")
    said = run(*from_files, "--to", "s3://data/whole")
    check(f"0.0 MB copied, {total} were there" in said and stored("whole")[0] == objects, "another start sends nothing")

    # From the store, by a prefix, by a pattern, by a list; from store to store.
    run("--from", "s3://data/whole/", "--to", folder / "back")
    check(files_of(folder / "back") == wanted, "all that begins with a prefix comes back, without the records")
    run("--from", "s3://data/whole/a-{0..2}.bin", "--to", folder / "three", "--part-size", 1_000_000)
    check(files_of(folder / "three") == {f"a-{i}.bin": wanted[f"a-{i}.bin"] for i in range(3)}, "a pattern")
    (folder / "list").write_text("s3://data/whole/a-5.bin\n\ns3://data/whole/a-7.bin\n")
    run("--list", folder / "list", "--to", folder / "listed")
    run("--from", "s3://data/whole/a-5.bin", "--from", "s3://data/whole/a-7.bin", "--to", folder / "named")
    for listed in "listed", "named":
        check(files_of(folder / listed) == {n: wanted[n] for n in ("a-5.bin", "a-7.bin")}, f"what was {listed}")
    run("--from", "s3://data/whole/", "--to", "s3://data/deeper/inside")
    check(hashes(stored("deeper/inside")[0]) == digests, "from store to store")

    # Killed at any moment on the way to the store.
    for number in range(2):
        prefix, before = f"killed-{number}", {}

        def whole(kills):
            there, noted = stored(prefix)
            for name, (digest, changed) in there.items():
                if digest != digests[name]:
                    sys.exit(f"failed: {name} was half written after kill {kills}")
                if before.get(name, changed) != changed:
                    sys.exit(f"failed: {name} was finished before kill {kills}, and was sent again")
            before.clear()
            before.update({name: there[name][1] for name in finished(prefix, noted)})

        said, kills = killed_often([*from_files, "--to", f"s3://data/{prefix}"], 0.12, 1.35, whole)
        kept = sum(len(wanted[name]) for name in before)
        objects, records = stored(prefix)
        check(kills > 0 and hashes(objects) == digests and records == set(wanted), f"whole, after {kills} kills")
        check(all(objects[name][1] == changed for name, changed in before.items())
              and f"{kept / 1e6:.1f} MB were there" in said, f"{len(before)} finished objects were not sent again")

    # Killed at any moment on the way from the store.
    for number in range(2):
        out, begun = folder / f"killed-{number}", [0]

        def whole_files(kills):
            begun[0] = sum(path.stat().st_size for path in out.glob("*.bin*")) if out.exists() else 0
            for name, body in (files_of(out) if out.exists() else {}).items():
                if body != wanted[name]:
                    sys.exit(f"failed: {name} was half written after kill {kills}")

        said, kills = killed_often(["--from", "s3://data/whole/", "--to", out, "--part-size", 20_000, "--parallel", 3],
                                   0.15, 1.3, whole_files)
        check(kills > 0 and files_of(out) == wanted, f"the same files, after {kills} kills")
        there = float(re.search(r"([0-9.]+) MB were there", said)[1])
        check(begun[0] < 200_000 or there > 0, f"it went on: {said.splitlines()[-1]}")

    # What was replaced here or there is sent again; what is another's is left alone.
    (folder / "a-7.bin").write_bytes(b"another one")
    client("put", "data", "whole/a-8.bin", folder / "a-6.bin")
    said = run(*from_files, "--to", "s3://data/whole")
    now = {**digests, "a-7.bin": digest_of(b"another one")}
    check("10 of 10 objects, 0.0 MB copied" in said and hashes(stored("whole")[0]) == now,
          "what was replaced on either side is copied anew")
    client("put", "data", "foreign/a-1.bin", folder / "a-6.bin")

    def refused(what, *words):
        error = run(*what, expect=1)
        check(all(word in error for word in words), f"refused: {error.strip()}")

    refused([*from_files, "--to", "s3://data/foreign"], "s3://data/foreign/a-1.bin", "was not copied by this program")
    check(stored("foreign")[0]["a-1.bin"][0] == digests["a-6.bin"], "and what was there stays")
    refused(["--from", "s3://data/nothing/", "--to", folder / "x"], "there is no object s3://data/nothing/")
    refused(["--from", "s3://data/whole/none", "--to", folder / "x"], "s3://data/whole/none", "NoSuchKey")
    refused(["--from", folder / "a-1.bin", "--to", "s3://"], "bucket")
    refused(["--from", "gs://bucket/a", "--to", folder / "x"], "penstock::arrow")
