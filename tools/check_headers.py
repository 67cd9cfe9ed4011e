#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The header lists of include/penstock/CMakeLists.txt against the tree; files of kernels (*.cuh) are on them, too.

A header belongs to the component that its __has_include guard names. Without one it belongs to core, or, if it is no part
of the interface, to the component of what it includes. Each header
reaches core/cpp20.hpp before anything else.
`--write` brings the lists up to date.
"""

import re
import sys

from source_tree import COMPONENTS, NEEDS, PENSTOCK, TABLE, bodies, component_of, finish, headers, includes, kernels, relative

LISTS = PENSTOCK / "CMakeLists.txt"
BLOCK = re.compile(r"(penstock_(?:optional_)?component\(\s*(\w+)\s+HEADERS\n)(.*?)(?=\n\s*LINKS|\))", re.DOTALL)
OPTIONAL = re.compile(r"(?<=\n)penstock_optional_component\(.*\)\n(?=\n# The kernels)", re.DOTALL)


def wanted():
    """component -> its headers in the tree."""
    result = {}
    for header in sorted(headers() + bodies() + kernels()):
        result.setdefault(component_of(header), []).append(relative(header))
    return result


def body_faults():
    """What is wrong with the pairs `x.hpp` and `x.ipp`."""
    for body in bodies():
        name = relative(body)
        header = name.replace(".ipp", ".hpp")
        tail = f"#ifndef PENSTOCK_COMPILED\n#include <penstock/{name}>\n#endif\n"
        if not (PENSTOCK / header).exists():
            yield f"{name}: there is no {header}"
        elif not (PENSTOCK / header).read_text(encoding="utf-8").endswith(tail):
            yield f"{header} does not end with the three lines that include its bodies"
        listed = [what for _, _, what in includes(body)]
        if listed[:1] != [f"penstock/{header}"]:
            yield f"{name} does not include {header} first"


def first_include_faults():
    """Headers that do not reach core/cpp20.hpp first: their own first include is no header of the library."""
    for header in headers():
        name = relative(header)
        first = next((what for _, _, what in includes(header)), "")
        if name != "core/cpp20.hpp" and not re.fullmatch(r"penstock/.*\.hpp", first):
            yield f"{name}: its first include is no header of the library; include penstock/core/cpp20.hpp"


def main():
    text = LISTS.read_text(encoding="utf-8")
    tree = wanted()

    if "--write" in sys.argv[1:]:
        def names(component):
            return "\n".join("    " + name for name in tree.get(component, []))
        text = OPTIONAL.sub("\n".join(f"penstock_optional_component(\n  {component}\n  HEADERS\n{names(component)})\n"
                                      for component in COMPONENTS), text)
        text = BLOCK.sub(lambda match: match.group(1) + names(match.group(2)), text)
        LISTS.write_text(text, encoding="utf-8")

    faults = []
    lists = {match.group(2): match.group(3).split() for match in BLOCK.finditer(text)}
    for component in sorted(tree.keys() - lists.keys()):
        faults.append(f"{', '.join(tree[component])}: no component '{component}' in {LISTS.name}: give it a row in {TABLE.name}, "
                      "then run tools/update.sh")
    for component, listed in sorted(lists.items()):
        here = tree.get(component, [])
        for name in sorted(set(here) - set(listed)):
            faults.append(f"{name}: not listed for {component} (tools/check_headers.py --write lists it)")
        for name in sorted(set(listed) - set(here)):
            faults.append(f"{name}: listed for {component}, but the tree does not have it there")
        if len(listed) != len(set(listed)):
            faults.append(f"{component}: a header is listed twice")

    faults += body_faults()
    faults += first_include_faults()

    # A header that includes an optional one is optional itself, and says so.
    files = headers() + bodies() + kernels()
    of = {relative(header): component_of(header) for header in files}
    for header in files:
        name = relative(header)
        for number, _, what in includes(header):
            target = what.removeprefix("penstock/")
            if what.startswith("penstock/") and target not in of:
                faults.append(f"{name}:{number}: includes {what}, which is not there")
            elif what.startswith("penstock/") and of[target] not in ("core", of[name], *NEEDS.get(of[name], ())):
                faults.append(f"{name}:{number}: includes {what} of penstock::{of[target]} without its guard")

    finish("check_headers", faults, f"{len(of)} headers and files of bodies in {len(lists)} components")


if __name__ == "__main__":
    main()
