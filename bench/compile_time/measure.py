#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""measure.py [--quick] [--compiler g++] [--row ID] [--headers]

Row 13: what the headers cost a compiler, in seconds of user time, built against penstock::compiled (13a, 13b,
13e) and header-only (13c, 13d, 13f, 13g). The program with the full expression, with the umbrella header and with the
headers that it needs (13a to 13d); the umbrella header against the standard headers that it includes (13e, 13f);
the core against <ranges> (13g). A program of five lines with images against one without (13i against penstock::compiled, 13j
header-only). The two sides are compiled in turn, after one round that does not count, and
the table shows the median of the seconds or of the paired ratios. 13h is the size of the object file of 13a: the
figure that `size` calls text, in KB of 1000 bytes.

--headers measures something else: the cost of each umbrella, and of all headers of each component. The lines are
counted after preprocessing, without blank ones. This is not a row and has no bar.
"""

import argparse
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
INCLUDE = ROOT / "include"
sys.path.insert(0, str(ROOT / "tools"))
import source_tree  # noqa: E402

# The folders that a component's headers need besides the compiler's own.
TOOLKIT = ("echo", "-I/usr/local/cuda/include")
FLAGS = {"mpi": ("mpicxx", "--showme:compile"), "cuda": TOOLKIT, "nvjpeg": TOOLKIT, "cufile": TOOLKIT}
# Included only where the library has them.
NOT_EVERYWHERE = {"mdspan"}
# Names that an #include only prints in an error.
NO_HEADERS = {"penstock needs C++20: compile with -std=c++20"}
COMPILED = ("-DPENSTOCK_COMPILED",)
INCLUDE_LINE = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.M)


def others_of(header, with_bodies, seen=None, others=None):
    """The headers of others that one of ours includes, directly or not."""
    seen = set() if seen is None else seen
    others = set() if others is None else others
    if header in seen:
        return others
    seen.add(header)
    for name in INCLUDE_LINE.findall((INCLUDE / header).read_text(encoding="utf-8")):
        if name.startswith("penstock/"):
            if with_bodies or not name.endswith(".ipp"):
                others_of(name, with_bodies, seen, others)
        elif name not in NOT_EVERYWHERE | NO_HEADERS:
            others.add(name)
    return others


def user_seconds(compiler, source, level, flags=()):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [compiler, "-std=c++20", level, f"-I{INCLUDE}", *flags, "-c", str(source), "-o", os.devnull]
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def object_text(compiler, source, folder, flags):
    """(the text size as `size` reports it, the machine code alone) of the object file, in bytes"""
    made = pathlib.Path(folder) / "text.o"
    command = [compiler, "-std=c++20", "-O2", f"-I{INCLUDE}", *flags, "-c", str(source), "-o", str(made)]
    subprocess.run(command, check=True)

    def ask(*options):
        done = subprocess.run(["size", *options, str(made)], check=True, capture_output=True, text=True)
        return [line.split() for line in done.stdout.splitlines()]

    code = sum(int(words[1]) for words in ask("-A") if words and words[0].startswith(".text"))
    return int(ask()[1][0]), code


def lines_of(compiler, source, flags):
    """(lines, those from our headers) of a preprocessed file"""
    command = [compiler, "-std=c++20", f"-I{INCLUDE}", *flags, "-E", str(source)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, errors="replace")
    every = ours = 0
    is_ours = False
    for line in done.stdout.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            is_ours = marker.group(1).startswith(str(INCLUDE))
        elif line.strip():
            every += 1
            ours += is_ours
    return every, ours


def what_headers_cost(options, write, times):
    groups = {f"`<penstock/{source_tree.relative(h)}>`": ([h], ()) for h in source_tree.headers()
              if source_tree.is_umbrella(source_tree.relative(h))}
    optional = {}
    for header in source_tree.headers():
        component = source_tree.component_of(header)
        if component != "core":
            optional.setdefault(component, []).append(header)
    for component, found in sorted(optional.items()):
        flags = ()
        if component in FLAGS:
            try:
                flags = subprocess.run(FLAGS[component], check=True, capture_output=True, text=True).stdout.split()
            except OSError:
                continue
        groups[f"component `{component}`: its headers"] = (found, flags)
    print("| headers | lines | of them ours | s |\n|---|---:|---:|---:|")
    for name, (found, flags) in groups.items():
        source = write("group.cpp", {f"penstock/{source_tree.relative(h)}" for h in found})
        try:
            every, ours = lines_of(options.compiler, source, flags)
            seconds = [user_seconds(options.compiler, source, "-O2", flags) for _ in range(times + 1)][1:]
        except subprocess.CalledProcessError:
            print(f"| {name} | | | does not compile here |")
            continue
        print(f"| {name} | {every:,} | {ours:,} | {statistics.median(seconds):.2f} |", flush=True)


def print_row(number, what, bar, value, notes):
    verdict = "pass" if value <= bar else "MISS"
    print(f"row\t{number}\t{what}\t<={bar:g}\t{value:.3g}\t{value:.3g}\t{verdict}\t{notes}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compiler", default=os.environ.get("CXX", "g++"))
    parser.add_argument("--row", default="")
    parser.add_argument("--headers", action="store_true")
    options = parser.parse_args()
    times = 1 if options.quick else 7
    environment_is_fair = "ccache" not in os.path.realpath(options.compiler)
    if not environment_is_fair:
        sys.exit("measure.py: the compiler is ccache; name the compiler itself with --compiler")

    with tempfile.TemporaryDirectory() as folder:

        def write(name, headers):
            path = pathlib.Path(folder) / name
            text = "".join(f"#include <{h}>\n" for h in sorted(headers))
            path.write_text(text + "int main() {}\n", encoding="utf-8")
            return path

        def in_turn(*compilations):
            """The seconds of each (source, flags), as many as `times` says."""
            rounds = [[user_seconds(options.compiler, source, "-O2", flags) for source, flags in compilations]
                      for _ in range(times + 1)]
            return list(zip(*rounds[1:]))  # the first round filled the page cache

        def compare(number, what, bar, first, second, flags=()):
            pairs = list(zip(*in_turn((first, flags), (second, flags))))
            ratio = statistics.median(a / b for a, b in pairs)
            ours, theirs = (statistics.median(side) for side in zip(*pairs))
            print_row(number, what, bar, ratio, f"{ours:.2f} s against {theirs:.2f} s, median of {times}")

        if options.headers:
            what_headers_cost(options, write, times)
            return
        umbrella, narrow = HERE / "full_expression.cpp", HERE / "full_expression_narrow.cpp"
        whole = {"13a": ("compiled, umbrella", 3, umbrella, COMPILED), "13b": ("compiled, narrow", 2.5, narrow, COMPILED),
                 "13c": ("header-only, umbrella", 7.5, umbrella, ()), "13d": ("header-only, narrow", 6.5, narrow, ())}
        asked = [row for row in whole if options.row in ("", row)]
        for row, runs in zip(asked, in_turn(*(whole[row][2:] for row in asked)) if asked else ()):
            print_row(row, f"user seconds to compile the full expression, -O2: {whole[row][0]}", whole[row][1],
                      statistics.median(runs), f"median of {times}, {min(runs):.2f} to {max(runs):.2f} s")
        for row, form, bar, flags in (("13e", "compiled", 1.5, COMPILED), ("13f", "header-only", 2, ())):
            if options.row in ("", row):
                compare(row, f"<penstock/penstock.hpp> / the standard headers that it includes: {form}", bar,
                        write("ours.cpp", {"penstock/penstock.hpp"}),
                        write("standard.cpp", others_of("penstock/penstock.hpp", not flags)), flags)
        if options.row in ("", "13g"):
            compare("13g", "<penstock/core.hpp> / <ranges>: header-only", 1, write("core.cpp", {"penstock/core.hpp"}),
                    write("ranges.cpp", {"ranges"}))
        images, arrays = HERE / "images.cpp", HERE / "no_images.cpp"
        for row, form, flags in (("13i", "compiled", COMPILED), ("13j", "header-only", ())):
            if options.row in ("", row):
                compare(row, f"a program of five lines with images / one without: {form}", 1.5, images, arrays, flags)
        if options.row in ("", "13h"):
            text, code = object_text(options.compiler, umbrella, folder, COMPILED)
            print_row("13h", "KB of object text of the full expression, -O2: compiled", 40, text / 1000,
                      f"{code / 1000:.0f} KB of it machine code")


if __name__ == "__main__":
    main()
