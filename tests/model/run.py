#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run.py MODEL [--compiler cc]

Checks a Promela model with spin: every interleaving of a few small shapes, and that the model can fail at all:
each of some wrong versions of it must be detected. PENSTOCK_LONG_TESTS=1 in the environment adds larger
shapes, and the rest of the wrong versions if there are many. Exits with 77 if spin is not installed, with 1 if
CI=true.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


@dataclasses.dataclass
class Model:
    """How a model is checked. A shape has a value for each of `names`."""

    names: tuple
    small: list
    long: list
    # Wrong protocols: (what, pattern, replacement, shape). Each must give an error.
    wrong: list
    # One in so many of them is tried when tests must be quick.
    every: int = 1


PLAIN = (1, 2, 2, 2, 0, 0)
MOVING = (1, 1, 2, 1, 1, 0)
EARLY = (1, 1, 2, 1, 0, 1)
RING = Model(
    names=("BLOCKS", "GRAINS", "WORKERS", "SEQUENCES", "MOVES", "DEAR"),
    small=[PLAIN, MOVING, EARLY],
    long=[(1, 1, 2, 3, 0, 0), (2, 1, 2, 3, 0, 0), (2, 2, 2, 2, 0, 0), (1, 2, 2, 3, 0, 0), (2, 1, 3, 2, 0, 0),
          (1, 1, 2, 2, 1, 0), (1, 1, 2, 2, 0, 1), (1, 1, 2, 1, 1, 1)],
    wrong=[
        ("a block is opened without waking workers", r"(fi;\n)  notify\(2 \* \(\(s\) % BLOCKS\)\)", r"\1  skip",
         PLAIN),
        ("stop wakes nobody", r"ready\[k\] = STOP;\n     notify\(2 \* k \+ 1\);", r"ready[k] = STOP;", PLAIN),
        ("the counter of grains is not reset", r"done\[r\] = 0;\n", "", PLAIN),
        ("the last grain is not waited for", r"last = \(done\[r\] == GRAINS\)", "last = (done[r] == 1)", PLAIN),
        ("a block is opened before it was given back", r"opened < SEQUENCES && opened < BLOCKS",
         "opened < SEQUENCES", PLAIN),
        ("stop does not wake those that rest", r"at_work = at_work \| ACTIVE_STOPPED;\n  notify\(REST\)",
         "at_work = at_work | ACTIVE_STOPPED", MOVING),
        ("a worker rests with a ticket", r"  :: rest\(\);\n(.*?)     (d_step \{ t = ticket;.*?\};)\n",
         r"  :: \2\n     rest();\n\1", MOVING),
        ("a slot is left to who may begin it early", r"if :: dear\[r\] == WORD\(s\) -> ", "if :: false -> ", EARLY),
        ("a block is ready without its slot", r"done\[\(s\) % BLOCKS\] = 255;", "skip;", EARLY),
        ("a slot is claimed that somebody has", r"seen != 0 && dear\[r\] == seen", "seen != 0", EARLY),
        ("a slot is shown before it is counted", r"(  done\[.*?255;).*?\n(  d_step \{.*?dear.*?\};)\n", r"\2\n\1\n",
         EARLY),
    ],
)

RUNS = (3, 2, 0, 0, 1, 0, 0, 2)  # workers may leave every turn, every read may fail
RESTARTS = (2, 2, 1, 0, 0, 9, 0, 2)
STOPS = (2, 2, 0, 1, 0, 9, 0, 2)
ROOMY = (3, 1, 0, 0, 0, 0, 0, 4)  # a slot is reused before its memory is
HANGS = (2, 2, 1, 1, 0, 9, 1, 2)  # reads do not finish while anyone waits
RANGE_STORE = Model(
    names=("TURNS", "WORKERS", "RESTARTS", "STOPS", "FAILS", "UNTAKEN", "LAZY", "ROOM"),
    small=[RUNS, RESTARTS, STOPS, HANGS],
    every=4,
    long=[(2, 1, 1, 0, 1, 0, 0, 2), (2, 1, 0, 1, 1, 0, 0, 2), (2, 2, 1, 0, 1, 0, 0, 2)],
    wrong=[
        ("the users are looked at before room is wanted",
         r"(inline wait_for_room\(\) \{\n)  lock\(\);\n  wants_room = true;\n(  do\n)(.*?)"
         r"     d_step \{ room_asleep = true; locked = false \};",
         r"\1  lock();\n\2\3     d_step { wants_room = true; room_asleep = true; locked = false };", RUNS),
        ("what has passed is told to nobody", r"(passed = delivered \};\n)     say_room\(\);\n", r"\1", RUNS),
        ("the last user wakes nobody", r"(users\[\(r\) % ROOM\] = 0 \});\n     say_room\(\)\n", r"\1\n", RUNS),
        ("a read is let go before its state is stored",
         r"       if\n       :: (bytes_of\[p\] = r \+ 1; state\[p\] = READY)\n       :: FAILS -> state\[p\] = FAILED\n"
         r"       fi;\n       p = 0\n     \};\n     release\(r\);\n",
         r"     p = 0 };\n     release(r);\n     d_step { p = r % ROOM; \1; p = 0 };\n", RUNS),
        ("the end of a read wakes no worker", r"loading--;\n       wake_ended\(\);", r"loading--;\n       "
         "ended_asleep[WORKERS] = false;", RUNS),
        ("the end of a read does not take the lock", r"!locked -> (assert\(!destroyed\);\n       loading--;)", r"\1",
         RUNS),
        ("a claim forgets an older turn's parts (that no sweep lets go before)",
         r"let_go\(\(t\) % SLOTS\); (d_step \{ seen = 0; begin_parts.*?inline fetch\(\) \{\n)  sweep\(\);\n", r"\1",
         ROOMY),
        ("a turn is shown that was swept already",
         r"\(t\) < swept \|\| (.*?)    :: ok && \(t\) < swept -> .*? ok = false\n(    :: ok) && \(t\) >= swept", r"\1\2",
         RUNS),
        ("a sweep exchanges nothing", r"own\(TURN\(seen\)\); word\[swept % SLOTS\] = WORD\(TURN\(seen\), TAKEN\); ",
         "", RUNS),
        ("a worker takes an older turn's parts for its own", r"go = \(TURN\(seen\) == \(t\)\);", "go = true;", RUNS),
        ("a worker forgets an older turn's parts", r"seen != 0 -> let_go\(\(t\) % SLOTS\); ", "seen != 0 -> ", RUNS),
        ("a worker uses what it has let go", r"(:: j < n -> )wait(\(part\[2 \* \(t % SLOTS\) \+ j\]\)); j\+\+",
         r"\1release\2; wait\2; j++", RUNS),
        ("a turn that is not shown keeps the oldest read", r"     show_turns_of_oldest\(\);\n", "", RUNS),
        ("reads wait to be begun while there is no room", r"     submit\(\);\n     show", "     show", RUNS),
        ("stop does not end the wait for room", r"stopped = true; room_asleep = false; ", "stopped = true; ", STOPS),
        ("halt does not end the wait for a read", r"(halted = true; room_asleep = false); wake_ended\(\)", r"\1", HANGS),
        ("halt does not end the wait for room", r"halted = true; room_asleep = false; ", "halted = true; ", HANGS),
        ("the store is cleared while reads are on their way",
         r"     !asking;\n     end_reads\(\);\n", r"     !asking;\n     skip;\n", RESTARTS),
        ("the store is cleared while the fetcher is at work", r"     !asking;\n", "", RESTARTS),
        ("the store ends while reads are on their way",
         r"(fetchers_left == 0;\n)  end_reads\(\);\n", r"\1", STOPS),
    ],
)
TIGHT = (2, 2, 1, 1, 1)  # a slot for two blocks
ROOM_FOR_ALL = (2, 2, 2, 1, 1)
BLOCK_FOLDER = Model(
    names=("PROCESSES", "BLOCKS", "SLOTS", "READS", "DEATHS"),
    small=[TIGHT, ROOM_FOR_ALL],
    long=[(2, 2, 1, 1, 2), (2, 2, 1, 2, 1), (2, 2, 2, 2, 1)],
    wrong=[
        ("a slot keeps its generation", r"  state\[at\] = NEXT\(state\[at\], FILLING\);",
         "  state[at] = (state[at] & 252) | FILLING;", (2, 2, 1, 2, 0)),
        ("the key changes before the state", r"(  state\[at\] = NEXT.*?;\n)(.*?)(  key\[at\] = .*?;\n)", r"\3\1\2", TIGHT),
        ("the lock of a slot is let go before the slot is full",
         r"(  d_step \{\n    if\n    :: state\[at\] == seen -> state.*?\};\n  held\[at\] = false);\n  filler\[at\] = NOBODY",
         r"  filler[at] = NOBODY;\n\1", ROOM_FOR_ALL),
        ("a slot is filled without its lock", r"atomic \{ filler\[at\] == NOBODY -> filler\[at\] = me \};\n        take",
         "skip; take", ROOM_FOR_ALL),
        ("nobody looks whether who fills a slot has died",
         r"\(state\[at\] != seen \|\| filler\[at\] == NOBODY\)", "state[at] != seen", ROOM_FOR_ALL),
        ("a slot is taken over although it was filled just now", r":: state\[at\] == seen -> take\(b\); mine = true",
         ":: true -> take(b); mine = true", ROOM_FOR_ALL),
        ("what dead ones were filling is never free again", r":: s == 1 -> sweep\(\)", ":: s == 1 -> skip", TIGHT),
    ],
)
MODELS = {"ring": RING, "range_store": RANGE_STORE, "block_folder": BLOCK_FOLDER}


def check(folder, text, names, shape, compiler, level):
    """Whether spin finds an error in the model, and how many states it explored; optimised at a level of the compiler."""
    model = folder / "model.pml"
    model.write_text(text, encoding="utf-8")
    sizes = [f"-D{name}={value}" for name, value in zip(names, shape)]
    subprocess.run(["spin", *sizes, "-a", model.name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([compiler, level, "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=6000", "-o", "pan", "pan.c"],
                   cwd=folder, check=True)
    out = subprocess.run(["./pan", "-m1000000"], cwd=folder, check=True, capture_output=True, text=True).stdout
    errors = re.search(r"errors: (\d+)", out)
    if errors is None or "max search depth too small" in out or "out of memory" in out:
        sys.exit(f"run.py: spin did not finish:\n{out}")
    states = re.search(r"(\d+) states, stored", out)
    return int(errors.group(1)) != 0, int(states.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--compiler", default="cc")
    options = parser.parse_args()
    if shutil.which("spin") is None:
        print("run.py: skipped: spin is not installed")
        sys.exit(1 if os.environ.get("CI") == "true" else 77)
    text = options.model.read_text(encoding="utf-8")
    how = MODELS[options.model.stem]
    bad = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for shape in how.small + (how.long if os.environ.get("PENSTOCK_LONG_TESTS") == "1" else []):
            failed, states = check(folder, text, how.names, shape, options.compiler, "-O1")
            what = ", ".join(f"{name.lower()} {value}" for name, value in zip(how.names, shape))
            print(f"{what}: {states} states, {'AN ERROR' if failed else 'no error'}", flush=True)
            bad = bad or failed
        every = 1 if os.environ.get("PENSTOCK_LONG_TESTS") == "1" else how.every
        for what, pattern, replacement, shape in how.wrong[::every]:
            wrong, count = re.subn(pattern, replacement, text, flags=re.DOTALL)
            if count != 1:
                sys.exit(f"run.py: the model has changed, and '{what}' does not apply any more")
            # soon found: compiling takes longer
            failed, _ = check(folder, wrong, how.names, shape, options.compiler, "-O0")
            print(f"wrong on purpose: {what}: {'found' if failed else 'NOT FOUND'}", flush=True)
            bad = bad or not failed
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
