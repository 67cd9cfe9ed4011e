#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""instructions.py PROGRAM ROW:BAR... [--quick]

Counts the instructions of one round of each side with valgrind --tool=callgrind: the difference between two
runs with different numbers of rounds, so that start-up does not count. Prints rows i<ROW>: our
instructions / the reference's.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

TOTAL = re.compile(r"Collected\s*:\s*(\d+)")


def count(program, row, side, rounds):
    with tempfile.NamedTemporaryFile() as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", program, "--row", row,
                   "--only", side, "--rounds", str(rounds)]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    found = TOTAL.search(text)
    if not found:
        sys.exit(f"instructions.py: valgrind did not say how many instructions it saw:\n{text}")
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("rows", nargs="+", metavar="ROW:BAR")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    few, many = (1, 2) if options.quick else (2, 6)
    for row, bar in (text.split(":") for text in options.rows):
        what = f"instructions of row {row} / of its reference"
        if shutil.which("valgrind") is None:
            print(f"row\ti{row}\t{what}\t\t\t\tskipped\tvalgrind is not installed", flush=True)
            continue
        each = {}
        for side in ("ours", "reference"):
            low, high = (count(os.path.abspath(options.program), row, side, n) for n in (few, many))
            each[side] = (high - low) / (many - few)
        ratio = each["ours"] / each["reference"]
        verdict = "report" if bar == "0" else "pass" if ratio <= float(bar) else "MISS"
        shown = "" if bar == "0" else f"<={bar}"
        print(f"row\ti{row}\t{what}\t{shown}\t{ratio:.3f}\t{ratio:.3f}\t{verdict}\t{each['ours']:.4g} against "
              f"{each['reference']:.4g} a round", flush=True)


if __name__ == "__main__":
    main()
