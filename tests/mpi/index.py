#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""index.py <index_shards>: indexes of many shards, made by several processes that are killed with SIGKILL and started
again on other numbers, under mpirun and as tasks of a Slurm job array (whose variables are set here): each shard
is indexed, what was there is left alone, and every index is, byte for byte, what one process makes."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import launch
import shards

COUNT = 60


def fail(sentence):
    sys.exit(f"index: {sentence}")


def totals(said):
    """How many indexes all processes built, how many existed before, and how many processes reported."""
    found = [(int(b), int(t)) for b, t in re.findall(r": (\d+) indexes built, (\d+) were there", said)]
    return sum(b for b, _ in found), sum(t for _, t in found), len(found)


def task(program, pattern, number, count, first=0, by=1, arguments=None, **more):
    """One task of a job array, as Slurm would start it in a batch script."""
    array = {"SLURM_ARRAY_TASK_ID": first + number * by, "SLURM_ARRAY_TASK_COUNT": count,
             "SLURM_ARRAY_TASK_MIN": first, "SLURM_ARRAY_TASK_MAX": first + (count - 1) * by,
             "SLURM_ARRAY_TASK_STEP": by, "SLURM_PROCID": 0, "SLURM_NTASKS": 1} | more
    command = [str(word) for word in (program, *(arguments or ("--shards", pattern)))]
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env=launch.environment() | {k: str(v) for k, v in array.items()})


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    launch.need_mpirun()
    with tempfile.TemporaryDirectory() as place:
        folder, alone = pathlib.Path(place) / "shards", pathlib.Path(place) / "alone"
        folder.mkdir()
        shards.make(folder, [3 + i % 5 for i in range(COUNT)])
        shutil.copytree(folder, alone)  # with modification times, which an index remembers
        pattern = folder / f"train-{{000000..{COUNT - 1:06d}}}.tar"
        names = sorted(p.name for p in folder.glob("*.tar"))

        status, said = launch.run(1, program, "--shards", alone / pattern.name)
        if status or totals(said) != (COUNT, 0, 1):
            fail(f"alone:\n{said}")
        wanted = {n: (alone / f"{n}.penstock-index").read_bytes() for n in names}

        for processes, kill_after in ((3, 7), (5, 11)):
            process, seen = launch.start(processes, program, "--shards", pattern), 0
            for line in process.stdout:
                seen += line.startswith("indexed ")
                if seen >= kill_after:
                    break
            launch.kill(process)
        there = len(list(folder.glob("*.penstock-index")))
        if there < 18:
            fail(f"after 18 indexes were made there are {there}")

        # The rest by a job array that starts at 5 in steps of 3, one task after another.
        for number in range(4):
            done = task(program, pattern, number, 4, first=5, by=3)
            if done.returncode or totals(done.stdout)[2] != 1 or f"rank {number} of 4 (Slurm array)" not in done.stdout:
                fail(f"task {number}:\n{done.stdout}{done.stderr}")
        found = {n: (folder / f"{n}.penstock-index").read_bytes() for n in names}
        for name in names:
            if found[name] != wanted[name]:
                fail(f"the index of {name} is another than one process makes")

        status, said = launch.run(4, program, "--shards", pattern)
        if status or totals(said) != (0, COUNT, 4):
            fail(f"again, with all there:\n{said}")
        print(f"{COUNT} indexes, {there} of them by processes that were killed twice, the rest by a job array")

        done = task(program, pattern, 1, 3, SLURM_ARRAY_TASK_MAX=9)
        if done.returncode != 1 or "--array=0-N" not in done.stderr or len(done.stderr.splitlines()) != 1:
            fail(f"an array without a rule:\n{done.stdout}{done.stderr}")
        (folder / names[7]).write_bytes(b"x" * 700)
        status, said = launch.run(2, program, "--shards", pattern)
        if status == 0 or names[7] not in said:
            fail(f"a shard that is none:\n{said}")


if __name__ == "__main__":
    main()
