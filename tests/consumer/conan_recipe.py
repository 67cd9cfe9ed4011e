#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`conan create` with the recipe, from nothing and without a network: alone, and with the libraries of this
system standing in for Conan's packages. At its end Conan builds and runs the program in tests/test_package.

PENSTOCK_TEST_CONAN names Conan 2, otherwise it is searched for; tools/test.sh --full gets it from PyPI, and also builds
the components without the compiled library.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys

from outside import ROOT, fresh, need, run, same, skip

# component: (Conan's package, pkg-config's name)
SYSTEM = {"zstd": ("zstd", "libzstd"), "gzip": ("libdeflate", "libdeflate"), "zlib": ("zlib", "zlib"),
          "lz4": ("lz4", "liblz4"), "xz": ("xz_utils", "liblzma"), "json": ("nlohmann_json", "nlohmann_json"),
          "brotli": ("brotli", "libbrotlidec"), "snappy": ("snappy", "snappy"), "simdjson": ("simdjson", "simdjson"),
          "yaml": ("libyaml", "yaml-0.1"), "jpeg": ("libjpeg-turbo", "libjpeg"), "png": ("libspng", "spng"),
          "webp": ("libwebp", "libwebp"), "avif": ("libavif", "libavif"), "tiff": ("libtiff", "libtiff-4"),
          "utf8proc": ("utf8proc", "libutf8proc"), "pcre2": ("pcre2", "libpcre2-8"),
          "audio": ("libsndfile", "sndfile"), "resample": ("soxr", "soxr"),
          "tfrecord": ("isa-l", "libisal"), "cache": ("xxhash", "libxxhash"),
          "fmt": ("fmt", "fmt"), "uring": ("liburing", "liburing")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("work", "compiler", "components", "version"):
        parser.add_argument(f"--{name}", required=True)
    options = parser.parse_args()
    conan = os.environ.get("PENSTOCK_TEST_CONAN") or shutil.which("conan")
    if not conan:
        skip("there is no conan; PENSTOCK_TEST_CONAN may name one, and PyPI has it")
    tool = need("pkg-config", "pkgconf")

    work = fresh(options.work)
    # A separate home: none of the user's files is read or written.
    environment = dict(os.environ, CONAN_HOME=str(work / "home"), CXX=options.compiler)
    environment.pop("CC", None)
    source = work / "source"  # a copy, because Conan builds the program beside its sources
    source.mkdir()
    for name in ("conanfile.py", "CMakeLists.txt", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("cmake", "include", "tests/test_package"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("build", "CMakeUserPresets.json"))
    listed = re.findall(r'^    "(\w+)": \[', (ROOT / "conanfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    optional = sorted(set(options.components.split(",")) - {"core", "compiled"})
    same("the components of the recipe", sorted(set(optional) - set(listed)), [])

    run(conan, "profile", "detect", env=environment)
    detected = (work / "home/profiles/default").read_text(encoding="utf-8")
    here = [c for c in SYSTEM if c in optional]
    packages = [f"{SYSTEM[c][0]}/{run(tool, '--modversion', SYSTEM[c][1]).strip()}" for c in here]
    profile = work / "system"
    profile.write_text(re.sub(r"cppstd=.*", "cppstd=20", detected) + "\n[platform_requires]\n" + "\n".join(packages)
                       + "\n[conf]\ntools.cmake.cmaketoolchain:generator=Unix Makefiles\n"
                       # This is about files, not about speed.
                       + "tools.cmake.cmaketoolchain:extra_variables={'CMAKE_CXX_FLAGS_RELEASE': '-O0'}\n",
                       encoding="utf-8")

    forms = [[], [*here, "compiled"]]
    if here and os.environ.get("PENSTOCK_LONG_TESTS") == "1":
        forms.append(here)
    for wanted in forms:
        chosen = [word for c in wanted for word in ("-o", f"penstock/*:with_{c}=True")]
        command = [conan, "create", source, "--no-remote", "-pr:a", profile, "--build=missing", *chosen]
        print("+", *command, flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              env=environment)
        print(done.stdout)
        expected = [f"penstock {options.version}: a sum of 4950"]
        expected += [f"with {c}: {c}" for c in ("compiled", "zstd", "gzip") if c in wanted]
        missing = [line for line in expected if line not in done.stdout.splitlines()]
        if done.returncode != 0 or missing:
            sys.exit(f"conan create ended with {done.returncode}; its program did not say {missing}")

    command = [conan, "install", source, "--no-remote", "-pr:a", profile, "-s:h", "os=Windows"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env=environment)
    if done.returncode == 0 or "needs a POSIX system" not in done.stdout:
        sys.exit(f"the recipe is not refused for Windows: {done.stdout}")


if __name__ == "__main__":
    main()
