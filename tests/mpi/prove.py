#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""prove.py <prove>: topologies of many epochs proved by several processes that are killed with SIGKILL and started again
on other numbers, under mpirun and as tasks of a Slurm job array (whose variables are set here): each is proved once,
what was there is left alone, and together they find what one process finds."""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import index
import launch
import shards

EPOCHS, SHAPES, STOPS = 25, ("1x1", "2x8", "3x5", "7"), (0, 5, 70)
ALL = EPOCHS * len(SHAPES)
PLAN = ("--samples", 30011, "--shards", 40, "--window", 4, "--lanes", 8, "--global-batch", 192)
WORK = ("--topologies", ",".join(SHAPES), "--epochs", EPOCHS, "--stops", ",".join(str(s) for s in STOPS))


def fail(sentence):
    sys.exit(f"prove: {sentence}")


def check(holds, what, said=""):
    if not holds:
        fail(f"{what}\n{said}")


def alone(program, *options):
    """Status, output and errors of one process without a launcher."""
    done = subprocess.run([str(w) for w in (program, *options)], capture_output=True, text=True, check=False,
                          env=launch.environment())
    return done.returncode, done.stdout, done.stderr


def totals(said):
    """How many topologies all processes proved, how many were proved before, and how many processes reported."""
    found = [(int(p), int(t)) for p, t in re.findall(r": (\d+) topologies proved, (\d+) were there", said)]
    return sum(p for p, _ in found), sum(t for _, t in found), len(found)


def kept(folder):
    """How often each topology of an epoch is in the files."""
    return collections.Counter(line.split('"')[1] for part in folder.glob("part-?????-of-?????")
                               for line in part.read_text().splitlines() if line.startswith("proved "))


def table(said):
    """The findings, without times and progress messages."""
    return [line for line in said.splitlines() if not re.match(r"in |rank \d+ of|proved ", line)]


def ledgers(program, folder):
    """Skipped samples of two ranks, some of them delivered again, with one truncated line."""
    def line(rank, index, **more):
        return json.dumps({"rank": rank, "epoch": 0, "index": index, "source": index, "key": str(index),
                           "code": "format", "reason": "bad", "done": "skipped"} | more) + "\n"

    def look(*names):
        wanted = [w for name in names for w in ("--ledger", folder / name)]
        return alone(program, "--samples", 100, "--order", "sequential", "--global-batch", 64, *wanted)

    (folder / "bad.rank0.jsonl").write_text(line(0, 5) + line(0, 7)[:30] + "\n" + line(0, 7) + line(0, 5))
    (folder / "bad.rank1.jsonl").write_text(line(1, 5) + line(1, 99))
    for names in (("bad.rank0.jsonl", "bad.rank1.jsonl"), ("bad.rank{0..1}.jsonl",)):
        status, said, _ = look(*names)
        check(status == 0 and "substitutions: 3 skipped, 0 replaced" in said and "2 lines name a sample again" in said
              and "rank 0: 2 skipped" in said and "rank 1: 1 skipped" in said and "1 lines of the ledgers were cut" in said
              and "shard 0: 3 skipped" in said, "ledgers", said)
    (folder / "other.jsonl").write_text(line(0, 5, source=6) + line(0, 100))
    status, said, _ = look("other.jsonl")
    check(status == 1 and "it is sample 6 of the source, and in this plan sample 5" in said
          and "position 100, and an epoch has 100" in said, "another plan's ledger", said)
    (folder / "edited.jsonl").write_text(line(0, 5) + line(0, 7).replace("skipped", "lost"))
    status, said, why = look("edited.jsonl")
    check(status == 2 and "edited.jsonl" in why and "offset" in why and len(why.splitlines()) == 1, "edited", said + why)
    status, said, why = look("nothing.jsonl")
    check(status == 2 and "nothing.jsonl" in why and len(why.splitlines()) == 1, "no such ledger", said + why)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    launch.need_mpirun()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place) / "proof"
        work = (*PLAN, *WORK, "--out", folder)
        status, wanted, _ = alone(program, *PLAN, *WORK)
        check(status == 0 and "holds" in wanted and "3 x 5 ranks: 157 steps, 30011 samples" in wanted, "alone", wanted)

        for processes, kill_after in ((3, 7), (4, 11)):
            process, seen = launch.start(processes, program, *work), 0
            for line in process.stdout:
                seen += line.startswith("proved ")
                if seen >= kill_after:
                    break
            launch.kill(process)
        there = kept(folder)
        check(len(there) >= 18, f"after 18 topologies were proved there are {len(there)}")
        before = {p: p.read_bytes() for p in folder.glob("part-*") if p.suffix != ".partial"}

        # The rest by a job array that starts at 5 in steps of 3, one task after another.
        proved = 0
        for number in range(4):
            done = index.task(program, None, number, 4, first=5, by=3, arguments=work)
            check(done.returncode == 0 and f"rank {number} of 4 (Slurm array)" in done.stdout, f"task {number}",
                  done.stdout + done.stderr)
            new, old, said = totals(done.stdout)
            check(new + old == ALL // 4 and said == 1, f"task {number} has another part", done.stdout)
            proved += new
        check(proved == ALL - len(there), f"{len(there)} were there, and {proved} were proved")
        found = kept(folder)
        check(len(found) == ALL and set(found.values()) == {1}, f"some are missing or were proved again: {found}")
        for path, text in before.items():
            lines = set(path.read_text().splitlines()) if path.exists() else set()
            check({x for x in text.decode().splitlines() if x.startswith("proved ")} <= lines, f"{path.name} lost some")

        for processes in range(1, 5):
            status, said = launch.run(processes, program, *work)
            check(status == 0 and totals(said) == (0, ALL, processes), f"{processes} with all there", said)
            if processes == 1:
                check(table(said) == table(wanted), "together they find something else", said)
        print(f"{ALL} proofs, {len(there)} of them by processes that were killed twice, the rest by a job array")

        # Without a folder each process has its part too; more processes than topologies; different stops are
        # different work.
        status, said = launch.run(2, program, *PLAN, *WORK)
        check(status == 0 and totals(said) == (ALL, 0, 2), "without a folder", said)
        status, said = launch.run(4, program, *PLAN, "--topologies", "3x5", "--epochs", 2)
        check(status == 0 and totals(said) == (2, 0, 4), "more processes than topologies", said)
        status, said = launch.run(2, program, *PLAN, *WORK[:-1], "0,6", "--out", folder)
        check(status == 0 and totals(said) == (ALL, 0, 2), "other stops", said)
        status, said = launch.run(3, program, *work)
        check(status == 0 and totals(said) == (0, ALL, 3), "the first stops again", said)

        # A violation sets the exit status of the process whose part it is in, and so mpirun's.
        one = '"epoch 24, 3x5, then 1x7 after 0 5 70"'
        part = next(p for p in sorted(folder.glob("part-?????-of-?????")) if one in p.read_text())
        text = part.read_text()
        line = next(x for x in text.splitlines() if one in x)
        part.write_text(text.replace(line, line[:-1] + '1\nviolation "epoch 24: made up \\"here\\""'))
        for processes in (1, 3):
            status, said = launch.run(processes, program, *work)
            check(status == 1 and 'violation: epoch 24: made up "here"\n' in said and "does not hold" in said,
                  f"a violation on {processes}: {status}", said)
        part.write_text(text[:-5])
        status, said, why = alone(program, *work)
        check(status == 2 and part.name in why and "line " in why and len(why.splitlines()) == 1, "a cut file", said + why)
        part.write_text(text.replace("end ", "end 1"))
        status, said, why = alone(program, *work)
        check(status == 2 and part.name in why and len(why.splitlines()) == 1, "an edited file", said + why)
        part.write_text(text)
        status, said, why = alone(program, *work, "--seed", 9)
        check(status == 2 and "part-00000-of-0000" in why and "another plan" in why and "seed 9" in why
              and len(why.splitlines()) == 1, "another plan", said + why)
        check(launch.run(2, program, *work, "--seed", 9)[0] != 0, "another plan on two processes")
        for variables in ({"RANK": "1"}, {"RANK": "4", "WORLD_SIZE": "4"}):
            done = subprocess.run([str(w) for w in (program, *work)], capture_output=True, text=True, check=False,
                                  env=launch.environment() | variables)
            check(done.returncode == 2 and len(done.stderr.splitlines()) == 1, f"{variables}", done.stdout + done.stderr)

        check("substitutions: none named; give --ledger\n" in wanted, "no ledger", wanted)
        ledgers(program, pathlib.Path(place))

        # A replaced shard is different data.
        data = pathlib.Path(place) / "data"
        data.mkdir()
        shards.make(data, (40, 31, 52))
        real = ("--data", data / "train-{000000..000002}.tar", "--global-batch", 32, "--epochs", 2, "--out", data / "proof")
        status, said = launch.run(2, program, *real)
        check(status == 0 and totals(said) == (6, 0, 2), "real shards", said)
        ledger = data / "bad.jsonl"
        ledger.write_text('{"rank": 0, "epoch": 0, "index": 41, "key": "000041", "code": "format", "done": "skipped"}\n')
        status, said, why = alone(program, *real, "--order", "sequential", "--ledger", ledger, "--out", data / "second")
        check(status == 0 and "train-000001.tar: 1 skipped" in said, "a ledger of real shards", said + why)
        time.sleep(0.01)  # so that its modification time differs
        shards.make(data, (40, 31, 51), seed=2)
        status, said, why = alone(program, *real)
        check(status == 2 and "over other data" in why and "part-0000" in why, "a shard that was replaced", said + why)
        check(alone(program, "--help")[0] == 0 and "--out DIR" in alone(program, "--help")[1], "help")


if __name__ == "__main__":
    main()
