#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules that a compiler does not check.

Headers: the licence line, then #pragma once; the versioned namespace; no virtual functions,
std::function, RTTI or macros, except the one that says where definitions live and the one that marks code of
kernels; a sentence in every
static_assert; no reserved names. All sources: ASCII, no line over 110 characters, no trailing space,
nothing left open, no path of anyone's machine.
"""

import re

from source_tree import ROOT, bodies, finish, headers, is_umbrella, relative, strip

LICENCE = "SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception"
MAX_LINE = 110
MAX_TABLE = 132  # rows of tables and lines of code in a doc block cannot be broken
TABLE = re.compile(r"\s*///  ")

BANNED = {
    r"\bvirtual\b": "virtual",
    r"\bstd\s*::\s*(?:move_only_)?function\b": "std::function",
    r"\bdynamic_cast\b": "dynamic_cast",
    r"\btypeid\b": "typeid",
    # storage/web/web_boost.hpp renames what two libraries have alike, and codec/detail/token_pattern.hpp tells pcre2.h a
    # width; both take the macros back
    r"#\s*define\b(?! PENSTOCK_INLINE\b| PENSTOCK_DEVICE_CODE\b| (asio_\w+) boost_\1$| PCRE2_CODE_UNIT_WIDTH 8$)": "a macro",
    r"\bNDEBUG\b": "behaviour that depends on NDEBUG",
    r"\busing\s+namespace\s+(?!std\s*::\s*\w*literals\b)": "a using-directive",
}
# Names that compilers and systems define, which headers may therefore use.
FOREIGN = r"""__has_\w+ __cpp_\w+ __cplusplus __linux__ __APPLE__ __unix__ __x86_64__ __i386__ __aarch64__
__SSE\w* __AVX\w* __SIZEOF_\w+ __BYTE_ORDER__ __SANITIZE_\w+ __builtin_\w+ __GNUC__ __clang__
__CUDACC__ __host__ __device__
__int128 __uint128_t __extension__ __attribute__ __m\d+i? _mm\w*_\w+ _MSC_VER _MSVC_LANG _WIN32 _WIN64
_POSIX\w* _SC_\w+ __restrict __asm__ __FMA__""".split()
# A leading underscore before a letter, or two underscores anywhere; `1_GiB` and `operator""_GiB` are neither.
RESERVED = re.compile(r"""(?<![\w."'])(?!(?:%s)\b)(_[A-Za-z]\w*|\w*__\w*)""" % "|".join(FOREIGN))
OPEN = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b|\bun[i]mplemented\b|\bnot [i]mplemented\b")
MACHINE = re.compile(r"(?<![\w.:])/(?:wor[k]|far[m]|roo[t]|hom[e]|User[s])/")

SOURCES = ("include", "tests", "examples", "bench", "fuzz", "tools", "cmake", "docs", "ports", ".ci")
ENDINGS = {".hpp", ".ipp", ".cpp", ".cuh", ".cu", ".py", ".sh", ".cmake", ".txt", ".md", ".json", ".in", ""}


def sentence_faults(name, text):
    """Each static_assert must end in a text of more than one word."""
    code = strip(text, keep_strings=True)
    for match in re.finditer(r"\bstatic_assert\s*\(", code):
        depth, end, in_string = 1, match.end(), False
        while depth and end < len(code):
            letter = code[end]
            if in_string:
                end += letter == "\\"
                in_string = letter != '"'
            elif letter == '"':
                in_string = True
            else:
                depth += {"(": 1, ")": -1}.get(letter, 0)
            end += 1
        texts = "".join(re.findall(r'"((?:\\.|[^"\\])*)"\s*(?=["),]|$)', code[match.end():end]))
        tail = code[match.end():end - 1].rstrip()
        if not tail.endswith('"') or " " not in texts.strip():
            yield f"{name}:{code.count(chr(10), 0, match.start()) + 1}: static_assert without a sentence"


def header_faults(header):
    name = relative(header)
    text = header.read_text(encoding="utf-8")
    lines = text.splitlines()
    if lines[:1] != [f"// {LICENCE}"]:
        yield f"{name}:1: the first line is not the licence line"
    if lines[1:2] != ["#pragma once"]:
        yield f"{name}:2: the second line is not #pragma once"
    code = strip(text, keep_strings=False)
    versioned = re.search(r"\bnamespace\s+penstock\s*::\s*inline\s+v\d+_\d+\b", code)
    if not is_umbrella(name) and name != "core/compiled.hpp" and not versioned:
        yield f"{name}: nothing is in the versioned namespace of penstock"
    for number, line in enumerate(code.splitlines(), 1):
        for pattern, what in BANNED.items():
            if re.search(pattern, line):
                yield f"{name}:{number}: {what}"
        found = RESERVED.search(line)
        if found:
            yield f"{name}:{number}: the name {found.group(1)} is reserved"
    yield from sentence_faults(name, text)


def source_faults(path):
    name = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    prose = path.suffix in (".md", ".json", ".txt") and path.name != "CMakeLists.txt"
    prose = prose or path.name == "usage"  # vcpkg prints it
    if not prose and LICENCE not in "\n".join(text.splitlines()[:3]):
        yield f"{name}: no licence line"
    if text and not text.endswith("\n"):
        yield f"{name}: the last line has no line break"
    for number, line in enumerate(text.splitlines(), 1):
        if not line.isascii():
            yield f"{name}:{number}: not ASCII"
        script = path.suffix in (".py", ".sh", ".txt", "")  # no tool formats them
        limit = MAX_TABLE if script or TABLE.match(line) else MAX_LINE
        if len(line) > limit and not prose:
            yield f"{name}:{number}: {len(line)} characters, {limit} are allowed"
        if line != line.rstrip():
            yield f"{name}:{number}: space at the end of the line"
        if OPEN.search(line):
            yield f"{name}:{number}: something is left open"
        if MACHINE.search(line):
            yield f"{name}:{number}: a path of one machine"


# Files that tools leave beside the sources, and what other programs wrote for tests.
MADE = {"__pycache__", "build", "CMakeUserPresets.json", "lerobot_set", "reports"}
# Third-party files, kept unchanged; a README beside each names the origin.
KEPT = {"tests/consumer/cpm/CPM.cmake"}


def main():
    faults, count = [], 0
    for header in headers() + bodies():
        faults += header_faults(header)
    files = [p for p in ROOT.iterdir() if p.is_file() and p.name not in ("LICENSE",) and p.name != ".git"]
    for folder in SOURCES:
        files += [p for p in (ROOT / folder).rglob("*") if p.is_file() and not MADE.intersection(p.parts)]
    for path in sorted(files):
        if path.suffix in ENDINGS and not path.name.startswith((".git", ".clang")):
            if path.relative_to(ROOT).as_posix() in KEPT:
                continue
            count += 1
            faults += source_faults(path)
    finish("check_style", faults, f"{count} files")


if __name__ == "__main__":
    main()
