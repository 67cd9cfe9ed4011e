#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A header has at most 500 lines. Those over 300 are printed: does each still hold one idea?"""

from source_tree import finish, headers, relative

ALLOWED = 500
ASK = 300


def main():
    lengths = {relative(h): len(h.read_text(encoding="utf-8").splitlines()) for h in headers()}
    for name, length in sorted(lengths.items(), key=lambda item: -item[1]):
        if ASK < length <= ALLOWED:
            print(f"check_length: {name} has {length} lines; does it still hold one idea?")
    faults = [f"{n} has {c} lines, {ALLOWED} are allowed" for n, c in lengths.items() if c > ALLOWED]
    finish("check_length", faults, f"{len(lengths)} headers")


if __name__ == "__main__":
    main()
