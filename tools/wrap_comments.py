#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""wrap_comments.py FILE...

Breaks comment lines that are too long and leaves the others alone: in a doc block each line is a fact of its
own, which clang-format would run together. The excess moves to the front of the next line of the sentence, or
else becomes a new line. Tables and code in a doc block (indented by more than one space) do not change.
"""

import pathlib
import re
import sys

LIMIT = 110
COMMENT = re.compile(r"(\s*///? )(\S.*)$")
CODE_AND_COMMENT = re.compile(r'^(\s*)(.*\S)\s+//[/!]?<? ([^"]*)$')
ENDS = re.compile(r"[.:;`]$")


def wrap(lines):
    """The lines, changed in place."""
    i = 0
    while i < len(lines):
        line = lines[i]
        if len(line) > LIMIT:
            comment, both = COMMENT.match(line), CODE_AND_COMMENT.match(line)
            if comment:
                prefix = comment.group(1)
                cut = line.rfind(" ", len(prefix), LIMIT + 1)
                if cut > len(prefix):
                    rest, lines[i] = line[cut + 1:], line[:cut]
                    following = COMMENT.match(lines[i + 1]) if i + 1 < len(lines) else None
                    same = following and following.group(1) == prefix and following.group(2)[0] not in "-*@"
                    if same and not ENDS.search(rest):
                        lines[i + 1] = prefix + rest + " " + following.group(2)
                    else:
                        lines.insert(i + 1, prefix + rest)
            elif both:
                marker = "///" if "///" in line or "//!" in line else "//"
                lines[i:i + 1] = [f"{both.group(1)}{marker} {both.group(3)}", both.group(1) + both.group(2)]
                continue
        i += 1
    return lines


def main():
    for name in sys.argv[1:]:
        path = pathlib.Path(name)
        before = path.read_text(encoding="utf-8")
        after = "\n".join(wrap(before.split("\n")))
        if after != before:
            path.write_text(after, encoding="utf-8")


if __name__ == "__main__":
    main()
