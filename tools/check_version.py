#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The version is defined in core/version.hpp. Every copy of it must agree.

`--expect X.Y.Z` compares with a tag as well.
"""

import json
import re
import sys

from source_tree import PENSTOCK, ROOT, finish, headers, relative, strip


def main():
    text = (PENSTOCK / "core" / "version.hpp").read_text(encoding="utf-8")
    parts = [re.search(rf"version_{part} = (\d+)", text).group(1) for part in ("major", "minor", "patch")]
    version = ".".join(parts)
    faults, count = [], 0

    def compare(where, found):
        nonlocal count
        count += 1
        if found != version:
            faults.append(f"{where} says {found}, core/version.hpp says {version}")

    def read(name, pattern):
        found = re.search(pattern, (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
        compare(name, found.group(1) if found else "nothing")

    compare("the text in core/version.hpp", re.search(r'version = "([^"]+)"', text).group(1))
    for name in ("vcpkg.json", "ports/penstock/vcpkg.json"):
        compare(name, json.loads((ROOT / name).read_text(encoding="utf-8"))["version-semver"])
    read("conanfile.py", r'^    version = "([^"]+)"')
    read("CHANGELOG.md", r"^## (\d+\.\d+\.\d+)")
    single = ROOT / "single_include/penstock/penstock.hpp"
    if single.exists():
        read("single_include/penstock/penstock.hpp", r"^// Penstock (\d+\.\d+\.\d+)")
    if "--expect" in sys.argv[1:]:
        compare("--expect", sys.argv[sys.argv.index("--expect") + 1].removeprefix("v"))

    wanted = f"v{parts[0]}_{parts[1]}"
    for header in headers():
        count += 1
        code = strip(header.read_text(encoding="utf-8"), keep_strings=False)
        for found in set(re.findall(r"\binline\s+(v\d+_\d+)\b", code)) - {wanted}:
            faults.append(f"{relative(header)} has the namespace {found}, it should be {wanted}")
    finish("check_version", faults, f"{count} copies")


if __name__ == "__main__":
    main()
