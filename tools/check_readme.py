#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every block of the README files, CONTRIBUTING.md, CHANGELOG.md and the pages in docs/ is what it says it is.

A line `<!-- ... -->` before a block names the check; a block without one is a fault.
  in FILE             the code is part of FILE, which is a test (blanks and line breaks aside; for the includes before
                      it see check_page_headers.py)
  printed by NAME     the program given as --NAME prints it (the same)
  sentence            the library has this message
  fails with the next block   the code does not compile, and that is the one error
  configures          the lines make a program of a CMake project that is built and run
  configures with CPM the same, which a test of its own does (tests/consumer/fetched.py)
  JSON with keys of the table below
Relative links must lead to something, and their anchors to a heading. Without --compiler only what needs no
program is checked.
"""

import argparse
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile

from source_tree import ROOT, finish

BLOCK = re.compile(r"(?:<!-- (?P<check>[^>]*) -->\n)?```\w*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
HEAD = """#include <penstock/penstock.hpp>
#include <string>
#include <vector>
namespace ps = penstock;
const std::vector<std::string> words;
"""
MAIN = """#include <penstock/run/run.hpp>
#include <penstock/source/from.hpp>
#include <penstock/stage/batch.hpp>
#include <vector>
namespace ps = penstock;
int main() {
  int sum = 0;
  for (auto&& b : ps::from(std::vector<int>{1, 2, 3}) | ps::batch(2))
    for (const int x : b) sum += x;
  return sum == 6 ? 0 : 1;
}
"""


def squeeze(text):
    return re.sub(r"\s+|^\s*///", "", text, flags=re.MULTILINE)


def without_includes(block):
    return re.sub(r"\A(?:#include <penstock/[^\n]*\n)+", "", block)


@functools.cache
def sentences():
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "include").rglob("*.hpp")))
    return squeeze(re.sub(r'"\s*\n\s*"', "", text))


@functools.cache
def precompiled_head(compiler, folder):
    """What all blocks include, parsed once."""
    head = pathlib.Path(folder) / "head.hpp"
    head.write_text(HEAD, encoding="utf-8")
    subprocess.run([compiler, "-std=c++20", f"-I{ROOT / 'include'}", "-x", "c++-header", head, "-o", f"{head}.gch"], check=True)
    return head


def compile_error(code, options):
    """The first error of the code, or nothing."""
    head = precompiled_head(options.compiler, options.folder)
    source = pathlib.Path(options.folder) / "wrong.cpp"
    source.write_text("int main() {\n" + without_includes(code) + "for (auto&& b : loader) (void)b;\n}\n", encoding="utf-8")
    command = [options.compiler, "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", "-include", head, source]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    errors = re.findall(r"error: (.*)", done.stderr)
    return errors[0] if len(errors) == 1 else "several errors: " + " / ".join(errors)


def anchors(text):
    """What a link may name of a page: its headings, as GitHub spells them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


@functools.cache
def installed(build, folder):
    """Where the library was installed, and the error, or nothing."""
    prefix = pathlib.Path(folder) / "prefix"
    return prefix, run("cmake", "--install", build, "--prefix", prefix)


def configures(lines, options):
    """The error of a project made of these lines, or nothing."""
    prefix, fault = installed(options.build, options.folder)
    if fault:
        return fault
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "main.cpp").write_text(MAIN, encoding="utf-8")
        (place / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(user LANGUAGES CXX)\n"
            "add_executable(my_training main.cpp)\n" + lines, encoding="utf-8")
        return (run("cmake", "-S", place, "-B", place / "build", "-G", options.generator,
                    f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_PREFIX_PATH={prefix}",
                    f"-DFETCHCONTENT_SOURCE_DIR_PENSTOCK={ROOT}")
                or run("cmake", "--build", place / "build") or run(place / "build/my_training"))


def faults_of(name, text, options, configured):
    """The faults of a page; `configured` has the faults of projects by their lines, which several pages may have."""
    known, wrong = sentences(), None
    folder = (ROOT / name).parent
    for match in BLOCK.finditer(text):
        check, block = match["check"] or "", match["text"]
        where = f"{name}:{text.count(chr(10), 0, match.start()) + 1}"
        if check.startswith("in "):
            file = ROOT / check[3:]
            code = file.read_text(encoding="utf-8") if file.exists() else ""
            if squeeze(block) not in squeeze(code) and squeeze(without_includes(block)) not in squeeze(code):
                yield f"{where}: this is not in {check[3:]}"
        elif check.startswith("printed by "):
            program = options.programs.get(check[11:])
            if program and squeeze(block) not in squeeze(
                    subprocess.run([program], capture_output=True, text=True, check=False).stdout):
                yield f"{where}: {check[11:]} does not print this"
        elif check == "sentence":
            if squeeze(block) not in known:
                yield f"{where}: no message of the library says this"
            if wrong and options.compiler:
                said = compile_error(wrong, options)
                if squeeze(block) not in squeeze(said):
                    yield f"{where}: the block before gives another error: '{said}'"
            wrong = None
        elif check == "fails with the next block":
            wrong = block
        elif check == "configures":
            if options.build and block not in configured:
                configured[block] = configures(block, options)
            fault = configured.get(block)
            if fault:
                yield f"{where}: {fault}"
        elif check == "JSON with keys of the table below":
            table = re.findall(r"`(\w+)`", "".join(re.findall(r"^\|( `\w+`[^|]*)\|", text[match.end():], re.MULTILINE)))
            keys = list(json.loads(block))
            if keys != [key for key in table if key in keys]:
                yield f"{where}: its keys are not those of the table, in their order"
        elif check == "configures with CPM":
            if "CPMAddPackage" not in block:
                yield f"{where}: these lines do not use CPM"
        else:
            yield f"{where}: a block that nobody checks"
    if wrong:
        yield f"{name}: the code that must fail has no sentence after it"
    for link, anchor in LINK.findall(re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text))):
        target = folder / link if link else ROOT / name
        if not target.exists():
            yield f"{name}: nothing is at {link}"
        elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{name}: {link} has no heading #{anchor}"


def main():
    parser = argparse.ArgumentParser()
    for name in ("errors", "guarantees", "build", "generator", "compiler"):
        parser.add_argument("--" + name)
    options = parser.parse_args()
    options.programs = {"errors": options.errors, "guarantees": options.guarantees}
    faults, count, configured = [], 0, {}
    place = tempfile.TemporaryDirectory()
    options.folder = place.name
    pages = sorted(p.relative_to(ROOT).as_posix() for folder in ("docs", "include") for p in (ROOT / folder).rglob("*.md"))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "bench/README.md", *pages):
        text = (ROOT / name).read_text(encoding="utf-8")
        count += len(BLOCK.findall(text))
        faults += faults_of(name, text, options, configured)
    finish("check_readme", faults, f"{count} blocks")


if __name__ == "__main__":
    os.environ.pop("CXXFLAGS", None)
    main()
