#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""pack.py <pack_webdataset>: shards packed by several processes that are killed with SIGKILL, the rest by the tasks of
a Slurm job array (whose variables are set here): every shard is, byte for byte, what one process writes, and those that
were there are left alone."""

import gzip
import pathlib
import random
import re
import struct
import sys
import tempfile

import index
import launch

SHARDS = {"train": 40, "t10k": 3}  # of 25 samples, the last one of 7


def fail(sentence):
    sys.exit(f"pack: {sentence}")


def make_split(folder, split, count, source):
    images = bytes(source.randrange(256) for _ in range(784)) * count
    labels = bytes(source.randrange(10) for _ in range(count))
    for name, head, body in (("images-idx3-ubyte", struct.pack(">IIII", 0x803, count, 28, 28), images),
                             ("labels-idx1-ubyte", struct.pack(">II", 0x801, count), labels)):
        with gzip.open(folder / f"{split}-{name}.gz", "wb", compresslevel=1) as file:
            file.write(head + body)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    launch.need_mpirun()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        source = random.Random(3)
        for split, count in SHARDS.items():
            make_split(folder, split, 25 * (count - 1) + 7, source)

        def options(output):
            return ["--input", folder, "--output", folder / output, "--samples-per-shard", 25, "--resume", 1]

        def packed(output):
            return {p.name: p.read_bytes() for p in sorted((folder / output).glob("*.tar"))}

        status, said = launch.run(1, program, *options("alone"))
        if status:
            fail(f"alone:\n{said}")
        wanted = packed("alone")
        if len(wanted) != sum(SHARDS.values()):
            fail(f"alone there are {len(wanted)} shards")

        def kill_when(processes, shards):
            process = launch.start(processes, program, *options("shared"))
            while process.poll() is None and len(list((folder / "shared").glob("*.tar"))) < shards:
                pass
            launch.kill(process)

        kill_when(3, 6)
        kill_when(2, 15)
        killed = packed("shared")
        stamps = {n: (folder / "shared" / n).stat().st_mtime_ns for n in killed
                  if (folder / "shared" / f"{n}.penstock-index").exists()}
        if any(killed[name] != wanted.get(name) for name in killed):
            fail("a shard of killed processes is there and not whole")

        found = {split: [0, 0] for split in SHARDS}
        for number in range(3):
            done = index.task(program, None, number, 3, arguments=options("shared"))
            if done.returncode or f"rank {number} of 3" not in done.stdout:
                fail(f"task {number}:\n{done.stdout}{done.stderr}")
            for split, wrote, there in re.findall(r"(\w+): .* wrote (\d+), (\d+) were there", done.stdout):
                found[split][0] += int(wrote)
                found[split][1] += int(there)
        if {s: sum(n) for s, n in found.items()} != SHARDS or sum(n[1] for n in found.values()) != len(stamps):
            fail(f"{len(stamps)} shards were whole; wrote and found {found}")
        if packed("shared") != wanted:
            fail("the shards are not those that one process writes")
        if any((folder / "shared" / n).stat().st_mtime_ns != stamp for n, stamp in stamps.items()):
            fail("a shard that was there was written again")
        print(f"{len(wanted)} shards, {len(stamps)} of them by processes that were killed, the rest by a job array")


if __name__ == "__main__":
    main()
