#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_help.py <program>...: each program that takes options answers --help with its usage and exit status 0,
wherever among the options it stands, and an option that there is not with another status and the usage."""

import pathlib
import subprocess
import sys


def run(program, *options):
    return subprocess.run([program, *options], capture_output=True, text=True, check=False, timeout=250)


faults = []
for program in sys.argv[1:]:
    name = pathlib.Path(program).stem
    for options in (["--help"], ["--shards", "x-{0..3}.tar", "--help"]):
        done = run(program, *options)
        if done.returncode != 0 or not done.stdout.startswith(f"usage: {name} ") or done.stderr:
            faults.append(f"{name} {' '.join(options)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    if name == "train_elastic":  # the rest needs MPI
        continue
    done = run(program, "help")
    if done.returncode == 0 or f"usage: {name} " not in done.stderr:
        faults.append(f"{name} help: status {done.returncode}\n{done.stdout}{done.stderr}")
print("\n".join(faults))
sys.exit(1 if faults else 0)
