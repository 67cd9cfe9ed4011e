#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""measure.py [--quick] [--compiler g++] [--row ID] [--headers]

Row 13: what the headers cost a compiler, in seconds of user time. The program with the full expression; the
umbrella header against the standard headers that it includes; the core against <ranges>. Two compilations are
measured in turn, and the table shows the median of their paired ratios.

--headers measures something else: what each umbrella costs, and the headers of each component together. The
lines are those that are left after preprocessing, without blank ones. It is no row: there is no bar.
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

# What a header of a component needs besides the compiler's own folders.
FLAGS = {"mpi": ("mpicxx", "--showme:compile"), "cuda": ("echo", "-I/usr/local/cuda/include")}
INCLUDE_LINE = re.compile(r"^\s*#\s*include\s*<([^>]+)>", re.M)


def others_of(header, seen=None, others=None):
    """What a header of ours includes, all the way down, that is not ours."""
    seen = set() if seen is None else seen
    others = set() if others is None else others
    if header in seen:
        return others
    seen.add(header)
    for name in INCLUDE_LINE.findall((INCLUDE / header).read_text(encoding="utf-8")):
        if name.startswith("penstock/"):
            others_of(name, seen, others)
        else:
            others.add(name)
    return others


def user_seconds(compiler, source, level, flags=()):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [compiler, "-std=c++20", level, f"-I{INCLUDE}", *flags, "-c", str(source), "-o", os.devnull]
    subprocess.run(command, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def lines_of(compiler, source, flags):
    """(lines, those of ours) that the preprocessor leaves of a file"""
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
    times = 1 if options.quick else 5
    environment_is_fair = "ccache" not in os.path.realpath(options.compiler)
    if not environment_is_fair:
        sys.exit("measure.py: the compiler is ccache; name the compiler itself with --compiler")

    with tempfile.TemporaryDirectory() as folder:

        def write(name, headers):
            path = pathlib.Path(folder) / name
            text = "".join(f"#include <{h}>\n" for h in sorted(headers))
            path.write_text(text + "int main() {}\n", encoding="utf-8")
            return path

        def compare(number, what, bar, first, second):
            pairs = []
            for _ in range(times + 1):
                pairs.append([user_seconds(options.compiler, s, "-O2") for s in (first, second)])
            pairs = pairs[1:]  # the first one filled the page cache
            ratio = statistics.median(a / b for a, b in pairs)
            ours, theirs = (statistics.median(side) for side in zip(*pairs))
            print_row(number, what, bar, ratio, f"{ours:.2f} s against {theirs:.2f} s, median of {times}")

        if options.headers:
            what_headers_cost(options, write, times)
            return
        if options.row in ("", "13a"):
            full = HERE / "full_expression.cpp"
            runs = [user_seconds(options.compiler, full, "-O2") for _ in range(times)]
            print_row("13a", "user seconds to compile the full expression, -O2", 4, statistics.median(runs),
                      f"median of {times}, {min(runs):.2f} to {max(runs):.2f} s")
        if options.row in ("", "13b"):
            compare("13b", "<penstock/penstock.hpp> / the standard headers that it includes", 1.5,
                    write("ours.cpp", {"penstock/penstock.hpp"}),
                    write("standard.cpp", others_of("penstock/penstock.hpp")))
        if options.row in ("", "13c"):
            compare("13c", "<penstock/core.hpp> / <ranges>", 1, write("core.cpp", {"penstock/core.hpp"}),
                    write("ranges.cpp", {"ranges"}))


if __name__ == "__main__":
    main()
