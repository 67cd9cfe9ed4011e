#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the guides whose last column is "header" say which header, and which component, has the names of a row.

The names are those in code marks of the column "here", or else of the first one. A cell is empty if
<penstock/penstock.hpp> has all of them. `--write` makes the cells.
"""

import re
import sys

from check_reference import names_in
from source_tree import PENSTOCK, ROOT, component_of, finish, headers, includes, is_detail, is_umbrella, relative

PAGES = ("docs/stages.md", "docs/images.md", "docs/coming_from.md")
CODE = re.compile(r"`([^`]*)`")
CELL = re.compile(r"(?<!\\)\|")
# A name, and neither a member, nor a designated option, nor the name of something else's namespace.
NAME = re.compile(r"(?<![\w.:\"'/])([A-Za-z_]\w*)(?!\w|::|\s*=|/)")


def reached(name, seen):
    """Adds the headers that one includes to `seen`."""
    if name in seen or not (PENSTOCK / name).exists():
        return
    seen.add(name)
    for _, _, what in includes(PENSTOCK / name):
        if what.startswith("penstock/"):
            reached(what.removeprefix("penstock/"), seen)


def where_names_are():
    """name -> headers that declare it"""
    result = {}
    for header in headers():
        name = relative(header)
        if is_umbrella(name) or is_detail(name) or name.endswith("_abi.hpp"):
            continue
        for _, public, *_ in names_in(header):
            if public:
                result.setdefault(public, []).append(name)
    return result


def header_cell(code, declared, umbrella):
    """What the cell of a row says whose names are in `code`."""
    wanted = []
    for text in code:
        text = re.sub(r'"[^"]*"', '""', text)
        for name in NAME.findall(text):
            found = declared.get(name, [])
            if not found or any(header in umbrella for header in found):
                continue
            component = component_of(PENSTOCK / found[0])
            words = f"`{found[0]}`" + ("" if component == "core" else f" (component `{component}`)")
            if words not in wanted:
                wanted.append(words)
    return ", ".join(wanted)


def page_with_headers(text, declared, umbrella):
    lines, column = text.splitlines(), None
    for number, line in enumerate(lines):
        if not line.startswith("|"):
            column = None
            continue
        cells = [cell.strip() for cell in CELL.split(line)[1:-1]]
        if column is None:
            if cells[-1] != "header" or len(cells) < 3:
                continue
            column = cells.index("here") if "here" in cells else 0
        elif column is not None and not set(cells[0]) <= {"-"}:
            cells[-1] = header_cell(CODE.findall(cells[column]), declared, umbrella)
            lines[number] = "| " + " | ".join(cells[:-1]) + " |" + (f" {cells[-1]} |" if cells[-1] else " |")
    return "\n".join(lines) + "\n"


def main():
    umbrella, faults, count = set(), [], 0
    reached("penstock.hpp", umbrella)
    declared = where_names_are()
    for page in PAGES:
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        made = page_with_headers(text, declared, umbrella)
        count += len(re.findall(r"\| header \|$", text, re.MULTILINE))
        if "--write" in sys.argv[1:]:
            path.write_text(made, encoding="utf-8")
        elif text != made:
            faults.append(f"{page}: a column of headers is not current (tools/check_page_headers.py --write)")
    if count < 16:
        faults.append(f"only {count} tables have a column of headers")
    finish("check_page_headers", faults, f"{count} tables")


if __name__ == "__main__":
    main()
