#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each header include/penstock/<room>/<name>.hpp has its tests/<room>/<name>.test.cpp.

Umbrellas, `concepts.hpp` and headers in a detail folder are tested through their users.
"""

import re

from source_tree import ROOT, finish, headers, is_detail, is_umbrella, relative


def main():
    faults, count = [], 0
    for header in headers():
        name = relative(header)
        if is_umbrella(name) or is_detail(name) or header.name == "concepts.hpp":
            continue
        count += 1
        test = "tests/" + name.replace(".hpp", ".test.cpp")
        if not (ROOT / test).exists():
            faults.append(f"{name} has no {test}")
        elif f"#include <penstock/{name}>" not in (ROOT / test).read_text(encoding="utf-8"):
            faults.append(f"{test} does not include <penstock/{name}>")
    stems = {}
    for test in sorted((ROOT / "tests").rglob("*.test.cpp")):
        stems.setdefault((test.relative_to(ROOT / "tests").parts[0], test.name.lower()), []).append(test.name)
        text = test.read_text(encoding="utf-8")
        if not re.search(r"^(TEMPLATE_\w*)?TEST_CASE\w*\(|^TEMPLATE_\w*TEST\w*\(", text, re.MULTILINE):
            faults.append(f"{test.relative_to(ROOT).as_posix()} has no TEST_CASE, so nothing of it would run")
    faults += [f"file names of one room that differ in case at most: {names}" for names in stems.values() if len(names) > 1]
    finish("check_tests", faults, f"{count} headers")


if __name__ == "__main__":
    main()
