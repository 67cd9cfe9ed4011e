#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs built with pkg-config's flags from an installation that was moved after it was made: one that uses all
components, and for each component alone one that includes core and is linked with its libraries; tools/test.sh --full
has the component used."""

import argparse
import os
import re
import shlex

from outside import HERE, NEEDS, fresh, need, run, same


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("build", "work", "compiler", "components", "version"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    tool = need("pkg-config", "pkgconf")

    work = fresh(options.work)
    run("cmake", "--install", options.build, "--prefix", work / "first")
    prefix = work / "moved here"  # a space, so that an unquoted path is noticed
    (work / "first").rename(prefix)

    files = next(prefix.rglob("penstock.pc")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(files))
    components = options.components.split(",")
    packages = {c: "penstock" if c == "core" else f"penstock-{c}" for c in components}
    same("the files of pkg-config", sorted(p.name for p in files.iterdir()),
         sorted(f"{p}.pc" for p in packages.values()))

    def ask(*arguments):
        return run(tool, *arguments, env=environment)

    objects = {}

    def build(name, wanted):
        flags, libraries = (shlex.split(ask(what, *(packages[c] for c in wanted))) for what in ("--cflags", "--libs"))
        program = work / name
        used = wanted if name in ("compiled", "everything") or os.environ.get("PENSTOCK_LONG_TESTS") == "1" else []
        defines = [f"-DCONSUMER_{c.upper()}" for c in used]
        how = (*defines, *flags)  # the same for most that are not used
        if how not in objects:
            objects[how] = work / f"{name}.o"
            run(options.compiler, "-std=c++20", "-Wall", "-Wextra", "-Werror", *how, "-c", HERE / "components/main.cpp",
                "-o", objects[how])
        run(options.compiler, objects[how], *libraries, "-o", program)
        said = run(program)
        same(f"what {name} says first", said.splitlines()[0], f"penstock {options.version}")

    for component in components:
        same(f"the version of {packages[component]}", ask("--modversion", packages[component]).strip(), options.version)
        build(component, [component])
    build("everything", components)

    # Each .pc file must be independent of the others: no package of a component that was not
    # requested.
    for component in components:
        needed = re.findall(r"[\w-]+", ask("--print-requires", packages[component]).replace(options.version, ""))
        wanted = {packages[c] for c in components} & set(needed)
        same(f"which of ours {packages[component]} needs", wanted, set() if component == "core" else
             {"penstock"} | {packages[c] for c in NEEDS.get(component, [])})


if __name__ == "__main__":
    main()
