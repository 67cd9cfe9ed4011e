#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Draws what `bench_cache_policy --chart` prints: chart.py FIGURES SVG. Needs matplotlib."""

import csv
import sys

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt  # noqa: E402, after the choice of what draws

PANELS = (("shuffle", 1), ("window(16)", 4), ("window(16), lanes(64)", 4), ("mix of two shuffles", 32))
LINES = (("optimum", "#999999", "-", 4), ("belady", "#0057b7", "-", 1.8), ("lru", "#c2410c", "--", 1.5),
         ("fifo", "#15803d", ":", 1.8))


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: chart.py FIGURES SVG")
    with open(sys.argv[1], newline="", encoding="utf-8") as file:
        rows = [dict(zip(("order", "nodes", "cache", "fifo", "lru", "belady", "optimum", "share"), row))
                for row in csv.reader(file, delimiter=";")]
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "cache", "font.size": 9})
    figure, axes = plt.subplots(1, len(PANELS), figsize=(11, 3.2), sharey=True, layout="constrained")
    for axis, (order, nodes) in zip(axes, PANELS):
        of = [row for row in rows if row["order"] == order and int(row["nodes"]) == nodes]
        at = [int(row["cache"]) for row in of]
        for name, color, style, width in LINES:
            axis.plot(at, [float(row[name]) for row in of], style, color=color, linewidth=width, label=name)
        axis.set_title(f"{order}, {nodes} {'node' if nodes == 1 else 'nodes'}", fontsize=9)
        axis.set_xlabel("cache, % of what the node reads")
        axis.set_xlim(0, 100)
        axis.set_ylim(0, 1)
        axis.grid(alpha=.3)
    axes[0].set_ylabel("hit rate")
    axes[0].legend(loc="lower right", fontsize=8)
    figure.savefig(sys.argv[2], metadata={"Date": None})


if __name__ == "__main__":
    main()
