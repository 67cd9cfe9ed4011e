#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws docs/house.svg: the rooms of include/penstock and what each may include, from tools/room_edges.txt.

A room stands one floor above the highest room that it may include as a whole; arrows that a longer path
implies are left out. Where a room may include only single headers of another one, its box says so. The
table PLACES gives each room its columns and its subtitle. `--check` tells whether the file is current.
"""

import html
import sys

from check_rooms import edge_rows
from source_tree import PENSTOCK, ROOMS, ROOT, finish

PICTURE = ROOT / "docs" / "house.svg"
WIDTH, FLOOR, BOX, MARGIN = 900, 78, 56, 14

# room: left edge, right edge, subtitle, fill
PLACES = {
    "core": (20, 880, "what a pipeline is; needs the standard library alone", "#dbe4f0"),
    "stage": (20, 196, "work on samples", "#e6efd8"),
    "image": (208, 300, "work on pixels", "#e6efd8"),
    "audio": (310, 396, "on sounds", "#e6efd8"),
    "sequence": (406, 488, "on tokens", "#e6efd8"),
    "video": (208, 300, "on films", "#e6efd8"),
    "codec": (208, 342, "values from bytes", "#e6efd8"),
    "device": (354, 488, "where batches end up", "#e6efd8"),
    "base": (500, 880, "what rooms share", "#dbe4f0"),
    "storage": (500, 618, "where bytes are", "#f6e8cf"),
    "order": (630, 748, "what comes next", "#f6e8cf"),
    "observe": (760, 880, "what you can see", "#f6e8cf"),
    "evaluation": (20, 748, "the one operation: evaluate(position, worker, sink)", "#f4dcd6"),
    "source": (20, 476, "what the dataset is", "#f6e8cf"),
    "run/feed": (512, 684, "which positions come next", "#e4ddf1"),
    "run/bad": (696, 868, "what happens to bad ones", "#e4ddf1"),
    "run/block": (512, 684, "what workers fill", "#e4ddf1"),
    "run/mapping": (696, 868, "work on batches", "#e4ddf1"),
    "run/engine": (512, 868, "who works", "#e4ddf1"),
    "run/delivery": (512, 868, "what the consumer gets", "#e4ddf1"),
    "run": (512, 868, "what plan.open() gives", "#d6cbea"),
    "inspection": (20, 880, "what you can ask of a plan", "#d9ecea"),
    "integration": (20, 880, "other libraries' vocabulary; may include every room", "#d9ecea"),
}
# Rooms that reach up to the floor above.
TALL = ("stage",)
AT = {("inspection", "source"): 452}
LEGEND = ("A room may include the rooms that its arrows lead to.",
          "Arrows that a longer path implies are left out.",
          "A line with + names a few headers of another room,",
          "mostly its concepts.",
          "A test enforces tools/room_edges.txt, the full list.")


def drawn(name):
    """The box that a header or a folder is a part of: itself, or the nearest folder around it that has one."""
    while name not in PLACES and "/" in name:
        name = name.rpartition("/")[0]
    return name


def edges():
    """(room -> rooms it may include as a whole, room -> single headers of others)"""
    whole, single = {room: set() for room in PLACES}, {room: set() for room in PLACES}
    for source, target in edge_rows():
        source, below = drawn(source), drawn(target)
        if target == "*" or source == below:
            continue
        if target == below:
            whole[source].add(target)
        elif source.split("/")[0] != below.split("/")[0]:  # else a folder of a room that it may include anyway
            single[source].add(target)
    whole["integration"] = {"inspection"}
    return whole, single


def floors(whole):
    known = {}

    def floor(room):
        if room not in known:
            known[room] = 1 + max((floor(below) for below in whole[room]), default=-1)
        return known[room]

    for room in whole:
        floor(room)
    return known


def reachable(whole, room):
    found = set(whole[room])
    for below in whole[room]:
        found |= reachable(whole, below)
    return found


def arrows(whole):
    """(from, to) that no longer path implies"""
    for room in PLACES:
        for below in PLACES:
            if below in whole[room] and not any(below in reachable(whole, via) for via in whole[room]):
                yield room, below


def extra(whole, single, room):
    """The line that names the single headers a room may include, without those that a room below it may."""
    below = set().union(*(single[r] for r in reachable(whole, room)))
    headers = sorted(single[room] - below)
    rooms = sorted({header.split("/")[0] for header in headers})
    concepts = [r for r in rooms if f"{r}/concepts.hpp" in headers]
    others = {r: [h for h in headers if h.startswith(f"{r}/") and h != f"{r}/concepts.hpp"] for r in rooms}
    named = [f"concepts of {', '.join(concepts)}"] if concepts else []
    for other, found in others.items():
        if len(found) == 1:
            named.append(found[0].removesuffix(".hpp"))
        elif found:
            named.append(f"{len(found)} headers of {other}")
    return "+ " + "; ".join(named) if named else ""


def text(x, y, words, size, colour="#1f2328", weight="normal", anchor="middle"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{html.escape(words)}</text>')


def draw():
    whole, single = edges()
    level = floors(whole)
    top = max(level.values())
    height = MARGIN + (top + 1) * FLOOR

    def box(room):
        left, right, *_ = PLACES[room]
        lower = MARGIN + (top - level[room]) * FLOOR + BOX
        upper = lower - BOX - (FLOOR if room in TALL else 0)
        return left, right, upper, lower

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif" role="img">',
        "<!-- made by tools/draw_house.py -->",
        "<title>The rooms of Penstock and what each may include</title>",
    ]
    frame = [box(room) for room in PLACES if room.split("/")[0] == "run"]
    left, right = min(b[0] for b in frame) - 12, max(b[1] for b in frame) + 12
    upper, lower = min(b[2] for b in frame) - 11, max(b[3] for b in frame) + 10
    lines.append(f'<rect x="{left}" y="{upper}" width="{right - left}" height="{lower - upper}" rx="10" '
                 'fill="#8c7cb8" fill-opacity="0.13" stroke="#8c7cb8" stroke-dasharray="5 4"/>')

    for room, below in arrows(whole):
        a, b = box(room), box(below)
        x = AT.get((room, below), (max(a[0], b[0]) + min(a[1], b[1])) / 2)
        lines.append(f'<line x1="{x:g}" y1="{a[3]}" x2="{x:g}" y2="{b[2] - 8}" stroke="#7d8590" stroke-width="2"/>')
        lines.append(f'<path d="M{x - 5:g} {b[2] - 9} h10 l-5 8 z" fill="#7d8590"/>')

    for room, (left, right, subtitle, fill) in PLACES.items():
        _, _, upper, lower = box(room)
        said = extra(whole, single, room)
        middle, centre = (left + right) / 2, (upper + lower) / 2 - (9 if said else 0)
        lines.append(f'<rect x="{left}" y="{upper}" width="{right - left}" height="{lower - upper}" rx="7" '
                     f'fill="{fill}" stroke="#57606a" stroke-opacity="0.55"/>')
        lines.append(text(middle, centre - 2, room, 15, weight="600"))
        lines.append(text(middle, centre + 14, subtitle, 11.5, "#424a53"))
        if said:
            lines.append(text(middle, centre + 30, said, 10.5, "#57606a"))

    x, y = PLACES["source"][0] + 4, MARGIN + (top - level["run"]) * FLOOR + 24
    for number, words in enumerate(LEGEND):
        lines.append(text(x, y + 22 * number, words, 12.5, "#7d8590", anchor="start"))
    return "\n".join([*lines, "</svg>"]) + "\n"


def faults():
    folders = set(ROOMS) | {f"run/{p.name}" for p in (PENSTOCK / "run").iterdir() if p.is_dir() and p.name != "detail"}
    for room in sorted(folders ^ set(PLACES)):
        yield f"PLACES and include/penstock differ: {room}"
    if "--check" in sys.argv[1:] and (not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != draw()):
        yield "docs/house.svg is not current (tools/draw_house.py)"


def main():
    found = list(faults())
    if not found and "--check" not in sys.argv[1:]:
        PICTURE.write_text(draw(), encoding="utf-8")
    finish("draw_house", found, f"{len(PLACES)} rooms")


if __name__ == "__main__":
    main()
