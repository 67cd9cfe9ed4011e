#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The runner's own test: it must accept one good case and refuse each kind of bad one."""

import argparse
import pathlib
import sys
import tempfile

import run

SENTENCE = "// expect: a pipe needs two ends\n"
ONE_ERROR = '#ifdef PENSTOCK_WRONG\nstatic_assert(false, "a pipe needs two ends");\n#endif\n'
MANY = "".join(f"struct s{i} {{}};\nint f(s{i});\n" for i in range(20))
CASES = {
    "good": (SENTENCE + ONE_ERROR, None),
    "no sentence": (ONE_ERROR, "no `// expect"),
    "always wrong": (SENTENCE + "static_assert(false);\n", "does not compile without"),
    "never wrong": (SENTENCE, "compiles with PENSTOCK_WRONG"),
    "other sentence": ("// expect: a pipe needs water\n" + ONE_ERROR, "the first error does not say"),
    "two errors": (SENTENCE + ONE_ERROR + ONE_ERROR, "2 errors instead of one"),
    "too long": (
        SENTENCE + ONE_ERROR + "#ifdef PENSTOCK_WRONG\n" + '#warning "one more line"\n' * 25 + "#endif\n",
        "lines of output",
    ),
    "a long error": (
        "// expect: no matching function\n" + MANY + "#ifdef PENSTOCK_WRONG\nint n = f(1);\n#endif\n", "lines of output"
    ),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    compiler = parser.parse_args().compiler

    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (text, expected) in CASES.items():
            source = pathlib.Path(folder) / "case.cpp"
            source.write_text(text, encoding="utf-8")
            faults, _ = run.judge(compiler, [], source)
            right = not faults if expected is None else any(expected in fault for fault in faults)
            print(f"{'ok  ' if right else 'FAIL'} {name}: {faults}")
            failed += not right

        # Together, with good cases that have the sentences which the bad ones lack.
        together = {name: CASES[name] for name in ("good", "never wrong", "other sentence", "two errors", "a long error")}
        together["also good"] = CASES["good"]
        sources = {pathlib.Path(folder) / f"case {i}.cpp": name for i, name in enumerate(together)}
        for source, name in sources.items():
            source.write_text(together[name][0], encoding="utf-8")
        found = run.judge_together(compiler, [], list(sources), pathlib.Path(folder) / "together.cpp")
        for source, name in sources.items():
            expected, faults = together[name][1], found.get(source, [])
            right = not faults if expected is None else any(expected in fault for fault in faults)
            print(f"{'ok  ' if right else 'FAIL'} {name}, together: {faults}")
            failed += not right
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
