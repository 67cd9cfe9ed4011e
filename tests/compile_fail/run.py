#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles one file without and with -DPENSTOCK_WRONG.

Without it must compile. With it there must be one error whose line holds the sentence that the file's
`// expect: <sentence>` states, in at most 15 lines of output from GCC and 20 from Clang: as much as a reader
takes in at once. What needs a flag to be wrong says `// wrong with: <flags>`.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

FLAGS = re.compile(r"^// wrong with: (.+?)\s*$", re.MULTILINE)
EXPECT = re.compile(r"^// expect: (.+?)\s*$", re.MULTILINE)


def compile_once(compiler, includes, source, wrong, flags=(), defines=()):
    """(exit status, lines of output)"""
    command = [compiler, "-std=c++20", "-fsyntax-only", "-fdiagnostics-color=never"]
    command += [f"-I{include}" for include in includes] + [f"-D{name}" for name in defines]
    command += ["-DPENSTOCK_WRONG", *flags] if wrong else []
    environment = dict(os.environ, LC_ALL="C")
    command.append(str(source))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def judge(compiler, includes, source, defines=()):
    """What is wrong with this case, as sentences, and the output of the wrong compilation."""
    head = "\n".join(source.read_text(encoding="utf-8").splitlines()[:10])
    expected, flags = EXPECT.search(head), FLAGS.search(head)
    if not expected:
        return ["the first ten lines have no `// expect: <sentence>`"], []

    status, right = compile_once(compiler, includes, source, wrong=False, defines=defines)
    if status != 0:
        return ["does not compile without PENSTOCK_WRONG, so its failure shows nothing"], right

    flags = flags.group(1).split() if flags else []
    status, lines = compile_once(compiler, includes, source, wrong=True, flags=flags, defines=defines)
    if status == 0:
        return ["compiles with PENSTOCK_WRONG"], lines

    faults = []
    errors = [line for line in lines if "error:" in line]
    if not errors or expected.group(1) not in errors[0]:
        faults.append(f"the first error does not say: {expected.group(1)}")
    if len(errors) != 1:
        faults.append(f"{len(errors)} errors instead of one")
    limit = 20 if "clang" in pathlib.Path(compiler).name else 15
    if len(lines) > limit:
        faults.append(f"{len(lines)} lines of output, at most {limit} are allowed")
    return faults, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("source", type=pathlib.Path)
    arguments = parser.parse_args()

    faults, lines = judge(arguments.compiler, arguments.include, arguments.source, arguments.define)
    print("\n".join(lines))
    print(f"-- {len(lines)} lines of output from {arguments.compiler}")
    for fault in faults:
        print(f"-- {arguments.source.name}: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
