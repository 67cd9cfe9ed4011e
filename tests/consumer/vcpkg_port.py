#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The vcpkg port, without vcpkg: its manifest has the fields and forms that vcpkg asks for, its portfile is run
with functions that do as vcpkg's do (vcpkg/functions.cmake), for no feature, for some and for all, and what
lies there then passes what vcpkg looks at after a build and serves a program. tools/test.sh --full takes each feature.

Not done: downloads, the resolution of dependencies, and triplets other than this machine's.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import sys

from outside import HERE, NEEDS, ROOT, fresh, run, same

PORT = ROOT / "ports/penstock"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")
FIELDS = {"name": str, "version-semver": str, "port-version": int, "description": (str, list), "homepage": str,
          "documentation": str, "license": str, "supports": str, "dependencies": list, "features": dict}
HELPERS = [{"name": "vcpkg-cmake", "host": True}, {"name": "vcpkg-cmake-config", "host": True}]


def fault(sentence):
    sys.exit(f"vcpkg_port: {sentence}")


def check_dependencies(where, entries):
    for entry in entries:
        name = entry if isinstance(entry, str) else entry.get("name", "")
        if not NAME.fullmatch(name) or (isinstance(entry, dict) and set(entry) - {"name", "host", "features", "platform"}):
            fault(f"{where} has a dependency that vcpkg does not understand: {entry}")


def check_manifest(path, components):
    """The fields of a manifest; its features are the optional components, and none is there by default."""
    manifest = json.loads(path.read_text(encoding="utf-8"))
    for field, value in manifest.items():
        if field not in FIELDS or not isinstance(value, FIELDS[field]):
            fault(f"{path.name} has the field {field}, unknown or of a wrong kind; default features are none")
    if not NAME.fullmatch(manifest["name"]) or not VERSION.fullmatch(manifest["version-semver"]):
        fault(f"{path.name}: name or version have a form that vcpkg refuses")
    check_dependencies(path.name, manifest.get("dependencies", []))
    for name, feature in manifest["features"].items():
        if not NAME.fullmatch(name) or set(feature) - {"dependencies"} != {"description"} or not feature["description"]:
            fault(f"{path.name}: the feature {name} needs a description, may have dependencies, and no more")
        check_dependencies(f"{path.name}, feature {name}", feature.get("dependencies", []))
    features = {n: f.get("dependencies", []) for n, f in manifest["features"].items() if n != "tests"}
    same(f"the features of {path.name}", sorted(features), sorted(components))
    return manifest, features


def look_after(package, features):
    """What vcpkg looks at when a port was built."""
    for path in ("include/penstock/penstock.hpp", "share/penstock/copyright", "share/penstock/usage",
                 "share/penstock/penstockConfig.cmake", "share/penstock/penstockConfigVersion.cmake"):
        if not (package / path).is_file():
            fault(f"the package has no {path}")
    for path in ("debug/include", "debug/share", "lib/cmake", "share/cmake", "share/pkgconfig"):
        if (package / path).exists():
            fault(f"the package has {path}")
    for path in package.rglob("*"):
        if path.is_dir() and not any(path.iterdir()):
            fault(f"the folder {path.relative_to(package)} is empty")
        if path.suffix in (".cmake", ".pc") and str(package.parent) in path.read_text(encoding="utf-8"):
            fault(f"{path.relative_to(package)} has a path of this machine")
    stray = [p.name for p in package.iterdir() if p.is_file()]
    same("files beside the folders", stray, [])
    # A library is built in debug and release, headers are not.
    kinds = ("lib", "debug/lib") if "compiled" in features else ("lib",)
    libraries = [f"{kind}/libpenstock.a" for kind in kinds] if "compiled" in features else []
    same("the libraries", sorted(p.relative_to(package).as_posix() for p in package.rglob("*.a")), sorted(libraries))
    parts = {part for f in features for part in [f, *NEEDS.get(f, [])]}
    names = ["penstock.pc"] + [f"penstock-{f.replace('-', '_')}.pc" for f in parts]
    same("the files for pkg-config", sorted(p.relative_to(package).as_posix() for p in package.rglob("*.pc")),
         sorted(f"{kind}/pkgconfig/{name}" for kind in kinds for name in names))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("work", "compiler", "components", "generator"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    work = fresh(options.work)

    listed = (ROOT / "include/penstock/CMakeLists.txt").read_text(encoding="utf-8")
    # A feature's name has no underscore.
    optional = [name.replace("_", "-") for name in re.findall(r"penstock_optional_component\(\s*(\w+)", listed)]
    optional.append("compiled")
    port, features = check_manifest(PORT / "vcpkg.json", optional)
    own, own_features = check_manifest(ROOT / "vcpkg.json", optional)
    same("the features of the two manifests", features, own_features)
    same("the helpers of the port", port["dependencies"], HELPERS)
    for field in ("name", "version-semver", "description", "license"):
        same(f"{field} of the two manifests", own[field], port[field])
    usage = (PORT / "usage").read_text(encoding="utf-8")
    for word in ("find_package(penstock CONFIG REQUIRED)", "penstock::penstock"):
        if word not in usage:
            fault(f"usage does not say {word}")

    # The libraries of components that are off may be missing here.
    here = [f for f in optional if f.replace("-", "_") in options.components.split(",")]
    headers = [f for f in here if f != "compiled"]
    # One that needs another, one whose name has an underscore, and the library; the others say the same.
    few = here if os.environ.get("PENSTOCK_LONG_TESTS") == "1" else ["s3", "range-v3", "compiled"]
    choices = [[]] + [[f] for f in here if f in few] + [headers]
    for number, chosen in enumerate(choices):
        place = work / str(number)
        package = place / "packages"
        run("cmake", f"-DPORT={port['name']}", f"-DPORT_DIR={PORT}", f"-DFEATURES={';'.join(chosen)}",
            f"-DCURRENT_PACKAGES_DIR={package}", f"-DBUILD={place / 'build'}", f"-DGENERATOR={options.generator}",
            f"-DCOMPILER={options.compiler}", "-P", HERE / "vcpkg/functions.cmake")
        look_after(package, chosen)
        # An installed tree has a different path than the package, so no file may contain the path.
        shutil.move(package, place / "installed")
        if chosen in ([], headers, ["compiled"]):
            run("cmake", "-S", HERE / "components", "-B", place / "user", "-G", options.generator,
                f"-DCMAKE_CXX_COMPILER={options.compiler}", f"-DCMAKE_PREFIX_PATH={place / 'installed'}",
                f"-DCONSUMER_COMPONENTS={';'.join(['core'] + chosen).replace('-', '_')}")
            run("cmake", "--build", place / "user")
            run(place / "user/consumer")
        if shutil.which("pkg-config"):
            search = dict(os.environ, PKG_CONFIG_PATH=str(place / "installed/lib/pkgconfig"))
            flags = shlex.split(run("pkg-config", "--cflags", "penstock", env=search))
            headers = [os.path.join(f[2:], "penstock/penstock.hpp") for f in flags if f.startswith("-I")]
            if not any(os.path.isfile(h) for h in headers):
                fault(f"pkg-config does not lead to the headers: {flags}")


if __name__ == "__main__":
    main()
