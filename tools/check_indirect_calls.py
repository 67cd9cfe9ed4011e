#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_indirect_calls.py OBJECT_OR_PROGRAM SYMBOL_REGEX [VECTORISED_REGEX]

Disassembles the functions whose demangled name matches and fails when one of them calls through a
register or a pointer in memory: that is what a virtual call or a std::function would look like. It also
fails when no function matches, because then nothing was checked. A call through the global offset table
(relative to the instruction) is the linker's and counts as direct. Of the functions that match the second
expression, at least one must have a loop that stores several values with one instruction.
"""

import bisect
import re
import subprocess
import sys

FUNCTION = re.compile(r"^[0-9a-f]+ <(.*)>:$")
INDIRECT = (
    re.compile(r"\bcallq?\s+\*(?!.*\(%rip\))"),  # x86-64
    re.compile(r"\bblr[a-z]*\s+x\d+"),  # AArch64
)
INSTRUCTION = re.compile(r"^\s*[0-9a-f]+:\s")
ANY_CALL = re.compile(r"\b(callq?|blr?[a-z]*)\s")
JUMP = re.compile(r"^\s*([0-9a-f]+):\s+(?:j\w+|b\.\w+|cbn?z\s+\w+,|tbn?z\s+\w+,.*,)\s+([0-9a-f]+)\b")
PACKED_STORE = (
    re.compile(r"\bv?mov(?:[au]p[sd]|dq[au]\w*)\s+%[xyz]mm\d+,.*\("),  # x86-64
    re.compile(r"\bst[pr]\s+q\d+"),  # AArch64
)


def functions(path):
    """(demangled name, instructions) of each function."""
    command = ["objdump", "--disassemble", "--demangle", "--no-show-raw-insn", path]
    listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    name, lines = None, []
    for line in listing.splitlines():
        found = FUNCTION.match(line)
        if found:
            if name is not None:
                yield name, lines
            name, lines = found.group(1), []
        elif INSTRUCTION.match(line):
            lines.append(line)
    if name is not None:
        yield name, lines


def vectorised(lines):
    """Whether a loop of a function, from the target of a jump back to that jump, has a packed store."""
    addresses = [int(line.split(":")[0], 16) for line in lines]
    for end, line in enumerate(lines):
        jump = JUMP.match(line)
        if jump and (target := int(jump.group(2), 16)) <= addresses[end]:
            body = lines[bisect.bisect_left(addresses, target):end]
            if any(form.search(one) for one in body for form in PACKED_STORE):
                return True
    return False


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    path, pattern = sys.argv[1], re.compile(sys.argv[2])
    copies = re.compile(sys.argv[3]) if len(sys.argv) == 4 else None
    if copies and not any(copies.search(name) and vectorised(lines) for name, lines in functions(path)):
        sys.exit(f"no function in {path} that matches {sys.argv[3]} has a loop that stores several values at once")
    matched, indirect = 0, 0
    for name, lines in functions(path):
        if not pattern.search(name):
            continue
        if len(lines) < 10:
            sys.exit(f"{name} has no loop: {len(lines)} instructions, which lead elsewhere")
        matched += 1
        calls = [line for line in lines if ANY_CALL.search(line)]
        bad = [line for line in lines if any(form.search(line) for form in INDIRECT)]
        indirect += len(bad)
        print(f"{name}\n    {len(lines)} instructions, {len(calls)} calls, {len(bad)} of them indirect")
        for line in bad:
            print(f"    {line.strip()}")
    if matched == 0:
        sys.exit(f"no function in {path} matches {sys.argv[2]}")
    if indirect:
        sys.exit(f"{indirect} indirect calls")


if __name__ == "__main__":
    main()
