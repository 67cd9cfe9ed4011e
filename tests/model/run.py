#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""run.py MODEL [--compiler cc]

Checks a Promela model with spin: every interleaving of a few small rings, and that the model can fail at all:
each of some wrong versions of it must be found out. PENSTOCK_LONG_TESTS=1 in the
environment adds larger rings. Exits with 77 where spin is not installed, with 1 if CI=true.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# blocks, grains, workers, sequences
SMALL = [(1, 2, 2, 2)]
LONG = [(1, 1, 2, 3), (2, 1, 2, 3), (2, 2, 2, 2), (1, 2, 2, 3), (2, 1, 3, 2)]

# What a wrong protocol would be: (what, pattern, replacement). Each must give an error.
WRONG = [
    ("a block is opened without waking workers", r"(fi;\n)  notify\(2 \* \(\(s\) % BLOCKS\)\)", r"\1  skip"),
    ("stop wakes nobody", r"ready\[k\] = STOP;\n     notify\(2 \* k \+ 1\);", r"ready[k] = STOP;"),
    ("the counter of grains is not reset", r"done\[r\] = 0;\n", ""),
    ("the last grain is not waited for", r"last = \(done\[r\] == GRAINS\)", "last = (done[r] == 1)"),
    ("a block is opened before it was given back", r"opened < SEQUENCES && opened < BLOCKS",
     "opened < SEQUENCES"),
]


def check(folder, text, shape, compiler):
    """Whether spin finds an error in the model."""
    model = folder / "model.pml"
    model.write_text(text, encoding="utf-8")
    names = ("BLOCKS", "GRAINS", "WORKERS", "SEQUENCES")
    sizes = [f"-D{name}={value}" for name, value in zip(names, shape)]
    subprocess.run(["spin", *sizes, "-a", model.name], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([compiler, "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", "-DMEMLIM=6000", "-o", "pan", "pan.c"],
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
    bad = False
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for shape in SMALL + (LONG if os.environ.get("PENSTOCK_LONG_TESTS") == "1" else []):
            failed, states = check(folder, text, shape, options.compiler)
            print(f"blocks {shape[0]}, grains {shape[1]}, workers {shape[2]}, sequences {shape[3]}: "
                  f"{states} states, {'AN ERROR' if failed else 'no error'}", flush=True)
            bad = bad or failed
        for what, pattern, replacement in WRONG:
            wrong, count = re.subn(pattern, replacement, text)
            if count != 1:
                sys.exit(f"run.py: the model has changed, and '{what}' does not apply any more")
            failed, _ = check(folder, wrong, (1, 2, 2, 2), options.compiler)
            print(f"wrong on purpose: {what}: {'found' if failed else 'NOT FOUND'}", flush=True)
            bad = bad or not failed
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
