#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans with plan_capacity, and computes its figures again.

check_plan_capacity.py <plan_capacity>
"""

import math
import pathlib
import re
import subprocess
import sys
import tempfile

program = str(pathlib.Path(sys.argv[1]).resolve())
NUMBER = r"(\d[\d.e+-]*)"


def run(*options, expect=0):
    done = subprocess.run([program, *map(str, options)], capture_output=True, text=True, timeout=250)
    if done.returncode != expect:
        sys.exit(f"{options} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    if expect != 0 and len(done.stderr.splitlines()) != 1:
        sys.exit(f"{options} did not say in one line what is wrong:\n{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def says(out, line, *expected):
    """Whether a line that begins so has these numbers, to four digits."""
    found = re.search(rf"^ *{line}.*$", out, re.M)
    numbers = [float(n) for n in re.findall(NUMBER, found[0][found[0].index(":") + 1 if ":" in found[0] else 0:])]
    check(all(any(math.isclose(n, e, rel_tol=6e-4) for n in numbers) for e in expected), f"{found[0].strip()}")


# 512 accelerators take 256 samples of 110 kB in 120 ms each; 60 % come from a cache, and 50 lie together.
out = run("--bytes", 110000, "--batch", 256, "--step-ms", 120, "--samples", 14e6, "--accelerators", 512, "--processor-us", 900,
          "--requests", 0.02, "--hit-share", 0.6, "--node-processors", 12, "--node-gbit", 100, "--latency-ms", 30)
rate = 512 * 256 / 0.12
says(out, "target:", rate, rate * 110e3 / 1e9)
says(out, "epoch:", 14e6, 14e6 / rate, 1540)
says(out, "limits first: processors,", 400)  # 768 processors, of which each needs 256 / 0.12 * 900e-6 = 1.92
says(out, "nodes:", 82)
says(out, "processors:", 512 * 1.92 / 82, 2)
says(out, "network:", rate * 44e3 / 82e9, rate * 44e3 / 1e9)
says(out, "cache:", 924)
says(out, "object store:", rate * 0.02 * 0.4, rate * 44e3 / 1e9)
says(out, "in flight:", rate / 512 * 0.008 * 0.03, rate * 0.008 * 0.03)
kept = math.ceil(1.25 * rate / 512 * 44e3 * 0.03 / 2**20)
says(out, "read ahead:", (kept * 2**20 + 3 * 256 * 110e3) * 512 / 82 / 2**30)
check(f"prefetch({kept}_MiB)" in out and "short" not in out, "what each reads ahead")

# A preset's records of more than 16 MiB are asked for in parts, and the store has too few of them.
out = run("--workload", "unet3d", "--accelerator-type", "b200", "--accelerators", 36, "--store-requests", 2000)
says(out, "target:", 36 * 7 / 0.162, 36 * 7 / 0.162 * 146600628 / 1e9)
says(out, "epoch:", 500 * 7 * 36)
says(out, "object store:", 36 * 7 / 0.162 * 9)
says(out, "limits first: store rate,", math.floor(2000 / (7 / 0.162 * 9)), 36)
says(out, "nodes:", 5)
check("short: store rate feeds 14 %" in out and "utilisation of 90 %" in out, "what is short")
# MLPerf's rule: five times the memory of 2 nodes.
out = run("--workload", "retinanet", "--accelerator-type", "mi355", "--accelerators", 16, "--node-gib", 256, "--node-gbit", 25)
says(out, "epoch:", math.ceil(5 * 512 * 2**30 / 322957))
says(out, "limits first: accelerators,", 16)
says(out, "network ", math.floor(2 * 25e9 / 8 / (32 / 0.0634 * 322957)))

with tempfile.TemporaryDirectory() as place:
    out = run("--workload", "retinanet", "--accelerators", 8, "--data", place, "--files", 48, "--scale", 0.02, "--latency-ms", 1)
    print(out)
    size, requests, time = map(float, re.search(rf"measured: {NUMBER} bytes, {NUMBER} requests and {NUMBER} us", out).groups())
    check(0.95 < size / (322957 * 0.02) < 1.05 and 0.9 < requests < 1.1 and time > 0, "a measured sample is one request")
    says(out, "object store:", 8 * 24 / (0.04755 * 0.02) * requests)
    says(out, "processors:", 8 * 24 / (0.04755 * 0.02) * time / 1e6)

check("at least 1" in run("--workload", "retinanet", expect=1), "no accelerators")
check("give --workload, or" in run("--accelerators", 8, expect=1), "no sample")
check("mi355" in run("--workload", "retinanet", "--accelerators", 8, "--accelerator-type", "a100", expect=1), "no such one")
nameless = run("--workload", "retinanet", "--accelerators", 8, "--accelerator-type", "", expect=1)
check("is b200 or mi355" in nameless, "not one without a name")
check("0 to 1024" in run("--accelerators", 8, "--prefetch", 2000, expect=1), "too many batches")
check("'x' is none" in run("--workload", "retinanet", "--accelerators", 8, "--latency-ms", "x", expect=1), "no number")
