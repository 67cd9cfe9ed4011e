#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws what two caches keep, and checks the picture, and that it agrees with what is printed.

check_cache_report.py <cache_report>
"""

import pathlib
import random
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as tree

from drawn_shards import write_shard

program = str(pathlib.Path(sys.argv[1]).resolve())
SVG = "{http://www.w3.org/2000/svg}"


def run(*options, expect=0):
    done = subprocess.run([program, *(str(o) for o in options)], capture_output=True, text=True, timeout=250)
    if done.returncode != expect:
        sys.exit(f"{options} gave {done.returncode}, not {expect}\n{done.stdout}{done.stderr}")
    return done.stdout if expect == 0 else done.stderr


def check(holds, what):
    if not holds:
        sys.exit(f"failed: {what}")
    print(f"ok: {what}")


def rates_of(output):
    """For each policy what was printed: the hit rate, the blocks fetched and evicted, MiB on the disk."""
    found = re.findall(r"^(\w+): (\S+) % of the reads were hits .*; (\d+) blocks fetched, (\d+) evicted; "
                       r"at most (\S+) MiB on the disk$", output, re.M)
    return {name: tuple(float(v) for v in values) for name, *values in found}


def lines_of(root):
    """The points of each line, in the order in which they are drawn."""
    return [[tuple(float(v) for v in point.split(",")) for point in line.get("points").split()]
            for line in root.iter(SVG + "polyline")]


with tempfile.TemporaryDirectory() as place:
    folder = pathlib.Path(place)
    scratch = folder / "scratch"
    scratch.mkdir()
    picture = folder / "report.svg"
    out = run("--out", picture, "--samples", 1000, "--epochs", 3, "--step-us", 500, "--scratch", scratch)
    print(out)
    rates = rates_of(out)
    check(set(rates) == {"belady", "lru"}, "each policy has its line")
    check(rates["belady"][0] > rates["lru"][0] + 10, "what is needed last is the better choice")
    check(rates["belady"][1] < rates["lru"][1], "and so fewer blocks are fetched")
    check(all(evicted > 0 for _, _, evicted, _ in rates.values()), "both caches are too small")
    check(not list(scratch.iterdir()), "the folders of the caches are gone")
    check([p.name for p in folder.iterdir() if p.is_file()] == ["report.svg"], "and only the picture is left")

    root = tree.parse(picture).getroot()
    texts = [text.text for text in root.iter(SVG + "text")]
    limit = float(next(re.fullmatch(r"its limit, (\S+) MiB", t) for t in texts if t.startswith("its limit"))[1])
    check(all(disk <= limit for *_, disk in rates.values()), f"neither takes more than its limit of {limit} MiB")
    check({"eviction::belady", "eviction::lru", "epochs"} <= set(texts) and
          any("%" in t for t in texts) and any(t.endswith("disk, MiB") for t in texts), "legend, axes and units")
    places = [(text.get("x"), text.get("y")) for text in root.iter(SVG + "text")]
    check(len(set(places)) == len(places), "no text is upon another one")
    width, height = (float(root.get(side)) for side in ("width", "height"))
    lines = lines_of(root)
    check(len(lines) == 4 and all(len(line) > 3 * 60 for line in lines), "two lines in each panel, with many points")
    check(all(0 <= x <= width and 0 <= y <= height for line in lines for x, y in line), "within the picture")
    check(all(a[0] <= b[0] for line in lines for a, b in zip(line, line[1:])), "time goes on")
    # The y axis goes down: of the third epoch, the first line is above the second, and the disk stays as it is.
    ends = [[y for x, y in line if x > width * 0.7] for line in lines]
    check(sum(ends[0]) / len(ends[0]) < sum(ends[1]) / len(ends[1]) - 10, "the picture says so, too")
    check(max(ends[2]) - min(ends[2]) < 20 and lines[2][0][1] > max(ends[2]) + 50, "the disk fills up, and is full")

    # Shards that are there, with several members to a sample, of which the last batch is not full.
    source = random.Random(1)
    for shard in range(4):
        write_shard(folder / f"in-{shard}.tar", [
            (f"{shard}{i:03d}", {"bin": source.randbytes(20000), "txt": b"text"}) for i in range(50)])
    before = {p.name: p.read_bytes() for p in folder.glob("in-*.tar")}
    given = ["--shards", folder / "in-*.tar", "--out", picture, "--epochs", 2, "--step-us", 0, "--scratch", scratch]
    run(*given, "--cache", 0.3, "--workers", 1)
    text = picture.read_text()
    check("200 samples" in text and text.isascii(), "shards that are given are drawn")
    tree.fromstring(text)
    check({p.name: p.read_bytes() for p in folder.glob("in-*.tar")} == before, "and stay as they are")
    rates = rates_of(run(*given, "--cache", 1))
    check(min(rates[name][0] for name in rates) > 80, "a cache as large as the data keeps nearly all of it")

    # One sentence for each mistake, and no file.
    picture.unlink()

    def refused(options, *words):
        error = run(*options, expect=1)
        check(error.count("\n") == 1 and all(word in error for word in words), f"refused: {error.strip()}")
        check(not picture.exists() and not list(folder.glob("*.tmp*")) and not list(scratch.iterdir()), "nothing is left")

    base = ["--out", picture, "--scratch", scratch]
    refused([*base, "--epochs", 1], "at least 2 --epochs")
    refused([*base, "--epochs", "two"], "'two' is none")
    refused([*base, "--cache", 1.5], "--cache needs a number from 0 to 1")
    refused([*base, "--cache", 0], "raise the limit")
    refused([*base, "--block-kib", 100], "a power of two")
    refused([*base, "--samples", 0], "at least 1 of --samples")
    refused([*base, "--samples", 10, "--shards", "x.tar"], "give --shards, or --samples")
    refused([*base, "--shards", folder / "none-*.tar"], "none-")
    refused([*base, "--workers", 5000], "--workers is at most 1024")
    refused(["--out", folder / "no" / "report.svg", "--scratch", scratch], "no/report.svg")
    refused(["--out", picture, "--scratch", folder / "nowhere"], "nowhere")
    write_shard(folder / "empty.tar", [])
    refused([*base, "--shards", folder / "empty.tar"])
