#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The lines of docs/building.md that fetch the sources, for FetchContent or for CPM: a program is built with
them from a git repository with a tag, made here of this tree as it is.

CPM is one file, CPM.cmake, that its users keep in their projects; the one in cpm/ is kept for this test, so that
it needs no network. PENSTOCK_CPM_CMAKE names another.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from outside import HERE, ROOT, fresh, need, run


def cpm_file():
    """CPM.cmake: the copy kept here, or the one named in the environment."""
    return pathlib.Path(os.environ.get("PENSTOCK_CPM_CMAKE") or HERE / "cpm/CPM.cmake")


def repository(place, tag):
    """A repository of what a user needs of this tree, with the branch main and the tag."""
    place.mkdir()
    for name in ("CMakeLists.txt", "LICENSE"):
        shutil.copy(ROOT / name, place)
    for name in ("cmake", "include"):
        shutil.copytree(ROOT / name, place / name)
    git = ["git", "-C", place, "-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    run("git", "init", "-q", "-b", "main", place)
    run(*git, "add", ".")
    run(*git, "commit", "-q", "-m", "the tree")
    if tag != "main":
        run(*git, "tag", tag)
    return place


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("work", "compiler", "generator", "tool"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    need("git")
    text = (ROOT / "docs/building.md").read_text(encoding="utf-8")
    blocks = [b for b in re.findall(r"^```cmake\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) if options.tool in b]
    if len(blocks) != 1:
        sys.exit(f"docs/building.md has {len(blocks)} blocks for {options.tool}, not one")
    tag = re.search(r"GIT_TAG (\S+?)\)?$", blocks[0], re.MULTILINE).group(1)
    work = fresh(options.work)
    lines = blocks[0].replace("URL-OF-THIS-REPOSITORY", str(repository(work / "repository", tag)))

    project = work / "project"
    shutil.copytree(HERE / "find_package", project)
    if options.tool == "CPM":
        (project / "cmake").mkdir()
        shutil.copy(cpm_file(), project / "cmake/CPM.cmake")
    (project / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\nadd_executable(my_training main.cpp)\n"
        + lines, encoding="utf-8")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CPM_")}
    run("cmake", "-S", project, "-B", work / "build", "-G", options.generator,
        f"-DCMAKE_CXX_COMPILER={options.compiler}", env=environment)
    run("cmake", "--build", work / "build")
    print(subprocess.run([work / "build/my_training"], capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    main()
