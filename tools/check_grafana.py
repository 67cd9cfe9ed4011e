#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""docs/grafana.json: every series that its panels ask for is one that `metrics_text` writes, every variable is
declared, and if promtool is here, Prometheus parses every expression."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from source_tree import PENSTOCK, ROOT, finish

PATH = ROOT / "docs" / "grafana.json"
# The pieces of each family in metrics.ipp: its name, its kind, and the label that tells its series apart.
FAMILY = re.compile(r'\{"(penstock_\w+)",.*?\b(counter|gauge|histogram),\s*(?:true|false),\s*"(\w*)"', re.S)
BUILT_IN = {"__rate_interval", "__interval", "__range"}


def written():
    """series -> the label that it has besides the user's; of a histogram, its parts."""
    text = (PENSTOCK / "observe" / "metrics.ipp").read_text(encoding="utf-8")
    series = {}
    for name, kind, label in FAMILY.findall(text):
        parts = [name] if kind != "histogram" else [name + end for end in ("_bucket", "_sum", "_count")]
        series |= {part: {label} if label else {"le"} if part.endswith("_bucket") else set() for part in parts}
    return series


def expressions(board):
    """(title, expression) of each panel's queries."""
    return [(panel["title"], target["expr"]) for panel in board["panels"] for target in panel["targets"]]


def plain(expression):
    """The expression as Grafana sends it when all is chosen."""
    return re.sub(r"\$(\w+)", lambda v: "1m" if v[1] in BUILT_IN else ".*", expression)


def main():
    board, series, faults = json.loads(PATH.read_text(encoding="utf-8")), written(), []
    variables = {one["name"] for one in board["templating"]["list"]} | BUILT_IN
    asked = expressions(board)
    for title, expression in asked:
        names = set(re.findall(r"\bpenstock_\w+", expression))
        faults += [f"'{title}' asks for {name}, which nobody writes" for name in names - series.keys()]
        faults += [f"'{title}' uses ${name}, which is not declared"
                   for name in set(re.findall(r"\$(\w+)", expression)) - variables]
        labels = set().union(*(series.get(name, set()) for name in names)) | {"job", "run", "rank"}
        by = {label.strip() for group in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression)
              for label in group.split(",")}
        faults += [f"'{title}' groups by {label}, which no series of it has" for label in by - labels]
    checked = ""
    if shutil.which("promtool"):
        with tempfile.TemporaryDirectory() as folder:
            rules = pathlib.Path(folder) / "rules.yml"
            # JSON is YAML, too
            rules.write_text(json.dumps({"groups": [{"name": "panels", "rules": [
                {"record": f"panel_{i}", "expr": plain(one)} for i, (_, one) in enumerate(asked)]}]}), encoding="utf-8")
            done = subprocess.run(["promtool", "check", "rules", rules], capture_output=True, text=True, check=False)
            if done.returncode != 0:
                faults.append(f"promtool: {done.stderr.strip()}")
        checked = ", also by promtool,"
    elif os.environ.get("CI") == "true":
        faults.append("CI must have promtool")
    finish("check_grafana", [f"{PATH.name}: {fault}" for fault in faults], f"{len(asked)} expressions{checked}")


if __name__ == "__main__":
    main()
