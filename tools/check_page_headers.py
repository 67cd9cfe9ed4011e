#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of the guides whose last column is "header" say which header, and which component, has the names of a row.

The names are those in code marks of the column "here", or else of the first one. A cell is empty if
<penstock/penstock.hpp> has all of them.

A block of code of README.md or a guide that begins with `#include <penstock/penstock.hpp>` includes what else its
names need, and says what to link. `--write` makes the cells and these lines.
"""

import re
import sys

from check_reference import names_in
from source_tree import PENSTOCK, ROOT, component_of, finish, headers, includes, is_detail, is_umbrella, relative

PAGES = ("docs/stages.md", "docs/images.md", "docs/audio.md", "docs/coming_from.md")
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


BLOCK = re.compile(r"(```cpp\n)((?:#include <penstock/[^\n]*\n)+)(\n.*?^```$)", re.DOTALL | re.MULTILINE)
QUALIFIED = re.compile(r"\b(?:ps|penstock)::")


def where_names_are():
    """name -> headers that declare it"""
    result = {}
    for header in headers():
        name = relative(header)
        if is_umbrella(name) or is_detail(name) or name.endswith(("_abi.hpp", "/components.hpp")):
            continue
        for _, public, *_ in names_in(header):
            if public:
                result.setdefault(public, []).append(name)
    return result


def headers_for(code, declared, umbrella, sounds=False):
    """(header, component) of the names in `code` that the umbrella lacks; of operations that images and sounds have
    both, those on sounds if the code is of `sounds`."""
    wanted = []
    for text in code:
        text = re.sub(r'"[^"]*"', '""', text)
        for name in NAME.findall(text):
            found = declared.get(name, [])
            if not found or any(header in umbrella for header in found):
                continue
            first = sorted(found, key=lambda header: header.startswith("audio/") != sounds)[0]
            room = first.partition("/")[0]
            together = room in ("image", "audio") and component_of(PENSTOCK / first) == "core"
            header = f"{room}.hpp" if together else first
            needed = (header, component_of(PENSTOCK / header))
            if needed not in wanted:
                wanted.append(needed)
    return wanted


def header_cell(code, declared, umbrella, sounds):
    """What the cell of a row says whose names are in `code`."""
    return ", ".join(f"`{header}`" + ("" if component == "core" else f" (component `{component}`)")
                     for header, component in headers_for(code, declared, umbrella, sounds))


def names_of_library(code):
    """The names of a block that are the library's: those that it qualifies, or all if it qualifies none."""
    code = re.sub(r"//[^\n]*", "", code)
    found = re.findall(r"\b(?:ps|penstock)::([A-Za-z_]\w*)", code)
    return found if QUALIFIED.search(code) else [code]


def block_with_headers(match, declared, umbrella):
    begin, includes_, rest = match.groups()
    if not includes_.startswith("#include <penstock/penstock.hpp>") or "int main(" in rest:
        return match.group(0)
    lines = ["#include <penstock/penstock.hpp>"]
    sounds = re.search(r"\baudio\b", rest) is not None
    for header, component in sorted(headers_for(names_of_library(rest), declared, umbrella, sounds)):
        lines.append(f"#include <penstock/{header}>" + ("" if component == "core" else f"  // link penstock::{component}"))
    return begin + "\n".join(lines) + "\n" + rest


def page_with_headers(text, declared, umbrella, sounds):
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
            cells[-1] = header_cell(CODE.findall(cells[column]), declared, umbrella, sounds)
            lines[number] = "| " + " | ".join(cells[:-1]) + " |" + (f" {cells[-1]} |" if cells[-1] else " |")
    return "\n".join(lines) + "\n"


def main():
    umbrella, faults, count = set(), [], 0
    reached("penstock.hpp", umbrella)
    declared = where_names_are()
    guides = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    for page in ("README.md", *guides):
        path = ROOT / page
        text = path.read_text(encoding="utf-8")
        made = BLOCK.sub(lambda match: block_with_headers(match, declared, umbrella), text)
        if page in PAGES:
            made = page_with_headers(made, declared, umbrella, page == "docs/audio.md")
        count += len(re.findall(r"\| header \|$", text, re.MULTILINE))
        if "--write" in sys.argv[1:]:
            path.write_text(made, encoding="utf-8")
        elif text != made:
            faults.append(f"{page}: a column of headers, or the includes of a block, are not current "
                          "(tools/check_page_headers.py --write)")
    if count < 17:
        faults.append(f"only {count} tables have a column of headers")
    finish("check_page_headers", faults, f"{count} tables")


if __name__ == "__main__":
    main()
