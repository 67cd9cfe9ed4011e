#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_hot_loops.py OBJECT SYMBOL_REGEX

Fails if most of a function whose demangled name matches lies in a section for code that is hardly ever executed, where
GCC does not optimise loops. That happens to each function that always calls one with the attribute `cold`: a program
that makes a plan and then loops over its batches would lose its loop. It also fails when no function matches.
"""

import re
import subprocess
import sys

SYMBOL = re.compile(r"^[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+)\s+(?:\.hidden )?(.*)$")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    path, pattern = sys.argv[1], re.compile(sys.argv[2])
    listing = subprocess.run(["objdump", "--syms", "--demangle", path], capture_output=True, text=True, check=True).stdout
    sizes = {}  # of hot and of cold code, by function
    for line in listing.splitlines():
        found = SYMBOL.match(line)
        if not found or not found.group(1).startswith(".text"):
            continue
        name = found.group(3).replace(" [clone .cold]", "").removesuffix(".cold")
        if pattern.search(name):
            sizes.setdefault(name, [0, 0])["unlikely" in found.group(1)] += int(found.group(2), 16)
    if not sizes:
        sys.exit(f"no function in {path} matches {sys.argv[2]}")
    cold = [name for name, (there, away) in sizes.items() if away >= there]
    for name, (there, away) in sizes.items():
        print(f"{name}: {there} bytes, {away} more in a cold section")
    if cold:
        sys.exit("cold, because a function that they always call has the attribute: " + ", ".join(cold))


if __name__ == "__main__":
    main()
