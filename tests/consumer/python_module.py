#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""examples/python, installed by pip against the installed package and imported.

PENSTOCK_TEST_NANOBIND names a Python that has nanobind, scikit-build-core and NumPy of PyPI; tools/test.sh makes one.
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
    if not python or subprocess.run([python, "-c", "import nanobind, numpy, scikit_build_core"], check=False).returncode != 0:
        skip("PENSTOCK_TEST_NANOBIND does not name a Python with nanobind, scikit-build-core and NumPy; tools/test.sh makes one")
    build = fresh(options.work)
    run(python, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index", "--target", build / "site",
        "--config-settings=cmake.build-type=Debug", f"--config-settings=build-dir={build / 'build'}", ROOT / "examples/python",
        env={**os.environ, "CXX": options.compiler, "CMAKE_PREFIX_PATH": options.prefix, "CMAKE_GENERATOR": options.generator})
    print(run(python, ROOT / "examples/python/check_python.py", env={**os.environ, "PYTHONPATH": str(build / "site")}))


if __name__ == "__main__":
    main()
