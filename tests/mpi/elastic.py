#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""elastic.py <train_elastic>: trains on 1 to 5 processes, kills them all with SIGKILL at random steps and starts
again on another number, and compares with an uninterrupted training: every global step has equal samples in equal
order, no sample of an epoch is missing or delivered twice, and the final weights are equal, byte for byte.

Ten times, with PENSTOCK_LONG_TESTS thirty times, and on every number of processes. The steps and the numbers of
processes are random, but equal in every run.
"""

import os
import pathlib
import random
import re
import sys
import tempfile

import launch
import shards

LONG = os.environ.get("PENSTOCK_LONG_TESTS", "0") not in ("", "0")
EPOCHS, GLOBAL = 24 if LONG else 8, 23  # no number of processes above 1 divides 23
RESTARTS = 30 if LONG else 10


def fail(sentence):
    sys.exit(f"elastic: {sentence}")


def read_record(folder, attempt, ranks):
    """The steps of one attempt: {(epoch, step): {rank: keys}}; members of a group must have equal keys."""
    steps = {}
    for path in folder.glob(f"record-{attempt}.*"):
        rank, of, _ = re.fullmatch(r"record-\d+\.(\d+)-of-(\d+)\.(\d+)", path.name).groups()
        if int(of) != ranks:
            fail(f"{path.name} is not of {ranks} ranks")
        # after the last line nothing, or a line cut by SIGKILL
        for line in path.read_text().split("\n")[:-1]:
            epoch, step, *keys = line.split(" ")
            at = steps.setdefault((int(epoch), int(step)), {})
            if at.setdefault(int(rank), keys) != keys:
                fail(f"attempt {attempt}: members of group {rank} had different samples in step {step}")
    return steps


def whole(step, ranks):
    """The keys of a global step in the order of ranks, if all ranks reached it."""
    return [key for rank in range(ranks) for key in step[rank]] if len(step) == ranks else None


def reference_of(record, keys, epochs, size):
    """The record of an uninterrupted training on one process: {(epoch, step): keys}, each sample once."""
    reference = {at: whole(step, 1) for at, step in record.items()}
    each = -(-len(keys) // size)
    if sorted(reference) != [(e, s) for e in range(epochs) for s in range(each)]:
        fail(f"the undisturbed training has the steps {sorted(reference)}")
    for epoch in range(epochs):
        if sorted(k for s in range(each) for k in reference[epoch, s]) != keys:
            fail(f"the undisturbed training does not have each sample of epoch {epoch} once")
    return reference


def compare(record, reference, ranks, attempt, done):
    """Adds the steps of an attempt to those already done; returns how many were done before."""
    redone = 0
    for at, step in record.items():
        if at not in reference:
            fail(f"attempt {attempt} has a step {at} that the undisturbed training has not")
        had, wanted = whole(step, ranks), reference[at]
        if had is None:  # killed in the middle of it: the recorded part must match
            for rank, mine in step.items():
                begin, end = len(wanted) * rank // ranks, len(wanted) * (rank + 1) // ranks
                if mine != wanted[begin:end]:
                    fail(f"attempt {attempt}, step {at}: rank {rank} of {ranks} had {mine}")
            continue
        if had != wanted:
            fail(f"attempt {attempt} on {ranks} ranks, step {at}\n  had       {had}\n  should be {wanted}")
        redone += at in done
        done[at] = had
    return redone


def numbers_of_processes(chance, count):
    """This many numbers: each of 1 to 5 once in every five, and no two neighbours equal."""
    numbers = []
    while len(numbers) < count:
        five = chance.sample(range(1, 6), 5)
        if not numbers or five[0] != numbers[-1]:
            numbers += five
    return numbers[:count]


def train(program, folder, attempt, processes, replicate=1, kill_after=None):
    """Starts a training and kills it after this many steps; its output, and whether it finished."""
    process = launch.start(processes, program, "--shards", folder / "train-{000000..000006}.tar", "--checkpoint",
                           folder / "checkpoint", "--record", folder / f"record-{attempt}", "--epochs", EPOCHS,
                           "--global-batch", GLOBAL, "--window", 3, "--replicate", replicate, "--workers",
                           attempt % 3, "--step-ms", 0 if kill_after is None else 5)
    said, seen = "", 0
    for line in process.stdout:
        said += line
        seen += line.startswith("epoch ")
        if kill_after is not None and seen >= kill_after:
            launch.kill(process)
            return said, False
    process.communicate()
    if process.returncode:
        fail(f"{processes} processes ended with {process.returncode}:\n{said}")
    return said, True


def refuse(program, folder):
    """An error is reported before the first step, and ends all processes."""
    def refused(checkpoint, said_of_it, pattern="train-{000000..000006}.tar"):
        status, said = launch.run(3, program, "--shards", folder / pattern, "--checkpoint", folder / checkpoint,
                                  "--epochs", 2 * EPOCHS, "--global-batch", GLOBAL, "--window", 3)
        if status == 0 or said_of_it not in said or "epoch " in said.replace("in epoch", ""):
            fail(f"{said_of_it}:\n{said}")

    refused("x", "none-0.tar", "none-{0..1}.tar")
    whole_one = (folder / "checkpoint").read_bytes()
    (folder / "cut").write_bytes(whole_one[:-1])
    refused("cut", "was cut")
    (folder / "edited").write_bytes(whole_one.replace(b'"step": "0"', b'"step": "1"', 1))
    refused("edited", "it was cut or edited")
    (folder / "future").write_bytes(whole_one.replace(b'"penstock_state": "3"', b'"penstock_state": "4"', 1))
    refused("future", "of version 4")
    (folder / "foreign").write_bytes(b'{"step": 7}\n' + whole_one.split(b"\n", 1)[1])
    refused("foreign", "no state of a penstock run")
    shards.make(folder, (40, 31, 0, 52, 1, 47, 28), seed=2)
    refused("checkpoint", "another dataset")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    launch.need_mpirun()
    with tempfile.TemporaryDirectory() as place:
        folder = pathlib.Path(place)
        keys = shards.make(folder, (40, 31, 0, 52, 1, 47, 29))
        train(program, folder, 1, 1)
        reference = reference_of(read_record(folder, 1, 1), keys, EPOCHS, GLOBAL)
        weights = (folder / "checkpoint").read_bytes().split(b"\n", 1)[1]
        (folder / "checkpoint").unlink()

        chance, done, redone = random.Random(5), {}, 0
        for attempt, processes in enumerate(numbers_of_processes(chance, RESTARTS + 1), 2):
            replicate = 2 if processes == 4 else 1
            ranks = processes // replicate
            final = attempt == RESTARTS + 2
            kill_after = None if final else chance.randrange(1, len(reference) // RESTARTS)
            said, ended = train(program, folder, attempt, processes, replicate, kill_after)
            if ended != final:
                fail(f"attempt {attempt} was not killed:\n{said}")
            record = read_record(folder, attempt, ranks)
            redone += compare(record, reference, ranks, attempt, done)
            begin = re.search(r"begin at epoch (\d+) step (\d+)", said)
            print(f"attempt {attempt}: {processes} processes, groups of {replicate}, from epoch {begin[1]} step "
                  f"{begin[2]}, {len(record)} steps, {'ended' if ended else 'killed'}")
        if done != reference:
            fail(f"these steps were never done: {sorted(set(reference) - set(done))}")
        if (folder / "checkpoint").read_bytes().split(b"\n", 1)[1] != weights:
            fail("the weights are not those of the undisturbed training")
        said, _ = train(program, folder, RESTARTS + 3, 2)
        if read_record(folder, RESTARTS + 3, 2) or (folder / "checkpoint").read_bytes().split(b"\n", 1)[1] != weights:
            fail(f"started after its end, it goes on:\n{said}")
        refuse(program, folder)
        print(f"{RESTARTS} times killed, {redone} steps done again: all {len(done)} steps as undisturbed, weights too")


if __name__ == "__main__":
    main()
