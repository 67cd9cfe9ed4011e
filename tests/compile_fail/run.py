#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles one file without and with -DPENSTOCK_WRONG, or many files without it.

Without it must compile. With it there must be one error whose line holds the sentence that the file's
`// expect: <sentence>` states, in at most 15 lines of output from GCC and 20 from Clang: as much as a reader
takes in at once. A case that is wrong only with a flag says `// wrong with: <flags>`. With `// expect beside the error:`
the sentence may stand in the lines that follow the error.

--precompile writes precompiled headers of the whole library, and of the standard headers that it includes; with
--precompiled the first of the two compilations uses the one, the second the other: it reads the library's headers
itself, so that those in its output are those that a user includes.

--right compiles all files without PENSTOCK_WRONG at once, each in a namespace of its own, which takes a tenth of the
time; --wrong-only leaves that compilation out. --wrong compiles all of them with PENSTOCK_WRONG at once, with the
library's headers precompiled, and asks that each has one error, short and with its sentence; one that has not is
compiled by itself.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

FLAGS = re.compile(r"^// wrong with: (.+?)\s*$", re.MULTILINE)
EXPECT = re.compile(r"^// expect(?: beside the error)?: (.+?)\s*$", re.MULTILINE)
BESIDE = re.compile(r"^// expect beside the error:", re.MULTILINE)
INCLUDE = re.compile(r"^#include [<\"].+[>\"].*$\n?", re.MULTILINE)
# What GCC and Clang write before an error, to say where it is.
WHERE = re.compile(r"In file included from |[^:]+: (?:In|At) ")
STANDARD = re.compile(r"^#include (<[a-z_]+>)$", re.MULTILINE)


def is_clang(compiler):
    return "clang" in pathlib.Path(compiler).name


def max_lines(compiler):
    return 20 if is_clang(compiler) else 15


def may_be_long(compiler, error):
    """Whether an error from cases compiled together may have too many lines where its case is compiled alone, which
    begin with another way to the header. Clang also ends with a line that counts errors."""
    way = [line for line in error if line.startswith(("In file included from ", "                 from "))]
    longest_way = 5
    return len(error) - len(way) + longest_way + is_clang(compiler) > max_lines(compiler)


def precompile(compiler, includes, header, defines):
    """Writes a header that includes the whole library, one that includes what that needs, and precompiles them."""
    header.parent.mkdir(parents=True, exist_ok=True)
    needed = {
        name
        for include in includes
        for path in pathlib.Path(include).rglob("*.?pp")
        for name in STANDARD.findall(path.read_text(encoding="utf-8"))
    }
    texts = {header: ["<penstock/all.hpp>"], standard(header): sorted(needed)}
    command = [compiler, "-std=c++20", *(f"-I{include}" for include in includes), *(f"-D{name}" for name in defines)]
    for path, names in texts.items():
        lines = [f"#if __has_include({name})\n#include {name}\n#endif\n" for name in names]
        path.write_text("#pragma once\n" + "".join(lines), encoding="utf-8")
        made = path.with_suffix(".hpp.pch" if is_clang(compiler) else ".hpp.gch")
        subprocess.run([*command, "-x", "c++-header", str(path), "-o", str(made)], check=True)


def standard(header):
    """The header of the standard headers beside the one of the whole library."""
    return header.with_name("standard.hpp")


def using(compiler, header):
    return ["-include-pch", f"{header}.pch"] if is_clang(compiler) else ["-include", str(header)]


def compile_once(compiler, includes, source, wrong, flags=(), defines=()):
    """(exit status, lines of output)"""
    command = [compiler, "-std=c++20", "-fsyntax-only", "-fdiagnostics-color=never"]
    command += [f"-I{include}" for include in includes] + [f"-D{name}" for name in defines]
    command += ["-DPENSTOCK_WRONG"] if wrong else []
    command += flags
    environment = dict(os.environ, LC_ALL="C")
    command.append(str(source))
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def write_together(sources, path):
    """Writes a file in which each source has a namespace of its own, behind the headers of all of them."""
    texts = [source.read_text(encoding="utf-8") for source in sources]
    headers = sorted({line.strip() for text in texts for line in INCLUDE.findall(text)})
    parts = [
        f'namespace case_{number} {{\n#line 1 "{source}"\n' + INCLUDE.sub("\n", text) + "\n}\n"
        for number, (source, text) in enumerate(zip(sources, texts))
    ]
    path.write_text("\n".join(headers) + "\n" + "".join(parts), encoding="utf-8")


def judge(compiler, includes, source, defines=(), precompiled=None, wrong_only=False):
    """What is wrong with this case, as sentences, and the output of the wrong compilation."""
    head = "\n".join(source.read_text(encoding="utf-8").splitlines()[:10])
    expected, flags = EXPECT.search(head), FLAGS.search(head)
    if not expected:
        return ["the first ten lines have no `// expect: <sentence>`"], []

    if not wrong_only:
        made = using(compiler, precompiled) if precompiled else []
        status, right = compile_once(compiler, includes, source, wrong=False, flags=made, defines=defines)
        if status != 0:
            return ["does not compile without PENSTOCK_WRONG, so its failure shows nothing"], right

    flags = flags.group(1).split() if flags else []
    if precompiled and not flags:
        flags = using(compiler, standard(precompiled))
    status, lines = compile_once(compiler, includes, source, wrong=True, flags=flags, defines=defines)
    if status == 0:
        return ["compiles with PENSTOCK_WRONG"], lines

    faults = []
    errors = [line for line in lines if "error:" in line]
    # A deleted function has no sentence of its own; its line is shown beside the error.
    where = lines if BESIDE.search(head) else errors[:1]
    if not errors or not any(expected.group(1) in line for line in where):
        faults.append(f"the first error does not say: {expected.group(1)}")
    if len(errors) != 1:
        faults.append(f"{len(errors)} errors instead of one")
    if len(lines) > max_lines(compiler):
        faults.append(f"{len(lines)} lines of output, at most {max_lines(compiler)} are allowed")
    return faults, lines


def errors_of(lines):
    """The output, cut into an error each: where it is, itself, and the notes that follow it."""
    errors, has_error = [[]], False
    for line in lines:
        if has_error and ("error:" in line or WHERE.match(line)):
            errors.append([])
            has_error = False
        errors[-1].append(line)
        has_error = has_error or "error:" in line
    return errors


def judge_together(compiler, includes, sources, path, defines=(), precompiled=None):
    """What is wrong with these cases, by source."""
    heads = {source: "\n".join(source.read_text(encoding="utf-8").splitlines()[:10]) for source in sources}
    together = [source for source, head in heads.items() if EXPECT.search(head) and not FLAGS.search(head)]
    write_together(together, path)
    unlimited = ["-ferror-limit=0"] if is_clang(compiler) else []
    made = using(compiler, precompiled) if precompiled else []
    _, lines = compile_once(compiler, includes, path, wrong=True, flags=made + unlimited, defines=defines)
    errors = errors_of(lines)
    alone = [source for source in sources if source not in together]
    for source in together:
        own = [error for error in errors if any(f"{source}:" in line for line in error)]
        said = [line for error in own for line in error if BESIDE.search(heads[source]) or "error:" in line]
        sentence = EXPECT.search(heads[source]).group(1)
        long = len(own) == 1 and may_be_long(compiler, own[0])
        if len(own) != 1 or long or not any(sentence in line for line in said):
            alone.append(source)
    print(f"{len(sources) - len(alone)} of {len(sources)} cases together, the others one by one")
    return {source: judge(compiler, includes, source, defines, precompiled, wrong_only=True)[0] for source in alone}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--define", action="append", default=[])
    parser.add_argument("--precompile", type=pathlib.Path)
    parser.add_argument("--precompiled", type=pathlib.Path)
    parser.add_argument("--right", type=pathlib.Path, help="compile all sources at once, through a file of this name")
    parser.add_argument("--wrong", type=pathlib.Path, help="the same, with PENSTOCK_WRONG")
    parser.add_argument("--wrong-only", action="store_true")
    parser.add_argument("source", type=pathlib.Path, nargs="*")
    arguments = parser.parse_args()

    if arguments.precompile:
        precompile(arguments.compiler, arguments.include, arguments.precompile, arguments.define)
        return
    if arguments.right:
        write_together(arguments.source, arguments.right)
        status, lines = compile_once(arguments.compiler, arguments.include, arguments.right, wrong=False,
                                     flags=using(arguments.compiler, arguments.precompiled), defines=arguments.define)
        print("\n".join(lines))
        sys.exit(status)
    if arguments.wrong:
        found = judge_together(arguments.compiler, arguments.include, arguments.source, arguments.wrong,
                               arguments.define, arguments.precompiled)
        for source, faults in found.items():
            for fault in faults:
                print(f"-- {source.name}: {fault}")
        sys.exit(1 if any(found.values()) else 0)
    source = arguments.source[0]
    faults, lines = judge(arguments.compiler, arguments.include, source, arguments.define, arguments.precompiled,
                          arguments.wrong_only)
    print("\n".join(lines))
    print(f"-- {len(lines)} lines of output from {arguments.compiler}")
    for fault in faults:
        print(f"-- {source.name}: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
