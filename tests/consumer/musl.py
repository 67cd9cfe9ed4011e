#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program with threads, built for Linux with musl and libc++, and run.

Debian has musl for C alone; the package ziglang of PyPI is a Clang that brings musl and libc++.
PENSTOCK_TEST_ZIG names a Python that has it; tools/test.sh --full makes one.
"""

import argparse
import os
import platform
import subprocess

from outside import HERE, ROOT, fresh, run, skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("work", "compiler"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    python = os.environ.get("PENSTOCK_TEST_ZIG")
    if not python or subprocess.run([python, "-m", "ziglang", "version"], check=False).returncode != 0:
        skip("PENSTOCK_TEST_ZIG does not name a Python with ziglang; tools/test.sh --full makes one")
    program = fresh(options.work) / "program"
    run(python, "-m", "ziglang", "c++", "-target", f"{platform.machine()}-linux-musl", "-std=c++20", "-Wall", "-Wextra",
        "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror", f"-I{ROOT / 'include'}", HERE / "find_package/main.cpp",
        "-o", program)
    print(run(program))


if __name__ == "__main__":
    main()
