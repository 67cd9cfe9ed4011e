#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each penstock/<room>.hpp includes every header of its room that needs no third-party library, but for those
that no program names, and nothing else; penstock/all.hpp includes the umbrellas of all rooms. penstock/penstock.hpp
is written by hand: headers that most programs use, sorted; each is public and needs only the standard library.

`--write` brings the umbrellas up to date.
"""

import sys

from source_tree import PENSTOCK, ROOMS, component_of, finish, headers, includes
from source_tree import is_detail, is_umbrella, relative, room_of

# What the sources of tables and their codecs share.
UNNAMED = ("core/arrow_",)
LICENCE = "// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n#pragma once\n\n"


def wanted():
    """umbrella -> what it includes"""
    result = {}
    for header in headers():
        name = relative(header)
        if is_umbrella(name) or is_detail(name) or component_of(header) != "core" or name.startswith(UNNAMED):
            continue
        result.setdefault(f"{room_of(name)}.hpp", []).append(f"penstock/{name}")
    result["all.hpp"] = [f"penstock/{room}.hpp" for room in sorted(ROOMS) if f"{room}.hpp" in result]
    return result


def main():
    faults = []
    umbrellas = wanted()
    for name, expected in sorted(umbrellas.items()):
        path = PENSTOCK / name
        if "--write" in sys.argv[1:]:
            text = LICENCE
            if path.exists():
                lines = path.read_text(encoding="utf-8").splitlines()
                text = "\n".join(line for line in lines if not line.startswith("#include"))
            text = text.rstrip("\n") + "\n\n" + "".join(f"#include <{header}>\n" for header in expected)
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
        if not path.exists():
            faults.append(f"{name} is not there (tools/check_umbrellas.py --write makes it)")
            continue
        listed = [what for _, _, what in includes(path)]
        for missing in sorted(set(expected) - set(listed)):
            faults.append(f"{name} does not include {missing}")
        for extra in sorted(set(listed) - set(expected)):
            faults.append(f"{name} includes {extra}, which does not belong there")
    listed = [what for _, _, what in includes(PENSTOCK / "penstock.hpp")]
    if listed != sorted(set(listed)):
        faults.append("penstock.hpp does not list each header once, sorted")
    for what in listed:
        name = what.removeprefix("penstock/")
        if not (PENSTOCK / name).exists():
            faults.append(f"penstock.hpp includes {what}, which is not there")
        elif is_detail(name) or name == "all.hpp" or component_of(PENSTOCK / name) != "core":
            faults.append(f"penstock.hpp includes {what}, which is not for everybody")
    for header in headers():
        name = relative(header)
        if is_umbrella(name) and name not in umbrellas and name != "penstock.hpp":
            faults.append(f"{name} belongs to no room")
    finish("check_umbrellas", faults, f"{len(umbrellas) + 1} umbrellas")


if __name__ == "__main__":
    main()
