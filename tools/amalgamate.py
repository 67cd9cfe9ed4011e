#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes one file for everything that needs the standard library alone, penstock.hpp, and one small file for each
optional component, which expects the first beside it: into single_include/penstock/, where git keeps the first alone,
or into the folder that is named. The target penstock_single_include of CMake writes them into the build folder.

Depth first from penstock/all.hpp, each header once, standard includes sorted at the top. Headers that components
need and that need no library themselves are in the first file too, so that they are defined only once. The bodies of
a header follow it, and are inline whatever a program links. Equal trees give equal bytes: no date, no commit. `--check`
compares with the committed file and writes nothing.
"""

import argparse
import pathlib
import re
import sys

from source_tree import INCLUDE_LINE, NEEDS, PENSTOCK, ROOT, component_of, headers, is_umbrella, relative

SINGLE = ROOT / "single_include" / "penstock"
INLINE = "/// Every definition of this file is inline.\n#define PENSTOCK_INLINE inline"
LICENCE = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"


class Amalgamation:
    """One output file: visits headers and gathers their text and the includes they need."""

    def __init__(self, already=()):
        self.seen = set(already)
        self.hoisted = set()
        self.bodies = []

    def visit(self, name):
        if name in self.seen:
            return
        self.seen.add(name)
        if not (PENSTOCK / name).exists():
            sys.exit(f"amalgamate: penstock/{name} is included, but not there")
        body, depth = [], 0
        lines = (PENSTOCK / name).read_text(encoding="utf-8").splitlines()
        bodies = name.replace(".hpp", ".ipp")
        has_bodies = bodies != name and (PENSTOCK / bodies).exists()
        if has_bodies:
            lines = lines[:-3]  # the bodies follow here
        lines = list(without_guard(lines))
        undone = {line.split()[1]: at for at, line in enumerate(lines) if line.startswith("#undef ")}
        renamed_to = -1  # what is included up to this line is read with other names, and stays in its place
        for at, line in enumerate(lines):
            if line.startswith("#define ") and line.split()[1] in undone:
                renamed_to = undone[line.split()[1]]
            if line in (LICENCE, "#pragma once"):
                continue
            found = INCLUDE_LINE.match(line)
            if found and found.group(2).startswith("penstock/"):
                if depth:
                    sys.exit(f"amalgamate: {name} includes {found.group(2)} under a condition")
                self.visit(found.group(2).removeprefix("penstock/"))
            elif found and depth == 0 and at > renamed_to:
                self.hoisted.add(found.group(2))
            else:
                depth += bool(re.match(r"\s*#\s*if", line)) - bool(re.match(r"\s*#\s*endif", line))
                body.append(line)
        text = re.sub(r"\n{3,}", "\n\n", "\n".join(body)).strip("\n")
        if name == "core/compiled.hpp":
            text = INLINE
        if text and not is_umbrella(name):
            self.bodies.append(f"// ---- penstock/{name}\n\n{text}\n")
        if has_bodies:
            self.visit(bodies)

    def text(self, first_lines):
        includes = "".join(f"#include <{header}>\n" for header in sorted(self.hoisted))
        return f"{LICENCE}\n{first_lines}\n#pragma once\n\n{includes}\n" + "\n".join(self.bodies)


def without_guard(lines):
    """The lines without the `#if !__has_include` ... `#endif` at the top; the output has its own."""
    inside = False
    for line in lines:
        if line.startswith("#if !__has_include("):
            inside = True
        elif inside:
            inside = not line.startswith("#endif")
        else:
            yield line


def guards(component):
    """The guards of a component's headers, each once, with the single file's name in them."""
    result = []
    for header in headers():
        if component_of(header) == component:
            text = header.read_text(encoding="utf-8")
            for found in re.findall(r"^#if !__has_include\(.*?^#endif\n", text, re.DOTALL | re.MULTILINE):
                guard = found.replace(f"penstock/{relative(header)} needs", f"penstock_{component}.hpp needs")
                if guard not in result:
                    result.append(guard)
    return "".join(result)


def generate():
    """file name -> text"""
    version_text = (PENSTOCK / "core" / "version.hpp").read_text(encoding="utf-8")
    version = re.search(r'version = "([^"]+)"', version_text).group(1)
    note = "// Made by tools/amalgamate.py from include/penstock; do not edit."

    everything = Amalgamation()
    everything.visit("all.hpp")
    everything.visit("penstock.hpp")
    optional = {}
    for header in headers():
        if component_of(header) != "core":
            optional.setdefault(component_of(header), []).append(relative(header))
    reached = set(everything.seen)
    for component, names in sorted(optional.items()):
        part = Amalgamation(everything.seen)
        for name in names:
            if name in everything.seen:
                sys.exit(f"amalgamate: all.hpp reaches {name}, which needs penstock::{component}")
            part.visit(name)
        reached |= part.seen
    for name in sorted(reached):
        if component_of(PENSTOCK / name) == "core":
            everything.visit(name)
    first_line = f"// Penstock {version}, all that needs the standard library alone."
    result = {"penstock.hpp": everything.text(f"{first_line}\n{note}")}

    seen = {}
    # Behind those that they need.
    for component, names in sorted(optional.items(), key=lambda item: (item[0] in NEEDS, item[0])):
        needed = NEEDS.get(component, ())
        part = Amalgamation(everything.seen.union(*(seen[other] for other in needed)))
        for name in names:
            part.visit(name)
        seen[component] = part.seen
        files = ["penstock.hpp", *(f"penstock_{other}.hpp" for other in needed)]
        first_line = f"// Penstock {version}, the component {component}. It needs {' and '.join(files)} beside it."
        beside = "".join(f'#include "{file}"\n' for file in files)
        first_code = f"#pragma once\n\n{guards(component)}\n{beside}"
        text = part.text(f"{first_line}\n{note}").replace("#pragma once\n", first_code, 1)
        result[f"penstock_{component}.hpp"] = text

    # A detail header may exist only for an optional component, without needing the library itself.
    for name in (relative(header) for header in headers()):
        if name not in reached:
            sys.exit(f"amalgamate: all.hpp does not reach {name}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=SINGLE)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    files = generate()
    stale = [name for name, text in files.items()
             if not (options.folder / name).exists() or (options.folder / name).read_text(encoding="utf-8") != text]
    if options.check:
        if "penstock.hpp" in stale:
            sys.exit("amalgamate: run tools/amalgamate.py, penstock.hpp is not current")
        print("amalgamate: penstock.hpp is current")
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (options.folder / name).write_text(files[name], encoding="utf-8")
    print(f"amalgamate: {len(files)} files, {len(stale)} of them written")


if __name__ == "__main__":
    main()
