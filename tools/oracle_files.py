# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that other programs wrote, as C++: what tests/source/oracles/*.inc are made of."""


def literals(data):
    """Adjacent C++ string literals of at most 110 characters."""
    lines, line = [], ""
    for byte in data:
        plain = 32 <= byte < 127 and chr(byte) not in '"\\?'
        line += chr(byte) if plain else '\\"' if byte == 34 else f"\\{byte:03o}"
        if len(line) > 104:
            lines.append(line)
            line = ""
    return "".join(f'\n    "{one}"' for one in [*lines, line] if one) or ' ""'


def text_of(folder, maker):
    """All files of a folder."""
    rows = [f"{{{chr(34)}{path.relative_to(folder).as_posix()}{chr(34)}, std::string_view({literals(path.read_bytes())},"
            f" {path.stat().st_size})}},\n" for path in sorted(folder.rglob("*")) if path.is_file()]
    return f"// Made by {maker}; not to be edited.\n" + "".join(rows)
