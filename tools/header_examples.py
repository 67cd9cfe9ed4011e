#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes a program of the examples in a room's headers: each is a function, and main calls them in turn.

An example is code at four blanks in the `///` block of a public name; the reference shows it. The names it
uses and the files it reads are made in examples/headers/ROOM.hpp.
Some examples need more than a function (processes of MPI, a GPU, another .cpp file), or a component that few
machines have: without a room, those of them are found that are in no other example and no test; and examples in
blocks that are of no public name, which nobody would compile.
"""

import argparse
import pathlib
import re

import source_tree
from check_reference import names_in, told_in
from source_tree import ROOT, component_of, finish, headers, is_detail, is_umbrella, relative, room_of

PLACE = ROOT / "examples" / "headers"
ROOMS = tuple(room for room in source_tree.ROOMS if (PLACE / f"{room}.hpp").exists())
ELSEWHERE = tuple(room for room in source_tree.ROOMS if room not in ROOMS)
RARE = {"arrow"}  # components that few machines have
# Examples declare unused variables, and their names may shadow others.
PRAGMAS = "".join(
    f'#pragma GCC diagnostic ignored "-W{warning}"\n'
    for warning in ("shadow", "unused-variable", "unused-but-set-variable", "unused-local-typedefs"))


def examples_of(room):
    """(header, line, name, code) of each example"""
    for header in headers():
        name = relative(header)
        if is_umbrella(name) or is_detail(name) or room_of(name) != room:
            continue
        for line, public, block, _ in names_in(header):
            code = told_in(block)[2]
            if code:
                yield header, line, public, "\n".join(code)


def program(room):
    found = [one for one in examples_of(room) if component_of(one[0]) not in RARE]
    text = "".join(f"#include <penstock/{relative(h)}>\n" for h in dict.fromkeys(h for h, *_ in found))
    text += f'\n#include "headers/{room}.hpp"\n\n{PRAGMAS}\nnamespace {{\n\n'
    calls = []
    for header, _, name, code in found:
        calls.append(f"example_{len(calls) + 1}")
        text += f"// {name} in {relative(header)}\nvoid {calls[-1]}() {{\n  using namespace penstock;\n{code}\n}}\n\n"
    text += "}  // namespace\n\nint main() {\n"
    text += "".join(f"  {call}();\n" for call in calls)
    return text + "}\n"


def not_elsewhere():
    def squeeze(text):
        return re.sub(r"//[^\n]*|\s+|\bps::", "", text)

    tests = squeeze("\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("examples", "tests")
        for path in sorted((ROOT / folder).rglob("*.[ch]pp")) + sorted((ROOT / folder).rglob("*.cu"))))
    for room in (*ROOMS, *ELSEWHERE):
        for header, line, name, code in examples_of(room):
            if room in ROOMS and component_of(header) not in RARE:
                continue
            if squeeze(code) not in tests:
                yield f"{relative(header)}:{line}: the example of {name} is in no example and no test"


def strays():
    """Code in a block that documents no public name: a member, something in detail, or nothing."""
    known = {(header, line)
             for room in (*ROOMS, *ELSEWHERE)
             for header, _, _, text in examples_of(room)
             for line in text.splitlines()}
    for header in headers():
        lines = header.read_text(encoding="utf-8").splitlines()
        for number, (before, line) in enumerate(zip(["", *lines], lines), 1):
            code = re.match(r"\s*/// {5}(\S.*)", line)
            if code and before.strip() == "///" and (header, code.group(1)) not in known:
                yield f"{relative(header)}:{number}: this example is in the block of no public name and is not compiled"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("room", nargs="?", choices=ROOMS)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    if options.room is None:
        count = sum(1 for room in (*ROOMS, *ELSEWHERE) for _ in examples_of(room))
        finish("header_examples", [*not_elsewhere(), *strays()], f"{count} examples")
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(program(options.room), encoding="utf-8")


if __name__ == "__main__":
    main()
