# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the scripts here: running programs, and skipping tests because a tool is missing."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SKIPPED = 77
sys.path.insert(0, str(ROOT / "tools"))
from source_tree import NEEDS  # noqa: E402, F401: components that another one needs


def run(*command, **options):
    """The output of a program; if it fails, exits with everything it printed."""
    words = [str(word) for word in command]
    print("+", " ".join(words), flush=True)
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        sys.exit(f"{words[0]} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def skip(reason):
    """In CI every tool must be installed; elsewhere a missing one skips the test."""
    print(f"not run: {reason}")
    sys.exit(1 if os.environ.get("CI") == "true" else SKIPPED)


def need(program, *others):
    """The first of these that exists."""
    for name in (program, *others):
        if shutil.which(name):
            return name
    return skip(f"there is no {program}; tools/install_missing.sh names the package that has it")


def fresh(folder):
    """An empty folder, as an absolute path."""
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def same(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}\n  is        {found}\n  should be {wanted}")
