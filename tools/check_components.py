#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What other tools read of cmake/penstock_component_table.cmake: the features of both vcpkg manifests and of the
portfile, the tables of the Conan recipe, and the table of docs/building.md. `--write` makes them.

And whether each component is used where its row cannot be: in the presets, README.md and the consumers' program.
"""

import json
import re
import sys

from source_tree import (COMPONENTS, NEEDS, PENSTOCK, ROOT, TABLE, component_of, finish, headers, is_detail, relative,
                         room_of)

COMPILED = "A library of what needs no template, so that programs compile sooner"
# Off in every preset: large, or for a machine that is not everywhere.
APART = {"arrow", "libtorch", "cuda", "nvjpeg", "cufile"}


def with_others(name, field, *kinds):
    """The values of a row and of the rows that it names in these fields."""
    row = COMPONENTS[name]
    others = [value for kind in kinds for other in row[kind] for value in with_others(other, field, *kinds)]
    return row[field] + [value for value in others if value not in row[field]]


def port(dependency):
    """`arrow[parquet]` as vcpkg writes it."""
    name, _, features = dependency.partition("[")
    return {"name": name, "features": features.rstrip("]").split(",")} if features else name


def features(more=""):
    lines = [f'    "compiled": {{ "description": {json.dumps(COMPILED)} }}']
    for name, row in COMPONENTS.items():
        ports = sorted(set(with_others(name, "VCPKG", "NEEDS", "SHARES")))
        dependencies = re.sub(r"\{(.*?)\}", r"{ \1 }", json.dumps([port(one) for one in ports]))
        lines.append(f'    "{name.replace("_", "-")}": {{ "description": {json.dumps(row["SENTENCE"])}, '
                     f'"dependencies": {dependencies} }}')
    return ",\n".join(lines) + more + "\n"


def port_options():
    names = ["compiled", *COMPONENTS]
    return "\n           ".join(f"{name.replace('_', '-')} PENSTOCK_ENABLE_{name.upper()}" for name in names)


def conan_packages():
    lines = []
    for name in COMPONENTS:
        packages = []
        for entry in with_others(name, "CONAN", "SHARES"):
            package, versions, libraries = re.fullmatch(r"(?:(\S+)/(\[.*?\]) ?)?(.*)", entry).groups()
            packages.append(f"({quoted(package)}, {quoted(versions)}, {quoted(libraries.split())})")
        line = f'    "{name}": [{", ".join(packages)}],\n'
        between = ",\n" + " " * (len(name) + 9)
        lines.append(line if len(line) <= 120 else f'    "{name}": [{between.join(packages)}],\n')
    return "".join(lines)


def quoted(value):
    return "None" if value is None else json.dumps(value)


def dictionary(values):
    return "".join(f'    "{name}": {quoted(value)},\n' for name, value in values.items())


def documented(name):
    """The headers of a component that programs name; of a folder that has more than two, the folder."""
    names = [n for n in map(relative, filter(lambda h: component_of(h) == name, headers())) if not is_detail(n)]
    result = []
    for header in names:
        folder = header.rpartition("/")[0]
        crowd = folder != room_of(header) and sum(n.startswith(f"{folder}/") for n in names) > 2
        result.append(f"{folder}/..." if crowd else header)
    return ", ".join(f"`{what}`" for what in dict.fromkeys(result))


def table():
    lines = []
    for name, row in COMPONENTS.items():
        packages = with_others(name, "PC_REQUIRES", "SHARES") or row["PC_LIBS"]
        library = row["LIBRARY"] + (f", `{' '.join(packages)}`" if packages else ", headers that must be on the search path")
        if row["NEEDS"]:
            s = "s" if len(row["NEEDS"]) > 1 else ""
            library = f"the component{s} {' and '.join(f'`{n}`' for n in row['NEEDS'])}, which it turns on; {library}"
        lines.append(f"| `{name}` | {documented(name)} | {library} |\n")
    return "".join(lines)


def sections():
    """(file, what stands before, what stands behind, what belongs between)"""
    tests = ',\n    "tests": { "description": "What the tests need", "dependencies": ["catch2"] }'
    yield "vcpkg.json", r'  "features": \{\n', r"  \}\n\}", features(tests)
    yield "ports/penstock/vcpkg.json", r'  "features": \{\n', r"  \}\n\}", features()
    yield "ports/penstock/portfile.cmake", r"  FEATURES ", r"\)\n", port_options()
    yield "conanfile.py", r"COMPONENTS = \{\n", r"\}\n", conan_packages()
    yield "conanfile.py", r"NEEDS = \{\n", r"\}\n", dictionary(NEEDS)
    yield "conanfile.py", r"DEFINES = \{\n", r"\}\n", dictionary(
        {name: row["DEFINES"] for name, row in COMPONENTS.items() if row["DEFINES"]})
    yield "docs/building.md", r"\| `compiled` \|[^\n]*\n", r"(?<=\n)\n", table()


def main():
    write = "--write" in sys.argv[1:]
    faults = []
    for name, before, behind, wanted in sections():
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        found = re.search(f"({before})(.*?)(?={behind})", text, re.DOTALL)
        if not found:
            faults.append(f"{name}: no place for what is made from {TABLE.name}, behind /{before}/")
        elif found.group(2) != wanted and write:
            path.write_text(text[:found.start(2)] + wanted + text[found.end(2):], encoding="utf-8")
        elif found.group(2) != wanted:
            faults.append(f"{name} does not agree with {TABLE.name}: run tools/check_components.py --write")

    presets = {preset["name"]: preset.get("cacheVariables", {}) for preset in
               json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))["configurePresets"]}
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    program = (ROOT / "tests/consumer/components/main.cpp").read_text(encoding="utf-8")
    before = set()
    for name, row in COMPONENTS.items():
        option = f"PENSTOCK_ENABLE_{name.upper()}"
        if set(row["NEEDS"] + row["SHARES"]) - before:
            faults.append(f"{TABLE.name}: {name} must stand behind what it needs and shares")
        before.add(name)
        for preset, value in (("base", "ON"), ("minimal", "OFF")):
            if name not in APART and presets[preset].get(option) != value:
                faults.append(f"CMakePresets.json: the preset {preset} does not say that {option} is {value}")
        if f"`{name}`" not in readme:
            faults.append(f"README.md does not name the component {name}")
        if f"#ifdef CONSUMER_{name.upper()}\n" not in program:
            faults.append(f"tests/consumer/components/main.cpp does not use the component {name}")
        if not any(component_of(header) == name for header in headers()):
            faults.append(f"{TABLE.name}: no header in {PENSTOCK.name}/ says that it needs penstock::{name}")
    finish("check_components", faults, f"{len(COMPONENTS)} components")


if __name__ == "__main__":
    main()
