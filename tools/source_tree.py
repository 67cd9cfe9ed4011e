# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shared by the checks: where things are, and how a header is read."""

import functools
import pathlib
import re
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
PENSTOCK = INCLUDE / "penstock"
ROOMS = ("core", "base", "order", "storage", "image", "video", "audio", "sequence", "codec", "source", "stage",
         "evaluation", "run", "inspection", "device", "observe", "integration")
# Folders of a room that are no part of the interface; tools/room_edges.txt says who includes them.
INNER = ("codec/layouts", "source/files", "source/joined", "source/records", "source/robots", "source/rows",
         "source/tables", "source/tar", "source/text", "storage/cache", "storage/crypto", "storage/local",
         "storage/reads", "storage/resilience", "storage/s3/requests", "storage/web")

TABLE = ROOT / "cmake" / "penstock_component_table.cmake"
# The fields of its rows that have one value, and those that have several.
ONE = ("LIBRARY", "HEADER")
SEVERAL = ("FIND", "PACKAGES", "TARGETS", "NAMES", "ALSO", "LINKS", "SET", "NEEDS", "SHARES", "DEFINES", "PC_REQUIRES",
           "PC_LIBS", "VCPKG", "CONAN")


def component_rows():
    """component -> field -> value or values, in the order of the table; SENTENCE is what stands beside the name."""
    words = shlex.shlex(TABLE.read_text(encoding="utf-8"), posix=True, punctuation_chars="()")
    words.whitespace_split = True
    rows, row, field = {}, None, None
    for word in words:
        if word == "penstock_row":
            assert next(words) == "(", f"{TABLE.name}: a row without its parenthesis"
            row = rows.setdefault(next(words), {name: [] for name in SEVERAL} | {name: "" for name in ONE})
            row["SENTENCE"] = next(words)
        elif word in ONE:
            row[word] = next(words)
        elif word in SEVERAL:
            field = word
        elif word != ")":
            row[field].append(word)
    return rows


COMPONENTS = component_rows()
# Components whose headers include those of another one.
NEEDS = {name: row["NEEDS"] for name, row in COMPONENTS.items() if row["NEEDS"]}

INCLUDE_LINE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
GUARD = re.compile(r'#error "penstock/\S+ needs .*: link penstock::(\w+)"')


def relative(path):
    """The path of a header as it is included, without the leading penstock/."""
    return path.relative_to(PENSTOCK).as_posix()


def headers():
    """Every header of the tree, sorted by its path."""
    return sorted(p for p in PENSTOCK.rglob("*.hpp"))


def bodies():
    """Every file of bodies that the headers declare, sorted by its path."""
    return sorted(p for p in PENSTOCK.rglob("*.ipp"))


def kernels():
    """Every file of kernels, which nvcc compiles, sorted by its path."""
    return sorted(p for p in PENSTOCK.rglob("*.cuh"))


def room_of(name):
    """The room of `stage/batch.hpp`; None for the umbrellas beside the rooms."""
    return name.split("/")[0] if "/" in name else None


def floor_of(name):
    """The folder of `run/engine/workers/ring.hpp`, which counts as a room of its own for includes; a detail folder
    belongs to the folder that contains it."""
    return "/".join(part for part in name.split("/")[:-1] if part != "detail") or None


def is_umbrella(name):
    return "/" not in name


def is_detail(name):
    return "/detail/" in name or name.startswith(tuple(f"{folder}/" for folder in INNER))


@functools.cache
def component_of(path):
    """The component that a header names in its __has_include guard. A header that is no part of the interface needs no
    guard where one that it includes has it: it belongs to the component of those, or to core."""
    found = GUARD.search(path.read_text(encoding="utf-8"))
    if found or not is_detail(relative(path)):
        return found.group(1) if found else "core"
    included = [PENSTOCK / what.removeprefix("penstock/") for _, _, what in includes(path)
                if what.startswith("penstock/") and what.endswith(".hpp")]
    of = {component_of(one) for one in included if one.exists()} - {"core"}
    return next((one for one in sorted(of) if of <= {one, *NEEDS.get(one, ())}), "core")


def includes(path):
    """(line number, opening character, what) of each include line; the one of core/cpp20.hpp is a sentence."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = INCLUDE_LINE.match(line)
        if found and " " not in found.group(2):
            yield number, found.group(1), found.group(2)


TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)"""
    r"""|(?P<literal>R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+')""",
    re.DOTALL,
)


def strip(text, keep_strings):
    """C++ source without comments, and without literals unless asked to keep them; line numbers are kept."""

    def replace(match):
        if match.group("literal") and keep_strings:
            return match.group(0)
        return ("" if match.group("comment") else '""') + "\n" * match.group(0).count("\n")

    return TOKEN.sub(replace, text)


def finish(tool, faults, looked_at):
    """Prints the faults and exits: with status 1 if there is one."""
    for fault in faults:
        print(f"{tool}: {fault}")
    if faults:
        sys.exit(1)
    print(f"{tool}: {looked_at} looked at, nothing found")
