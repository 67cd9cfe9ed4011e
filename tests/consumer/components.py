#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`cmake --install --component`: each component has its files and no other's, all of them together are the
whole installation, and a program that uses one is built with core and that one alone."""

import argparse
import shutil
import sys

from outside import HERE, NEEDS, fresh, run, same


def files(prefix):
    return {p.relative_to(prefix).as_posix() for p in prefix.rglob("*") if p.is_file()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "work", "compiler", "components", "generator"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    work = fresh(options.work)
    components = options.components.split(",")

    run("cmake", "--install", options.build, "--prefix", work / "whole")
    parts = {}
    for component in components:
        prefix = work / component
        run("cmake", "--install", options.build, "--prefix", prefix, "--component", f"penstock-{component}")
        parts[component] = files(prefix)
        if not any(f.endswith(f"/cmake/penstock/penstock-{component}-targets.cmake") for f in parts[component]):
            sys.exit(f"{component} has no targets")
        for other in components:
            shared = parts[component] & parts.get(other, set())
            if other != component and shared:
                sys.exit(f"{component} and {other} both install {sorted(shared)}")
    # With a compiled library an installation is for one architecture.
    folder = "lib" if "compiled" in components else "share"
    same("where CMake finds it", {f.split("/")[0] for f in parts["core"] if "/cmake/" in f}, {folder})
    same("all components together", sorted(set().union(*parts.values())), sorted(files(work / "whole")))

    for component in components:
        prefix = work / f"core_and_{component}"
        shutil.copytree(work / "core", prefix)
        for part in NEEDS.get(component, []) + [component]:
            shutil.copytree(work / part, prefix, dirs_exist_ok=True)
        build = work / "build"  # one for all: CMake looks at the compiler once
        run("cmake", "-S", HERE / "components", "-B", build, "-G", options.generator,
            f"-DCMAKE_CXX_COMPILER={options.compiler}", "-U", "penstock_DIR", f"-DCMAKE_PREFIX_PATH={prefix}",
            f"-DCONSUMER_COMPONENTS={component}")
        run("cmake", "--build", build)
        run(build / "consumer")


if __name__ == "__main__":
    main()
