#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/python, built against the installed package and imported.

PENSTOCK_TEST_NANOBIND names a Python that has nanobind and NumPy of PyPI; tools/test.sh makes one.
"""

import argparse
import os
import subprocess

from outside import ROOT, fresh, run, skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("work", "compiler", "prefix", "generator"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    python = os.environ.get("PENSTOCK_TEST_NANOBIND")
    if not python or subprocess.run([python, "-c", "import nanobind, numpy"], check=False).returncode != 0:
        skip("PENSTOCK_TEST_NANOBIND does not name a Python with nanobind and NumPy; tools/test.sh makes one")
    build = fresh(options.work)
    run("cmake", "-S", ROOT / "examples/python", "-B", build, "-G", options.generator, "-DCMAKE_BUILD_TYPE=Debug",
        f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_PREFIX_PATH={options.prefix}", f"-DPython_EXECUTABLE={python}")
    run("cmake", "--build", build)
    print(run(python, ROOT / "examples/python/check_python.py", env={**os.environ, "PYTHONPATH": str(build)}))


if __name__ == "__main__":
    main()
